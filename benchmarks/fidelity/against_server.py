"""The engine beside a real SGLang server: the same agent traffic, request by request and in parallel.

    python benchmarks/fidelity/against_server.py URL [--sessions 4] [--turns 12] [--seed 0] [--alone 60]

Pool, page, chunk, context, host tier and speculation are read from the server (/server_info, /metrics). First `--alone`
requests go one after another: the cached tokens of every one are compared with the cache model's, which is given the
server's own replies. Then `--sessions` sessions run in parallel, on the server and on the engine in virtual time, whose
timing is measured on the server before: total reuse is compared, since there the order of things is not ours.
The server's cache is flushed. Nothing else may use it.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import pathlib
import random
import sys
import time
import urllib.request
from array import array
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from agentx.engine.engine import Engine, EngineSettings, Finished, Request, Tokens, cache_of
from agentx.engine.nodes import ID_BYTES

WORDS = range(300, 8000)  # token ids that the server's model surely has


class Server:
    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")

    def call(self, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=600) as answer:
            text = answer.read().decode()
        return json.loads(text) if text.startswith(("{", "[")) else text

    def flush(self) -> None:
        self.call("/flush_cache?timeout=30", {})
        time.sleep(0.5)

    def generate(self, ids: bytes, count: int) -> tuple[bytes, dict[str, Any]]:
        sampling = {"max_new_tokens": count, "ignore_eos": True, "temperature": 0}
        answer = self.call("/generate", {"input_ids": array("I", ids).tolist(), "sampling_params": sampling})
        return array("I", answer["output_ids"]).tobytes(), answer["meta_info"]

    def settings(self, timing: dict[str, str] | None = None) -> EngineSettings:
        """The server's configuration, as far as the engine has it."""
        self.generate(array("I", [300, 301]).tobytes(), 2)  # the host tier's gauges come with the first request
        info = self.call("/server_info")
        gauges: dict[str, float] = {}
        for line in self.call("/metrics").splitlines():
            if not line.startswith("#"):
                gauges[line.partition("{")[0].removeprefix("sglang:")] = float(line.rsplit(" ", 1)[1])
        host, page = int(gauges.get("hicache_host_total_tokens", 0)), info["page_size"]
        speculation: dict[str, Any] = {}
        if info.get("speculative_algorithm"):
            draft = info["speculative_num_draft_tokens"]
            length = min(float(info.get("simulate_acc_len") or 2.6), draft)
            speculation = {"algorithm": "NGRAM", "draft_tokens": draft, "acceptance": {"length": length}}
        cache = {
            "pool": int(gauges["max_total_num_tokens"]) // page * page, "page": page,
            "host": {"tokens": host, "write": info.get("hicache_write_policy") or "write_through"},
        }  # fmt: skip
        scheduler = {"chunk": info["chunked_prefill_size"], "max_running": info["max_running_requests"]}
        given = {"context": info["context_length"], "cache": cache, "scheduler": scheduler, "speculation": speculation}
        return EngineSettings.model_validate(given | ({"timing": timing} if timing else {}))


def new_ids(rng: random.Random, count: int) -> bytes:
    return array("I", [rng.choice(WORDS) for _ in range(count)]).tobytes()


def alone(server: Server, settings: EngineSettings, seed: int, count: int) -> int:
    """Sequential traffic; returns how many requests differ."""
    server.flush()
    cache, rng = cache_of(settings), random.Random(seed)
    shared = new_ids(rng, 600)
    contexts = [shared + new_ids(rng, rng.randrange(50, 400)) for _ in range(10)]
    differing = device = host = prompts = 0
    for number in range(count):
        session = rng.randrange(len(contexts))
        if len(contexts[session]) // ID_BYTES > settings.context // 3:
            contexts[session] = contexts[session][: 700 * ID_BYTES]
        prompt = contexts[session]
        reply, meta = server.generate(prompt, rng.randrange(2, 40))
        details = meta.get("cached_tokens_details") or {}
        seen = (details.get("device", 0), details.get("host", 0))
        made = len(reply) // ID_BYTES
        accepted = meta.get("spec_num_correct_drafts", 0) + meta.get("spec_verify_ct", 0)
        expected = one(cache, settings, prompt, reply, min(accepted, made) if accepted else made - 1)
        if seen != expected:
            differing += 1
            size = len(prompt) // ID_BYTES
            print(f"  request {number}, {size} tokens: server (device, host) {seen}, ours {expected}")
        device, host, prompts = device + seen[0], host + seen[1], prompts + len(prompt) // ID_BYTES
        contexts[session] = prompt + reply + new_ids(rng, rng.randrange(20, 500))
    print(f"one by one: {count - differing} of {count} equal; device {device / prompts:.3f}, host {host / prompts:.3f}")
    return differing


def one(cache: Any, settings: EngineSettings, prompt: bytes, reply: bytes, stored: int) -> tuple[int, int]:
    """One request through the cache alone; `stored` reply tokens have KV."""
    tokens, page, chunk = len(prompt) // ID_BYTES, settings.cache.page, settings.scheduler.chunk
    spare = page if page > 1 else 0
    match = cache.match(prompt, tokens - 1)
    lease, loaded = cache.open(prompt, b"", match)
    at = match.device + loaded
    while at < tokens:
        end = tokens if tokens - at <= chunk else (at + chunk) // page * page
        cache.make_room(end - at + spare)
        cache.extend(lease, end)
        cache.checkpoint(lease, end)
        cache.settle()
        at = end
    for _ in range(stored):
        cache.make_room(page)
        cache.extend(lease, lease.allocated + 1)
    lease.ids = prompt + reply
    cache.checkpoint(lease, tokens + stored)
    cache.release(lease)
    cache.settle()
    return match.device, loaded


def measured_timing(server: Server, rng: random.Random) -> dict[str, str]:
    """Prefill and decode speed of an idle server, as a timing block."""
    seconds = {}
    for tokens, made in ((500, 1), (3500, 1), (500, 41)):
        best = []
        for _ in range(3):
            started = time.perf_counter()
            server.generate(new_ids(rng, tokens), made)
            best.append(time.perf_counter() - started)
        seconds[tokens, made] = min(best)
    token = (seconds[3500, 1] - seconds[500, 1]) / 3000
    step = (seconds[500, 41] - seconds[500, 1]) / 40
    print(f"measured: {token * 1e6:.0f} us per prompt token, {step * 1e3:.1f} ms per decode step")
    values = {"prefill_token": token, "decode_step": step * 0.8, "decode_request": step * 0.2, "request": 0.005}
    zero = {"prefill_batch", "prefill_token_context", "decode_context", "speculation_step", "load_back_token"}
    return {name: f"{value:.9f}s" for name, value in values.items()} | dict.fromkeys(zero, "0s")


def plans(seed: int, sessions: int, turns: int, most: int) -> list[list[tuple[bytes, int]]]:
    """For each session, (new ids, reply tokens) of each turn; the first has the shared prefix."""
    rng = random.Random(f"parallel/{seed}")
    shared = new_ids(rng, 600)
    grow = most // turns
    plan: list[list[tuple[bytes, int]]] = []
    for _ in range(sessions):
        news = [new_ids(rng, rng.randrange(grow // 3, grow)) for _ in range(turns)]
        news[0] = shared + news[0]
        plan.append([(ids, rng.randrange(4, 40)) for ids in news])
    return plan


def parallel_server(server: Server, plan: list[list[tuple[bytes, int]]]) -> float:
    def session(turns: list[tuple[bytes, int]]) -> tuple[int, int]:
        context, cached, prompts = b"", 0, 0
        for news, count in turns:
            context += news
            reply, meta = server.generate(context, count)
            cached, prompts = cached + meta["cached_tokens"], prompts + meta["prompt_tokens"]
            context += reply
        return cached, prompts

    server.flush()
    with concurrent.futures.ThreadPoolExecutor(len(plan)) as pool:
        done = list(pool.map(session, plan))
    return sum(cached for cached, _ in done) / sum(prompts for _, prompts in done)


def parallel_engine(settings: EngineSettings, plan: list[list[tuple[bytes, int]]]) -> float:
    engine = Engine(settings)
    contexts = [b""] * len(plan)
    turns = [0] * len(plan)
    cached = prompts = 0

    def send(session: int, now: float) -> None:
        news, count = plan[session][turns[session]]
        contexts[session] += news
        turns[session] += 1
        engine.submit(Request(str(session), contexts[session], count, ignore_eos=True), now)

    for session in range(len(plan)):
        send(session, 0.0)
    due: float | None = 0.0
    while due is not None:
        now = due
        events, due = engine.step(now)
        for event in events:
            if isinstance(event, Tokens):
                contexts[int(event.rid)] += event.ids
            elif isinstance(event, Finished):
                cached += event.cached_device + event.cached_host
                prompts += event.prompt_tokens
                if turns[int(event.rid)] < len(plan[int(event.rid)]):
                    send(int(event.rid), now)
                    due = now
    return cached / prompts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--sessions", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--turns", type=int, default=12)
    parser.add_argument("--longest", type=int, default=4000, help="tokens of the longest context")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--alone", type=int, default=60)
    args = parser.parse_args()
    server = Server(args.url)
    settings = server.settings()
    print(f"server: {settings.cache.model_dump()}, chunk {settings.scheduler.chunk}, {settings.speculation.algorithm}")
    differing = alone(server, settings, args.seed, args.alone) if args.alone else 0
    timing = measured_timing(server, random.Random(args.seed))
    apart = 0
    for sessions in args.sessions:
        plan = plans(args.seed, sessions, args.turns, args.longest)
        theirs, ours = parallel_server(server, plan), parallel_engine(server.settings(timing), plan)
        apart += abs(theirs - ours) > 0.015
        points = 100 * (ours - theirs)
        print(f"{sessions} sessions in parallel: server {theirs:.3f}, ours {ours:.3f}, {points:+.1f} points")
    return 1 if differing or apart else 0


if __name__ == "__main__":
    sys.exit(main())
