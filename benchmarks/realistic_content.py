"""How like real text `content: realistic` is: `python benchmarks/realistic_content.py [FILE_OR_FOLDER ...]`.

Prints, for each layer, for the words that agentx sends otherwise, and for real text (this repository's sources and
documents unless files are named):

- *ratio*: bytes over their zlib size, of stretches of up to 16 KB;
- *repeats*: share of runs of four words that occurred before in the same stretch;
- *known*: share of runs of three words in a reply (for real text: in a stretch of 1 KB) that its context, the 32 KB in
  front of it, holds. This is what a server that guesses by n-grams lives on.
- *prefix*: the longest prefix that any two texts share, and the mean of each with its nearest, in bytes.
"""

from __future__ import annotations

import re
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

from agentx import catalog
from agentx.core import Session, Text
from agentx.generator.spec import load_spec
from agentx.generator.write import generate
from agentx.recorder.exports.messages import Texts
from agentx.trace import TraceReader, read_trace

STRETCH, CONTEXT, REPLY = 16 << 10, 32 << 10, 1 << 10
ROOT = Path(__file__).parents[1]


def prefix(one: str, other: str) -> int:
    """How many leading characters two texts share."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def runs(text: str, size: int) -> list[tuple[str, ...]]:
    words = re.findall(r"\w+|[^\w\s]", text)
    return [tuple(words[at : at + size]) for at in range(len(words) - size + 1)]


def repeats(text: str) -> tuple[int, int]:
    found = runs(text, 4)
    return len(found) - len(set(found)), len(found)


def known(reply: str, context: str) -> tuple[int, int]:
    before, found = set(runs(context, 3)), runs(reply, 3)
    return sum(run in before for run in found), len(found)


def measured(texts: Iterable[str]) -> tuple[float, float]:
    size = packed = again = all_ = 0
    for text in texts:
        stretch = text[:STRETCH].encode()
        size, packed = size + len(stretch), packed + len(zlib.compress(stretch, 6))
        hit, of = repeats(text[:STRETCH])
        again, all_ = again + hit, all_ + of
    return size / max(1, packed), again / max(1, all_)


def replies(session: Session, texts: Texts) -> Iterator[tuple[str, str]]:
    """Each reply of a session and the end of its context."""
    for turn in session.turns:
        if turn.reply is not None:
            context = "".join(texts.text(session, piece) for piece in session.pieces(turn.index)[-40:])
            content = session.segment(turn.reply).content
            if isinstance(content, Text):
                yield content.text, context[-CONTEXT:]


def share(pairs: Iterable[tuple[str, str]]) -> float:
    counts = [known(*pair) for pair in pairs]
    return sum(hit for hit, _ in counts) / max(1, sum(of for _, of in counts))


def line(name: str, texts: list[str], told: float | None) -> str:
    ratio, again = measured(texts)
    last = "" if told is None else f"{told:8.1%}"
    return f"{name:24} {sum(map(len, texts)) / 1e6:7.2f} MB {ratio:6.2f} {again:8.1%} {last}"


def generated(reader: TraceReader) -> Iterator[str]:
    texts, layers, pairs = Texts(), dict[str, list[str]](), list[tuple[str, str]]()
    for session in reader:
        pairs += replies(session, texts)
        used = {piece.segment for turn in session.turns for piece in turn.prompt.append}
        for id in used:
            segment = session.segment(id)
            if isinstance(segment.content, Text):
                layers.setdefault(segment.layer, []).append(segment.content.text)
    for layer, found in layers.items():
        yield line(layer, found, share(pairs) if layer == "assistant" else None)
    everything = sorted({text for found in layers.values() for text in found})
    near = [prefix(a, b) for a, b in pairwise(everything)]
    yield f"{len(everything)} texts: longest shared prefix {max(near)} bytes, mean {sum(near) / len(near):.1f}"


def real(paths: list[Path]) -> Iterator[str]:
    files = [file for path in paths for file in (sorted(path.rglob("*")) if path.is_dir() else [path])]
    texts = [
        file.read_text(errors="ignore") for file in files if file.suffix in (".py", ".md", ".txt", ".log", ".json")
    ]
    whole = "".join(texts)
    cuts = range(CONTEXT, len(whole) - REPLY, 20 * REPLY)
    yield line("real text", texts, share((whole[at : at + REPLY], whole[at - CONTEXT : at]) for at in cuts))


def words(reader: TraceReader) -> Iterator[str]:
    """The content that is made when it is sent."""
    texts = Texts()
    session = next(iter(reader))
    found = [texts.text(session, piece) for piece in session.pieces(len(session.turns) - 1)]
    yield line("words (default content)", found, None)


def main() -> None:
    paths = [Path(name) for name in sys.argv[1:]] or [ROOT / "agentx", ROOT / "docs"]
    path = catalog.resolve("workloads", "claude-code")
    print(f"{'':24} {'size':>10} {'ratio':>6} {'repeats':>8} {'known':>8}")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "a.trace"
        for content in ("realistic", None):
            spec = load_spec(path, sets=[f"content={content}"] if content else [])
            generate(spec, seed=0, sessions=6 if content else 1, out=out)
            print("\n".join(generated(read_trace(out)) if content else words(read_trace(out))))
    print("\n".join(real(paths)))


if __name__ == "__main__":
    main()
