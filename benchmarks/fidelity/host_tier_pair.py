"""A real SGLang server with and without its host tier: the same trace, repeats in ABBA order, and what `compare` says.

    python benchmarks/fidelity/host_tier_pair.py http://127.0.0.1:PORT --out FOLDER [--repeats 3] \\
        --a "COMMAND of the server" --b "COMMAND of the server with a host tier" [--kv-events tcp://127.0.0.1:PORT]

Both commands serve at that address, run in the foreground, and have a pool of some 10,000 tokens: the six sessions of
the trace grow to 6,000 tokens each, four of them at a time, so that they evict each other. Each run has a server of its
own, stopped after it. The folder holds the trace, the six runs, and the servers' logs. With --kv-events, where both
commands publish there, what was evicted is measured.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

SPEC = """\
agentx: workload/1
sessions: 6
context_limit: 6000
layers: {tools: 200, system: 100}
turns: {user: 2, loop: 4}
tokens:
  first_message: 1800
  message: 150
  tool_result: {lognormal: {median: 250, sigma: 0.5}, max: 900}
  reply: {lognormal: {median: 30, sigma: 0.5}, max: 80}
gaps:
  human: 5s
  tools: {shell: {weight: 1, time: {lognormal: {median: 4s, sigma: 0.6}, max: 15s}}}
"""
SETTINGS = ("wire=generate", "gaps.scale=0.25", "gaps.tree_idle_cap=5s")
READY = 300  # s that a server may take to start


def agentx(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "agentx", *words], check=True)


def abba(repeats: int) -> list[str]:
    """A B B A A B ...: drift of the machine weighs on both sides alike."""
    sides = [side for pair in range(repeats) for side in ("ab" if pair % 2 == 0 else "ba")]
    return [f"{side}{sides[: place + 1].count(side)}" for place, side in enumerate(sides)]


def one_run(command: str, url: str, target: str, trace: pathlib.Path, run: pathlib.Path) -> None:
    with run.with_suffix(".server.log").open("w") as log:
        server = subprocess.Popen(shlex.split(command), stdout=log, stderr=log, start_new_session=True)
        try:
            wait_until_ready(server, url)
            settings = [word for each in SETTINGS for word in ("--set", each)]
            agentx("replay", str(trace), "--target", target, "--sessions", "4", *settings, "-o", str(run))
        finally:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def wait_until_ready(server: subprocess.Popen[bytes], url: str) -> None:
    end = time.monotonic() + READY
    while time.monotonic() < end:
        if server.poll() is not None:
            raise SystemExit(f"the server ended with {server.returncode} before it was ready; see its log")
        try:
            with urllib.request.urlopen(f"{url}/health_generate", timeout=20):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(1)
    raise SystemExit(f"the server did not answer {url}/health_generate within {READY} s; see its log")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--a", required=True)
    parser.add_argument("--b", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--kv-events", metavar="ADDRESS")
    args = parser.parse_args()
    args.out.mkdir(parents=True)
    spec, trace = args.out / "pair.yaml", args.out / "pair.trace"
    spec.write_text(SPEC)
    agentx("generate", str(spec), "-o", str(trace))
    target = args.url
    if args.kv_events:
        file = args.out / "target.yaml"
        file.write_text(f"agentx: target/1\nkind: endpoint\nurl: {args.url}\nkv_events: {args.kv_events}\n")
        target = str(file)
    names = abba(args.repeats)
    for name in names:
        one_run(args.a if name.startswith("a") else args.b, args.url, target, trace, args.out / name)
    sides = {side: [str(args.out / name) for name in sorted(names) if name.startswith(side)] for side in "ab"}
    agentx("compare", "--a", *sides["a"], "--b", *sides["b"])


if __name__ == "__main__":
    main()
