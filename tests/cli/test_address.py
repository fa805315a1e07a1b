"""Ports and hosts as a user writes them."""

from __future__ import annotations

import argparse

import pytest

from agentx.cli.address import loopback, port


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("8100", 8100), ("65535", 65535)])
def test_ports(text: str, number: int) -> None:
    assert port(text) == number


@pytest.mark.parametrize("text", ["65536", "-1", "http", ""])
def test_what_is_no_port(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="should be a port from 0 to 65535"):
        port(text)


@pytest.mark.parametrize(
    ("host", "alone"),
    [("localhost", True), ("127.0.0.1", True), ("::1", True), ("0.0.0.0", False), ("10.0.0.1", False), ("box", False)],
)
def test_loopback(host: str, alone: bool) -> None:
    assert loopback(host) == alone
