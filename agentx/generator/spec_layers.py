"""The part of a workload spec that says what stands in front of a conversation, and which sessions share it."""

from __future__ import annotations

from pydantic import Field

from agentx.distributions import whole
from agentx.generator.quantities import Chance, Counts
from agentx.yamlspec import Strict


class Pool(Strict):
    """Contexts that sessions share by chance: each session has one of `count`."""

    count: int = Field(ge=1, le=100_000, description="how many there are")
    tokens: Counts = Field(description="the length of each; drawn once, the same in every session that has it")
    zipf: float = Field(
        default=0.0, ge=0, le=10, description="rank r is chosen in proportion to r ** -zipf; 0 chooses all alike"
    )


class Repos(Pool):
    """Contexts of which a session has one, or none."""

    share: Chance = Field(default=1.0, description="share of the sessions that have one")


class Documents(Pool):
    """Documents that are put in front of user messages, as retrieval does."""

    each: Counts = Field(default=Counts(fixed=1), description="how many stand in front of each user message")


class Files(Strict):
    """Files that a session reads before its first message, and that no other session has."""

    count: Counts = Field(description="how many files a session has")
    tokens: Counts = Field(description="the length of each; cut where the context ends")

    @property
    def shortest(self) -> int:
        """Tokens below which no file is."""
        return whole(self.tokens.quantile(2**-52))


class Layers(Strict):
    """What stands in front of the conversation."""

    tools: int = Field(default=0, ge=0, description="the tool definitions, the same in all sessions")
    system: int = Field(default=0, ge=0, description="the system prompt, the same in all sessions")
    repos: Repos | None = Field(default=None, description="repository contexts; a session has one of them")
    files: Files | None = Field(default=None, description="files of a session's own, in front of its first message")
    documents: Documents | None = Field(default=None, description="a pool of documents for the user messages")


class Groups(Strict):
    """Sessions that come in groups and open alike, as the rollouts of one task do."""

    size: int = Field(ge=1, le=100_000, description="sessions of a group; they have the same opening message")
