"""What a run folder holds before the first turn."""

from __future__ import annotations

import hashlib
import json

import pytest

from agentx.content import WordList
from agentx.core import Header
from agentx.errors import BadInput
from agentx.replayer import folder
from agentx.replayer.folder import Facts, check_free, copy_trace, default_folder
from agentx.replayer.plan import load_plan
from agentx.replayer.targets import resolve_target
from agentx.results import RESULTS, TRACE, sha256_of
from agentx.trace import TraceWriter


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "a.trace"
    with TraceWriter(path, Header(name="mine", scope="x")):
        pass
    return path


def facts(trace, **more):
    known = {"words": None, "copied": False, "embedded": True, "plan": load_plan(), **more}
    return Facts(target=resolve_target("laptop"), trace=trace, salt="abc", server={"page_size": 16}, **known)


def test_everything_to_make_the_run_again(trace):
    kept = facts(trace).settings()
    assert json.loads(json.dumps(kept)) == kept
    assert kept["trace"] == {
        "name": "mine",
        "path": str(trace),
        "sha256": hashlib.sha256(trace.read_bytes()).hexdigest(),
        "copied": False,
    }
    assert (kept["salt"], kept["seed"], kept["words"], kept["server"]) == ("abc", 0, "lexicon", {"page_size": 16})
    assert kept["environment"]["python"]


def test_the_template_is_told_where_it_is_known(trace):
    assert facts(trace).settings()["template"] == {"start": 1, "per_message": 1}
    assert "template" not in facts(trace, embedded=False).settings()
    assert "template" not in facts(trace, plan=load_plan(sets=["wire=generate"])).settings()


def test_words_that_the_target_confirmed_are_kept_with_their_ids(trace):
    words = WordList((" abc", " xyz"), (5, 9))
    assert facts(trace, words=words).settings()["words"] == {"words": [" abc", " xyz"], "ids": [5, 9]}


def test_a_folder_with_a_run_or_a_file_is_not_free(tmp_path):
    check_free(tmp_path / "new")
    check_free(tmp_path)
    (tmp_path / RESULTS).write_bytes(b"x")
    with pytest.raises(BadInput, match="holds a run already"):
        check_free(tmp_path)
    with pytest.raises(BadInput, match="a folder is needed"):
        check_free(tmp_path / RESULTS)


def test_a_short_trace_is_copied(trace, tmp_path, monkeypatch):
    assert copy_trace(trace, tmp_path / "run", always=False)
    assert sha256_of(tmp_path / "run" / TRACE) == sha256_of(trace)
    monkeypatch.setattr(folder, "COPIED", 1)
    assert not copy_trace(trace, tmp_path / "other", always=False)
    assert copy_trace(trace, tmp_path / "other", always=True)


def test_the_default_folder_is_new(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(folder.time, "strftime", lambda _: "run-now")
    assert default_folder().name == "run-now"
    (tmp_path / "run-now").mkdir()
    assert default_folder().name == "run-now-2"
