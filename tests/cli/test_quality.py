"""`agentx quality --compare`: its exit codes are the gate."""

from __future__ import annotations

import json

import pytest

from agentx.cli.main import main
from agentx.quality.results import NAME, Outcome, head_line, outcome_line


@pytest.fixture
def folder(tmp_path):
    def make(name, verdicts):
        (tmp_path / name).mkdir()
        lines = [outcome_line(Outcome(f"p{at}", "short", "d", "4", one, "4", "")) for at, one in enumerate(verdicts)]
        (tmp_path / name / NAME).write_text(head_line({"asked": len(lines)}) + "".join(lines))
        return str(tmp_path / name)

    return make


GATES = [  # after a run with ten right answers; exit code, exit code with --strict
    (["right"] * 10, 0, 0),
    (["wrong"] + ["right"] * 9, 0, 3),  # one may be chance
    (["wrong"] * 6 + ["right"] * 4, 3, 3),
    (["failed"] * 2 + ["right"] * 8, 0, 3),  # not called wrong, and not passed over either
]


@pytest.mark.parametrize(("after", "plain", "strict"), GATES)
def test_the_gate(folder, capsys, after, plain, strict):
    runs = [folder("before", ["right"] * 10), folder("after", after)]
    assert main(["quality", "--compare", *runs]) == plain
    assert main(["quality", "--compare", *runs, "--strict"]) == strict
    capsys.readouterr()
    assert main(["quality", "--compare", *runs, "--json"]) == plain
    assert json.loads(capsys.readouterr().out)["worse"] is (plain == 3)


def test_what_is_no_quality_run(tmp_path, capsys):
    assert main(["quality", "--compare", str(tmp_path), str(tmp_path)]) == 2
    assert "cannot be read" in capsys.readouterr().err
