"""A request inside the engine: what it asked for, what it will answer, how far it is."""

from __future__ import annotations

from agentx.engine import replies
from agentx.engine.messages import Admitted, Finished, Request
from agentx.engine.nodes import ID_BYTES, Lease


class Job:
    """`out` tokens of `reply` have been made; tokens [0, computed) of prompt and reply have KV. The reply is known from
    the start (it is fixed by the prompt), so is its end: `planned` tokens, and why."""

    __slots__ = (
        "aborted", "accepted", "admitted", "computed", "hit", "lease", "max_new", "namespace", "out", "planned",
        "prompt_tokens", "ready", "reason", "reply", "request", "retractions", "stopped",
    )  # fmt: skip

    def __init__(self, request: Request, max_new: int, ready: float, *, forced: bool, bound: int) -> None:
        self.request, self.max_new, self.ready = request, max_new, ready
        self.namespace = request.namespace.encode()
        self.prompt_tokens = len(request.prompt) // ID_BYTES
        seed = replies.seed_of(request.prompt)
        most = max(1, max_new)
        given = len(request.reply) // ID_BYTES
        forced = forced and not given
        ends = given or replies.natural_length(seed)
        natural = most if request.ignore_eos or forced else max(ends, request.min_new)
        self.planned = min(most, natural)
        self.stopped = natural < most
        own = replies.words(seed, 1 if forced else max(0, self.planned - given))
        self.reply = request.reply[: self.planned * ID_BYTES] + own
        if forced:  # simulated acceptance overwrites every token but the first
            self.reply += replies.FIXED * (self.planned - 1)
        self.out = self.computed = self.retractions = 0
        self.hit = (0, 0)
        self.lease: Lease | None = None
        self.admitted: Admitted | None = None
        self.accepted = [0] * bound
        self.aborted = False
        self.reason: tuple[int, str] | None = None  # status and message of an abort by the engine

    @property
    def length(self) -> int:
        """Tokens that a prefill has to cover: the prompt, and after a retraction the reply so far."""
        return self.prompt_tokens + self.out

    def ids(self) -> bytes:
        return self.request.prompt + self.reply[: self.out * ID_BYTES] if self.out else self.request.prompt

    @property
    def done(self) -> bool:
        return self.out >= self.planned

    def advance(self, tokens: int) -> bytes:
        """Take up to `tokens` more of the reply; returns their ids."""
        start = self.out
        self.out = min(self.planned, start + tokens)
        return self.reply[start * ID_BYTES : self.out * ID_BYTES]

    def finished(self, at: float) -> Finished:
        status, message = self.reason or (None, None)
        seen = self.admitted
        return Finished(
            self.request.rid,
            at,
            "abort" if self.aborted else "stop" if self.stopped else "length",
            self.prompt_tokens,
            self.out,
            seen.cached_device if seen else 0,
            seen.cached_host if seen else 0,
            seen.queued_seconds if seen else max(0.0, at - self.ready),
            self.retractions,
            sum(self.accepted),
            tuple(self.accepted),
            status,
            message,
        )
