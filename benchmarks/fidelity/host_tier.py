"""What a host tier gives when the sessions do not fit on the device.

    python benchmarks/fidelity/host_tier.py

Sessions take turns in a circle, the worst order for LRU, and every turn adds a little to a long context, so that
nearly all of a prompt could be reused. Their contexts together are 1.25 to 1.45 times the device pool. The table has
the share of prompt tokens that hit, device and host, per write policy and host size over device size.
"""

from __future__ import annotations

import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from agentx.engine.engine import Engine, EngineSettings, Finished, Request, Tokens

POOL, SESSIONS, TURNS, FIRST, FRESH, REPLY = 96_000, 12, 12, 10_000, 100, 30
RATIOS = (0.0, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)


def hit_share(ratio: float, write: str) -> tuple[float, float]:
    """(device, host) hits over prompt tokens, the first turn of each session left out."""
    host = {"tokens": int(POOL * ratio), "write": write}
    engine = Engine(EngineSettings.model_validate({"cache": {"pool": POOL, "host": host}}))
    rng = random.Random(1)
    contexts = [rng.randbytes(4 * FIRST) for _ in range(SESSIONS)]
    now, device, hosted, prompts = 0.0, 0, 0, 0
    for turn in range(TURNS):
        for session, prompt in enumerate(contexts):
            engine.submit(Request(f"{session}.{turn}", prompt, REPLY, ignore_eos=True), now)
            due: float | None = now
            reply = b""
            while due is not None:
                now = due
                events, due = engine.step(now)
                reply += b"".join(event.ids for event in events if isinstance(event, Tokens))
                for event in events:
                    if isinstance(event, Finished) and turn:
                        device += event.cached_device
                        hosted += event.cached_host
                        prompts += event.prompt_tokens
            contexts[session] = prompt + reply + rng.randbytes(4 * FRESH)
    return device / prompts, hosted / prompts


def main() -> None:
    print("host/device   " + "   ".join(f"{ratio:5.2f}" for ratio in RATIOS))
    for write in ("write_through", "write_through_selective", "write_back"):
        shares = [sum(hit_share(ratio, write)) for ratio in RATIOS]
        print(f"{write:24}" + "   ".join(f"{share:6.1%}" for share in shares))


if __name__ == "__main__":
    main()
