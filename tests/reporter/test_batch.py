"""What is finished is read, what is not is put aside and run again, and another run is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentx import catalog
from agentx.core import Header
from agentx.engine.server import running
from agentx.engine.settings import load_engine
from agentx.errors import BadInput, Unreachable
from agentx.reporter.batch import Job, abba, check_folder, check_salt, finished, play
from agentx.results import RESULTS
from agentx.trace import TraceWriter
from tests.making import linear


@pytest.fixture
def job(tmp_path):
    for name, fresh in (("t", 30), ("other", 31)):
        with TraceWriter(tmp_path / f"{name}.trace", Header(name="t", scope="scope")) as writer:
            writer.session(linear(3, fresh=fresh))
    return Job(tmp_path / "t.trace", None, None, ("gaps.scale=0",), tmp_path / "batch" / "run-1", simulated=True)


def stamp(job):
    return (job.out / RESULTS).stat().st_mtime_ns, (job.out / RESULTS).read_bytes()


def test_a_finished_run_is_not_run_again(job):
    first = play(job)
    before = stamp(job)
    assert play(job).attempts == first.attempts
    assert stamp(job) == before
    again = play(replace(job, sets=("gaps.scale=0", "slo.run.ttft_p95=5s")))  # objectives change nothing of a run
    assert again.settings == first.settings
    assert stamp(job) == before


def torn(job):
    path = job.out / RESULTS
    path.write_bytes(path.read_bytes()[:-20])


def without_settings(job):
    (job.out / "run.json").unlink()


@pytest.mark.parametrize("broken", [torn, without_settings])
def test_an_unfinished_run_is_put_aside_and_run_again(job, capsys, broken):
    whole = play(job)
    broken(job)
    assert finished(job) is None
    assert play(job).attempts == whole.attempts
    assert "was not finished: it is now unfinished-run-1-1" in capsys.readouterr().err
    broken(job)
    play(job)
    assert sorted(path.name for path in job.out.parent.iterdir()) == [
        "run-1", "unfinished-run-1-1", "unfinished-run-1-2",
    ]  # fmt: skip


OTHERS = [
    # what is asked for now -> what the line says
    ({"sets": ("gaps.scale=0", "load.sessions=2")}, "plan.load.sessions 1 there, 2 asked for"),
    ({"sets": ("gaps.scale=0", "target.cache.pool=900")}, "target.cache.pool 200000 there, 900 asked for"),
    ({"trace": "other.trace"}, "trace "),
    ({"simulated": False}, "simulated True there, False asked for"),
]


@pytest.mark.parametrize(("changes", "says"), OTHERS)
def test_a_finished_run_of_something_else_is_refused(job, changes, says):
    play(job)
    if "trace" in changes:
        changes = {"trace": job.trace.with_name("other.trace")}
    with pytest.raises(BadInput, match="holds a finished run of something else") as caught:
        play(replace(job, **changes))
    assert says in str(caught.value)
    assert (job.out / RESULTS).exists()


def test_each_repeat_has_words_of_its_own(job):
    runs = [play(replace(job, repeat=n, out=job.out.with_name(f"run-{n}"))) for n in (1, 2, 3)]
    assert len({run.settings["salt"] for run in runs}) == 3
    assert {run.settings["plan"]["repeats"] for run in runs} == {1}  # each is one run
    replays = [play(replace(job, simulated=False, repeat=n, out=job.out.with_name(f"real-{n}"))) for n in (1, 2)]
    assert replays[0].settings["salt"] != replays[1].settings["salt"]


def test_a_server_that_answers_nothing_ends_the_batch_and_is_asked_again(job):
    settings = load_engine(catalog.resolve("targets", "laptop"), sets=["timing.prefill_batch=9s"])
    with running(settings) as url:
        slow = replace(job, simulated=False, target=url, sets=("timeouts.stall=1s",), label="rate 2, run 1")
        with pytest.raises(Unreachable, match=r"^rate 2, run 1: every turn failed, the first by stall"):
            play(slow)
        assert finished(slow) is None


def test_the_order_of_repeats():
    assert abba("AB", 3) == [("A", 1), ("B", 1), ("B", 2), ("A", 2), ("A", 3), ("B", 3)]
    assert abba("AB", 1) == [("A", 1), ("B", 1)]


def test_folders_and_salts_that_are_refused(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a/notes.txt").touch()
    with pytest.raises(BadInput, match=r"is there already, with notes\.txt in it"):
        check_folder(tmp_path / "a", str.isdigit)
    with pytest.raises(BadInput, match="is a file"):
        check_folder(tmp_path / "a/notes.txt", str.isdigit)
    check_folder(tmp_path / "b/c", str.isdigit)
    with pytest.raises(BadInput, match="--salt x gives 3 runs the same words"):
        check_salt("x", 3, simulated=False)
    check_salt("x", 3, simulated=True)
    check_salt("x", 1, simulated=False)
