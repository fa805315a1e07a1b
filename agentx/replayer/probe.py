"""What a server says of itself before a run: its model, context, page size, and the words that are one token to it.

Only a server that cannot be reached is an error. What it does not tell stays unknown.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any

import aiohttp

from agentx.content import WordList, lexicon
from agentx.errors import BadInput, Unreachable

ANSWER = 20.0  # s that one question may take
FEWEST_WORDS = 64  # fewer make prompts that share prefixes by accident
_ROUNDS = 16  # of dropping words whose neighbours change them

_TOLD = (  # fields of SGLang's /server_info that say what was measured
    "version",
    "engine_rules",
    "page_size",
    "context_length",
    "max_total_num_tokens",
    "max_running_requests",
    "max_queued_requests",
    "chunked_prefill_size",
    "max_prefill_tokens",
    "schedule_policy",
    "radix_eviction_policy",
    "disable_radix_cache",
    "enable_hierarchical_cache",
    "hicache_ratio",
    "hicache_size",
    "hicache_write_policy",
    "speculative_algorithm",
    "speculative_num_steps",
    "speculative_num_draft_tokens",
    "speculative_eagle_topk",
    "attention_backend",
    "quantization",
    "kv_cache_dtype",
    "dtype",
    "tp_size",
    "dp_size",
    "ep_size",
    "pp_size",
    "model_path",
    "enable_cache_report",
    "stream_interval",
)


async def server_facts(session: aiohttp.ClientSession, base: str, model: str | None) -> dict[str, Any]:
    """`model`, `context` and whatever else the server tells. Raises Unreachable, BadInput when it names no model."""
    models = await _ask(session, "GET", f"{base}/v1/models", must_answer=True)
    cards = models.get("data") if isinstance(models, dict) else None
    card = next((each for each in cards or [] if isinstance(each, dict) and model in (None, each.get("id"))), {})
    facts = await told_by(session, base)
    facts["model"] = model or card.get("id") or facts.get("model_path")
    if not isinstance(facts["model"], str):
        raise BadInput(f"{base} does not say which model it serves", hint="name it: --set target.model=NAME")
    context = card.get("max_model_len") or facts.get("context_length")
    if isinstance(context, int) and context > 0:
        facts["context"] = context
    return facts


def sglang_version(facts: Mapping[str, Any]) -> tuple[int, ...] | None:
    """(0, 5, 19) of what SGLang says of itself (0.5.19, 0.5.19.post1); None for another server."""
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", str(facts.get("version")))
    return None if match is None else tuple(map(int, match.groups()))


async def told_by(session: aiohttp.ClientSession, base: str) -> dict[str, Any]:
    """What a server's `/server_info` tells that says what was measured; empty for one that does not answer."""
    return _picked(await all_told_by(session, base))


async def all_told_by(session: aiohttp.ClientSession, base: str) -> dict[str, Any]:
    """All that it tells, secrets (`api_key`) too."""
    info = await _ask(session, "GET", f"{base}/server_info") or await _ask(session, "GET", f"{base}/get_server_info")
    return info if isinstance(info, dict) else {}


def _picked(info: Mapping[str, Any]) -> dict[str, Any]:
    facts = {name: info[name] for name in _TOLD if info.get(name) is not None}
    states = info.get("internal_states")
    state = states[0] if isinstance(states, list) and states and isinstance(states[0], dict) else {}
    memory = state.get("memory_usage")
    pool = memory.get("token_capacity") if isinstance(memory, dict) else None
    if "max_total_num_tokens" not in facts and isinstance(pool, int):
        facts["max_total_num_tokens"] = pool
    return facts


async def confirmed_words(session: aiohttp.ClientSession, base: str, model: str) -> WordList | None:
    """The words of the lexicon that are one token each, alone and side by side; None when the server cannot say.

    Raises BadInput when it can, and too few are.
    """
    words = lexicon()
    singles = await _tokenized(session, base, model, list(words))
    if singles is None:
        return None
    known = {word: ids[0] for word, ids in zip(words, singles, strict=False) if len(ids) == 1}
    for _ in range(_ROUNDS):
        order = [*known, *reversed(known), *list(known)[::2], *list(known)[1::2]]  # several neighbours for each
        joined = await _tokenized(session, base, model, ["".join(order)])
        if joined is None:
            return None
        at = _first_difference(joined[0], [known[word] for word in order])
        if at is None:
            break
        for word in order[max(0, at - 1) : at + 2]:  # whichever of the three it is
            known.pop(word, None)
    else:
        known = {}
    if len(known) < FEWEST_WORDS:
        raise BadInput(f"only {len(known)} words of the lexicon are one token each to {model}: no exact prompts")
    return WordList(tuple(known), tuple(known.values()))


def _first_difference(found: Sequence[int], expected: Sequence[int]) -> int | None:
    for place, (one, other) in enumerate(zip(found, expected, strict=False)):
        if one != other:
            return place
    return None if len(found) == len(expected) else min(len(found), len(expected)) - 1


async def _tokenized(
    session: aiohttp.ClientSession, base: str, model: str, prompts: list[str]
) -> list[list[int]] | None:
    """Ids of each prompt, without special tokens; None for a server without SGLang's `/tokenize`."""
    body = {"model": model, "prompt": prompts, "add_special_tokens": False}
    answer = await _ask(session, "POST", f"{base}/tokenize", json=body)
    tokens = answer.get("tokens") if isinstance(answer, dict) else None
    if not isinstance(tokens, list) or len(tokens) != len(prompts):
        return None
    if not all(isinstance(ids, list) and all(isinstance(id, int) for id in ids) for ids in tokens):
        return None
    return tokens


async def _ask(
    session: aiohttp.ClientSession, method: str, url: str, *, must_answer: bool = False, json: object = None
) -> object:
    """The JSON of a 200, else None. Raises Unreachable when the server must answer, in whatever way, and does not."""
    try:
        async with session.request(method, url, json=json, timeout=aiohttp.ClientTimeout(total=ANSWER)) as response:
            if response.status in (401, 403) and must_answer:
                raise BadInput(
                    f"{url} refuses the request ({response.status})", hint="key_env names the key's variable"
                )
            return await response.json(content_type=None) if response.status == 200 else None
    except asyncio.TimeoutError:
        reason = f"no answer within {ANSWER:g} s"
    except aiohttp.ClientConnectorError as error:
        reason = error.os_error.strerror or str(error.os_error)
    except aiohttp.ClientError as error:
        reason = str(error) or type(error).__name__
    except ValueError:  # not JSON: it answers
        return None
    if must_answer:
        raise Unreachable(f"{url} cannot be reached: {reason}")
    return None
