"""A server's own traffic, recorded and replayed against it: are the cached tokens of each turn the same?

    python benchmarks/fidelity/record_and_replay.py URL [--sessions 3] [--turns 6] [--seed 0]

A client of the openai package holds conversations through the recorder, one after another. In place of each reply it
sends words back: what a model with random weights says does not survive being tokenized again. The capture is compiled
and replayed (wire chat, history recorded) on the flushed server, twice: the first time `agentx compare TRACE RUN` says
which chat template the parts still hold, the second time without it. Printed: what it says of the second. The server's
cache is flushed three times; nothing else may use it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import pathlib
import random
import sys
import tempfile
import urllib.request
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

import openai

from agentx import replay
from agentx.content import lexicon
from agentx.recorder.compiling import compile_capture
from agentx.recorder.profile import load_profile
from agentx.recorder.recording import Recording, record
from agentx.recorder.weaving import Template
from agentx.reporter.compare_recorded import Recorded, compare_recorded


def call(url: str, path: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        text = answer.read().decode()
    return json.loads(text) if text.startswith("{") else text


def converse(url: str, model: str, name: str, turns: int, rng: random.Random) -> None:
    """One conversation: a system text that all share, and words in place of what the server said."""
    words = lexicon()

    def text(count: int) -> str:
        return "".join(rng.choice(words) for _ in range(count))

    client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, default_headers={"X-Session-ID": name})
    messages: list[Any] = [{"role": "system", "content": "".join(words[:400])}]
    for _ in range(turns):
        messages.append({"role": "user", "content": text(rng.randint(60, 400))})
        client.chat.completions.create(model=model, messages=messages, max_tokens=(count := rng.randint(8, 24)))
        messages.append({"role": "assistant", "content": text(count)})


def recorded(upstream: str, folder: pathlib.Path, talk: Any) -> None:
    """Run `talk(url)` through the recorder."""
    profile = load_profile(pathlib.Path(__file__).resolve().parents[2] / "recorders" / "sglang.yaml")
    wanted = Recording("sglang", profile, upstream, folder, key_file=folder.parent / "key")

    async def main() -> None:
        stop, loop, url = asyncio.Event(), asyncio.get_running_loop(), asyncio.Event()
        told: list[str] = []

        def ready(base: str) -> None:
            told.append(base)
            url.set()

        job = asyncio.ensure_future(record(wanted, ready=ready, stop=stop, warn=print))
        await url.wait()
        await loop.run_in_executor(None, talk, told[0])
        stop.set()
        await job

    asyncio.run(main())


def replayed(url: str, folder: pathlib.Path, name: str, frame: Template) -> Recorded:
    """The capture compiled, replayed on the flushed server, and held against what was recorded."""
    trace = folder / f"{name}.trace"
    compile_capture(folder / "cap", trace, key_file=folder / "key", template=frame)
    call(url, "/flush_cache?timeout=30", {})
    return compare_recorded(trace, replay(trace, target=url, out=folder / name, sets=["gaps.scale=0"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--sessions", type=int, default=3)
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    url = args.url.rstrip("/")
    model = call(url, "/v1/models")["data"][0]["id"]
    rng = random.Random(args.seed)

    def talk(base: str) -> None:
        for number in range(args.sessions):
            converse(base, model, f"s{number}", args.turns, rng)

    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        os.environ["AGENTX_KEYS"] = scratch
        call(url, "/flush_cache?timeout=30", {})
        recorded(url, folder / "cap", talk)
        first = replayed(url, folder, "first", Template()).template
        frame = Template(first.per_message, first.start) if first is not None else Template()
        found = replayed(url, folder, "second", frame)
        print(f"chat template: {frame.message} tokens a message, {frame.prompt} a prompt")
        print(found.text())
        print(f"{found.cached.same} of {found.cached.told} turns have the same cached tokens, within one")


if __name__ == "__main__":
    main()
