"""SGLang's own requests (`GenerateReqInput`) with their `meta_info`, as three of its files hold them.

Token ids are those that the server computed, template included: identities are exact. Where ids are not in the file
the rendered text is, and where that is not either, only lengths are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from agentx.recorder.calls import ModelCall
from agentx.recorder.canonical import Call, Item
from agentx.recorder.imports.instants import mapping, of_number, text
from agentx.recorder.imports.logged import Reading
from agentx.recorder.replies import Reply, reply_of

UNKNOWABLE = (
    "which messages and tools a prompt was made of: it is one stretch of tokens",
    "tool calls: threads are found by what prompts share, gaps have no kind",
)


def call_of_request(
    obj: Mapping[str, Any], out: Mapping[str, Any], times: tuple[int | None, int | None], reading: Reading,
    ids: Iterable[tuple[str, str | None]] = (),
) -> ModelCall | str:  # fmt: skip
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
    request = _request(obj, meta, reply, reading)
    if isinstance(request, str):
        return request
    aborted = mapping(meta.get("finish_reason")).get("type") == "abort"
    named = (
        ("x-session-id", text(obj, "session_id", "conversation_id") or text(mapping(obj.get("session_params")), "id")),
        *ids,
        ("x-smg-routing-key", text(obj, "routing_key")),
    )
    return reading.call(start, end, "generate", request, reply, named, cause="client_abort" if aborted else "done")


def _request(obj: Mapping[str, Any], meta: Mapping[str, Any], reply: Reply, reading: Reading) -> Call | str:
    body = {"input_ids": obj.get("input_ids"), "sampling": None, "model": text(obj, "model", "lora_path")}
    sampling = obj.get("sampling_params")
    if isinstance(sampling, dict):
        body |= {"temperature": sampling.get("temperature"), "max_tokens": sampling.get("max_new_tokens")}
    ids, prompt = obj.get("input_ids"), reply.usage.prompt
    whole = isinstance(ids, list) and ids and (prompt is None or prompt == len(ids))
    if not whole:
        body = {**body, "input_ids": None, "text": obj.get("text")}
        reading.books.note(
            "token ids that are not all there (the log was cut): the text is used", isinstance(ids, list) and bool(ids)
        )
    if whole or (isinstance(obj.get("text"), str) and obj["text"]):
        return reading.request("generate", body)
    if prompt is None:
        return "request with neither prompt nor length"
    reading.books.note("prompt that is not in the file: only its length is known")
    key = f"length {reading.books.rows.read}".encode()
    return Call(text(obj, "model") or "", (Item("user", key, prompt, tokens=prompt),))
