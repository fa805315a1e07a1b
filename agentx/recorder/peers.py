"""Whether a client that sends no more still reads: a FIN alone does not tell a half-close from a close.

On the same machine the kernel's socket table tells: a socket that was closed belongs to no process any more, one that
only stopped writing does. Where the table does not show the peer (another machine or network namespace, another
system than Linux) nobody can know, and the client is taken to be gone, as other proxies do.
"""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import Iterable
from pathlib import Path

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_STOPPED_WRITING = ("04", "05")  # FIN_WAIT1, FIN_WAIT2


def half_closed(own: tuple[str, int], peer: tuple[str, int]) -> bool:
    """Whether the peer of a connection, which sent a FIN, still has its socket open for reading."""
    return any(_still_read(Path(table), own, peer) for table in _TABLES)


def _still_read(table: Path, own: tuple[str, int], peer: tuple[str, int]) -> bool:
    try:
        with table.open() as lines:
            return in_table(lines, own, peer)
    except OSError:
        return False


def in_table(lines: Iterable[str], own: tuple[str, int], peer: tuple[str, int]) -> bool:
    """Whether the table (proc_net_tcp) has the peer's end of the connection, not writing, but owned by a process."""
    wanted = (_spelled(peer), _spelled(own))
    for line in lines:
        fields = line.split()
        if len(fields) > 9 and (fields[1] in wanted[0] and fields[2] in wanted[1]):
            return fields[3] in _STOPPED_WRITING and fields[9] != "0"
    return False


def _spelled(address: tuple[str, int]) -> set[str]:
    """An address as the table spells it: words of the machine's byte order in hexadecimal; IPv4 in IPv6 too."""
    host, port = address
    try:
        ip = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return set()
    forms = [ip.packed]
    if ip.version == 4:
        forms.append(ipaddress.ip_address(f"::ffff:{ip}").packed)
    return {f"{_words(packed)}:{port:04X}" for packed in forms}


def _words(packed: bytes) -> str:
    words = [packed[i : i + 4] for i in range(0, len(packed), 4)]
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words)
