"""What a run folder says of its run before the first turn: everything from which what is sent can be made again."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy

from agentx import __version__
from agentx.content import WordList
from agentx.errors import BadInput
from agentx.replayer.acceptance import stated
from agentx.replayer.plan import Plan
from agentx.replayer.targets import Target
from agentx.results import RESULTS, TRACE, sha256_of
from agentx.reuse_template import Template
from agentx.trace import TraceReader
from agentx.wire.history import TEXT_WIRES

COPIED = 32 << 20  # bytes; a longer trace stays where it lies, known by its digest

EMBEDDED_TEMPLATE = Template(1, 1, words=True)  # the embedded engine: a marker per message, one for the reply


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a run when it begins. `words` None: the whole lexicon, with the embedded engine's ids. `more` is
    kept beside it: how the server was launched, what each of several told."""

    plan: Plan
    target: Target
    trace: Path
    salt: str
    server: Mapping[str, Any]
    words: WordList | None
    copied: bool
    embedded: bool
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def template(self) -> Template | None:
        """What the chat template adds; None: not known, or no template in use."""
        return EMBEDDED_TEMPLATE if self.embedded and self.plan.wire in TEXT_WIRES else None

    def settings(self) -> dict[str, Any]:
        """The contents of run.json."""
        words = self.words
        kept: dict[str, Any] = {
            "plan": self.plan.model_dump(mode="json"),
            "target": self.target.record(),
            "salt": self.salt,
            "seed": self.plan.seed,
            "words": "lexicon" if words is None else {"words": list(words.words), "ids": list(words.token_ids)},
            "trace": {
                "name": TraceReader(self.trace).header.name,
                "path": str(self.trace.resolve()),
                "sha256": sha256_of(self.trace),
                "copied": self.copied,
            },
            "server": dict(self.server),
            "environment": environment(),
        }
        if self.plan.acceptance is not None:
            kept["acceptance"] = stated(self.plan.acceptance, self.server)
        kept.update(self.more)
        if self.template is not None:
            kept["template"] = {"start": self.template.start, "per_message": self.template.per_message}
        return kept


def default_folder(kind: str = "run") -> Path:
    """`<kind>-<date>-<time>` here, with a number behind it where that is taken."""
    name = time.strftime(f"{kind}-%Y%m%d-%H%M%S")
    path, number = Path(name), 1
    while path.exists():
        number += 1
        path = Path(f"{name}-{number}")
    return path


def check_free(folder: Path) -> None:
    """Raises BadInput for a folder that holds a run already, or is a file."""
    if (folder / RESULTS).exists():
        raise BadInput("holds a run already", file=folder, hint="choose another folder or remove it")
    if folder.exists() and not folder.is_dir():
        raise BadInput("is a file, a folder is needed", file=folder)


def copy_trace(trace: Path, folder: Path, *, always: bool) -> bool:
    """Put the trace into the run folder unless it is long. Returns whether it is there. Raises BadInput."""
    if not always and trace.stat().st_size > COPIED:
        return False
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(trace, folder / TRACE)
    except OSError as error:
        raise BadInput(f"cannot be written: {error.strerror}", file=folder / TRACE) from None
    return True


def environment() -> dict[str, Any]:
    """What ran the client."""
    return {
        "agentx": __version__,
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "aiohttp": version("aiohttp"),
        "numpy": numpy.__version__,
    }
