"""Imports point downward only, and the top level stays cheap to import."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import agentx

PACKAGE = Path(agentx.__file__).parent
LEVELS = [  # a module imports from its own unit and from lower levels
    {"errors", "core"},
    {"frames"},
    {"trace", "results", "content", "distributions", "catalog", "yamlspec", "cutting", "json_types"},
    {"wire"},
    {"reuse", "generator", "recorder", "engine"},
    {"replayer"},
    {"reporter", "plots", "quality"},
    {"pages"},
    {"cli"},
]
LEVEL = {unit: number for number, level in enumerate(LEVELS) for unit in level}
UNIT_OF = {
    "trace_bodies": "trace",
    "trace_lines": "trace",
    "chunks": "results",
    "kv_events": "results",
    "telemetry": "results",
    "prefix_tree": "reuse",
    "reuse_fit": "reuse",
    "reuse_template": "reuse",
    "capacity": "reuse",
    "room": "reuse",
    "run_reuse": "reuse",
    "run_replies": "reuse",
    "turn_kinds": "reuse",
    "functions": "distributions",
    "yamldata": "yamlspec",
    "__main__": "cli",
}
MAY_ALSO = {("reporter", "plots"), ("cutting", "trace"), ("reuse", "results"), ("core", "errors")}


def unit(module: str) -> str:
    """The unit that a module such as `agentx.wire.sse` belongs to."""
    name = module.split(".")[1] if "." in module else module
    return UNIT_OF.get(name, name)


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module == "agentx":
                yield from (f"agentx.{alias.name}" for alias in node.names)
            else:
                yield node.module


def upward(package: Path) -> list[str]:
    """Every import that points upward or sideways, as text."""
    wrong = []
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        here = UNIT_OF.get(parts[0], parts[0])
        if here == "__init__":
            continue
        if here not in LEVEL:
            wrong.append(f"{path.name}: {here} has no level")
            continue
        for module in imports(path):
            there = unit(module) if module.startswith("agentx.") else None
            if there is None or there == here or there.startswith("__") or (here, there) in MAY_ALSO:
                continue
            if LEVEL.get(there, 99) >= LEVEL[here]:
                wrong.append(f"{'.'.join(parts)} imports {module}")
    return wrong


def test_no_import_points_upward() -> None:
    assert upward(PACKAGE) == []


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("core.py", "from agentx.trace import read_trace"),  # two levels up
        ("wire/sse.py", "import agentx.engine.radix"),  # one level up
        ("engine/radix.py", "from agentx import reuse"),  # sideways
        ("reporter/text.py", "def f():\n    from agentx.cli import main"),  # lazily is upward too
    ],
)
def test_a_planted_upward_import_is_found(tmp_path: Path, file: str, line: str) -> None:
    planted = tmp_path / file
    planted.parent.mkdir(parents=True, exist_ok=True)
    planted.write_text(line + "\n")
    assert len(upward(tmp_path)) == 1


@pytest.mark.parametrize("start", ["import agentx", "from agentx.cli.main import parser; parser(None).format_help()"])
def test_the_top_level_loads_neither_aiohttp_nor_numpy(start: str) -> None:
    code = f"{start}\nimport sys\nprint([m for m in ('aiohttp', 'numpy', 'pydantic', 'msgpack') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_every_test_file_mirrors_a_module() -> None:
    """tests/room/test_x.py is for agentx/room/x.py; e2e tests are for verbs, the rest is listed here."""
    free = {"test_layers.py", "test_docs.py", "test_public.py"}
    tests = Path(__file__).parent
    orphans = []
    for path in tests.rglob("test_*.py"):
        place = path.relative_to(tests)
        if place.parts[0] == "e2e" or path.name in free:
            continue
        module = PACKAGE / place.parent / f"{path.stem.removeprefix('test_')}.py"
        if not module.exists():
            orphans.append(str(place))
    assert orphans == []


def test_files_stay_small() -> None:
    big = {path.name: count for path in PACKAGE.rglob("*.py") if (count := path.read_text().count("\n")) > 450}
    assert big == {}
