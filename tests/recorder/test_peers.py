"""Rows of the kernel's socket table, and what they say of a client that sent a FIN."""

from __future__ import annotations

import pytest

from agentx.recorder.peers import half_closed, in_table

OWN, PEER = ("127.0.0.1", 8700), ("127.0.0.1", 40000)
HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


def row(local: str, remote: str, state: str, inode: str) -> str:
    return f"   0: {local} {remote} {state} 00000000:00000000 00:00000000 00000000  1000        0 {inode} 1 0\n"


MINE, THEIRS = "0100007F:21FC", "0100007F:9C40"


@pytest.mark.parametrize(
    ("line", "reads"),
    [
        (row(THEIRS, MINE, "05", "777"), True),  # stopped writing, a process still holds it
        (row(THEIRS, MINE, "04", "777"), True),
        (row(THEIRS, MINE, "05", "0"), False),  # closed: nobody holds it
        (row(THEIRS, MINE, "01", "777"), False),  # has not sent a FIN
        (row(MINE, THEIRS, "05", "777"), False),  # our own end
        ("garbage\n", False),
        (row("0000000000000000FFFF00000100007F:9C40", "0000000000000000FFFF00000100007F:21FC", "05", "9"), True),
    ],
)
def test_rows(line: str, reads: bool) -> None:
    assert in_table([HEAD, line], OWN, PEER) is reads


def test_a_peer_that_is_not_in_the_table_is_gone() -> None:
    assert half_closed(OWN, ("192.0.2.1", 1)) is False
    assert half_closed(OWN, ("no address", 1)) is False
