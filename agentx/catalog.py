"""Where a bare name stands for a file: the user's catalogues first, then the built-in ones.

An argument that has a `/` or ends in .yaml, .trace, .json, .jsonl or .csv is a path. Any other name is looked up as
`<kind>/<name>.yaml` in each directory of $AGENTX_PATH, then in what agentx ships; the first that has it wins.
"""

from __future__ import annotations

import difflib
import os
from itertools import dropwhile, takewhile
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from agentx.errors import BadInput

Kind = Literal["workloads", "recorders", "replays", "targets", "references", "curves"]
KINDS: tuple[Kind, ...] = get_args(Kind)
PATH_ENDINGS = (".yaml", ".trace", ".json", ".jsonl", ".csv")
ABOUT_BYTES = 4096  # of a file's head that are searched for its description

_FOLDERS: dict[Kind, str] = {
    "workloads": "workloads",
    "recorders": "recorders",
    "replays": "replays",
    "targets": "replays/targets",
    "references": "replays/references",
    "curves": "replays/curves",
}


class Entry(NamedTuple):
    """One file of a catalogue. `about` is what it says of itself in one sentence, or ""."""

    kind: Kind
    name: str
    path: Path
    about: str


def is_path(name: str) -> bool:
    """Whether an argument names a file itself rather than an entry of a catalogue."""
    return "/" in name or os.sep in name or name.endswith(PATH_ENDINGS)


def roots() -> list[Path]:
    """Directories that hold catalogues, in order of search. In a wheel the built-ins lie inside the package."""
    own = [Path(part) for part in os.environ.get("AGENTX_PATH", "").split(os.pathsep) if part]
    package = Path(__file__).parent
    packed = package / "_catalog"
    return [*own, packed if packed.is_dir() else package.parent]


def entries(kind: Kind) -> list[Entry]:
    """Everything that a bare name of this kind can mean, sorted by name."""
    found: dict[str, Entry] = {}
    for root in roots():
        for path in sorted((root / _FOLDERS[kind]).glob("*.yaml")):
            if path.is_file():
                found.setdefault(path.stem, Entry(kind, path.stem, path, _about(path)))
    return [found[name] for name in sorted(found)]


def resolve(kind: Kind, name: str) -> Path:
    """The file that an argument means; a path is returned as it is. Raises BadInput with the nearest names."""
    if is_path(name):
        return Path(name)
    known = entries(kind)
    for entry in known:
        if entry.name == name:
            return entry.path
    raise _miss(f"no {kind[:-1]} named {name!r}", name, [entry.name for entry in known], f"agentx list {kind}")


def find(name: str) -> Path:
    """The file of `kind/name`, of a name that one catalogue alone has, or of a path. Raises BadInput."""
    kind, _, rest = name.partition("/")
    if kind in KINDS and rest and not is_path(rest):
        return resolve(kind, rest)
    if is_path(name):
        return Path(name)
    known = [entry for each in KINDS for entry in entries(each)]
    hits = [entry for entry in known if entry.name == name]
    if len(hits) > 1:
        choices = " or ".join(f"{entry.kind}/{entry.name}" for entry in hits)
        raise BadInput(f"{name!r} is in {len(hits)} catalogues", hint=f"say {choices}")
    if not hits:
        raise _miss(f"nothing is named {name!r}", name, [entry.name for entry in known], "agentx list")
    return hits[0].path


def _miss(message: str, name: str, known: list[str], command: str) -> BadInput:
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
    guess = f"did you mean {' or '.join(repr(each) for each in near)}? " if near else ""
    return BadInput(message, hint=f"{guess}'{command}' shows all; a path needs a / or an ending such as .yaml")


def _about(path: Path) -> str:
    """The first sentence of the file's first comment, which may run over lines; else its `about:` value."""
    with path.open(encoding="utf-8", errors="replace") as stream:
        lines = stream.read(ABOUT_BYTES).splitlines()
    comments = dropwhile(lambda line: not line.strip("# "), dropwhile(lambda line: not line.startswith("#"), lines))
    words = " ".join(line.strip("# ") for line in takewhile(lambda line: line.strip("# ") and line[0] == "#", comments))
    if words:
        return words.partition(". ")[0].rstrip(".")
    return next((line.removeprefix("about:").strip(" '\"") for line in lines if line.startswith("about:")), "")
