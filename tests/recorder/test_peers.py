"""What the kernel says of a client that sent a FIN."""

from __future__ import annotations

import socket
import struct
import sys

import pytest

from agentx.recorder.peers import half_closed, query, still_read


def answer(state: int, inode: int, kind: int = 20) -> bytes:
    body = struct.pack("=BBBB48sIIIII", 2, state, 0, 0, b"", 0, 0, 0, 1000, inode)
    return struct.pack("=IHHII", 16 + len(body), kind, 0, 1, 0) + body


@pytest.mark.parametrize(
    ("said", "reads"),
    [
        (answer(5, 777), True),  # stopped writing, a process still holds it
        (answer(4, 777), True),
        (answer(5, 0), False),  # closed: nobody holds it
        (answer(1, 777), False),  # has not sent a FIN
        (answer(5, 777, kind=2), False),  # an error
        (b"", False),
        (answer(5, 777)[:40], False),
    ],
)
def test_answers(said: bytes, reads: bool) -> None:
    assert still_read(said) is reads


def test_the_question_names_the_peers_end() -> None:
    asked = query(("::ffff:127.0.0.1", 8700), ("127.0.0.1", 40000))
    assert struct.unpack_from("=BB", asked, 16) == (socket.AF_INET, socket.IPPROTO_TCP)
    assert struct.unpack_from("!HH", asked, 24) == (40000, 8700)
    assert len(asked) == struct.unpack_from("=I", asked)[0] == 72


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux")
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_real_sockets(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as server:
        try:
            server.bind((host, 0))
        except OSError:
            pytest.skip("no IPv6 here")
        server.listen()
        clients = [socket.create_connection(server.getsockname()[:2]) for _ in range(3)]
        ends = [server.accept()[0] for _ in clients]
        clients[0].shutdown(socket.SHUT_WR)
        clients[1].close()
        seen = [half_closed(end.getsockname()[:2], end.getpeername()[:2]) for end in ends]
        assert seen == [True, False, False]
        for each in (*ends, clients[0], clients[2]):
            each.close()


def test_a_peer_that_the_kernel_does_not_know_is_gone() -> None:
    assert half_closed(("127.0.0.1", 1), ("192.0.2.1", 1)) is False
    assert half_closed(("127.0.0.1", 1), ("no address", 1)) is False
