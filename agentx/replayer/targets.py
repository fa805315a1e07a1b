"""Targets: `agentx: target/1`, either the embedded engine or the address of a server.

An argument that is a URL is an endpoint with every default. Secrets are read from the environment (`key_env`) and are
never written into a run folder.
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
from agentx.engine.settings import EngineSettings, Price, load_engine
from agentx.errors import BadInput
from agentx.yamlspec import Strict, document, load

DEFAULT_TARGET = "laptop"
SESSION_HEADER = "X-Session-ID"
_SECRET = re.compile(r"auth|key|token|secret|cookie|password", re.IGNORECASE)


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


class Endpoint(Strict):
    """A server that runs already. `gpus` and `price` only divide figures; `model` null: what `/v1/models` lists first.

    `headers` go with every request; `{session}` in a value is the session's name, so that a router keeps its turns
    together. `metrics` null: `/metrics` of the URL.
    """

    kind: Literal["endpoint"]
    url: Url
    model: str | None = None
    key_env: str | None = None
    headers: dict[str, str] = Field(default={})
    gpus: int | None = Field(default=None, ge=1)
    price: Price = Price()
    metrics: list[Url] | None = None

    @property
    def base(self) -> str:
        """The server's root: an OpenAI base URL ends in /v1, the paths that are used begin before that."""
        return self.url.removesuffix("/v1")

    @property
    def metrics_urls(self) -> list[str]:
        return [f"{self.base}/metrics"] if self.metrics is None else self.metrics


@dataclass(frozen=True, slots=True)
class Target:
    """A target and the name by which it was asked for."""

    name: str
    settings: Endpoint | EngineSettings

    def record(self) -> dict[str, Any]:
        """What the run folder keeps: everything but secrets."""
        kept = {"name": self.name, **self.settings.model_dump(mode="json")}
        if isinstance(self.settings, Endpoint):
            kept["headers"] = {
                name: "(not kept)" if _SECRET.search(name) else value for name, value in self.settings.headers.items()
            }
        return kept


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
        return Target(path.stem, load(Endpoint, path, kind="target", sets=sets))
    return Target(path.stem, load_engine(path, sets=sets))


def request_headers(endpoint: Endpoint, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Headers of every request, the key included. Raises BadInput when the key's variable is not set."""
    headers = {name: value for name, value in endpoint.headers.items() if "{session}" not in value}
    if endpoint.key_env is not None:
        key = environ.get(endpoint.key_env)
        if not key:
            raise BadInput(f"key_env: the environment variable {endpoint.key_env} is not set")
        headers["Authorization"] = f"Bearer {key}"
    return headers


def session_headers(endpoint: Endpoint, session: str, play: int) -> dict[str, str]:
    """Headers of the requests of one play: a name that keeps them together."""
    name = quote(session if play == 0 else f"{session}#{play}", safe="/@#:+-_.")
    templates = {SESSION_HEADER: "{session}", **endpoint.headers}
    return {header: value.replace("{session}", name) for header, value in templates.items() if "{session}" in value}


def _quoted(url: str) -> str:
    return "'" + url.replace("'", "''").replace("\n", " ") + "'"


def _host(url: str) -> str:
    parts = urlsplit(url)
    return parts.netloc.rpartition("@")[2] or url
