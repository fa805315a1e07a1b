"""What the doctor makes of a launch target without starting it: its variables, its flags, its host pool.

The table of flags that are gone was made by laying the released SGLang 0.5.16, 0.5.18, 0.5.19, 0.5.20 and 0.5.23 side
by side; a flag that is in none of them and close to one that matters here is taken for a slip.
"""

from __future__ import annotations

import difflib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence

from agentx.errors import BadInput
from agentx.replayer.acceptance import Acceptance, check_server, server_environment
from agentx.replayer.doctor_check import Check
from agentx.replayer.gpus import gpus_here
from agentx.replayer.launch import config_digest, image_digest
from agentx.replayer.launch_recipe import (
    DP_FLAGS,
    all_words,
    expanded,
    flag,
    gigabytes,
    host_pool,
    number,
    recipe_of,
    stated_facts,
    variables_of,
)
from agentx.replayer.targets import Launch

GONE: Mapping[str, str] = {  # flag -> what became of it
    "--enable-moe-ep": "no version has it: --ep-size N spreads the experts over N GPUs",
    "--enable-ep-moe": "gone: --ep-size N spreads the experts over N GPUs",
    "--enable-deepep-moe": "gone: --ep-size N with --moe-a2a-backend deepep",
    "--cuda-graph-max-bs": "gone since 0.5.20: --cuda-graph-max-bs-decode, which 0.5.16 has too",
    "--cuda-graph-bs": "gone since 0.5.20: --cuda-graph-bs-decode",
    "--nsa-prefill-backend": "gone since 0.5.20: --dsa-prefill-backend, which 0.5.16 has too",
    "--nsa-decode-backend": "gone since 0.5.20: --dsa-decode-backend, which 0.5.16 has too",
    "--stream-output": "gone since 0.5.20: --incremental-streaming-output",
    "--mamba-scheduler-strategy": "gone since 0.5.20: --mamba-radix-cache-strategy",
    "--collect-tokens-histogram": "gone since 0.5.20: --enable-metrics brings them",
    "--prefill-round-robin-balance": "gone since 0.5.20, and did nothing before",
    "--torchao-config": "gone since 0.5.18",
    "--keep-mm-feature-on-device": "gone since 0.5.23",
    "--elastic-ep-rejoin": "gone since 0.5.23: --elastic-ep-join-mode recover",
}
MATTER = (  # flags of SGLang 0.5.16 to 0.5.23 that decide what a run measures
    "--model-path", "--served-model-name", "--host", "--port", "--tp-size", "--dp-size", "--ep-size", "--pp-size",
    "--context-length", "--max-total-tokens", "--max-running-requests", "--max-queued-requests",
    "--mem-fraction-static", "--chunked-prefill-size", "--max-prefill-tokens", "--page-size", "--kv-cache-dtype",
    "--quantization", "--attention-backend", "--dsa-prefill-backend", "--dsa-decode-backend", "--dsa-topk-backend",
    "--enable-hierarchical-cache", "--hicache-ratio", "--hicache-size", "--hicache-write-policy",
    "--hicache-io-backend", "--hicache-mem-layout", "--hicache-storage-backend", "--radix-eviction-policy",
    "--disable-radix-cache", "--schedule-policy", "--speculative-algorithm", "--speculative-num-steps",
    "--speculative-eagle-topk", "--speculative-num-draft-tokens", "--tool-call-parser", "--reasoning-parser",
    "--watchdog-timeout", "--enable-metrics", "--enable-cache-report", "--enable-metrics-for-all-schedulers",
    "--stream-interval", "--enable-dp-attention", "--load-balance-method", "--moe-a2a-backend", "--moe-runner-backend",
    "--cuda-graph-max-bs-decode", "--kv-events-config", "--disaggregation-mode", "--trust-remote-code",
    "--api-key", "--admin-api-key", "--incremental-streaming-output", "--log-requests",
)  # fmt: skip
SLIP = 0.92  # how alike two flags are when one is taken for a slip of the other
UNSET = "(not set)"
KEEP_ALIVE = "SGLANG_TIMEOUT_KEEP_ALIVE"


def recipe_checks(
    launch: Launch, acceptance: Acceptance | None, environ: Mapping[str, str] = os.environ
) -> Iterator[Check]:
    """Everything that can be said of a recipe on this machine, nothing started."""
    missing = [name for name in variables_of(launch) if name not in environ]
    if missing:
        yield Check("variables", "problem", f"not set: {', '.join(missing)}", f"export {missing[0]}=...")
    else:
        yield Check("variables", "ok", ", ".join(variables_of(launch)) or "the recipe needs none")
    filled = {**dict.fromkeys(missing, UNSET), **environ}
    try:
        recipe = recipe_of(launch, port=launch.port or 0, simulated=server_environment(acceptance), environ=filled)
    except BadInput as error:
        yield Check("recipe", "problem", str(error))
        return
    yield _program(recipe.argv[0], recipe.environment.get("PATH"))
    yield from _image(launch, missing, environ)
    yield _model(recipe.model_path, missing)
    yield _host(launch)
    yield _gpus(launch)
    words = all_words(launch)
    if any("sglang" in word for word in words):
        yield from _flags(words)
        yield from _measuring(launch, words)
        yield _stated(launch, acceptance, recipe.environment)
    else:
        yield Check("flags", "unknown", "the command does not name sglang: its flags are not looked at")


def _program(program: str, path: str | None) -> Check:
    found = shutil.which(program, path=path)
    if found is None:
        return Check("program", "problem", f"{program} is not on this machine", "run agentx where the server is to run")
    return Check("program", "ok", found)


def _image(launch: Launch, missing: Sequence[str], environ: Mapping[str, str]) -> Iterator[Check]:
    if launch.image is None:
        return
    if any(f"${{{name}}}" in launch.image for name in missing):
        yield Check("image", "unknown", f"{launch.image} is not set")
        return
    image = expanded(launch.image, environ, "image")
    if "@sha256:" in image:
        yield Check("image", "ok", image)
        return
    digest = image_digest(image)
    said = f"{image} is a tag, which may mean another image tomorrow"
    yield Check("image", "warning", said, f"name@{digest}" if digest else "write it with its digest: name@sha256:...")


def _model(path: str | None, missing: Sequence[str]) -> Check:
    if path is None or UNSET in path:
        which = "the recipe does not say where the model lies" if path is None else f"{', '.join(missing)} not set"
        return Check("model", "unknown", which, "model_path")
    digest = config_digest(path)
    if digest is None:
        return Check(
            "model", "warning", f"{path}/config.json cannot be read here: which model ran is not kept", "model_path"
        )
    return Check("model", "ok", f"config.json {digest[:16]}")


def _host(launch: Launch) -> Check:
    pool = host_pool(launch)
    if pool is None:
        if "--enable-hierarchical-cache" in all_words(launch):
            said = "how much memory the host tier takes is not known"
            return Check("host pool", "unknown", said, "bytes_per_token and ranks, or --hicache-size")
        return Check("host pool", "ok", "no host tier")
    said = f"{gigabytes(pool.needed)} ({pool.how}), of {gigabytes(pool.memory)}"
    if not pool.fits:
        return Check(
            "host pool", "problem", f"needs {said}: refused here", "a smaller --hicache-size, or a larger node"
        )
    return Check("host pool", "ok", said)


def _gpus(launch: Launch) -> Check:
    found = gpus_here()
    if found is None:
        said = "no nvidia-smi, rocm-smi or amd-smi tells: neither GPUs nor their memory are known"
        return Check("GPUs", "unknown", said)
    tool, gpus = found
    told = f"{len(gpus)} x {gpus[0].name or 'GPU'} by {tool}"
    if launch.gpus is not None and len(gpus) < launch.gpus:
        return Check("GPUs", "problem", f"{told}, and the target has {launch.gpus}")
    return Check("GPUs", "ok", told)


def _flags(words: Sequence[str]) -> Iterator[Check]:
    """Flags that SGLang refuses, or that were meant otherwise."""
    names = list(dict.fromkeys(word.partition("=")[0] for word in words if word.startswith("--")))
    wrong = [Check("flags", "problem", name, GONE[name]) for name in names if name in GONE]
    for name in names:
        near = difflib.get_close_matches(name, MATTER, n=1, cutoff=SLIP)
        if near and name not in MATTER and name not in GONE and not near[0].startswith(name):
            wrong.append(Check("flags", "warning", f"{name} is not known here", f"did you mean {near[0]}?"))
    yield from wrong
    if not wrong:
        yield Check("flags", "ok", "none that is known to be gone")


def _measuring(launch: Launch, words: Sequence[str]) -> Iterator[Check]:
    """What a run needs of the server to be a measurement."""
    names = {word.partition("=")[0] for word in words}
    needed = {
        "--enable-metrics": "the server's counters stay unknown",
        "--enable-cache-report": "cached tokens by request stay unknown",
    }
    lacking = [name for name in needed if name not in names]
    for name in lacking:
        yield Check(
            "metrics" if "metrics" in name else "cache report", "problem", f"without {name} {needed[name]}", name
        )
    if "--disable-radix-cache" in names:
        yield Check("pool", "problem", "--disable-radix-cache: nothing is reused", "leave it out")
    if KEEP_ALIVE not in launch.environment and not any(KEEP_ALIVE in word for word in words):
        said = "idle connections are closed after 5 s, SGLang's default"
        yield Check("keep-alive", "warning", said, f'environment: {{{KEEP_ALIVE}: "900"}}')
    replicas = number(words, DP_FLAGS) or 1
    kept = any("{session}" in value for value in launch.headers.values())
    if replicas > 1 and not kept:
        said = f"{replicas:g} replicas with a cache each, and no header keeps a session on one of them"
        yield Check(
            "affinity", "problem", said, "headers: {X-SMG-Routing-Key: '{session}'} and a router with --policy manual"
        )
    if "--enable-dp-attention" in names and "--enable-metrics-for-all-schedulers" not in names:
        said = "with --enable-dp-attention one rank's counters are those of its own requests"
        yield Check("metrics", "warning", said, "--enable-metrics-for-all-schedulers")
    interval = number(words, ["--stream-interval"]) or 1
    if interval > 1:
        said = f"tokens come {interval:g} at a time: times between tokens are of groups"
        yield Check("stream interval", "warning", said, "--stream-interval 1")


def _stated(launch: Launch, acceptance: Acceptance | None, environment: Mapping[str, str]) -> Check:
    """The plan's acceptance against the command's speculation."""
    words = all_words(launch)
    facts = stated_facts(launch)
    told = ", ".join(f"{name}={value}" for name, value in environment.items() if "SIMULATE_ACC" in name)
    if acceptance is None:
        if flag(words, ["--speculative-algorithm"]) and not told:
            said = "the recipe speculates and no acceptance is stated: that of synthetic words is measured"
            return Check("acceptance", "warning", said, "acceptance in the plan (--plan)")
        return Check("acceptance", "ok", told or "no speculation")
    try:
        check_server(acceptance, {"version": "", **facts})
    except BadInput as error:
        return Check("acceptance", "problem", str(error))
    return Check("acceptance", "ok", f"set in the server's environment: {told}")
