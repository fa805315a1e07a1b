"""The README is run: its shell lines one after another, its Python as a program."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MARK = "<!-- run as a test -->\n"


def blocks(document: Path, language: str) -> list[str]:
    """The fenced blocks of a language that are marked to be run."""
    return re.findall(rf"{re.escape(MARK)}```{language}\n(.*?)```", document.read_text(), re.DOTALL)


@pytest.fixture
def environment() -> dict[str, str]:
    """This interpreter's own scripts come first, so that `agentx` is the one under test."""
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def test_the_readmes_commands_work_in_order(tmp_path: Path, environment: dict[str, str]) -> None:
    (script,) = blocks(ROOT / "README.md", "sh")
    result = subprocess.run(
        ["bash", "-ec", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert "possible" in result.stdout
    assert "ideal, the same prompts" in result.stdout
    assert (tmp_path / "run.json").read_text().startswith("{")


def test_the_readmes_program_works(tmp_path: Path, environment: dict[str, str]) -> None:
    (program,) = blocks(ROOT / "README.md", "python")
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert re.search(r"possible reuse: \d+\.\d%", result.stdout)


def test_the_workload_tutorials_commands_work_in_order(tmp_path: Path, environment: dict[str, str]) -> None:
    script = "".join(blocks(ROOT / "docs/tutorial-workload.md", "sh"))
    result = subprocess.run(
        ["bash", "-ec", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "review: 2 expectations, 400 sessions" in result.stdout
    assert "missed, as it should be" in result.stdout
    assert "its numbers are not checked" in result.stdout


def test_the_commands_of_fitting_work_in_order(tmp_path: Path, environment: dict[str, str]) -> None:
    script = "".join(blocks(ROOT / "docs/howto-fit.md", "sh"))
    result = subprocess.run(
        ["bash", "-ec", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert re.search(r"tokens\.reply +lognormal", result.stdout)
    assert "all met" in result.stdout
    assert (tmp_path / "made.html").read_text().startswith("<!doctype html>")


def test_the_commands_of_launching_work_in_order(tmp_path: Path, environment: dict[str, str]) -> None:
    script = "".join(blocks(ROOT / "docs/howto-launch.md", "sh"))
    environment = {**environment, "PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        ["bash", "-ec", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "nothing was sent" in result.stdout
    assert "own (launch), model agentx, 1 GPU" in result.stdout
    assert "serving http://127.0.0.1:" in result.stdout


def test_the_commands_of_searching_work_in_order(tmp_path: Path, environment: dict[str, str]) -> None:
    script = "".join(blocks(ROOT / "docs/howto-search.md", "sh"))
    result = subprocess.run(
        ["bash", "-ec", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "the limit lies between" in (tmp_path / "found.txt").read_text()
    assert "Sent in another run's order: B in that of a-run" in (tmp_path / "compared.txt").read_text()


def test_the_commands_of_importing_work_in_order(tmp_path: Path, environment: dict[str, str]) -> None:
    """One example per source; the export without a call is refused, all others become traces."""
    script = "".join(blocks(ROOT / "docs/howto-import.md", "sh"))
    environment = {**environment, "AGENTX_KEYS": str(tmp_path / "keys")}
    result = subprocess.run(
        ["bash", "-ec", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert len(list(tmp_path.glob("*.trace"))) == 16
    assert "nothing.json: 0 model calls that can be used" in result.stderr
    assert "no model call, as it says" in result.stdout
    assert "mine.trace: 1 sessions, 2 turns, no errors" in result.stdout


def test_the_commands_of_predicting_work_in_order(tmp_path: Path, environment: dict[str, str]) -> None:
    script = "".join(blocks(ROOT / "docs/howto-predict.md", "sh"))
    result = subprocess.run(
        ["bash", "-ec", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "falls off at" in result.stdout
    assert "forecasts made with laptop: observed over expected" in result.stdout


def test_every_link_of_the_documents_leads_somewhere() -> None:
    dead = []
    for document in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", document.read_text()):
            if "://" not in target and not (document.parent / target).exists():
                dead.append(f"{document.name}: {target}")
    assert dead == []


def test_the_table_of_modules_is_fresh() -> None:
    """`python docs/modules.py` renews it."""
    spec = importlib.util.spec_from_file_location("modules", ROOT / "docs" / "modules.py")
    assert spec is not None
    assert spec.loader is not None
    modules = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(modules)
    text = modules.DOCUMENT.read_text()
    assert text == modules.filled(text)


@pytest.mark.parametrize("room", ["replayer", "reporter"])
def test_where_to_look_names_modules_that_there_are(room: str) -> None:
    """In the map of the big rooms; what stands in backquotes in its second column is a module, or several by a star."""
    text = (ROOT / "docs" / "structure.md").read_text()
    part = text.split(f"\n`{room}/`: ")[1].split("\n`")[0].split("\n## ")[0]
    named = re.findall(r"`([a-z_]+\*?)`", "".join(line.split("|")[2] for line in part.splitlines() if line[:1] == "|"))
    assert len(named) > 20
    assert [name for name in named if not list((ROOT / "agentx" / room).glob(f"{name}.py"))] == []
