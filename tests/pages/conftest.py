"""The reporter's factories of runs, and a browser."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest
from browsing import BROWSER, MISSING, Browser

_path = Path(__file__).parents[1] / "reporter" / "conftest.py"
_spec = importlib.util.spec_from_file_location("reporter_conftest", _path)
assert _spec is not None
assert _spec.loader is not None
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)
attempt, play, run, sample = _module.attempt, _module.play, _module.run, _module.sample


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One for all pages. Skipped, with the reason, where there is none."""
    if BROWSER is None:
        pytest.skip(MISSING)
    made = Browser(tmp_path_factory.mktemp("browser"))
    yield made
    made.close()
