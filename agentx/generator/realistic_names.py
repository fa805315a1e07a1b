"""Words, people, addresses and places from Faker, drawn once in a process with a fixed seed, then chosen from.

Faker makes a name in some ten microseconds; a trace of text needs millions of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import TypeVar

SEED = 20261130  # of the pools; which names exist, not which are chosen
T = TypeVar("T")


class Names:
    """Pools to choose from. `word` prefers some words over others, as people do (Zipf)."""

    def __init__(self) -> None:
        from faker import Faker

        fake = Faker("en_US")
        fake.seed_instance(SEED)
        self.words: list[str] = sorted({fake.word() for _ in range(8000)})
        Random(SEED).shuffle(self.words)
        self.people: list[str] = [fake.name() for _ in range(800)]
        self.mails: list[str] = [fake.email() for _ in range(800)]
        self.companies: list[str] = [fake.company() for _ in range(400)]
        self.cities: list[str] = [fake.city() for _ in range(400)]
        self.streets: list[str] = [fake.street_address() for _ in range(400)]
        self.hosts: list[str] = [fake.domain_name(2) for _ in range(400)]
        self.agents: list[str] = [fake.user_agent() for _ in range(200)]
        self.jobs: list[str] = [fake.job() for _ in range(300)]
        self.phrases: list[str] = [fake.bs() for _ in range(600)]

    def word(self, rng: Random) -> str:
        """A word; rank r comes about as often as 1 / r."""
        return self.words[min(int(math.exp(rng.random() * math.log(len(self.words) + 1))) - 1, len(self.words) - 1)]

    def rare(self, rng: Random) -> str:
        """A word, all alike."""
        return pick(rng, self.words)

    def sentence(self, rng: Random) -> str:
        """Five to eighteen words, with a name, a number or a phrase among them now and then."""
        words = [self.word(rng) if rng.random() < 0.6 else self.rare(rng) for _ in range(rng.randint(4, 16))]
        chance = rng.random()
        if chance < 0.25:
            words.insert(rng.randrange(len(words)), pick(rng, self.phrases))
        elif chance < 0.4:
            words.insert(rng.randrange(len(words)), str(rng.randint(2, 9999)))
        elif chance < 0.5:
            words.insert(rng.randrange(len(words)), "`" + self.identifier(rng) + "`")
        if len(words) > 9:
            words[len(words) // 2] += ","
        return " ".join(words).capitalize() + ("." if rng.random() < 0.9 else "?")

    def paragraph(self, rng: Random) -> str:
        return " ".join(self.sentence(rng) for _ in range(rng.randint(2, 6)))

    def identifier(self, rng: Random) -> str:
        """A name in code."""
        return "_".join(self.rare(rng) for _ in range(rng.choice((1, 2, 2, 3))))

    def type_name(self, rng: Random) -> str:
        return "".join(self.rare(rng).capitalize() for _ in range(2))

    def path(self, rng: Random, ending: str | None = None) -> str:
        """A file in a repository."""
        folders = [self.rare(rng) for _ in range(rng.randint(1, 3))]
        return "/".join([*folders, self.identifier(rng)]) + (ending or rng.choice((".py", ".ts", ".go", ".rs", ".md")))

    def moment(self, rng: Random) -> str:
        day, second = rng.randint(1, 28), rng.randrange(86_400)
        clock = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
        return f"{rng.randint(2021, 2026)}-{rng.randint(1, 12):02}-{day:02} {clock}"

    def hex(self, rng: Random, digits: int) -> str:
        return f"{rng.getrandbits(4 * digits):0{digits}x}"


def pick(rng: Random, pool: Sequence[T]) -> T:
    return pool[int(rng.random() * len(pool))]
