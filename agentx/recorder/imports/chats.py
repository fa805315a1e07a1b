"""Conversations with their text: vLLM's multi-turn benchmark (`id`, `messages`) and ShareGPT (`conversations`).

Each assistant message is a turn on the messages before it, and its text is the reply. Both are what that benchmark
plays; its `generate_conversations` recipe holds no conversation and is refused. A token is four bytes of text, since
no tokenizer is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from agentx.core import Gap, Layer, Output, Session, Turn
from agentx.errors import BadInput
from agentx.recorder.imports.books import Books, Fidelity
from agentx.recorder.imports.growth import Growth
from agentx.recorder.imports.running import Format
from agentx.recorder.imports.source import lines, looks_like, parse, parse_file
from agentx.trace_bodies import Invalid, items, string

RECIPE = "generate_conversations"
ROLES: dict[str, Layer] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "tool": "tool_result",
    "assistant": "assistant",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "bard": "assistant",
    "bing": "assistant",
}


def read(path: Path, books: Books, digest: Any) -> Iterator[Session]:
    """The conversations of a file: a JSON list, or one a line. Raises BadInput for what is none, with its place."""
    if path.suffix == ".jsonl":
        for line in lines(path, digest):
            yield from _one(parse(line.data, path, line.number), f"row-{line.number}", path, line.number, books)
        return
    value = parse_file(path, digest)
    if isinstance(value, dict) and value.get("filetype") == RECIPE:
        hint = "write a workload spec: turns.user, tokens.first_message, tokens.message, tokens.reply, layers.system"
        raise BadInput(f"this is a recipe ({RECIPE}), it holds no conversation", file=path, hint=hint)
    if isinstance(value, dict) and {"messages", "conversations"} & value.keys():
        value = [value]  # one conversation on its own
    if not isinstance(value, list):
        raise BadInput(f"not a list of conversations: this looks like {looks_like(value)}", file=path)
    for number, item in enumerate(value, start=1):
        yield from _one(item, f"row-{number}", path, None, books, f"conversation {number}: ")


def _one(value: Any, name: str, path: Path, line: int | None, books: Books, place: str = "") -> Iterator[Session]:
    try:
        if not isinstance(value, dict) or not {"messages", "conversations"} & value.keys():
            raise Invalid(f"not a conversation: this looks like {looks_like(value)}")
        given = value.get("id")
        session = convert(value, given if isinstance(given, str) and given else name, books)
    except Invalid as error:
        raise BadInput(f"{place}{error}", file=path, line=line) from None
    if session is not None:
        yield session


def convert(body: dict[str, Any], id: str, books: Books) -> Session | None:
    """A conversation as a session; None, counted, when no assistant speaks in it."""
    messages = [_message(item, number) for number, item in enumerate(_messages(body), start=1)]
    books.sessions.read += 1
    books.rows.read += len(messages)
    last = max((at for at, (layer, _) in enumerate(messages) if layer == "assistant"), default=-1)
    if last < 0:
        books.sessions.drop("no assistant message: it makes no call")
        books.rows.drop("in a conversation without an assistant message", len(messages))
        return None
    books.rows.drop("behind the last assistant message: no call has it", len(messages) - last - 1)
    books.rows.used += last + 1
    books.sessions.used += 1
    return _session(messages[: last + 1], id)


def _session(messages: Sequence[tuple[Layer, str]], id: str) -> Session:
    context, turns = Growth(), list[Turn]()
    newest: Layer = "user"
    for layer, text in messages:
        if layer != "assistant":
            context.text(layer, text)
            newest = layer
            continue
        index, isl = len(turns), context.tokens
        prompt, before = context.prompt(index), len(context.pieces)
        reply = context.text("assistant", text)
        tokens = sum(piece.tokens for piece in context.pieces[before:])
        gap = Gap("tool" if newest == "tool_result" else "human", 0.0, "inferred") if index else Gap()
        after = (index - 1,) if index else ()
        turns.append(Turn(index, 0, prompt, isl, Output(tokens), after, gap, reply=reply))
    return Session(id, tuple(turns), segments=context.segments)


def _messages(body: dict[str, Any]) -> list[Any]:
    return items(body, "messages" if "messages" in body else "conversations")


def _message(item: Any, number: int) -> tuple[Layer, str]:
    if not isinstance(item, dict):
        raise Invalid(f"message {number}: {item!r:.40} is not an object")
    role, text = ("role", "content") if "role" in item else ("from", "value")
    try:
        name = string(item, role)
        if name not in ROLES:
            raise Invalid(f"{role}: {name[:40]!r} is not one of {' '.join(ROLES)}")
        return ROLES[name], string(item, text)
    except Invalid as error:
        raise Invalid(f"message {number}: {error}") from None


def make_format() -> Format:
    """What `agentx import chats` reads."""
    return Format(
        name="chats",
        row="message",
        sessions=read,
        unknowable=(
            "token counts: a token is four bytes of text here",
            "times: pauses are 0, arrivals unknown",
            "tool definitions, reasoning, models, subagents, cached tokens, failed and aborted calls",
        ),
        endings=(".json", ".jsonl"),
        content="text",
        fidelity=Fidelity("reconstructed", "ordinal", "header", "estimated", "none"),
    )
