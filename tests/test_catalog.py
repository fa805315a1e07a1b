"""Names are looked up in the user's catalogues, then in the built-in ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentx import catalog
from agentx.errors import BadInput


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two workloads, a target and a plan in a first directory; a second that is shadowed; one that is not there."""
    files = {
        "one/workloads/quick.yaml": "# Quick and small\nagentx: workload/1\n",
        "one/workloads/both.yaml": "agentx: workload/1\nabout: 'In two places'\n",
        "one/workloads/README.md": "# not an entry\n",
        "one/replays/both.yaml": "agentx: replay/1\n",
        "one/replays/targets/desk.yaml": "agentx: target/1\n#\n# The desk, with\n# two legs. It stands.\nkind: x\n",
        "two/workloads/quick.yaml": "# Shadowed\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setenv("AGENTX_PATH", f"{tmp_path / 'one'}:{tmp_path / 'two'}:{tmp_path / 'gone'}")
    return tmp_path


def test_entries_carry_what_they_are_about(house: Path) -> None:
    about = {entry.name: entry.about for kind in ("workloads", "replays", "targets") for entry in catalog.entries(kind)}
    assert about["quick"] == "Quick and small"  # the first directory wins
    assert about["desk"] == "The desk, with two legs"
    assert about["both"] == ""
    assert "README" not in about
    assert [entry.about for entry in catalog.entries("workloads") if entry.name == "both"] == ["In two places"]


PATHS = ["a/b", "./x", "x.yaml", "x.trace", "x.json", "x.jsonl", "x.csv"]


@pytest.mark.parametrize("name", PATHS)
def test_paths_are_left_alone(name: str, house: Path) -> None:
    assert catalog.resolve("workloads", name) == Path(name)


def test_names_resolve_in_order(house: Path) -> None:
    assert catalog.resolve("workloads", "quick") == house / "one/workloads/quick.yaml"
    assert catalog.resolve("targets", "desk") == house / "one/replays/targets/desk.yaml"
    assert catalog.resolve("workloads", "coding-agent").is_file()  # built in


def test_a_miss_shows_the_nearest_names(house: Path) -> None:
    with pytest.raises(BadInput, match=r"no workload named 'quik' \(did you mean 'quick'\?.*agentx list workloads"):
        catalog.resolve("workloads", "quik")


FOUND = [
    ("quick", "one/workloads/quick.yaml"),  # in one catalogue alone
    ("workloads/both", "one/workloads/both.yaml"),
    ("replays/both", "one/replays/both.yaml"),
    ("targets/desk", "one/replays/targets/desk.yaml"),
]


@pytest.mark.parametrize(("name", "path"), FOUND)
def test_find(name: str, path: str, house: Path) -> None:
    assert catalog.find(name) == house / path


def test_find_takes_a_path_too() -> None:
    assert catalog.find("workloads/coding-agent.yaml") == Path("workloads/coding-agent.yaml")


def test_find_names_the_choices(house: Path) -> None:
    with pytest.raises(BadInput, match=r"'both' is in 2 catalogues \(say workloads/both or replays/both\)"):
        catalog.find("both")
    with pytest.raises(BadInput, match="nothing is named 'zzz'"):
        catalog.find("zzz")


def test_in_a_wheel_the_built_ins_lie_inside_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = tmp_path / "agentx/_catalog/workloads/packed.yaml"
    packed.parent.mkdir(parents=True)
    packed.write_text("# Packed\n")
    monkeypatch.delenv("AGENTX_PATH", raising=False)
    monkeypatch.setattr(catalog, "__file__", str(tmp_path / "agentx/catalog.py"))
    assert catalog.roots() == [tmp_path / "agentx/_catalog"]
    assert [entry.name for entry in catalog.entries("workloads")] == ["packed"]


@pytest.mark.parametrize(
    ("kind", "readme"),
    [
        ("workloads", "workloads"),
        ("replays", "replays"),
        ("targets", "replays"),
        ("curves", "replays"),
        ("references", "replays"),
    ],
)
def test_every_built_in_stands_in_its_table(kind: catalog.Kind, readme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENTX_PATH", raising=False)
    table = (catalog.roots()[0] / readme / "README.md").read_text()
    assert [entry.name for entry in catalog.entries(kind) if f"| {entry.name} |" not in table] == []
