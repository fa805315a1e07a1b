"""The labels by KV events against what the engine's cache itself did, block by block and the slow way.

The embedded engine plays a trace under pressure in virtual time. Its cache's own events (of nodes) are kept with the
moment at which each request was matched; what its publisher makes of them (blocks, a message a step) is what the report
reads.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest
from making import header, linear, with_tools

from agentx.content import WordList, lexicon
from agentx.engine import engine as engines
from agentx.engine.kv_publisher import KvBlocks
from agentx.engine.nodes import ID_BYTES, CacheEvent
from agentx.frames import FrameWriter
from agentx.kv_events import KV_EVENTS, VERSION, Cleared, KvBatch, Removed, Stored
from agentx.replayer import simulate as simulating
from agentx.reporter import losses_measured
from agentx.reporter.block_removers import Prompt
from agentx.reporter.losses import CAUSES, _turn_loss
from agentx.reporter.losses_measured import measure_losses
from agentx.reporter.reporting import Report, report
from agentx.reporter.stored_blocks import blocks_of, places, root_place
from agentx.results import RunResults
from agentx.trace import TraceWriter


@dataclass
class Truth:
    """Every token of the cache by its namespace and all ids up to it, with bigram keys (`more`) the one behind it too:
    (place in the order, when, tier, whether it came, cause)."""

    told: dict[bytes, list[tuple[int, float, str, bool, str]]] = field(default_factory=dict)
    nodes: dict[int, bytes] = field(default_factory=dict)  # all ids down to a node's end
    matched: dict[bytes, int] = field(default_factory=dict)  # a prompt -> how many events there were at its last match
    count: int = 0
    now: float = 0.0
    more: int = 0

    def heard(self, event: CacheEvent) -> None:
        if event.kind == "split":
            whole = self.nodes[event.node]
            self.nodes[event.parent] = whole[: -event.tokens * ID_BYTES]
            return
        above = self.nodes.get(event.parent, event.namespace)
        self.nodes[event.node] = above + event.key[: event.tokens * ID_BYTES]
        comes = event.kind in ("store", "backup", "load_back")
        for end in range(1, event.tokens + 1):
            change = (self.count, self.now, event.tier, comes, event.cause)
            self.told.setdefault(above + event.key[: (end + self.more) * ID_BYTES], []).append(change)
        self.count += 1

    def prefix(self, space: bytes, ids: bytes, token: int) -> bytes:
        """Up to one token."""
        return space + ids[: (token + 1 + self.more) * ID_BYTES]

    def on(self, prefix: bytes, tier: str, before: int) -> tuple[bool, float | None]:
        """Whether a token was there, and when that changed last."""
        changes = [one for one in self.told.get(prefix, []) if one[2] == tier and one[0] < before]
        return (changes[-1][3], changes[-1][1]) if changes else (False, None)


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """(run, truth) of a trace played with these overrides, its KV events in its folder."""

    def play(trace: Path, sets: list[str], lose: int | None = None, skip: int = 0) -> tuple[RunResults, Truth]:
        truth, batches = Truth(more="target.cache.bigram=true" in sets), list[tuple[float, list[dict[str, Any]]]]()

        class Watched(engines.Engine):
            def __init__(self, settings: Any) -> None:
                blocks = KvBlocks(settings.cache.page, bigram=settings.cache.bigram)

                def heard(event: CacheEvent) -> None:
                    truth.heard(event)
                    blocks.heard(event)

                super().__init__(settings, heard)
                self.blocks = blocks
                match = self._cache.match

                def matched(ids: bytes, limit: int, namespace: bytes = b"") -> Any:
                    truth.matched[namespace + ids] = truth.count
                    return match(ids, limit, namespace)

                self._cache.match = matched  # type: ignore[method-assign]

            def step(self, now: float) -> Any:
                truth.now = now
                made = super().step(now)
                if events := self.blocks.take():
                    batches.append((now, events))
                return made

        monkeypatch.setattr(simulating, "Engine", Watched)
        run = simulating.simulate(trace, out=tmp_path / "run", sets=sets)
        file = FrameWriter(run.folder / KV_EVENTS)
        file.write("kv-events", {"version": VERSION, "addresses": ["tcp://x"]})
        for seq, (at, events) in enumerate(batches):
            if seq != lose and seq >= skip:
                payload = msgpack.packb([run.wall + at, events, 0])
                file.write("batch", {"at": at, "publisher": 0, "seq": seq, "payload": payload})
        file.close()
        return run, truth

    return play


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("measured") / "a.trace"
    with TraceWriter(path, header("agents")) as file:
        for name in "abcde":
            file.session(linear(8, id=name, fresh=100))
    return path


# One prompt of 12 tokens in pages of 2, by hand. It is stored at 1 s; r asks for the same tokens, is sent at 10 s,
# leaves the queue at 11 s and gets its first token at 12 s, when its own store is told; its ideal is 10.
IDS = list(range(1, 13))
FIRST = (1.0, [Stored((1, 2, 3, 4, 5, 6), None, tuple(IDS), 2, "device")])
PRESS = (1.0, [Stored((90,), None, (90, 91), 2, "host")])  # there is a host tier
BACKED = (2.0, [Stored((4, 5, 6), 3, tuple(IDS[6:]), 2, "host")])
HEAD = Stored((1, 2), None, (1, 2, 3, 4), 2, "device")
TAIL = Stored((3, 4, 5, 6), 2, tuple(IDS[4:]), 2, "device")
FOURTH = Removed((4,), "device")
GONE = (5.0, [Removed((6, 5, 4), "device")])
AGAIN = (12.05, [Stored((4, 5, 6), 3, tuple(IDS[6:]), 2, "device")])
HANDS = [  # messages, cached tokens, (in flight, evicted, not backed up, host dropped, refused, unexplained), when
    ([FIRST, GONE, AGAIN], 6, (0, 4, 0, 0, 0, 0), [5.0]),
    ([FIRST], 6, (0, 0, 0, 0, 0, 4), []),  # on the device all the while
    ([FIRST, (11.5, GONE[1]), AGAIN], 6, (0, 4, 0, 0, 0, 0), [11.5]),  # it left earlier and was told late
    ([FIRST, (9.0, GONE[1]), (10.5, AGAIN[1])], 6, (0, 0, 0, 0, 0, 4), []),  # back before it left the queue
    ([(10.5, FIRST[1])], 0, (10, 0, 0, 0, 0, 0), []),  # first stored after r was sent
    ([(1.0, [HEAD]), (12.0, [TAIL])], 2, (6, 0, 0, 0, 0, 2), []),  # of it only the first four tokens
    ([FIRST, PRESS, GONE, AGAIN], 6, (0, 0, 4, 0, 0, 0), [5.0]),  # no copy on the host
    ([FIRST, BACKED, GONE, (7.0, [Removed((6, 5), "host")]), AGAIN], 6, (0, 0, 0, 2, 2, 0), [7.0]),
    # the copy was dropped before
    ([FIRST, BACKED, (3.0, [Removed((6, 5, 4), "host")]), GONE, AGAIN], 6, (0, 0, 4, 0, 0, 0), [5.0]),
    ([FIRST, BACKED, GONE, AGAIN], 6, (0, 0, 0, 0, 4, 0), []),  # on the host, and not loaded back
    # the page behind the gone one is there, and cannot be given without it
    ([FIRST, (5.0, [FOURTH]), (12.0, [Stored((4,), 3, (7, 8), 2, "device")])], 6, (0, 4, 0, 0, 0, 0), [5.0]),
    ([FIRST, (5.0, [Removed((6, 5), "device")]), (6.0, [FOURTH]), AGAIN], 6, (0, 4, 0, 0, 0, 0), [6.0, 5.0]),
    ([FIRST, (4.0, [Cleared()]), (12.0, FIRST[1])], 0, (0, 10, 0, 0, 0, 0), [4.0]),
    ([FIRST, GONE, AGAIN], 12, (0, 0, 0, 0, 0, 0), []),  # more than the ideal
]  # fmt: skip


@pytest.mark.parametrize(("messages", "cached", "want", "when"), HANDS)
def test_labels_by_hand(attempt, messages, cached, want, when) -> None:
    batches = (KvBatch(at, 0, seq, None, 0, tuple(events), 0) for seq, (at, events) in enumerate(messages))
    (blocks,) = blocks_of(batches, 0.0).values()
    where = places(np.array(IDS, dtype=np.uint32), 2, root_place(""))
    asked = attempt("r", 0, sent=10.0, queue_seconds=1.0, prompt=12, cached=cached, chunks=[(2.0, 1), (3.0, 1)])
    (found,) = measure_losses([Prompt(asked, where, blocks)], [10]).values()
    loss = _turn_loss(asked, 10, cached, found)
    assert tuple(getattr(loss, cause) for cause in CAUSES[:-1]) == want
    assert loss.total == 10 - cached
    assert [grave.at for grave in loss.graves] == when
    assert sum(grave.tokens for grave in loss.graves) == sum(want[1:4])


def test_without_a_told_queue_the_whole_wait_counts(attempt) -> None:
    """It was back before the first token, but not when the request was sent."""
    messages = [FIRST, (9.0, GONE[1]), (10.5, AGAIN[1])]
    batches = (KvBatch(at, 0, seq, None, 0, tuple(events), 0) for seq, (at, events) in enumerate(messages))
    (blocks,) = blocks_of(batches, 0.0).values()
    asked = attempt("r", 0, sent=10.0, prompt=12, cached=6, chunks=[(2.0, 1), (3.0, 1)])
    prompt = Prompt(asked, places(np.array(IDS, dtype=np.uint32), 2, root_place("")), blocks)
    (found,) = measure_losses([prompt], [10]).values()
    assert (found.computed, found.held) == (10, 6)


RUNS = [
    ["load.sessions=3", "target.cache.pool=1500"],
    ["load.sessions=5", "target.cache.pool=2500"],
    ["load.sessions=5", "target.cache.pool=2500", "wire=generate"],
    ["load.sessions=4", "target.cache.pool=2504", "target.cache.page=8"],
    ["load.sessions=4", "target.cache.pool=1500", "target.cache.policy=lfu"],
    ["load.sessions=5", "target.cache.pool=2500", "target.cache.host={tokens: 2500, write: write_through}"],
    ["load.sessions=5", "target.cache.pool=2500", "target.cache.host={tokens: 2500, write: write_back}"],
    ["load.sessions=5", "target.cache.pool=2500", "target.cache.host={tokens: 9000, write: write_through_selective}"],
    ["load.sessions=5", "target.cache.pool=1200", "target.cache.host={tokens: 90000, write: write_through}"],
    ["load.sessions=2", "target.cache.pool=1500", "measure={sessions: 12}"],  # plays again
    ["load.sessions=5", "target.cache.pool=2500", "salt=session", "target.scheduler.chunk=128"],
    ["load.sessions=5", "target.cache.pool=2500", "salt=field"],
    ["load.sessions=5", "target.cache.pool=2500", "salt=field-session"],
    ["load.sessions=5", "target.cache.pool=2500", "target.cache.bigram=true"],
]


@pytest.mark.parametrize("sets", RUNS, ids=[" ".join(sets) for sets in RUNS])
def test_the_labels_are_what_the_cache_did(played, trace: Path, sets: list[str]) -> None:
    run, truth = played(trace, sets)
    found = report(run)
    check_against(found, truth, run)
    assert found.losses.of("unexplained") == 0
    if "90000" not in str(sets):
        assert found.losses.total > 1000


def check_against(found: Report, truth: Truth, run: RunResults) -> None:
    losses = found.losses
    assert (losses.source, losses.unmeasured) == ("measured", None)
    assert losses.total == found.metrics.reuse.missing_to_ideal
    prompts = {id(one.attempt): one for one in losses.prompts}
    ideals = found.metrics.reuse.ideal.by_attempt
    for turn in losses.turns:
        one = turn.attempt
        assert turn.total == ideals[one.session, one.play, one.turn, one.attempt] - one.cached.tokens
        assert prompts[id(one)].attempt is one
    assert_graves(found, truth, run)


def assert_graves(found: Report, truth: Truth, run: RunResults) -> None:
    """Each lost token, by its ids: it was on no tier when the request was matched, and went when it is said to have."""
    prompts = {id(attempt): made for attempt, *made in prompt_ids(run, found)}
    for turn in found.losses.turns:
        one, (space, ids) = turn.attempt, prompts[id(turn.attempt)]
        before = truth.matched[space + ids]
        at = one.cached.tokens
        gone = False
        for grave in turn.graves:
            for token in range(at, at + grave.tokens):
                prefix = truth.prefix(space, ids, token)
                device, left = truth.on(prefix, "device", before)
                host, dropped = truth.on(prefix, "host", before)
                if not (device or host):
                    gone = True
                    last = dropped if grave.cause == "host_dropped" else left
                    assert grave.at == pytest.approx(last, abs=1e-6)
                assert gone, (one.session, one.turn, token)
            at += grave.tokens
        assert sum(grave.tokens for grave in turn.graves) == turn.evicted + turn.not_backed_up + turn.host_dropped
        for token in range(at, at + turn.load_back_refused):
            prefix = truth.prefix(space, ids, token)
            assert truth.on(prefix, "host", before)[0] or token > at


def prompt_ids(run: RunResults, found: Report) -> list[tuple[Any, bytes, bytes]]:
    from agentx.reporter.learnt_template import real_ids
    from agentx.reporter.losses import resent

    requests, _ = resent(run, found.losses.sent, found.metrics.reuse.ideal, prompts=real_ids(run))
    # behind a salt the engine has the extra key, which is empty
    return [(attempt, space + b"\0" if space else b"", make()) for attempt, make, space in requests]


def test_definitions_calls_and_results_of_tools(played, tmp_path: Path) -> None:
    path = tmp_path / "tools.trace"
    with TraceWriter(path, header("agents")) as file:
        for name in "abcd":
            file.session(with_tools(6) if name == "a" else linear(6, id=name, fresh=100))
    run, truth = played(path, ["load.sessions=4", "target.cache.pool=1000", "messages=tools"])
    check_against(report(run), truth, run)


def test_a_chat_template_that_is_not_known_is_learnt(played, trace: Path) -> None:
    """The same labels as of a known one: of a server of which only the words' ids are known."""
    run, _ = played(trace, ["load.sessions=4", "target.cache.pool=1500"])
    known = report(run).losses
    words = WordList(lexicon())
    others = {name: value for name, value in run.settings.items() if name != "template"}
    told = {"words": list(words.words), "ids": list(words.token_ids)}
    learnt = report(replace(run, settings={**others, "words": told})).losses
    assert (learnt.source, learnt.unmeasured) == ("measured", None)
    assert [one.where.tolist() for one in learnt.prompts] == [one.where.tolist() for one in known.prompts]
    assert learnt.of("evicted") == pytest.approx(known.of("evicted"), abs=3 * len(known.turns))  # the fit is of lengths
    assert learnt.of("unexplained") == 0


UNKNOWN = [  # what the run folder does not say, and what is said then
    ({"words": "lexicon"}, "the server did not tell the token ids of the words that were sent"),
    (
        {"plan": {"messages": "tools"}},
        "what a server's chat template makes of definitions and calls of tools is not learnt",
    ),
    ({"words": {"shift": 1}}, "the chat template's token ids could not be learnt from what was stored"),
    ({"target": {"urls": ["http://a", "http://b"]}}, "KV events came from 1 publishers, for 2 servers"),
]


@pytest.mark.parametrize(("change", "why"), UNKNOWN, ids=[why for _, why in UNKNOWN])
def test_ids_that_cannot_be_known_are_said(played, trace: Path, change: dict[str, Any], why: str) -> None:
    run, _ = played(trace, ["load.sessions=3", "target.cache.pool=1500"])
    words = WordList(lexicon())
    settings = {name: value for name, value in run.settings.items() if name != "template"}
    settings["words"] = {"words": list(words.words), "ids": list(words.token_ids)}
    for name, value in change.items():
        if name == "words" and value != "lexicon":
            settings[name]["ids"] = [id + 1 for id in words.token_ids]
        else:
            settings[name] = {**run.settings[name], **value} if isinstance(value, dict) else value
    losses = report(replace(run, settings=settings)).losses
    assert losses.source != "measured"
    assert why in losses.unmeasured


def test_a_recording_that_is_none(played, trace: Path) -> None:
    run, _ = played(trace, ["load.sessions=3", "target.cache.pool=1500"])
    (run.folder / KV_EVENTS).write_bytes(b"nonsense")
    losses = report(run).losses
    assert losses.source == "modelled"
    assert "the recording of KV events cannot be used" in losses.unmeasured


def test_prompts_that_were_there_before(played, trace: Path) -> None:
    """The first messages never came: as with a warm cache, no event says that those prompts were stored."""
    run, _ = played(trace, ["load.sessions=3", "target.cache.pool=1500"], skip=3)
    losses = report(run).losses
    assert losses.source == "modelled"
    assert "answered requests were stored: they were there before, or the server saw other ids" in losses.unmeasured


def test_measured_explains_what_the_shadow_leaves(played, trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool that is smaller than what the server says, as when others use it."""
    run, _ = played(trace, ["load.sessions=4", "target.cache.pool=1500"])
    run = replace(run, settings={**run.settings, "server": {**run.settings["server"], "max_total_num_tokens": 2500}})
    measured = report(run).losses
    monkeypatch.setattr(losses_measured, "recorded", lambda run: False)
    modelled = report(run).losses
    assert (measured.source, modelled.source) == ("measured", "modelled")
    assert measured.total == modelled.total
    assert modelled.of("unexplained") > 1000 > measured.of("unexplained") == 0


def test_a_lost_message_makes_all_of_it_modelled(played, trace: Path) -> None:
    run, _ = played(trace, ["load.sessions=3", "target.cache.pool=1500"], lose=7)
    losses = report(run).losses
    assert losses.source == "modelled"
    assert losses.unmeasured == "1 messages with KV events were lost on the way"
    text = " ".join(report(run).text().split())
    assert "KV events were recorded and are not used: 1 messages with KV events were lost on the way." in text
