"""Targets: `agentx: target/1`: the embedded engine, the address of a server, or how to start one.

An argument that is a URL is an endpoint with every default. Secrets are read from the environment (`key_env`, `${NAME}`
of a recipe) and are never written into a run folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlsplit

import pydantic
from pydantic import Field

from agentx import catalog
from agentx.engine.settings import EngineSettings, Price, base_of, load_engine
from agentx.errors import BadInput
from agentx.yamlspec import Duration, Strict, document, load

DEFAULT_TARGET = "laptop"
SESSION_HEADER = "X-Session-ID"
Role = Literal["prefill", "decode"]  # of a server that does one half of the work
NOT_KEPT = "(not kept)"
_SECRET = re.compile(r"auth|key|token|secret|cookie|password", re.IGNORECASE)
_PUBLIC = re.compile(r"token_mode$|tokens(_|$)|tokeniz|routing-key$", re.IGNORECASE)  # their names only look like it


def _url(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("should be a URL such as http://127.0.0.1:30000")
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("should be a URL such as http://127.0.0.1:30000")
    if parts.username or parts.password:
        raise ValueError("must not hold a password: use key_env or headers")
    if parts.query or parts.fragment:
        raise ValueError("must not have a query or a fragment")
    return value.rstrip("/")


Url = Annotated[str, pydantic.BeforeValidator(_url)]


def _word(value: object) -> object:
    """Numbers are words too: `--tp-size, 8` need no quotes. Not true and false: `true` may be meant, or `True`."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


Word = Annotated[str, pydantic.BeforeValidator(_word)]


def _shape(value: object) -> str:
    return "map" if isinstance(value, Mapping) else "list" if isinstance(value, list) else "text"


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _zmq(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"tcp://[^/*]+:\d{1,5}|ipc://.+", value):
        raise ValueError("should be where the server publishes, such as tcp://127.0.0.1:5557")
    return value


Zmq = Annotated[str, pydantic.BeforeValidator(_zmq)]


Metrics = Annotated[
    Annotated[list[Url], pydantic.Tag("list")]
    | Annotated[list[Url], pydantic.Tag("text")]  # which it refuses
    | Annotated[dict[Role, list[Url]], pydantic.Tag("map")],
    pydantic.Discriminator(_shape),
]
Command = Annotated[
    Annotated[str, pydantic.Tag("text")]
    | Annotated[list[Word], pydantic.Tag("list")]
    | Annotated[str, pydantic.Tag("map")],
    pydantic.Discriminator(_shape),
]


class Server(Strict):
    """What there is to say of any server. `gpus` and `price` only divide figures; `model` null: what `/v1/models` lists
    first.

    `headers` go with every request; `{session}` in a value is the session's name, so that a router keeps its turns
    together. `metrics` null: `/metrics` of each address. Of prefill and decode pools the addresses are given by role,
    so that a request that passes both is counted once. `kv_events` are addresses at which a server publishes what its
    cache stores and removes.
    """

    model: str | None = None
    key_env: str | None = None
    headers: dict[str, str] = Field(default={})
    gpus: int | None = Field(default=None, ge=1)
    price: Price = Price()
    metrics: Metrics | None = None
    kv_events: Annotated[list[Zmq], pydantic.BeforeValidator(_listed)] = Field(default=[])


class Endpoint(Server):
    """A server that runs already, or several alike (`urls`), between which the lanes of a run are dealt out."""

    kind: Literal["endpoint"]
    url: Url | None = None
    urls: list[Url] = Field(default=[])

    @pydantic.model_validator(mode="after")
    def _somewhere(self) -> Endpoint:
        if (self.url is None) == (not self.urls):
            raise ValueError("say url, the address of the server, or urls, those of several")
        if len(set(self.bases)) < len(self.bases):
            raise ValueError("urls: one of them stands there twice")
        return self

    @property
    def bases(self) -> list[str]:
        """The servers' roots: an OpenAI base URL ends in /v1, the paths that are used begin before that."""
        return [url.removesuffix("/v1") for url in self.urls or [self.url or ""]]

    @property
    def base(self) -> str:
        """The first of them."""
        return self.bases[0]

    @property
    def metrics_urls(self) -> list[str]:
        if isinstance(self.metrics, dict):
            return [url for urls in self.metrics.values() for url in urls]
        return [f"{base}/metrics" for base in self.bases] if self.metrics is None else self.metrics

    @property
    def roles(self) -> dict[str, str]:
        """The role of each metrics address that was given one."""
        by_role = self.metrics if isinstance(self.metrics, dict) else {}
        return {url: role for role, urls in by_role.items() for url in urls}


class Ready(Strict):
    """When a launched server can be used: `url` (null: its `/ready`, or `/health` where it has none) answers 200."""

    url: Url | None = None
    timeout: Duration = 1800.0


class Launch(Server):
    """A server that is started for a run, and stopped behind it (`launch.py`, `launch_recipe.py`).

    `command` and `arguments` behind it, `environment`, `cwd`, `image` and `model_path` may hold `${NAME}`, a variable
    of the user's environment, and `{port}`. `stop` is run when the process group is gone, for what outlives it. `port`
    null: a free one; `url` null: that port on this machine. `ranks` keep `bytes_per_token` each for every token of the
    cache; `host_tokens` of them are kept in the host's memory, where the command's flags do not say it.
    """

    kind: Literal["launch"]
    command: Command
    arguments: list[Word] = Field(default=[])
    environment: dict[str, Word] = Field(default={})
    cwd: str | None = None
    image: str | None = None
    model_path: str | None = None
    port: int | None = Field(default=None, ge=1, le=65535)
    url: Url | None = None
    ready: Ready = Ready()
    jit_warmup: bool = True
    stop: list[Word] = Field(default=[])
    grace: Duration = 30.0
    bytes_per_token: int | None = Field(default=None, ge=1)
    ranks: int | None = Field(default=None, ge=1)
    host_tokens: int | None = Field(default=None, ge=0)


@dataclass(frozen=True, slots=True)
class Target:
    """A target and the name by which it was asked for."""

    name: str
    settings: Endpoint | EngineSettings | Launch

    def record(self) -> dict[str, Any]:
        """What the run folder keeps: everything but secrets."""
        kept = {"name": self.name, **self.settings.model_dump(mode="json")}
        for part in ("headers", "environment"):
            if part in kept and isinstance(kept[part], dict):
                kept[part] = without_secrets(kept[part])
        for part in ("command", "arguments", "stop"):
            if isinstance(kept.get(part), str):
                kept[part] = " ".join(without_secret_flags(kept[part].split(" ")))
            elif isinstance(kept.get(part), list):
                kept[part] = without_secret_flags(kept[part])
        return kept


def without_secrets(named: Mapping[str, str]) -> dict[str, str]:
    """Values by name, without those whose name says that they are not to be told."""
    return {name: NOT_KEPT if is_secret(name) else value for name, value in named.items()}


def without_secret_flags(argv: Sequence[str]) -> list[str]:
    """A command line without the values of flags such as `--api-key`."""
    kept: list[str] = []
    for word in argv:
        if " " in word:  # a script
            kept.append(" ".join(without_secret_flags(word.split(" "))))
            continue
        name, equals, _ = word.partition("=")
        if kept and kept[-1].startswith("--") and "=" not in kept[-1] and is_secret(kept[-1]) and word[:2] != "--":
            kept.append(NOT_KEPT)
        elif equals and name.startswith("--") and is_secret(name):
            kept.append(f"{name}={NOT_KEPT}")
        else:
            kept.append(word)
    return kept


def is_secret(name: str) -> bool:
    """Whether a header, a variable or a flag of this name holds what is not to be told."""
    return _SECRET.search(name) is not None and _PUBLIC.search(name) is None


def resolve_target(name: str, sets: Sequence[str] = ()) -> Target:
    """The target that an argument means: a URL, a file, or a name. Raises BadInput.

    `sets` are overrides of its own keys.
    """
    if "://" in name:
        text = f"agentx: target/1\nkind: endpoint\nurl: {_quoted(name)}\n"
        return Target(_host(name), load(Endpoint, name, kind="target", text=text, sets=sets))
    if re.fullmatch(r"[\w.-]+:\d+(/.*)?", name):
        raise BadInput(f"{name!r} is neither a target's name nor a URL", hint=f"write http://{name}")
    path = catalog.resolve("targets", name)
    kind = document(path).get("kind", "engine")
    if kind == "endpoint":
        return Target(path.stem, load(Endpoint, path, kind="target", sets=sets, extended=base_of))
    if kind == "launch":
        return Target(path.stem, load(Launch, path, kind="target", sets=sets, extended=base_of))
    if kind != "engine":
        raise BadInput(f"kind: should be engine, endpoint or launch, not {kind!r}", file=path)
    return Target(path.stem, load_engine(path, sets=sets))


def request_headers(endpoint: Server, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Headers of every request, the key included. Raises BadInput when the key's variable is not set."""
    headers = {name: value for name, value in endpoint.headers.items() if "{session}" not in value}
    if endpoint.key_env is not None:
        key = environ.get(endpoint.key_env)
        if not key:
            raise BadInput(f"key_env: the environment variable {endpoint.key_env} is not set")
        headers["Authorization"] = f"Bearer {key}"
    return headers


def session_headers(endpoint: Server, session: str, play: int) -> dict[str, str]:
    """Headers of the requests of one play: a name that keeps them together."""
    name = quote(session if play == 0 else f"{session}#{play}", safe="/@#:+-_.")
    templates = {SESSION_HEADER: "{session}", **endpoint.headers}
    return {header: value.replace("{session}", name) for header, value in templates.items() if "{session}" in value}


def _quoted(url: str) -> str:
    return "'" + url.replace("'", "''").replace("\n", " ") + "'"


def _host(url: str) -> str:
    parts = urlsplit(url)
    return parts.netloc.rpartition("@")[2] or url
