"""Random agent traffic against a small cache, and what agentx's engine does with it.

A case is a configuration, a seed and a number of requests; everything else follows from it. Two families:

- `engine`: one request after another through the whole engine (admission, chunks, decode steps, acceptance);
- `cache`: several requests at once, some aborted, on the cache alone, in an order that the case fixes.

`play` gives the hits of every request and the state of the pools at the end. `against_sglang.py` plays the same cases
on SGLang's classes.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from agentx.engine.engine import Engine, EngineSettings, Finished, Request, Tokens, cache_of
from agentx.engine.nodes import ID_BYTES, Lease


@dataclass(frozen=True)
class Case:
    """`length` is the simulated acceptance length (0: no speculation); `host` tokens of host tier (0: none)."""

    family: str
    seed: int
    requests: int
    pool: int
    page: int = 1
    policy: str = "lru"
    chunk: int = 0
    host: int = 0
    write: str = "write_through"
    algorithm: str = ""
    length: float = 0.0
    method: str = "match-expected"
    bigram: bool = False

    @property
    def name(self) -> str:
        given = {key: value for key, value in asdict(self).items() if value != getattr(Case, key, None)}
        return " ".join(f"{key}={value}" for key, value in given.items())

    def settings(self) -> EngineSettings:
        speculation: dict[str, Any] = {}
        if self.algorithm:
            acceptance = {"length": self.length, "method": self.method, "tokens": "real-draft-token"}
            speculation = {"algorithm": self.algorithm, "steps": 3, "draft_tokens": 4, "acceptance": acceptance}
        host = {"tokens": self.host, "write": self.write}
        cache = {"pool": self.pool, "page": self.page, "policy": self.policy, "bigram": self.bigram, "host": host}
        scheduler = {"chunk": self.chunk or 1 << 20, "max_prefill": 1 << 20}
        return EngineSettings.model_validate(
            {"context": 1 << 20, "cache": cache, "scheduler": scheduler, "speculation": speculation}
        )


class Answer(NamedTuple):
    """Hits of each request, and the pools at the end: free, evictable, evicted in all, free on the host."""

    device: list[int]
    host: list[int]
    end: list[int]


class Start(NamedTuple):
    request: int
    prompt: bytes
    namespace: str


class End(NamedTuple):
    """Of a request: its reply, how many reply tokens have KV, and whether it is kept (not aborted)."""

    request: int
    reply: bytes
    stored: int
    keep: bool


def token_ids(rng: random.Random, count: int, words: int) -> bytes:
    return b"".join(rng.randrange(1, words + 1).to_bytes(ID_BYTES, "little") for _ in range(count))


class Sessions:
    """Agents that share a first prompt, grow turn by turn, and now and then start over or lose their tail."""

    def __init__(self, case: Case) -> None:
        self.rng = random.Random(f"{case.family}/{case.seed}")
        self.words = self.rng.choice([3, 50, 50_000])  # few words: prefixes meet by accident, nodes split everywhere
        self.most = case.pool // self.rng.choice([2, 3, 4]) - 2 * case.page
        self.shared = token_ids(self.rng, self.rng.randrange(1, max(2, self.most // 3)), self.words)
        self.contexts = [self._fresh() for _ in range(self.rng.choice([3, 8, 16]))]

    def _fresh(self) -> bytes:
        keep = self.rng.choice([1.0, 1.0, 0.6])
        shared = self.shared[: int(len(self.shared) // ID_BYTES * keep) * ID_BYTES]
        return shared + token_ids(self.rng, self.rng.randrange(1, max(2, self.most // 4)), self.words)

    def turn(self) -> tuple[int, str]:
        """The session whose turn it is, and its namespace."""
        session = self.rng.randrange(len(self.contexts))
        context = self.contexts[session]
        if self.rng.random() < 0.06 or len(context) // ID_BYTES > self.most:
            self.contexts[session] = self._fresh()
        elif self.rng.random() < 0.08:
            self.contexts[session] = context[: max(ID_BYTES, len(context) // ID_BYTES // 2 * ID_BYTES)]
        return session, self.rng.choice(["", "", "", "", "other"]) if session == 0 else ""

    def grow(self, session: int, reply: bytes) -> None:
        news = token_ids(self.rng, self.rng.randrange(1, max(3, self.most // 8)), self.words)
        if self.rng.random() < 0.85:  # else the client does not send the reply back
            news = reply + news
        self.contexts[session] += news


def operations(case: Case) -> Iterator[Start | End]:
    """The `cache` family's order of things: up to three requests at once, some aborted."""
    sessions = Sessions(case)
    rng = sessions.rng
    waiting: list[tuple[int, End]] = []  # tokens that it holds, pages rounded up
    for number in range(case.requests):
        session, namespace = sessions.turn()
        prompt = sessions.contexts[session]
        reply = token_ids(rng, rng.randrange(1, 20), sessions.words)
        stored = len(reply) // ID_BYTES - (rng.random() < 0.7)
        size = len(prompt) // ID_BYTES + stored + 2 * case.page
        while waiting and sum(held for held, _ in waiting) + size > case.pool - 2 * case.page:
            yield waiting.pop(0)[1]  # so that nothing fails for want of memory
        yield Start(number, prompt, namespace)
        waiting.append((size, End(number, reply, stored, rng.random() > 0.08)))
        sessions.grow(session, reply)
        if len(waiting) >= rng.choice([1, 2, 3]):
            yield waiting.pop(rng.randrange(len(waiting)))[1]
    for _, end in waiting:
        yield end


def play(case: Case) -> Answer:
    """What agentx's engine answers."""
    return play_cache(case) if case.family == "cache" else play_engine(case)[0]


class Served(NamedTuple):
    """One request of the `engine` family as the engine served it: `accepted` tokens of each decode step."""

    prompt: bytes
    namespace: str
    reply: bytes
    accepted: tuple[int, ...]


def play_engine(case: Case) -> tuple[Answer, list[Served]]:
    """One request after another. The second value is what SGLang's classes have to be given to do the same."""
    sessions = Sessions(case)
    engine = Engine(case.settings())
    device, host, served = [], [], []
    now = 0.0
    for number in range(case.requests):
        session, namespace = sessions.turn()
        prompt = sessions.contexts[session]
        engine.submit(
            Request(str(number), prompt, sessions.rng.randrange(1, 24), ignore_eos=True, namespace=namespace), now
        )
        chunks: list[bytes] = []
        due: float | None = now
        end = None
        while due is not None:
            now = due
            events, due = engine.step(now)
            chunks += [event.ids for event in events if isinstance(event, Tokens)]
            end = next((event for event in events if isinstance(event, Finished)), end)
        if end is None:
            raise RuntimeError("a request did not end")
        device.append(end.cached_device)
        host.append(end.cached_host)
        steps = [count for count, times in enumerate(end.histogram, 1) for _ in range(times)]
        if not case.algorithm:
            steps = [1] * (end.completion_tokens - 1)
        served.append(Served(prompt, namespace, b"".join(chunks), tuple(_in_order(chunks, steps))))
        sessions.grow(session, b"".join(chunks))
        engine.check_integrity()
    counters = engine.counters()
    end_state = [counters.available, counters.evictable, counters.evicted, counters.host_total - counters.host_used]
    return Answer(device, host, end_state), served


def _in_order(chunks: list[bytes], steps: list[int]) -> list[int]:
    """The accepted counts in the order of the steps: each chunk shows its own, but the last may have been cut."""
    shown = [len(chunk) // ID_BYTES for chunk in chunks[1:]]
    if shown:
        shown[-1] += sum(steps) - sum(shown)
    return shown


def play_cache(case: Case) -> Answer:
    cache = cache_of(case.settings())
    chunk = case.chunk or 1 << 30
    spare = case.page if case.page > 1 else 0
    leases: dict[int, Lease] = {}
    device, host = [], []
    for operation in operations(case):
        if isinstance(operation, Start):
            prompt, namespace = operation.prompt, operation.namespace.encode()
            tokens = len(prompt) // ID_BYTES
            match = cache.match(prompt, tokens - 1, namespace)
            lease, loaded = cache.open(prompt, namespace, match)
            device.append(match.device)
            host.append(loaded)
            at = match.device + loaded
            while at < tokens:
                end = tokens if tokens - at <= chunk else (at + chunk) // case.page * case.page
                cache.make_room(end - at + spare)
                cache.extend(lease, end)
                cache.checkpoint(lease, end)
                cache.settle()
                at = end
            leases[operation.request] = lease
        else:
            lease = leases.pop(operation.request)
            tokens = lease.prompt
            for _ in range(operation.stored):
                cache.make_room(case.page)
                cache.extend(lease, lease.allocated + 1)
            if operation.keep:
                lease.ids += operation.reply
                cache.checkpoint(lease, tokens + operation.stored)
            cache.release(lease)
            cache.settle()
        cache.check_integrity(sum(cache.ceil(lease.allocated) - lease.protected for lease in leases.values()))
    return Answer(device, host, [cache.free, cache.evictable, cache.evicted, cache.host_free])


def campaign(rounds: int, requests: int) -> Iterator[Case]:
    """Every combination of page, pool, host tier, chunk and acceptance, `rounds` seeds each."""
    for round_, (number, case) in itertools.product(range(rounds), enumerate(_grid(requests))):
        yield Case(**{**asdict(case), "seed": 1000 * round_ + number})


def _grid(requests: int) -> Iterator[Case]:
    hosts = [(0.0, "write_through"), (0.5, "write_through"), (1.5, "write_through"), (4.0, "write_through")]
    hosts += [(1.5, "write_through_selective"), (0.4, "write_back"), (1.0, "write_back"), (3.0, "write_back")]
    for page, (ratio, write), chunked in itertools.product((1, 16, 64), hosts, (False, True)):
        pool = {1: 400, 16: 1600, 64: 6400}[page]
        common: dict[str, Any] = {
            "seed": 0, "requests": requests, "pool": pool, "page": page, "write": write,
            "host": int(pool * ratio) // page * page, "chunk": 2 * page + 30 // page * page if chunked else 0,
        }  # fmt: skip
        yield Case(family="cache", **common)
        yield Case(family="engine", **common)
        if not chunked:
            yield Case(family="engine", algorithm="EAGLE", length=2.6, **common)
        else:
            yield Case(family="engine", algorithm="NGRAM", length=3.3, method="multinomial", **common)
    for page, policy in itertools.product((1, 16), ("lfu", "slru", "fifo")):
        yield Case("cache", 0, requests, 400 * page, page, policy)
    for page in (1, 16):
        yield Case("cache", 0, requests, 400 * page, page, bigram=True)
        yield Case("engine", 0, requests, 400 * page, page, bigram=True)


def to_line(case: Case, answer: Answer) -> str:
    """A case and its right answer as one line of the golden file."""
    given = {key: value for key, value in asdict(case).items() if value != getattr(Case, key, None)}
    answers: dict[str, Any] = {"device": answer.device, "end": answer.end}
    if any(answer.host):
        answers["host"] = answer.host
    return json.dumps({"case": given, **answers}, separators=(",", ":"))


def from_line(line: str) -> tuple[Case, Answer]:
    data = json.loads(line)
    case = Case(**data["case"])
    return case, Answer(data["device"], data.get("host", [0] * case.requests), data["end"])
