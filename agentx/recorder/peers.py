"""Whether a client that sends no more still reads: a FIN alone does not tell a half-close from a close.

On the same machine the kernel tells (Linux, sock_diag(7)): a socket that was closed belongs to no process any more, one
that only stopped writing does. Where the kernel does not know the peer (another machine or network namespace, another
system) nobody can know, and the client is taken to be gone, as other proxies do. One question takes microseconds.
"""

from __future__ import annotations

import ipaddress
import socket
import struct

_HEADER = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence, port
_REQUEST = struct.Struct("=BBBBI")  # inet_diag_req_v2 before its socket's name
_NAME = struct.Struct("!HH16s16s")  # inet_diag_sockid: ports and addresses; then interface and cookie
_ANSWER = struct.Struct("=BBBB48sIIIII")  # inet_diag_msg: family, state, timer, retransmits, name, …, uid, inode
_BY_FAMILY, _IS_REQUEST, _ALL_STATES = 20, 1, 0xFFFFFFFF
_NO_COOKIE = struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
_STOPPED_WRITING = (4, 5)  # FIN_WAIT1, FIN_WAIT2
_PATIENCE = 0.01  # s; the kernel answers at once or not at all

Address = tuple[str, int]


def half_closed(own: Address, peer: Address) -> bool:
    """Whether the peer of a connection, which sent a FIN, still has its socket open for reading."""
    try:
        question = query(own, peer)
        with socket.socket(getattr(socket, "AF_NETLINK", -1), socket.SOCK_DGRAM, 4) as kernel:  # NETLINK_SOCK_DIAG
            kernel.settimeout(_PATIENCE)
            kernel.send(question)
            return still_read(kernel.recv(4096))
    except (OSError, ValueError):
        return False


def query(own: Address, peer: Address) -> bytes:
    """The question for the peer's end of the connection. Raises ValueError for what is no address."""
    theirs, ours = _ip(peer[0]), _ip(own[0])
    family = socket.AF_INET if theirs.version == 4 else socket.AF_INET6
    name = _NAME.pack(peer[1], own[1], theirs.packed.ljust(16, b"\0"), ours.packed.ljust(16, b"\0")) + _NO_COOKIE
    body = _REQUEST.pack(family, socket.IPPROTO_TCP, 0, 0, _ALL_STATES) + name
    return _HEADER.pack(_HEADER.size + len(body), _BY_FAMILY, _IS_REQUEST, 1, 0) + body


def still_read(answer: bytes) -> bool:
    """Whether the kernel's answer is a socket that stopped writing and that a process holds."""
    if len(answer) < _HEADER.size + _ANSWER.size or _HEADER.unpack_from(answer)[1] != _BY_FAMILY:
        return False
    fields = _ANSWER.unpack_from(answer, _HEADER.size)
    return fields[1] in _STOPPED_WRITING and fields[-1] != 0


def _ip(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    ip = ipaddress.ip_address(text.partition("%")[0])
    return (ip.ipv4_mapped or ip) if isinstance(ip, ipaddress.IPv6Address) else ip
