"""The reporter's factories of runs."""

from __future__ import annotations

import importlib.util
from pathlib import Path

_path = Path(__file__).parents[1] / "reporter" / "conftest.py"
_spec = importlib.util.spec_from_file_location("reporter_conftest", _path)
assert _spec is not None
assert _spec.loader is not None
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)
attempt, play, run, sample = _module.attempt, _module.play, _module.run, _module.sample
