"""agentx-harness, as a peer to measure beside: installed, given a tokenizer, run, and its results read.

Its tokenizer here is one whose every token is four bytes of text, as the embedded engine cuts text: so what a trace
calls n tokens is n tokens to both clients and to the server. It loads it from a folder, without a network.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from processes import Cost, run

VERSION = "1.0.12"
LATE = "services failed to register within timeout"
LETTERS = "abcdefghijklmnop"  # each stands for the characters whose codes have the same rest by 16
END = "<|end|>"  # never in a text, whose letters are those above


class Peer(NamedTuple):
    """Its command, and the folder of its tokenizer."""

    command: Path
    tokenizer: Path

    def profile(self, url: str, model: str, out: Path, *more: str) -> list[str]:
        """The command line of one run, whose results go into the folder `out`."""
        options = ["--model", model, "--url", url, "--endpoint-type", "chat", "--streaming", "--ui-type", "none"]
        options += ["--tokenizer", str(self.tokenizer), "--artifact-dir", str(out), "--no-gpu-telemetry"]
        return [str(self.command), "profile", *options, "--use-server-token-count", *more]


def peer(given: str | None, folder: Path, scratch: Path) -> Peer:
    """The peer whose executable is `given`, else one installed into `folder` (1.1 GB).

    Its tokenizer lies in `scratch`: it keeps data sets by the tokenizer's path, and is to find none of an earlier run.
    """
    if given is None:
        venv = folder / "agentx-harness"
        if not (venv / "bin/aiperf").exists():
            print(f"installing agentx-harness {VERSION} into {venv}", file=sys.stderr)
            subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
            pip = [str(venv / "bin/pip"), "install", "--quiet", f"agentx-harness=={VERSION}"]
            subprocess.run(pip, check=True)
        given = str(venv / "bin/aiperf")
    command = Path(given).expanduser().absolute()
    if not command.exists():
        raise SystemExit(f"{command}: no such file; it is `aiperf` in the environment of agentx-harness")
    return Peer(command, four_byte_tokenizer(scratch / "tokenizer"))


def four_byte_tokenizer(folder: Path) -> Path:
    """A Hugging Face tokenizer folder: text becomes letters a ... p, one for one, and four letters are a token."""
    folder.mkdir(parents=True, exist_ok=True)
    words = [END, *("".join(each) for size in (4, 3, 2, 1) for each in product(LETTERS, repeat=size))]
    replaced = []
    for letter in LETTERS:
        alike = "".join(f"\\x{{{code:x}}}" for code in range(128) if code % 16 == ord(letter) % 16)
        replaced.append({"type": "Replace", "pattern": {"Regex": f"[{alike}]"}, "content": letter})
    replaced.append({"type": "Replace", "pattern": {"Regex": "[^a-p]"}, "content": "p"})
    document = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {"type": "Sequence", "normalizers": replaced},
        "pre_tokenizer": {"type": "Split", "pattern": {"Regex": ".{1,4}"}, "behavior": "Isolated", "invert": False},
        "post_processor": None,
        "decoder": {"type": "Fuse"},
        "model": {"type": "WordLevel", "vocab": {word: at for at, word in enumerate(words)}, "unk_token": END},
    }
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END, "model_max_length": 10_000_000}
    settings["clean_up_tokenization_spaces"] = False
    (folder / "tokenizer.json").write_text(json.dumps(document))
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def run_peer(command: Sequence[str], log: Path, scratch: Path) -> Cost:
    """Run it; on a busy machine its services may not find each other in time, so it is tried again."""
    for _ in range(2):
        try:
            return run(command, log, cwd=scratch)
        except SystemExit as error:
            if LATE not in str(error):
                raise
            print(f"agentx-harness: {LATE}; once more", file=sys.stderr)
    return run(command, log, cwd=scratch)


class Record(NamedTuple):
    """One of its requests. Seconds; `start` since the epoch."""

    start: float
    ttft: float | None
    phase: str


def records(out: Path) -> list[Record]:
    """What it wrote about each request, in the order of their starts."""
    found = []
    for line in (out / "profile_export.jsonl").read_text().splitlines():
        row = json.loads(line)
        told, metrics = row["metadata"], row["metrics"]
        ttft = metrics.get("time_to_first_token", {}).get("value")
        start = told["request_start_ns"] / 1e9
        found.append(Record(start, None if ttft is None else ttft / 1e3, told["benchmark_phase"]))
    return sorted(found)


def summary(out: Path) -> dict[str, Any]:
    """Its own summary of the run."""
    found: dict[str, Any] = json.loads((out / "profile_export_aiperf.json").read_text())
    return found


def scenario(folder: Path, lanes: int, seconds: float, more: Sequence[str]) -> list[str]:
    """Options of the AgentX scenario on a folder of Weka sessions; a local folder violates it, hence the override."""
    options = ["--scenario", "agentx", "--input-file", str(folder), "--custom-dataset-type", "weka_trace"]
    options += ["--unsafe-override", "--concurrency", str(lanes), "--benchmark-duration", f"{seconds:g}"]
    return [*options, "--benchmark-grace-period", "30", *more]
