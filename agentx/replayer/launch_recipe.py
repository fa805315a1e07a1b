"""The recipe of a launched server, made ready to be run: filled in, and checked against the plan and this machine.

`${NAME}` is a variable of the user's environment, and one that is missing is an error before anything is started.
What is kept of a recipe leaves variables whose name is a secret's as they are written.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentx.errors import BadInput
from agentx.replayer.targets import Launch, is_secret, without_secret_flags, without_secrets

PORT, IMAGE, ENVIRONMENT = "{port}", "{image}", "{environment}"
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_CONTINUED = re.compile(r"\\\r?\n")

TP_FLAGS = ("--tensor-parallel-size", "--tp-size", "--tp")
DP_FLAGS = ("--data-parallel-size", "--dp-size", "--dp")
MODEL_FLAGS = ("--model-path", "--model")
_STATED: Mapping[str, Sequence[str]] = {  # numbers of /server_info, by the flags that set them
    "context_length": ("--context-length",),
    "max_total_num_tokens": ("--max-total-tokens",),
    "page_size": ("--page-size",),
    "chunked_prefill_size": ("--chunked-prefill-size",),
    "max_running_requests": ("--max-running-requests",),
    "speculative_num_steps": ("--speculative-num-steps",),
    "speculative_num_draft_tokens": ("--speculative-num-draft-tokens",),
    "speculative_eagle_topk": ("--speculative-eagle-topk",),
    "stream_interval": ("--stream-interval",),
}


@dataclass(frozen=True, slots=True)
class Recipe:
    """What is started: `environment` comes on top of the user's own. `kept` is what a run folder tells of it."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    cwd: str | None
    image: str | None
    model_path: str | None
    stop: tuple[str, ...]
    port: int
    url: str
    kept: Mapping[str, Any]


def recipe_of(
    launch: Launch, *, port: int, simulated: Mapping[str, str], environ: Mapping[str, str] = os.environ
) -> Recipe:
    """The recipe with everything filled in; `simulated` are the variables of the plan's acceptance. Raises BadInput."""
    command = words_of(launch)
    if launch.url is None and not any(PORT in word for word in command):
        raise BadInput("command: no word has {port}, and there is no url: where the server listens is not known")
    environment = _environment(launch, simulated, environ)

    def filled(text: str, where: str, *, secrets: bool = True) -> str:
        text = expanded(text, environ, where, secrets=secrets)
        image = None if launch.image is None else expanded(launch.image, environ, "image")
        if IMAGE in text and image is None:
            raise BadInput(f"{where}: {{image}} stands there, and there is no image")
        return text.replace(PORT, str(port)).replace(IMAGE, image or "")

    def words(which: Sequence[str], where: str, *, secrets: bool = True) -> tuple[str, ...]:
        made: list[str] = []
        for word in which:
            if word == ENVIRONMENT:  # of a container: values stay out of the command line
                made += [part for name in environment for part in ("-e", name)]
            else:
                made.append(filled(word, where, secrets=secrets))
        return tuple(made)

    argv = words(command, "command")
    model_path = launch.model_path or flag(all_words(launch), MODEL_FLAGS)
    image = None if launch.image is None else filled(launch.image, "image")
    return Recipe(
        argv=argv,
        environment=environment,
        cwd=None if launch.cwd is None else filled(launch.cwd, "cwd"),
        image=image,
        model_path=None if model_path is None else filled(model_path, "model_path"),
        stop=words(launch.stop, "stop"),
        port=port,
        url=launch.url or f"http://127.0.0.1:{port}",
        kept={
            "command": without_secret_flags(words(command, "command", secrets=False)),
            "environment": without_secrets({**_environment(launch, simulated, environ, secrets=False)}),
            "image": image,
        },
    )


def words_of(launch: Launch) -> list[str]:
    """The command and its arguments as words, nothing filled in. Raises BadInput."""
    words = launch.command
    if isinstance(words, str):
        try:
            words = shlex.split(_CONTINUED.sub(" ", words))
        except ValueError as error:
            raise BadInput(f"command: {error}", hint="quote it as in a shell, or write a list of words") from None
    if not words or not words[0]:
        raise BadInput("command: nothing to start")
    return [*words, *launch.arguments]


def all_words(launch: Launch) -> list[str]:
    """The words of the command, those of scripts within it (`bash -c "..."`) too."""
    words: list[str] = []
    for word in words_of(launch):
        try:
            words += shlex.split(word, comments=True) if " " in word else [word]
        except ValueError:
            words += word.split()
    return words


def expanded(text: str, environ: Mapping[str, str], where: str, *, secrets: bool = True) -> str:
    """`text` with `${NAME}` filled in; not `secrets`: those whose name is a secret's stay. Raises BadInput."""

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name not in environ:
            raise BadInput(f"{where}: the environment variable {name} is not set", hint=f"export {name}=...")
        return match[0] if not secrets and is_secret(name) else environ[name]

    return _VARIABLE.sub(value, text)


def variables_of(launch: Launch) -> list[str]:
    """Names of the user's variables that a recipe needs, in the order of their first place."""
    texts = [*words_of(launch), *launch.environment.values(), *launch.stop]
    texts += [text for text in (launch.cwd, launch.image, launch.model_path) if text is not None]
    return list(dict.fromkeys(match[1] for text in texts for match in _VARIABLE.finditer(text)))


def _environment(
    launch: Launch, simulated: Mapping[str, str], environ: Mapping[str, str], *, secrets: bool = True
) -> dict[str, str]:
    own = {
        name: expanded(value, environ, f"environment.{name}", secrets=secrets)
        for name, value in launch.environment.items()
    }
    for name, value in simulated.items():
        if own.get(name, value) != value:
            raise BadInput(
                f"environment.{name}: {own[name]} in the target, and the plan's acceptance is {value}",
                hint="leave it out of the target, or the acceptance out of the plan",
            )
    return {**own, **simulated}


def flag(argv: Sequence[str], names: Sequence[str]) -> str | None:
    """The last value that a command line gives a flag, as argparse takes it; None without it."""
    found = None
    for place, word in enumerate(argv):
        name, equals, value = word.partition("=")
        if name in names:
            found = value if equals else argv[place + 1] if place + 1 < len(argv) else ""
    return found


def number(argv: Sequence[str], names: Sequence[str]) -> float | None:
    """The number that a flag was given; None for none, or for what is not one."""
    text = flag(argv, names)
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def stated_facts(launch: Launch) -> dict[str, Any]:
    """What the command says of the server that it starts, under the names of `/server_info`; the rest is not known."""
    argv = all_words(launch)
    facts: dict[str, Any] = {
        name: int(value) for name, flags in _STATED.items() if (value := number(argv, flags)) is not None
    }
    if "context_length" in facts:
        facts["context"] = facts["context_length"]
    if algorithm := flag(argv, ["--speculative-algorithm"]):
        facts["speculative_algorithm"], facts["version"] = algorithm, ""
    model = launch.model or flag(argv, ["--served-model-name"]) or flag(argv, MODEL_FLAGS)
    return {**facts, "model": model or "unknown"}


@dataclass(frozen=True, slots=True)
class HostPool:
    """Host memory that the cache's host tier takes, and what there is; bytes. `how` says where the size comes from."""

    needed: int
    memory: int
    how: str

    @property
    def fits(self) -> bool:
        return self.needed <= self.memory


def host_pool(launch: Launch, memory: int | None = None) -> HostPool | None:
    """The host pool of a recipe; None where it has none, or its size is not known.

    SGLang's `--hicache-size` is GB (10^9 bytes) of each rank; else the pool is `--hicache-ratio` times the device's,
    which `--max-total-tokens` tells.
    """
    argv = all_words(launch)
    ranks = ranks_of(launch, argv)
    there = host_memory() if memory is None else memory
    size = number(argv, ["--hicache-size"])
    tokens: float | None = launch.host_tokens
    if tokens is None and size:
        return HostPool(round(size * 1e9) * ranks, there, f"--hicache-size of {size:g} GB x {ranks} ranks")
    if tokens is None and "--enable-hierarchical-cache" in argv:
        pool, ratio = number(argv, ["--max-total-tokens"]), number(argv, ["--hicache-ratio"])
        tokens = None if pool is None else pool * (2.0 if ratio is None else ratio)
    if not tokens or launch.bytes_per_token is None:
        return None
    needed = round(tokens) * launch.bytes_per_token * ranks
    how = f"{round(tokens):,} tokens x {launch.bytes_per_token:,} bytes x {ranks} ranks"
    return HostPool(needed, there, how)


def ranks_of(launch: Launch, argv: Sequence[str]) -> int:
    """Ranks that keep a copy each: as stated, else tensor-parallel ones of every data-parallel replica."""
    if launch.ranks is not None:
        return launch.ranks
    replicas = 1 if "--enable-dp-attention" in argv else number(argv, DP_FLAGS) or 1
    return max(1, int((number(argv, TP_FLAGS) or 1) * replicas))


def check_host_pool(launch: Launch) -> None:
    """Raises BadInput for a host pool that this machine cannot hold."""
    pool = host_pool(launch)
    if pool is not None and not pool.fits:
        raise BadInput(
            f"the host pool needs {gigabytes(pool.needed)} ({pool.how}), and this machine has "
            f"{gigabytes(pool.memory)} of memory",
            hint="a smaller --hicache-size or host_tokens",
        )


def gigabytes(count: int) -> str:
    """GB of 10^9 bytes."""
    return f"{count / 1e9:,.1f} GB"


def host_memory() -> int:
    """Bytes of memory that a process here can have: the machine's, or the container's where that is less."""
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            told = Path(limit).read_text().strip()
        except OSError:
            continue
        if told.isdecimal():
            there = min(there, int(told))
    return there
