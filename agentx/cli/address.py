"""Where a verb that serves listens: a port that is one, and whether a host is this machine alone."""

from __future__ import annotations

import argparse


def loopback(host: str) -> bool:
    import ipaddress

    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def port(text: str) -> int:
    number = int(text) if text.isdecimal() else -1
    if not 0 <= number <= 65535:
        raise argparse.ArgumentTypeError(f"should be a port from 0 to 65535, not {text!r}")
    return number
