"""The kinds of text that an agent's context is made of, each a few lines or many, and which layer has which.

Every kind is an iterator of lines that opens with names of its own, and reuses the names of its document as real ones
do.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from random import Random

from agentx.core import Layer
from agentx.generator.realistic_names import Names, pick

Kind = Callable[[Names, Random], Iterator[str]]


def source(names: Names, rng: Random) -> Iterator[str]:
    """A source file as a tool shows it: numbered lines of Python."""
    lines = _code(names, rng)
    yield f"{names.path(rng, '.py')} ({rng.randint(1, 400)} lines)"
    start = rng.choice((1, 1, 40 * rng.randint(1, 30)))
    for number, line in enumerate(lines, start=start):
        yield f"{number:6}\t{line}"


def _code(names: Names, rng: Random) -> Iterator[str]:
    """Functions and a class that use one another's names."""
    own = [names.identifier(rng) for _ in range(14)]
    types = [names.type_name(rng) for _ in range(4)]
    yield f"from {names.rare(rng)}.{names.rare(rng)} import {types[0]}, {types[1]}"
    yield f"{own[0].upper()} = {rng.randint(1, 5000)}"
    for _ in range(rng.randint(3, 12)):
        name, first, second, third = (pick(rng, own) for _ in range(4))
        yield ""
        if rng.random() < 0.25:
            yield f"class {pick(rng, types)}({pick(rng, types)}):"
            yield f'    """{names.sentence(rng)}"""'
            yield ""
            yield f"    def __init__(self, {first}: {pick(rng, types)}, {second}: int = {rng.randint(0, 99)}) -> None:"
            yield f"        self.{first} = {first}"
            yield f"        self.{second} = {second}"
            continue
        yield f"def {name}({first}: {pick(rng, types)}, {second}: list[{pick(rng, types)}]) -> {pick(rng, types)}:"
        yield f'    """{names.sentence(rng)}"""'
        yield from _body(names, rng, (first, second, third), own)


def _body(names: Names, rng: Random, args: tuple[str, str, str], own: list[str]) -> Iterator[str]:
    first, second, third = args
    for _ in range(rng.randint(2, 7)):
        shape = rng.random()
        if shape < 0.3:
            yield f"    {third} = {pick(rng, own)}({first}.{pick(rng, own)}, {second}[{rng.randint(0, 9)}])"
        elif shape < 0.5:
            yield f"    for {names.rare(rng)} in {second}:"
            yield f"        {third}.append({pick(rng, own)}({names.rare(rng)}))"
        elif shape < 0.7:
            yield f"    if {first}.{pick(rng, own)} {rng.choice(('<', '>', '==', '!='))} {rng.randint(0, 500)}:"
            yield f'        raise ValueError(f"{names.sentence(rng)}: {{{first}}}")'
        elif shape < 0.85:
            yield f"    # {names.sentence(rng)}"
        else:
            yield f'    logger.debug("{names.rare(rng)} %s", {first})'
    yield f"    return {third}"


def diff(names: Names, rng: Random) -> Iterator[str]:
    """A unified diff of a few files."""
    for _ in range(rng.randint(1, 4)):
        path = names.path(rng, ".py")
        yield f"diff --git a/{path} b/{path}"
        yield f"index {names.hex(rng, 7)}..{names.hex(rng, 7)} 100644"
        yield f"--- a/{path}"
        yield f"+++ b/{path}"
        for _ in range(rng.randint(1, 3)):
            at = rng.randint(1, 900)
            yield f"@@ -{at},{rng.randint(4, 12)} +{at},{rng.randint(4, 16)} @@ def {names.identifier(rng)}("
            for line in list(_code(names, rng))[: rng.randint(6, 20)]:
                yield rng.choice(("+", "-", " ", " ")) + line


def listing(names: Names, rng: Random) -> Iterator[str]:
    """`ls -l` and `find` of a folder."""
    root = "/".join(names.rare(rng) for _ in range(2))
    owner = pick(rng, names.people).split()[0].lower()
    yield f"{root}: total {rng.randint(8, 90_000)}"
    for _ in range(rng.randint(5, 60)):
        if rng.random() < 0.5:
            size, when = rng.randint(20, 400_000), names.moment(rng)
            name = f"{names.identifier(rng)}.{rng.choice(('py', 'json', 'md'))}"
            yield f"-rw-r--r-- 1 {owner} {owner} {size:8} {when[:16]} {name}"
        else:
            yield f"./{root}/{names.path(rng)}"


def log(names: Names, rng: Random) -> Iterator[str]:
    """A service's log."""
    host, parts = pick(rng, names.hosts), [names.identifier(rng) for _ in range(4)]
    for _ in range(rng.randint(8, 60)):
        level = rng.choices(("INFO", "DEBUG", "WARN", "ERROR"), (6, 3, 1, 1))[0]
        head = f"{names.moment(rng)},{rng.randrange(1000):03} {level:5} [{pick(rng, parts)}]"
        if rng.random() < 0.4:
            status, path = rng.choice((200, 200, 304, 404, 500)), f"{names.rare(rng)}/{rng.randint(1, 99_999)}"
            yield f"{head} {host} GET /{path} {status} {rng.randint(1, 900)}ms"
        else:
            yield f"{head} {names.sentence(rng)} request_id={names.hex(rng, 12)}"


def tests(names: Names, rng: Random) -> Iterator[str]:
    """What a test runner prints."""
    path, cases = names.path(rng, ".py"), rng.randint(4, 30)
    yield f"{path} collected {cases} items in {rng.random() * 9:.2f}s"
    for _ in range(cases):
        verdict = rng.choices(("PASSED", "FAILED", "SKIPPED"), (9, 1, 1))[0]
        yield f"{path}::test_{names.identifier(rng)} {verdict}"
    left, right = names.identifier(rng), rng.randint(0, 999)
    yield f"E       AssertionError: assert {left} == {right}"
    yield f"E        +  where {left} = <{names.type_name(rng)} object at 0x7f{names.hex(rng, 10)}>"


def answer(names: Names, rng: Random) -> Iterator[str]:
    """A JSON API's answer."""
    fields = [names.identifier(rng) for _ in range(rng.randint(4, 9))]
    rows = []
    for _ in range(rng.randint(3, 20)):
        row: dict[str, object] = {"id": names.hex(rng, 8), "name": pick(rng, names.people)}
        row.update({field: _value(names, rng) for field in fields})
        rows.append(row)
    yield json.dumps({"cursor": names.hex(rng, 16), names.rare(rng): rows}, indent=2)


def _value(names: Names, rng: Random) -> object:
    kind = rng.randrange(7)
    choices: tuple[Callable[[], object], ...] = (
        lambda: rng.randint(0, 100_000),
        lambda: round(rng.random() * 1000, 2),
        lambda: rng.random() < 0.5,
        lambda: names.moment(rng),
        lambda: pick(rng, names.mails),
        lambda: f"{pick(rng, names.streets)}, {pick(rng, names.cities)}",
        lambda: names.sentence(rng),
    )
    return choices[kind]()


def rows(names: Names, rng: Random) -> Iterator[str]:
    """Rows of a database, as its shell prints them."""
    table = names.identifier(rng)
    columns = ["id", *(names.rare(rng) for _ in range(rng.randint(3, 6)))]
    yield f"{table}=# SELECT {', '.join(columns)} FROM {table} WHERE {columns[1]} > {rng.randint(1, 999)};"
    yield " | ".join(f"{column:>14}" for column in columns)
    yield "-+-".join("-" * 14 for _ in columns)
    for _ in range(rng.randint(5, 40)):
        cells = [names.hex(rng, 8), *(str(_cell(names, rng)) for _ in columns[1:])]
        yield " | ".join(f"{cell[:22]:>14}" for cell in cells)


def _cell(names: Names, rng: Random) -> object:
    return rng.choice((rng.randint(0, 99_999), names.rare(rng), pick(rng, names.cities), names.moment(rng)[:10]))


def mail(names: Names, rng: Random) -> Iterator[str]:
    """A mail with its head."""
    sender, receiver = pick(rng, names.people), pick(rng, names.people)
    yield f"{sender} <{pick(rng, names.mails)}> wrote on {names.moment(rng)}:"
    yield f"Subject: {names.sentence(rng)}"
    yield f"To: {receiver} <{pick(rng, names.mails)}>"
    yield ""
    yield f"Dear {receiver.split()[0]},"
    for _ in range(rng.randint(1, 5)):
        yield ""
        yield names.paragraph(rng)
    yield f"-- {sender}, {pick(rng, names.jobs)}, {pick(rng, names.companies)}"


def ticket(names: Names, rng: Random) -> Iterator[str]:
    """An issue of a tracker."""
    yield f"{names.sentence(rng)} (#{rng.randint(100, 99_999)}, opened by {pick(rng, names.people)})"
    yield ""
    yield names.paragraph(rng)
    yield "Steps to reproduce:"
    for step in range(1, rng.randint(3, 6)):
        yield f"{step}. {names.sentence(rng)}"
    yield f"Seen with {pick(rng, names.agents)}"
    yield f"Expected: {names.sentence(rng)}"


def request(names: Names, rng: Random) -> Iterator[str]:
    """What a user writes."""
    yield names.paragraph(rng)
    if rng.random() < 0.4:
        yield f"See {names.path(rng)} and {names.path(rng)}."
    for _ in range(rng.randint(0, 4)):
        yield names.paragraph(rng)


def reply(names: Names, rng: Random) -> Iterator[str]:
    """What an assistant answers: prose, a list, some code."""
    yield names.paragraph(rng)
    if rng.random() < 0.5:
        yield ""
        for _ in range(rng.randint(2, 6)):
            yield f"- **{names.identifier(rng)}**: {names.sentence(rng)}"
    if rng.random() < 0.5:
        yield ""
        yield f"```python  # {names.path(rng, '.py')}"
        yield from list(_code(names, rng))[: rng.randint(5, 30)]
        yield "```"


def definitions(names: Names, rng: Random) -> Iterator[str]:
    """Definitions of tools."""
    for _ in range(rng.randint(6, 12)):
        given = {names.identifier(rng): {"type": "string", "description": names.sentence(rng)} for _ in range(3)}
        tool = {
            "name": names.identifier(rng),
            "description": names.paragraph(rng),
            "input_schema": {"type": "object", "properties": given, "required": sorted(given)[:1]},
        }
        yield json.dumps(tool)


def instructions(names: Names, rng: Random) -> Iterator[str]:
    """A system prompt: rules in sections."""
    yield f"{names.type_name(rng)} is the assistant of {pick(rng, names.companies)}, {pick(rng, names.cities)}."
    for _ in range(rng.randint(3, 8)):
        yield ""
        yield f"## {names.rare(rng).capitalize()} {names.rare(rng)}"
        yield names.paragraph(rng)
        for _ in range(rng.randint(1, 6)):
            yield f"- {names.sentence(rng)}"


def summary(names: Names, rng: Random) -> Iterator[str]:
    """What a compaction leaves."""
    yield f"{names.sentence(rng)} Files touched so far:"
    for _ in range(rng.randint(2, 6)):
        yield f"- {names.path(rng)}: {names.sentence(rng)}"
    yield f"Next: {names.paragraph(rng)}"


KINDS: dict[Layer, dict[Kind, int]] = {
    "tools": {definitions: 1},
    "system": {instructions: 1},
    "shared": {source: 4, listing: 1, instructions: 2},
    "summary": {summary: 1},
    "user": {request: 4, ticket: 2, mail: 1},
    "tool_result": {source: 6, diff: 2, listing: 3, log: 3, tests: 2, answer: 2, rows: 1},
    "assistant": {reply: 1},
    "reasoning": {request: 1},
}
