"""`find` on the simulator: the answer by hand, what is said of it, and that it goes on where it was."""

from __future__ import annotations

import json
import re
import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from agentx.core import Gap, Header, Output, Piece, Prompt, Segment, Session, Turn
from agentx.errors import EXIT_GATE, EXIT_OK, BadInput
from agentx.replayer.slo import RUN
from agentx.reporter.searching import find
from agentx.reporter.sweeping import sweep
from agentx.results import RESULTS
from agentx.trace import TraceWriter

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"

# One request at a time, each 100 ms: a server whose rate is 10 requests a second.
SERVER = ["target.scheduler.max_running=1", "target.timing.prefill_batch=99ms", "target.timing.request=0s"]
FIXED = [*SERVER, "load={rate: {kind: constant, per_second: 4}}"]


@pytest.fixture
def trace(tmp_path):
    with TraceWriter(tmp_path / "t.trace", Header(name="t", scope="scope")) as writer:
        for number in range(60):
            turn = Turn(0, 0, Prompt((Piece(9, 0, 40),)), 40, Output(1), gap=Gap())
            writer.session(Session(f"s{number}", (turn,), segments={9: Segment(9, "user", 40)}))
    return tmp_path / "t.trace"


def test_a_rate_is_found(trace, tmp_path):
    found = find(trace, goal="rate: latency_p95 <= 150ms", out=tmp_path / "f", sets=FIXED)
    good, bad = found.bracket
    assert good <= 10 <= bad
    assert bad / good <= 1.05
    assert found.code == EXIT_OK
    by_value = {spot.value: spot for spot in found.spots}
    assert (by_value[4.0].server, by_value[16.0].server) == ("below", "saturated")
    assert by_value[4.0].output == pytest.approx(4.0, rel=0.02)  # what was offered
    assert by_value[16.0].output == pytest.approx(10.0, rel=0.03)  # what the server can do
    text = found.text()
    assert f"the limit lies between {good:g} and {bad:g} sessions per second" in text
    assert "One run of each point" in text
    assert "Below saturation (rate 4, 8" in text
    assert "no measure of its speed" in text.replace("\n    ", " ")


def test_it_goes_on_where_it_was_and_answers_other_questions(trace, tmp_path):
    first = find(trace, goal="rate: latency_p95 <= 150ms", out=tmp_path / "f", sets=FIXED)
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob(f"f/rate-*/run-1/{RESULTS}")}
    assert len(kept) == len(first.spots)
    *before, torn, gone = sorted(kept, key=kept.__getitem__)  # in the order in which they were run
    shutil.rmtree(gone.parent)
    torn.write_bytes(torn.read_bytes()[:-9])
    assert find(trace, goal="rate: latency_p95 <= 150ms", out=tmp_path / "f", sets=FIXED) == first
    assert [path for path in kept if path.stat().st_mtime_ns != kept[path]] == sorted(
        [torn, gone], key=list(kept).index
    )
    assert all(path.stat().st_mtime_ns == kept[path] for path in before)
    other = find(trace, goal="rate: output_per_second >= 5", out=tmp_path / "f", sets=FIXED)
    assert {spot.value for spot in first.spots} <= {spot.value for spot in other.spots}
    with pytest.raises(BadInput, match="holds a finished run of something else: target"):
        find(trace, goal="rate: latency_p95 <= 150ms", out=tmp_path / "f", sets=[*FIXED, "target.cache.pool=999"])


def test_repeats_draw_anew_and_their_range_is_told(trace, tmp_path):
    sets = [*SERVER, "load={rate: {per_second: 4}}", "repeats=3"]
    found = find(trace, goal="rate 4..16 by 50%: latency_p95 <= 500ms", out=tmp_path / "f", sets=sets)
    assert all(len(spot.trials) == 3 for spot in found.spots)
    values = next(spot for spot in found.spots if spot.value == 4.0).values(0)
    assert len(set(values)) == 3  # other arrivals
    assert "is met by all 3 runs" in found.answer
    assert f"At {found.bracket.good:g} the 3 runs span latency_p95" in " ".join(found.notes)


def test_never_and_always(trace, tmp_path):
    never = find(trace, goal="rate 1..4: latency_p95 <= 50ms", out=tmp_path / "a", sets=FIXED)
    assert never.answer == "Not met even at the lowest that was tried: rate 1."
    assert never.code == EXIT_GATE
    always = find(trace, goal="rate 1..4: latency_p95 <= 5s", out=tmp_path / "b", sets=FIXED)
    assert always.answer == "rate 4 is met by its run, the highest that was tried: the limit lies above."


def test_sessions_and_what_the_trace_cannot_fill(trace, tmp_path):
    found = find(trace, goal="sessions: latency_p50 <= 350ms", out=tmp_path / "a", sets=SERVER)
    assert found.bracket == (3, 4)  # each waits for those before it
    assert found.spots[0].server is None
    same = find(trace, goal="sessions 1..2: latency_p50 <= 1h", out=tmp_path / "c", sets=[*SERVER, "repeats=2"])
    assert "is met by both runs" in same.answer
    assert "The runs of each point are all alike" in " ".join(same.notes)
    many = [*SERVER, "load.sessions=32"]
    all_of_them = find(trace, goal="sessions: latency_p50 <= 1h", out=tmp_path / "b", sets=many)
    assert all_of_them.bracket == (64, None)
    assert "no more sessions to play at a time" in all_of_them.answer
    assert "At 32 sessions at a time only 60 were played in all" in " ".join(all_of_them.notes)


def test_sessions_of_a_plan_with_a_rate_and_the_other_way(trace, tmp_path):
    assert find(trace, goal="sessions 2..3: latency_p50 <= 1h", out=tmp_path / "a", sets=FIXED).spots
    sets = [*SERVER, "load.sessions=3"]
    assert find(trace, goal="rate 2..3: latency_p50 <= 1h", out=tmp_path / "b", sets=sets).bracket.good == 3
    ramp = "load={rate: {kind: ramp, per_second: 1, to: 2, over: 1m}}"
    with pytest.raises(BadInput, match="of kind ramp, which has no one rate"):
        find(trace, goal="rate: latency_p50 <= 1h", out=tmp_path / "c", sets=[ramp])
    with pytest.raises(BadInput, match="need load"):
        find(trace, goal="rate: latency_p50 <= 1h", out=tmp_path / "c", sets=["warmup.turns=3"])
    assert not (tmp_path / "c").exists()


def test_requests_in_flight_are_searched_and_waiting_for_them_is_no_fault_of_the_client(trace, tmp_path):
    sets = [*SERVER, "load={sessions: 8, requests: 1}"]
    found = find(trace, goal="requests 1..8: ttft_p50 <= 450ms", out=tmp_path / "a", sets=sets)
    assert found.bracket == (4, 5)  # each waits at the server for those before it
    assert not any(spot.invalid for spot in found.spots)


def test_goodput_goes_by_the_plans_turns(trace, tmp_path):
    sets = [*FIXED, "slo.turn.latency=150ms"]
    found = find(trace, goal="rate 8..16: goodput >= 90%", out=tmp_path / "a", sets=sets)
    good, bad = found.bracket
    assert good <= 10.5 <= bad * 1.06


def test_the_forms_agree(trace, tmp_path):
    found = find(trace, goal="rate 4..16 by 50%: latency_p95 <= 150ms", out=tmp_path / "a", sets=FIXED)
    document = json.loads(json.dumps(found.document(), allow_nan=False))
    assert document["schema"] == "agentx/find/1"
    assert (document["answer"]["good"], document["answer"]["bad"]) == found.bracket
    assert [point["value"] for point in document["points"]] == [spot.value for spot in found.spots]
    assert (tmp_path / "a" / document["points"][0]["runs"][0]["run"] / RESULTS).exists()
    circles = list(ElementTree.fromstring(found.plot()).iter("{http://www.w3.org/2000/svg}circle"))
    assert len(circles) == 2 * len(found.spots)


def test_every_key_of_the_documents_is_in_the_reference(trace, tmp_path):
    found = find(trace, goal="rate 4..8: latency_p95 <= 150ms", out=tmp_path / "a", sets=FIXED).document()
    table = sweep(
        trace, knobs=["load.sessions=1"], out=tmp_path / "s", sets=[*SERVER, "repeats=2"], workers=1
    ).document()
    documented = set(re.findall(r"`([a-z0-9_]+)`", REFERENCE.read_text()))
    keys = set(keys_of(found)) | set(keys_of(table))
    said = {"schema", "about", "simulated", "notes", "output_tokens_per_second_per_gpu", "repeats"}
    assert sorted(keys - documented - said - set(RUN)) == []  # figures go by the names of conditions


def keys_of(value):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from () if key in ("figures", "settings") and inner and "." in next(iter(inner)) else keys_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys_of(inner)
