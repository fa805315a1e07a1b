"""Asks a server the problems: chat, greedy, without simulated acceptance, so many at a time."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import aiohttp

from agentx.engine.settings import EngineSettings
from agentx.errors import BadInput, Unreachable
from agentx.quality.answers import answered, verdict
from agentx.quality.problems import Problem
from agentx.quality.results import NAME, Outcome, Quality, head_line, outcome_line, read_quality
from agentx.replayer.client import open_session
from agentx.replayer.launch import launched
from agentx.replayer.probe import server_facts
from agentx.replayer.targets import Endpoint, Target, request_headers

STALL = 1800.0  # s without a byte after which a problem has failed
_LONGEST_ERROR = 300  # characters


@dataclass(frozen=True, slots=True)
class Asking:
    """How the problems are asked: `at_a_time` of them, replies of at most `max_tokens`."""

    at_a_time: int = 8
    max_tokens: int = 2048


def ask(
    target: Target,
    problems: Sequence[Problem],
    folder: Path,
    asking: Asking,
    about: dict[str, Any],
    progress: Callable[[], object] = lambda: None,
) -> Quality:
    """Ask all problems and write `folder`/quality.jsonl as answers come. `about` goes into its head.

    Raises BadInput for a folder that has one already and for a target that simulates acceptance, Unreachable for one
    that does not answer or fails every problem. What was answered before an interruption is in the file.
    """
    if (folder / NAME).exists():
        raise BadInput(f"the folder holds a {NAME} already", file=folder, hint="-o names a new one")
    settings = target.settings
    if isinstance(settings, EngineSettings) and settings.speculation.algorithm is not None:
        raise BadInput("the target simulates acceptance: what it says is not the model's", hint="speculation: none")
    folder.mkdir(parents=True, exist_ok=True)
    asyncio.run(_ask(target, problems, folder, asking, about, progress))
    found = read_quality(folder)
    if found.outcomes and found.count("failed") == len(found.outcomes):
        raise Unreachable(f"every problem failed ({len(found.outcomes)}), the first by {found.outcomes[0].error}")
    return found


@contextlib.asynccontextmanager
async def _serving(target: Target, folder: Path) -> AsyncIterator[Endpoint]:
    """The target's address; what has to be started is, and ends with the block."""
    settings = target.settings
    if isinstance(settings, Endpoint):
        yield settings
    elif isinstance(settings, EngineSettings):
        from agentx.engine.server import running

        with running(settings) as url:
            yield Endpoint(kind="endpoint", url=url)
    else:
        async with launched(settings, folder=folder, simulated={}, tell=_say) as server:
            yield server.endpoint


def _say(text: str) -> None:
    print(f"agentx quality: {text}", file=sys.stderr)


async def _ask(
    target: Target,
    problems: Sequence[Problem],
    folder: Path,
    asking: Asking,
    about: dict[str, Any],
    progress: Callable[[], object],
) -> None:
    async with _serving(target, folder) as endpoint, open_session(request_headers(endpoint)) as session:
        server = await server_facts(session, endpoint.base, endpoint.model)
        head = {"target": target.record(), "server": server, "asked": len(problems), **about}
        waiting, url = iter(problems), f"{endpoint.base}/v1/chat/completions"
        with (folder / NAME).open("w", encoding="utf-8") as file:
            file.write(head_line(head))
            file.flush()
            lanes = [
                _lane(session, url, server["model"], waiting, asking, file, progress) for _ in range(asking.at_a_time)
            ]
            await asyncio.gather(*lanes)


async def _lane(
    session: aiohttp.ClientSession,
    url: str,
    model: str,
    waiting: Any,
    asking: Asking,
    file: IO[str],
    progress: Callable[[], object],
) -> None:
    for problem in waiting:  # all lanes take from one iterator
        outcome = await _one(session, url, model, problem, asking)
        file.write(outcome_line(outcome))
        file.flush()
        progress()


async def _one(session: aiohttp.ClientSession, url: str, model: str, problem: Problem, asking: Asking) -> Outcome:
    body = {
        "model": model,
        "messages": [{"role": "user", "content": problem.prompt}],
        "temperature": 0,
        "max_tokens": asking.max_tokens,
    }
    digest = hashlib.blake2b(problem.prompt.encode(), digest_size=8).hexdigest()
    try:
        timeout = aiohttp.ClientTimeout(total=None, sock_read=STALL)
        async with session.post(url, data=json.dumps(body).encode(), timeout=timeout) as response:
            text = await response.text(errors="replace")
        if response.status != 200:
            return _failed(problem, digest, f"status {response.status}: {text}")
        answer = json.loads(text)
        choice = answer["choices"][0]
        reply = choice["message"].get("content") or ""
    except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
        return _failed(problem, digest, str(error) or type(error).__name__)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        return _failed(problem, digest, f"no chat completion: {text}")
    usage = answer.get("usage") or {}
    return Outcome(
        problem.id, problem.variant, digest, problem.answer, verdict(reply, problem.answer), answered(reply), reply,
        choice.get("finish_reason"), usage.get("prompt_tokens"), usage.get("completion_tokens"),
    )  # fmt: skip


def _failed(problem: Problem, digest: str, error: str) -> Outcome:
    said = " ".join(error.split())[:_LONGEST_ERROR]
    return Outcome(problem.id, problem.variant, digest, problem.answer, "failed", None, "", error=said)
