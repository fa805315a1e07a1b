"""Codex's own session files (`$CODEX_HOME/sessions/**/rollout-*.jsonl`), forks and subagents included.

A `token_count` event ends a call: the items before it that a model makes are the reply, all items before those the
prompt. Events that repeat the totals of the one before tell nothing new. The file of a fork or a subagent begins with
its parent's history, stamped anew; calls that the parent has too, by content and not by size, are the parent's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from agentx.recorder.calls import ModelCall
from agentx.recorder.canonical import Call, Item, response_item
from agentx.recorder.imports.books import Fidelity
from agentx.recorder.imports.instants import listing, mapping, of_iso, of_number, text
from agentx.recorder.imports.logged import LoggedFormat, Reading, matching
from agentx.recorder.imports.transcripts import Heads, shallow
from agentx.recorder.pauses import ToolTime
from agentx.recorder.replies import Reply, Usage, reply_of, usage_of

Json = dict[str, Any]
_WALL_TIME = re.compile(r"^Wall time: (\d{1,7}(?:\.\d{1,6})?) seconds", re.MULTILINE)
_MADE = frozenset({"reasoning", "function_call", "custom_tool_call", "local_shell_call", "web_search_call"})


@dataclass(slots=True)
class Rollout:
    """One file as it is read: the history so far, and the reply that is coming."""

    session: str | None = None
    parent: str | None = None
    forked: bool = False  # it begins with its parent's history
    kind: str | None = None
    version: str = ""
    model: str = ""
    instructions: tuple[Item, ...] = ()  # stay in front whatever becomes of the history
    history: list[Item] = field(default_factory=list)
    coming: list[Json] = field(default_factory=list)
    asked: int | None = None  # when the last item of the prompt was written
    told: int | None = None  # when the last item of the reply was
    totals: Json = field(default_factory=dict)
    chain: bytes = b""  # a digest of the history, as it grew
    task: list[ModelCall] = field(default_factory=list)  # the calls of the current task
    metas: int = 0
    emitted: dict[str, int] = field(default_factory=dict)  # a tool call -> when its line was written

    def put(self, items: list[Item]) -> None:
        """Make items part of the history."""
        self.history += items
        for item in items:
            self.chain = blake2b(self.chain + item.key, digest_size=16).digest()

    @property
    def name(self) -> str:
        return self.session or ""


def make_reader() -> Any:
    """A reader that knows the calls of the files before."""
    calls: dict[str, set[bytes]] = {}  # session -> its calls, by content
    heads = Heads("codex")

    def read(path: Path, reading: Reading) -> Iterator[ModelCall]:
        rollout, rows = Rollout(), reading.books.rows
        own: set[bytes] = set()
        inherited = False  # still in the parent's history
        for _, line in reading.rows(path):
            kind, payload, at = line.get("type"), mapping(line.get("payload")), of_iso(line.get("timestamp"))
            if kind == "response_item":
                _item(rollout, payload, at, reading)
                rows.merged += 1
            elif kind == "event_msg" and payload.get("type") == "token_count":
                usage = _usage(rollout, payload)
                if usage is None or not rollout.coming:
                    _settle(rollout)
                    rows.drop("token count that tells nothing new")
                    continue
                reply, digest = _reply(rollout, usage)
                before = calls.get(rollout.parent or "", set())
                inherited = rollout.forked and (inherited or not own) and digest in before
                own.add(digest)
                if inherited:
                    rows.drop("call of the parent that a fork's or subagent's file repeats")
                else:
                    rollout.task.append(_call(rollout, heads, reply, usage, at, reading))
                _settle(rollout)
            else:
                if kind == "event_msg" and payload.get("type") in ("task_started", "task_complete"):
                    yield from _ended(rollout, payload)
                rows.drop(_other(rollout, kind, payload, reading))
        yield from _ended(rollout, {})
        if rollout.coming:
            reading.books.note("reply at a file's end without a token count: left out")
        calls.setdefault(rollout.name, set()).update(own)

    return read


def _ended(rollout: Rollout, payload: Json) -> Iterator[ModelCall]:
    """The calls of a task that is over; its time to the first token is that of the first of them."""
    ttft = of_number(payload.get("time_to_first_token_ms"), 0.001)
    calls, rollout.task = rollout.task, []
    if calls and ttft is not None and calls[0].timed and calls[0].order[0] + ttft <= calls[0].ended:
        calls[0] = replace(calls[0], reply=replace(calls[0].reply, first_token=calls[0].order[0] + ttft))
    yield from calls


def _item(rollout: Rollout, payload: Json, at: int | None, reading: Reading) -> None:
    call = payload.get("call_id")
    if isinstance(call, str) and str(payload.get("type")).endswith("call_output"):
        _timed(call, payload, at, rollout, reading)
    elif isinstance(call, str) and at is not None:
        rollout.emitted.setdefault(call, at)
    if payload.get("type", "message") == "message" and payload.get("role") == "user" and at is not None:
        reading.prompts.append((reading.pseudonym(rollout.session), at))
    made = payload.get("type") in _MADE or (payload.get("type") == "message" and payload.get("role") == "assistant")
    if made:
        rollout.coming.append(payload)
        rollout.told = at if at is not None else rollout.told
        return
    if rollout.coming and str(payload.get("type")).endswith("call_output"):
        # Tools may end before the count of their call is written: their results are of the next prompt.
        rollout.coming.append(payload)
        return
    _settle(rollout)
    rollout.asked = at if at is not None else rollout.asked
    rollout.put(_items(payload))


def _timed(call: str, payload: Json, at: int | None, rollout: Rollout, reading: Reading) -> None:
    """When a tool ran: as long as its output says in its first lines, else from its call to its result."""
    output = payload.get("output")
    found = _WALL_TIME.search(output[:400]) if isinstance(output, str) else None
    if found is not None:
        ran = float(found[1])
        reading.tool_times[call] = ToolTime(ran, runs=((at - round(ran * 1e9), at),) if at is not None else ())
    elif at is not None and call in rollout.emitted and call not in reading.tool_times:
        reading.tool_times[call] = ToolTime(runs=((rollout.emitted[call], at),), exact=False)


def _items(payload: Json) -> list[Item]:
    kind = str(payload.get("type", "message"))
    if kind == "message" and payload.get("role") in ("system", "developer"):
        content = [{**part, "type": "text"} for part in listing(payload.get("content")) if isinstance(part, dict)]
        made = shallow(response_item, {"content": content, "role": "user"}, kind)
        return [replace(item, layer="system") for item in made]
    return list(shallow(response_item, payload, kind))


def _settle(rollout: Rollout) -> None:
    """What was coming is history now."""
    for payload in rollout.coming:
        rollout.put(_items(payload))
    if rollout.told is not None:
        rollout.asked = rollout.told
    rollout.coming, rollout.told = [], None


def _usage(rollout: Rollout, payload: Json) -> Usage | None:
    """The tokens of the call that ends here; None when the totals are those of the event before."""
    info = mapping(payload.get("info"))
    totals, last = mapping(info.get("total_token_usage")), mapping(info.get("last_token_usage"))
    if not last or (totals and totals == rollout.totals):
        return None
    rollout.totals = totals
    details = {"cached_tokens": last.get("cached_input_tokens")}
    reasoning = {"reasoning_tokens": last.get("reasoning_output_tokens")}
    return usage_of("responses", {**last, "input_tokens_details": details, "output_tokens_details": reasoning})


def _reply(rollout: Rollout, usage: Usage) -> tuple[Reply, bytes]:
    """The reply, and a digest of the whole call that does not depend on times."""
    made = [payload for payload in rollout.coming if not str(payload.get("type")).endswith("call_output")]
    reply = replace(reply_of("responses", {"output": made, "status": "completed"}), usage=usage, whole=True)
    digest = blake2b(rollout.chain, digest_size=16)
    for item in reply.items:
        digest.update(item.key)
    return reply, digest.digest()


def _call(rollout: Rollout, heads: Heads, reply: Reply, usage: Usage, at: int | None, reading: Reading) -> ModelCall:
    visible = (*rollout.instructions, *rollout.history)
    head = heads.of(rollout.name, f"{rollout.version} {rollout.model} {rollout.kind}", visible, usage)
    parent = rollout.parent if rollout.parent != rollout.session else None
    ids = (
        ("session-id", parent or rollout.session),
        ("thread-id", rollout.session if parent is not None else None),
    )
    end = rollout.told if rollout.told is not None else at
    start = min(rollout.asked, end) if rollout.asked is not None and end is not None else end
    return reading.call(start, end, "responses", Call(rollout.model, (*head, *visible)), reply, ids, kind=rollout.kind)


def _other(rollout: Rollout, kind: Any, payload: Json, reading: Reading) -> str:
    """Take what a line says that is no item of the conversation; why it is none."""
    if kind == "session_meta":
        rollout.metas += 1
        if rollout.metas == 1:  # a fork's file repeats its parent's
            _meta(rollout, payload)
        return "line about the session"
    if kind == "turn_context":
        rollout.model = text(payload, "model") or rollout.model
        return "line about a task"
    if kind == "compacted":
        _settle(rollout)
        rollout.history, rollout.chain = [], b"compacted"
        for entry in listing(payload.get("replacement_history")):
            rollout.put(_items(mapping(entry)))
        if not rollout.history and text(payload, "message"):
            rollout.put(_items({"type": "message", "role": "user", "content": payload["message"]}))
        reading.books.note("compaction")
        return "line about a task"
    if kind == "event_msg" and payload.get("type") == "thread_rolled_back":
        reading.books.note("history that was rolled back: what is dropped is not told, the prompts after it keep it")
    return "line without model traffic"


def _meta(rollout: Rollout, payload: Json) -> None:
    rollout.session, rollout.version = text(payload, "id"), text(payload, "cli_version") or ""
    source = payload.get("source")
    spawn = mapping(mapping(mapping(source).get("subagent")).get("thread_spawn"))
    forked = text(payload, "forked_from_id")
    rollout.parent = text(payload, "parent_thread_id") or text(spawn, "parent_thread_id") or forked
    rollout.forked = rollout.parent is not None
    if isinstance(source, dict) and "subagent" in source:
        told = source["subagent"]
        rollout.kind = told if isinstance(told, str) else next(iter(mapping(told)), None)
    instructions = text(mapping(payload.get("base_instructions")), "text")
    if instructions is not None:
        system = {"type": "message", "role": "system", "content": [{"text": instructions}]}
        rollout.instructions = tuple(_items(system))


def make_format() -> LoggedFormat:
    """What `agentx import codex` reads."""
    return LoggedFormat(
        name="codex",
        row="line",
        read=make_reader(),
        fidelity=Fidelity("reconstructed", "start-end", "header", "server", "total"),
        unknowable=(
            "built-in tools: one stretch of known length before the first message",
            "when a request left: a call starts when the last line before it was written; the first token of a task's "
            "calls but the first",
            "output of tools beyond what the file keeps (10 KB); what old reasoning is sent again",
            "retries, calls that failed, side calls",
            "waiting for a permission: it is inside a tool's time",
        ),
        find=matching("rollout-*.jsonl", "*.jsonl"),
    )
