"""Fixtures of the recorder's tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from proxying import Proxied


@pytest.fixture
def proxied(tmp_path: Path) -> Proxied:
    return Proxied(tmp_path)
