"""Recorder profiles: `agentx: recorder/1`, what a client talks to and how it says which session it is."""

from __future__ import annotations

import pathlib
from typing import Annotated, Literal
from urllib.parse import urlsplit

import pydantic
from pydantic import Field

from agentx.yamlspec import Strict, load

Wire = Literal["chat", "completions", "responses", "messages", "generate"]


def upstream_url(value: object) -> str:
    """A base URL without a trailing slash. Raises ValueError for one that cannot be passed on to, or has a password."""
    parts = urlsplit(value) if isinstance(value, str) else None
    if not isinstance(value, str) or parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("should be a URL such as http://127.0.0.1:30000")
    if parts.username or parts.password:
        raise ValueError("must not hold a password: the client's own credentials are passed on")
    if parts.query or parts.fragment:
        raise ValueError("must not have a query or a fragment")
    return value.rstrip("/")


def _path(value: object) -> object:
    if isinstance(value, str) and not value.startswith("/"):
        raise ValueError("should begin with /")
    return value


Url = Annotated[str, pydantic.BeforeValidator(upstream_url)]
PathEnd = Annotated[str, pydantic.BeforeValidator(_path)]


class Identity(Strict):
    """Headers, besides the known ones, that say which session, agent, parent and kind of agent a request is from."""

    session: list[str] = Field(default=[])
    agent: list[str] = Field(default=[])
    parent: list[str] = Field(default=[])

    @property
    def names(self) -> list[str]:
        return [*self.session, *self.agent, *self.parent]


class Profile(Strict):
    """A recorder. `{url}` in `environment` and `notes` becomes the proxy's own base URL.

    `upstream`: where traffic goes unless --upstream says otherwise. `paths`: the end of a path and the wire whose
    bodies are kept; everything else is passed on, and only noted.
    """

    upstream: Url | None = None
    environment: dict[str, str] = Field(default={})
    notes: list[str] = Field(default=[])
    paths: dict[PathEnd, Wire] = Field(min_length=1)
    identity: Identity = Identity()

    def setup(self, url: str) -> list[str]:
        """What the client needs, one line each."""
        lines = [f"export {name}={value.replace('{url}', url)}" for name, value in self.environment.items()]
        return lines + [note.replace("{url}", url) for note in self.notes]


def load_profile(path: pathlib.Path | str) -> Profile:
    """Read a profile. Raises BadInput naming every mistake with its place."""
    return load(Profile, path, kind="recorder")
