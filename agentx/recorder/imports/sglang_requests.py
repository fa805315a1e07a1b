"""SGLang's own requests (`GenerateReqInput`) with their `meta_info`, as three of its files hold them.

Token ids are those that the server computed, template included: identities are exact. Where ids are not in the file
the rendered text is, and where that is not either, only lengths are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import takewhile
from typing import Any

from agentx.recorder.canonical import Call, Item, id_items
from agentx.recorder.imports.instants import listing, mapping, of_number, text
from agentx.recorder.imports.logged import Reading
from agentx.recorder.imports.token_prompts import Asked
from agentx.recorder.replies import Reply, reply_of

UNKNOWABLE = (
    "which messages and tools a prompt was made of: it is one stretch of tokens",
    "tool calls: threads are found by what prompts share, gaps have no kind",
)
CUT = 2048  # characters from which level 2 of the request log cuts in the middle


def call_of_request(
    obj: Mapping[str, Any], out: Mapping[str, Any], times: tuple[int | None, int | None], reading: Reading,
    ids: Iterable[tuple[str, str | None]] = (),
) -> Asked | str:  # fmt: skip
    """A request with its answer. `times`: when it came and when it was done."""
    meta = mapping(out.get("meta_info"))
    if not meta:
        return "request without an answer in the file"
    reply = reply_of("generate", {"text": out.get("text") or "", "meta_info": meta})
    started = of_number(meta.get("request_received_ts"))
    start, end = (started if started is not None else times[0]), of_number(meta.get("request_finished_ts")) or times[1]
    took = of_number(meta.get("e2e_latency"))
    if start is None and end is not None and took is not None:
        start = max(end - took, 0)
    if end is None and start is not None and took is not None:
        end = start + took
    latency = of_number(meta.get("first_token_latency", meta.get("ttft")))
    if start is not None and latency:
        reply = replace(reply, first_token=start + latency)
        reading.known(timing="ttft")
    named = (
        ("x-session-id", text(obj, "session_id", "conversation_id") or text(mapping(obj.get("session_params")), "id")),
        *ids,
        ("x-smg-routing-key", text(obj, "routing_key")),
    )
    request = _request(obj, reply, reading)
    if isinstance(request, str):
        return request
    aborted = mapping(meta.get("finish_reason")).get("type") == "abort"
    call = reading.call(start, end, "generate", request, reply, named, cause="client_abort" if aborted else "done")
    prompt = listing(obj.get("input_ids"))
    if request.items != tuple(id_items(prompt) if set(map(type, prompt)) == {int} else ()):
        return Asked(call)  # of text, or cut by the log
    session = next((value for _, value in named if value is not None), None)
    return Asked(call, session, prompt, _ids(out.get("output_ids")))


def _ids(value: Any) -> list[int]:
    ids = listing(value)
    return ids if all(type(id) is int for id in ids) else []


def _request(obj: Mapping[str, Any], reply: Reply, reading: Reading) -> Call | str:
    ids, rendered, prompt = listing(obj.get("input_ids")), obj.get("text"), reply.usage.prompt
    head = list(takewhile(lambda id: type(id) is int, ids))
    body: dict[str, Any] = {"model": text(obj, "model", "lora_path")}
    sampling = mapping(obj.get("sampling_params"))
    body |= {"temperature": sampling.get("temperature"), "max_tokens": sampling.get("max_new_tokens")}
    if head and len(head) == len(ids) and prompt in (None, len(ids)):
        return reading.request("generate", {**body, "input_ids": ids})
    if isinstance(rendered, str) and rendered and not _cut(rendered):
        return reading.request("generate", {**body, "text": rendered})
    if prompt is None:
        return "request with neither prompt nor length"
    key = f"rest of request {reading.books.rows.read}".encode()
    if head and len(head) < len(ids) and len(head) < prompt:
        reading.books.note("prompt that the log cut in the middle: what is behind the cut occurs nowhere else")
        call = reading.request("generate", {**body, "input_ids": head})
        rest = Item("user", key, 4 * (prompt - len(head)), tokens=prompt - len(head), glued=True)
        return call if isinstance(call, str) else replace(call, items=(*call.items, rest))
    reading.books.note("prompt that is not in the file: only its length is known")
    return Call(text(obj, "model") or "", (Item("user", key, max(prompt, 1), tokens=prompt),))


def _cut(rendered: str) -> bool:
    """Whether the request log cut a text in the middle: half of what it keeps, dots, the other half."""
    return CUT <= len(rendered) <= CUT + 8 and "..." in rendered[CUT // 2 - 1 : CUT // 2 + 8]
