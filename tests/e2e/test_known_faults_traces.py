"""Faults that users of load generators have reported, of traces: made, read, recorded, scheduled. Classes, in words.

What concerns sending and measuring is in test_known_faults.py.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from driving import World
from importing import agent, call, row, weka, write
from making import SHARED, linear
from specs import FIXED

from agentx.cli.main import main
from agentx.core import Gap, Header, Output, Piece, Prompt, Session, Thread, Turn
from agentx.engine.settings import load_engine
from agentx.errors import BadInput
from agentx.generator.sessions import sessions
from agentx.generator.spec import load_spec
from agentx.recorder.canonical import Memo, call_of
from agentx.recorder.exports.writing import export_mooncake
from agentx.recorder.imports.mooncake import import_mooncake
from agentx.recorder.imports.weka import import_weka
from agentx.recorder.keys import CaptureKey
from agentx.recorder.redaction import Redactor
from agentx.replayer.moves import Rules
from agentx.replayer.plan import load_plan
from agentx.replayer.schedule import Schedule
from agentx.replayer.simulate import simulate
from agentx.trace import TraceReader, TraceWriter, read_trace

PROMPT = Prompt((Piece(2, 0, 25),))


def turn(index: int, *after: int, gap: float = 0.0, thread: int = 0) -> Turn:
    return Turn(index, thread, PROMPT, 25, Output(2), after, Gap("tool", gap))


def played(*sessions_: Session, seconds: float = 1.0, **rules) -> World:
    """The schedule of sessions whose every call takes `seconds`."""
    return World(Schedule(iter(sessions_), Rules(**rules)), seconds=lambda send: seconds).run()


def written(path: Path, *sessions_: Session) -> TraceReader:
    with TraceWriter(path, Header(name="t", scope="scope")) as writer:
        for each in sessions_:
            writer.session(each)
    return TraceReader(path)


# --- times ------------------------------------------------------------------------------------------------------------


def test_time_stamps_without_a_unit_are_settled_by_evidence_and_said(tmp_path):
    """0 and 3000 are 3 s or 50 minutes; an epoch is no arrival 54 years after the start."""
    ms = import_mooncake(
        write(tmp_path / "a.jsonl", row(8, 1, None, timestamp=0), row(8, 1, None, timestamp=3000)), tmp_path / "a.trace"
    )
    assert [session.arrival for session in read_trace(tmp_path / "a.trace")] == [0.0, 3.0]
    assert any("times are milliseconds: the format's unit" in found for found in ms.findings)
    rows = row(8, 1, None, timestamp=1700000000.0), row(8, 1, None, timestamp=1700000002.5)
    import_mooncake(write(tmp_path / "b.jsonl", *rows), tmp_path / "b.trace")
    assert [session.arrival for session in read_trace(tmp_path / "b.trace")] == [0.0, 2.5]


def test_tools_that_run_side_by_side_are_waited_for_once():
    """Two tools of 5 s in one turn are a pause of 5 s, not of 10."""
    spec = load_spec("s", text=FIXED.replace("loop: 3", "loop: 3, parallel: 2").replace("time: 2s", "time: 5s"))
    (session,) = sessions(spec, 1, 1)
    waited = [turn for turn in session.turns if turn.gap.kind == "tool"]
    assert waited
    assert {len(turn.tools) for turn in waited} == {2}
    assert {turn.gap.seconds for turn in waited} == {5.0}


def test_what_remains_of_a_pause_behind_a_subagent_is_kept(tmp_path):
    """A parent that goes on 20 s after its subagent has ended does so when the subagent takes longer too."""
    entry = weka(
        [call(0, 8, 2, [0, 1]), agent(2, [call(0, 8, 2, [7, 8], api_time=6.0)]), call(28, 16, 2, [0, 1, 2, 3])]
    )
    (tmp_path / "s.json").write_text(json.dumps(entry))
    import_weka([tmp_path / "s.json"], tmp_path / "s.trace")
    (session,) = read_trace(tmp_path / "s.trace")
    assert session.turns[2].gap.seconds == pytest.approx(20.0)
    world = played(session, seconds=50.0, lanes=1)
    times = {index: at for at, _, index in world.when}
    assert times[2] == pytest.approx(times[1] + 50.0 + 20.0)


def test_a_gap_beside_a_working_session_is_not_cut():
    """A cap of 10 s on idleness is of the whole system: 60 s in one session stay, as long as another one works."""
    idle = Session("idle", (turn(0), turn(1, 0, gap=60.0)), shared=SHARED)
    busy = Session("busy", tuple(turn(n, *([n - 1] if n else [])) for n in range(100)), shared=SHARED)
    times = {(session, index): at for at, session, index in played(idle, busy, lanes=2, system_idle_cap=10.0).when}
    assert times["idle", 1] == 61.0
    alone = {index: at for at, _, index in played(idle, lanes=1, system_idle_cap=10.0).when}
    assert alone[1] == pytest.approx(11.0)


def test_a_lane_with_an_hour_before_it_does_not_stand_still():
    """Recorded offsets of hours right behind the start: lanes that never send. The idle cap moves all timers on."""
    late = [Session(f"s{n}", (turn(0, gap=3600.0 * n), turn(1, 0, gap=1.0)), shared=SHARED) for n in range(3)]
    world = played(*late, lanes=3, system_idle_cap=10.0)
    assert len(world.sends) == 6
    assert world.now < 60.0


def test_a_slot_is_held_until_the_last_descendant_has_ended():
    """A background subagent that outlives its root: the next session waits for it, or the load overshoots."""
    tree = Session("tree", (turn(0), turn(1, 0, thread=1), turn(2, 1, thread=1), turn(3, 0)),
                   (Thread(0), Thread(1, 0, "subagent")), shared=SHARED)  # fmt: skip
    world = played(tree, Session("next", (turn(0),), shared=SHARED), lanes=1)
    times = {(session, index): at for at, session, index in world.when}
    assert times["tree", 3] == 1.0
    assert times["next", 0] == 3.0  # behind turn 2 of the subagent
    assert world.most == 1


def test_siblings_are_never_dropped_for_want_of_room():
    """Three subagents and room for one request: they go one after the other."""
    siblings = [turn(n, 0, thread=n) for n in (1, 2, 3)]
    threads = (Thread(0), *(Thread(n, 0, "subagent") for n in (1, 2, 3)))
    tree = Session("tree", (turn(0), *siblings, turn(4, 1, 2, 3)), threads, shared=SHARED)
    assert [index for _, _, index in played(tree, lanes=1, requests=1).when] == [0, 1, 2, 3, 4]


def test_a_number_of_sessions_is_a_number_of_whole_sessions(tmp_path):
    """100 requests of 10 sessions of 10 turns: ten whole ones, not twenty halves that warm each other's cache."""
    ten = [linear(10, id=f"s{n}") for n in range(10)]
    written(tmp_path / "t.trace", *ten)
    run = simulate(
        tmp_path / "t.trace", out=tmp_path / "run", sets=["measure={sessions: 10}", "load.sessions=4", "gaps.scale=0"]
    )
    assert len(run.attempts) == 100
    assert {(play.session, play.play, play.completed) for play in run.plays} == {(each.id, 0, 10) for each in ten}


def test_what_is_not_played_is_not_read():
    """A corpus of 73,000 conversations of which ten are wanted."""
    read = []

    def endless():
        while True:
            read.append(len(read))
            yield Session(f"s{len(read)}", (turn(0),), shared=SHARED)

    world = World(Schedule(endless(), Rules(lanes=2, plays=10))).run()
    assert len(world.sends) == 10
    assert len(read) == 10


@pytest.mark.parametrize("seconds", [899, 900])
def test_a_plan_that_contradicts_itself_is_refused_at_any_length(tmp_path, seconds):
    """A check that short smoke runs skip is found out in production."""
    (tmp_path / "p.yaml").write_text(f"agentx: replay/1\nmeasure: {seconds}s\nwire: generate\nhistory: live\n")
    with pytest.raises(BadInput, match="history live does not go with the wire generate"):
        load_plan(tmp_path / "p.yaml")


# --- contexts ---------------------------------------------------------------------------------------------------------


def test_a_context_that_shrinks_is_not_appended_to(tmp_path):
    """Prompts of 50, 90 and 20 blocks are 160 blocks of input, not 50 + 140 + 160."""
    requests = [call(0, 200, 4, range(50)), call(5, 360, 4, range(90)), call(9, 80, 4, range(20))]
    (tmp_path / "s.json").write_text(json.dumps(weka(requests)))
    import_weka([tmp_path / "s.json"], tmp_path / "s.trace")
    run = simulate(tmp_path / "s.trace", out=tmp_path / "run", sets=["gaps.scale=0", "wire=generate"])
    assert [attempt.prompt_tokens for attempt in run.attempts] == [200, 360, 80]


def test_whole_prompts_are_not_put_behind_each_other(tmp_path):
    """Rows of 100, 300 and 600 tokens that hold whole prompts, read as what is new, would double the history."""
    rows = [row(100 * size, 4, range(25 * size), session_id="s") for size in (1, 3, 6)]
    import_mooncake(write(tmp_path / "a.jsonl", *rows), tmp_path / "a.trace", block=4)
    (session,) = read_trace(tmp_path / "a.trace")
    assert [(turn.isl, turn.output.tokens) for turn in session.turns] == [(100, 4), (300, 4), (600, 4)]


@pytest.mark.parametrize(("tokens", "ids"), [(32, 2), (33, 3), (16, 1)])
def test_the_last_block_counts_though_it_is_not_full(tmp_path, tokens, ids):
    """33 tokens in blocks of 16 have three ids."""
    reader = written(
        tmp_path / "t.trace",
        Session("s", (Turn(0, 0, Prompt((Piece(1, 0, tokens),)), tokens, Output(1)),), shared=SHARED),
    )
    export_mooncake(reader, tmp_path / "out.jsonl", rows="cumulative", block=16)
    (line,) = (tmp_path / "out.jsonl").read_text().splitlines()
    assert (json.loads(line)["input_length"], len(json.loads(line)["hash_ids"])) == (tokens, ids)


def test_a_shared_prefix_that_ends_inside_a_block_can_be_exported_and_read_again(tmp_path):
    """Sessions that share 1,000 tokens and blocks of 512: an id never stands for two lengths."""
    spec = load_spec("s", text=FIXED.replace("tools: 100, system: 50", "tools: 600, system: 400"))
    made = list(sessions(spec, 1, 2))
    reader = written(tmp_path / "t.trace", *made)
    export_mooncake(reader, tmp_path / "out.jsonl", rows="cumulative", block=512)
    import_mooncake(tmp_path / "out.jsonl", tmp_path / "again.trace", rows="cumulative", block=512)
    again = list(read_trace(tmp_path / "again.trace"))
    assert [[t.isl for t in one.turns] for one in again] == [[t.isl for t in one.turns] for one in made]


def test_a_prefix_counts_as_a_path_and_not_as_a_set(tmp_path):
    """Behind 1 2 3 4, a prompt of 3 4 5 shares nothing with it, nor does 2 1 3: no prefix cache has them."""
    rows = [row(16, 1, [1, 2, 3, 4]), row(12, 1, [3, 4, 5]), row(12, 1, [2, 1, 3]), row(12, 1, [1, 2, 9])]
    import_mooncake(write(tmp_path / "a.jsonl", *rows), tmp_path / "a.trace", block=4)
    run = simulate(tmp_path / "a.trace", out=tmp_path / "run", sets=["gaps.scale=0", "wire=generate"])
    assert [attempt.cached.total for attempt in run.attempts] == [0, 0, 0, 8]


def test_every_prompt_of_a_generated_session_continues_the_one_before():
    """Prompts that are drawn anew for each turn have no reuse."""
    (session,) = sessions(load_spec("s", text=FIXED), 1, 1)
    prompts = [session.pieces(turn.index) for turn in session.turns]
    assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(prompts))


# --- what a file may say ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["__import__('os').system('true')", "lambda x: True", "!!python/name:os.system"])
def test_a_spec_is_data_and_is_never_run(tmp_path, capsys, value):
    (tmp_path / "w.yaml").write_text(FIXED.replace("loop: 3", f"loop: {value}"))
    assert main(["generate", str(tmp_path / "w.yaml"), "-o", str(tmp_path / "t.trace")]) == 2
    assert "w.yaml:" in capsys.readouterr().err
    assert not (tmp_path / "t.trace").exists()


def test_a_spec_names_its_version(tmp_path, capsys):
    """A key that changes its meaning between versions turns the workload round, silently."""
    for first in ("", "agentx: workload/2\n"):
        (tmp_path / "w.yaml").write_text(FIXED.replace("agentx: workload/1\n", first))
        assert main(["generate", str(tmp_path / "w.yaml"), "-o", str(tmp_path / "t.trace")]) == 2
        assert "workload/1" in capsys.readouterr().err


def test_what_a_spec_makes_is_told_in_numbers(tmp_path, capsys):
    """So that the same key with another meaning is seen."""
    (tmp_path / "w.yaml").write_text(FIXED)
    assert main(["generate", str(tmp_path / "w.yaml"), "-o", str(tmp_path / "t.trace"), "--sessions", "2"]) == 0
    assert main(["inspect", str(tmp_path / "t.trace"), "--json"]) == 0
    (session, _) = sessions(load_spec("s", text=FIXED), 0, 2)
    told = json.loads(capsys.readouterr().out)
    assert f'"mean": {sum(t.isl for t in session.turns) / len(session.turns):g}'[:14] in json.dumps(told)


@pytest.mark.parametrize(
    ("length", "says"),
    [
        ("0.5", "length"),  # a step yields the target's own token at least
        ("5.1", "above the bound of EAGLE: 5"),  # 4 accepted drafts at most, and the target's own
    ],
)
def test_an_acceptance_length_counts_the_targets_own_token(length, says):
    speculation = f"{{algorithm: EAGLE, steps: 4, draft_tokens: 5, acceptance: {{length: {length}}}}}"
    with pytest.raises(BadInput, match=says):
        load_engine("t", text=f"agentx: target/1\nkind: engine\nspeculation: {speculation}\n")


def test_an_acceptance_length_of_one_accepts_no_draft(tmp_path):
    written(tmp_path / "t.trace", linear(1, reply=50))
    spec = "target.speculation={algorithm: EAGLE, steps: 3, draft_tokens: 4, acceptance: {length: 1.0}}"
    run = simulate(tmp_path / "t.trace", out=tmp_path / "run", sets=[spec])
    (attempt,) = run.attempts
    assert attempt.extra["spec"]["spec_num_correct_drafts"] == 0
    assert [chunk.tokens for chunk in attempt.chunks] == [1] * 50


@pytest.mark.parametrize("extra", [{"note": 1}, {"type": "subagent"}])
def test_fields_that_nobody_expected_are_counted_and_not_refused(tmp_path, extra):
    books = import_mooncake(write(tmp_path / "a.jsonl", {**row(8, 1, [0]), **extra}), tmp_path / "a.trace", block=8)
    assert books.rows.used == 1
    assert any(name in note for note in books.notes for name in extra)


# --- recorded traffic -------------------------------------------------------------------------------------------------


def items(body: dict) -> list:
    return list(call_of("messages", body, Memo()).items)


def test_a_nonce_in_the_billing_header_is_no_other_prompt():
    """It stands at token 40 and would make every prompt new."""
    one, other = (
        {"system": [{"type": "text", "text": f"x-anthropic-billing-header: v=1; cch={nonce};"}],
         "messages": [{"role": "user", "content": "a"}]}
        for nonce in ("00aa1", "7f3c2")
    )  # fmt: skip
    assert items(one) == items(other)


def test_a_cache_mark_that_moves_on_is_no_other_prompt():
    def marked(at: int) -> dict:
        blocks = [[{"type": "text", "text": f"m{n}"}] for n in range(6)]
        blocks[at][0]["cache_control"] = {"type": "ephemeral"}
        return {
            "messages": [{"role": "user" if n % 2 == 0 else "assistant", "content": b} for n, b in enumerate(blocks)]
        }

    assert items(marked(3)) == items(marked(5))


def test_known_prompts_cannot_be_looked_up_by_their_digests():
    """Without a key of the capture, a dictionary of public prompts would find them."""
    text = b"You are a helpful assistant."
    assert CaptureKey(b"a" * 32).digest("item", text) != CaptureKey(b"b" * 32).digest("item", text)


@pytest.mark.parametrize("frame", ['{{"content": "{}"}}', '{{"{}": 1}}', "Authorization: Bearer {}"])
def test_secrets_are_found_wherever_they_stand(frame):
    secret = "sk-" + "ant-api03-AbCd1234efGH5678_-x"
    assert secret[8:] not in Redactor(CaptureKey(b"k" * 32)).redact(frame.format(secret))
