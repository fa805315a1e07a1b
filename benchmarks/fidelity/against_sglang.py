"""Play the cases on SGLang's own cache classes and on agentx's engine; every request's hits must be equal.

    python benchmarks/fidelity/against_sglang.py HARNESS_DIR [--rounds N] [--requests N] [--golden FILE]

Run it with a Python that can import SGLang 0.5.23, agentx's own requirements, and, from HARNESS_DIR (or
$AGENTX_SGLANG_HARNESS), `sgl_cache_harness`: a module with `SglCache` and `Req` that drives SGLang's prefix cache and
page allocators without a server. `--golden` writes a small part of the cases with SGLang's answers; it is the only way
in which that file is made.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import time
from array import array

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent)]

import cases  # noqa: E402

GOLDEN_REQUESTS = 80


def sglang_cache(case: cases.Case, backend: str):  # type: ignore[no-untyped-def]
    """SGLang's classes for a case, with the allocation of speculation and of chunks as its scheduler does them."""
    import torch
    from sgl_cache_harness import Req, SglCache

    class Driver(SglCache):  # type: ignore[misc]
        def count_evictions(self) -> None:
            """Count those that a load-back causes too."""
            evict, self.evicted = self.t.evict_for_alloc, 0

            def counted(*args, **options):  # type: ignore[no-untyped-def]
                result = evict(*args, **options)
                self.evicted += result.num_tokens_evicted
                return result

            self.t.evict_for_alloc = counted

        def begin(self, number: int, prompt: bytes, namespace: str):  # type: ignore[no-untyped-def]
            request = Req(str(number), array("I", prompt).tolist(), extra_key=namespace or None)
            self.first_chunk = True
            return request, *self.prefill(request, case.chunk or None)[:2]

        def _extend(self, request, start: int, end: int) -> None:  # type: ignore[no-untyped-def]
            if not self.first_chunk:
                self.tick()  # copies and loads of the chunk before are done by now
            self.first_chunk = False
            super()._extend(request, start, end)

        def ahead(self, request, committed: int, reserve: int) -> None:  # type: ignore[no-untyped-def]
            """What a decode step with speculation allocates: up to `reserve` tokens more than are committed."""
            now = request.kv.kv_allocated_len
            end = max(now, -(-(committed + reserve) // self.ps) * self.ps)
            if end == now:
                return
            row = self.r2t.req_to_token[request.kv.req_pool_idx]
            if self.ps == 1:
                self._evict_for(end - now)
                found = self.alloc.alloc(end - now)
            else:
                self._evict_for(end - now + self.ps)
                one = [torch.tensor([value], dtype=torch.int64) for value in (now, end)]
                last = row[now - 1 : now].to(torch.int64)
                found = self.alloc.alloc_extend(one[0], one[0], one[1], one[1], last, end - now)
            if found is None:
                raise RuntimeError("KV pool OOM")
            self.r2t.write((request.kv.req_pool_idx, slice(now, end)), found.to(torch.int32))
            request.kv.kv_allocated_len = end

        def end(self, request, reply: bytes, owned: int, keep: bool) -> None:  # type: ignore[no-untyped-def]
            """Finish with `owned` tokens of prompt and reply that have KV; pages beyond are given back."""
            for token in array("I", reply).tolist():
                request.output_ids.append(token)
                request.full_untruncated_fill_ids.append(token)
            allocated = request.kv.kv_allocated_len
            request.kv.kv_committed_len = owned
            row = request.kv.req_pool_idx
            beyond = self.r2t.req_to_token[row, -(-owned // self.ps) * self.ps : allocated].to(torch.int64).clone()
            self.finish(request, checkpoint=keep)
            if len(beyond):
                self.alloc.free(beyond)

    host = {"host_capacity": case.host, "write_policy": case.write} if case.host else {}
    driver = Driver(
        case.pool, case.page, "radix" if not case.host and backend == "radix" else backend, case.policy,
        is_eagle=case.bigram, max_ctx=case.pool + 4096, **host,
    )  # fmt: skip
    driver.count_evictions()
    return driver


def right_answer(case: cases.Case, backend: str) -> cases.Answer:
    """What SGLang's classes answer."""
    cache = sglang_cache(case, backend)
    device: list[int] = []
    host: list[int] = []

    def note(hits: tuple[int, int]) -> None:
        device.append(hits[0])
        host.append(hits[1])

    if case.family == "cache":
        live = {}
        for operation in cases.operations(case):
            if isinstance(operation, cases.Start):
                request, *hits = cache.begin(*operation)
                note((hits[0], hits[1]))
                live[operation.request] = request
            else:
                request = live.pop(operation.request)
                for _ in range(operation.stored):
                    cache._dec(request)
                owned = len(request.origin_input_ids) + operation.stored
                cache.end(request, operation.reply, owned, operation.keep)
    else:
        reserve = case.settings().speculation.reserve
        for number, served in enumerate(cases.play_engine(case)[1]):
            request, *hits = cache.begin(number, served.prompt, served.namespace)
            note((hits[0], hits[1]))
            committed = len(request.origin_input_ids)
            for accepted in served.accepted:
                if reserve:
                    cache.ahead(request, committed, reserve)
                else:
                    cache._dec(request)
                committed += accepted
            length = len(request.origin_input_ids) + len(served.reply) // cases.ID_BYTES
            cache.end(request, served.reply, min(committed, length), True)
    use = cache.usage()
    return cases.Answer(device, host, [use["avail"], use["evictable"], cache.evicted, use["host_free"] or 0])


def difference(case: cases.Case, right: cases.Answer, ours: cases.Answer) -> str | None:
    for number in range(case.requests):
        want, got = (right.device[number], right.host[number]), (ours.device[number], ours.host[number])
        if want != got:
            return f"request {number}: SGLang (device, host) {want}, agentx {got}"
    return None if right.end == ours.end else f"at the end: SGLang {right.end}, agentx {ours.end}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("harness", nargs="?", default=os.environ.get("AGENTX_SGLANG_HARNESS"))
    parser.add_argument("--rounds", type=int, default=2, help="seeds per configuration")
    parser.add_argument("--requests", type=int, default=80, help="requests per case")
    parser.add_argument("--backend", choices=["rust", "python", "radix"], default="rust")
    parser.add_argument("--golden", type=pathlib.Path, help="write this file instead of a campaign")
    args = parser.parse_args()
    if not args.harness:
        parser.error("give the harness directory, or set AGENTX_SGLANG_HARNESS")
    sys.path.insert(0, args.harness)
    import sgl_cache_harness  # noqa: F401  (puts SGLang on the path)

    rounds, requests = (1, GOLDEN_REQUESTS) if args.golden else (args.rounds, args.requests)
    total = differing = configurations = 0
    hits = [0, 0]
    lines: list[str] = []
    started = time.perf_counter()
    for case in cases.campaign(rounds, requests):
        right, ours = right_answer(case, args.backend), cases.play(case)
        lines.append(cases.to_line(case, right))
        total += case.requests
        configurations += 1
        hits = [hits[0] + sum(right.device), hits[1] + sum(right.host)]
        problem = difference(case, right, ours)
        if problem:
            differing += 1
            print(f"DIFFERENT {case.name}\n  {problem}", flush=True)
    seconds = time.perf_counter() - started
    print(f"{total} requests, {configurations // rounds} configurations x {rounds} seeds, {args.backend}: ", end="")
    print(f"{differing} cases differ; hit tokens device {hits[0]}, host {hits[1]}; {seconds:.0f} s")
    if args.golden and not differing:
        args.golden.write_text("".join(line + "\n" for line in lines))
        print(f"wrote {args.golden}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
