"""agentx quality: problems with one right answer, asked of a target; and two such runs against each other."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agentx.errors import EXIT_GATE, EXIT_OK, BadInput

if TYPE_CHECKING:
    from agentx.quality.problems import Problem
    from agentx.quality.results import Quality

EPILOG = """examples:
  agentx quality --target http://127.0.0.1:30000 -o before/      128 problems, each short and in a long context
  agentx quality --target http://127.0.0.1:30000 -o after/       the same ones, after a change of flags
  agentx quality --compare before/ after/                        what broke; exit code 3 when worse by more than chance
  agentx quality --target my-server.yaml --questions own.jsonl -o own/
  agentx quality --compare before/ after/ --strict               exit code 3 when any problem broke

Asked greedily, over chat. Answers are taken strictly, from the last line that says Answer:. A server that simulates
speculative acceptance says nonsense: switch that off first (SGLang does not tell that it does).
exit codes: 0 done, 2 bad input, 3 worse (--compare), 4 target unreachable or every problem failed
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--target", metavar="TARGET", help="a URL, a target's name or a path: ask it")
    what.add_argument(
        "--compare", nargs=2, type=Path, metavar=("BEFORE", "AFTER"), help="two runs of the same problems"
    )
    parser.add_argument("-o", "--out", type=Path, metavar="DIR", help="where answers go, with --target")
    parser.add_argument("--problems", type=int, default=128, metavar="N", help="how many (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the problems (default: %(default)s)")
    parser.add_argument("--questions", type=Path, metavar="FILE", help="your own: JSON Lines of question and answer")
    parser.add_argument(
        "--context", choices=("both", "short", "long"), default="both",
        help="each problem alone, or its facts strewn over a long text, or both (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--at-a-time", type=int, default=8, metavar="N", help="problems in flight (default: %(default)s)"
    )
    parser.add_argument(
        "--max-tokens", type=int, default=2048, metavar="N", help="of a reply, thinking included (default: %(default)s)"
    )
    parser.add_argument(
        "--set",
        dest="sets",
        action="append",
        default=[],
        metavar="KEY.PATH=VALUE",
        help="override one key of the target",
    )
    parser.add_argument(
        "--strict", action="store_true", help="with --compare: any problem that broke, or failed now, is exit code 3"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document")


def run(args: argparse.Namespace) -> int:
    return _compare(args) if args.compare else _ask(args)


def _compare(args: argparse.Namespace) -> int:
    from agentx.quality.comparing import compare_quality, document, text
    from agentx.quality.results import read_quality

    before, after = (read_quality(folder) for folder in args.compare)
    found = compare_quality(before, after)
    if args.json:
        print(json.dumps(document(found, before, after), indent=1))
    else:
        sys.stdout.write(text(found, before, after))
    return EXIT_GATE if found.worse or (args.strict and (found.broken or found.lost)) else EXIT_OK


def _ask(args: argparse.Namespace) -> int:
    from tqdm import tqdm

    from agentx.quality.asking import Asking, ask
    from agentx.replayer.targets import resolve_target

    if args.out is None:
        raise BadInput("-o DIR says where the answers go")
    for name, value in (
        ("--problems", args.problems),
        ("--at-a-time", args.at_a_time),
        ("--max-tokens", args.max_tokens),
    ):
        if value < 1:
            raise BadInput(f"{name} should be 1 or more, not {value}")
    asked = _problems(args)
    about = {
        "questions": None if args.questions is None else args.questions.name,
        "seed": None if args.questions is not None else args.seed,
        "max_tokens": args.max_tokens,
    }
    with tqdm(total=len(asked), unit="problem", disable=None, leave=False) as bar:
        asking = Asking(args.at_a_time, args.max_tokens)
        found = ask(resolve_target(args.target, args.sets), asked, args.out, asking, about, bar.update)
    if args.json:
        print(json.dumps(document(found), indent=1))
    else:
        sys.stdout.write(text(found))
    return EXIT_OK


def _problems(args: argparse.Namespace) -> list[Problem]:
    from agentx.quality.problems import VARIANTS, own_questions, problems

    if args.questions is not None:
        return own_questions(args.questions)
    wanted = [variant for variant in VARIANTS if args.context in ("both", variant)]
    return list(problems(args.problems, args.seed, wanted))


def text(found: Quality) -> str:
    """The counts for a terminal."""
    from agentx.quality.answers import VERDICTS

    state = "" if found.complete else " (PARTIAL: not all were asked)"
    lines = [f"agentx quality: {len(found.outcomes)} problems{state}, answers in {found.folder}"]
    lines.append("  " + " " * 8 + "".join(f"{name.replace('_', ' '):>11}" for name in VERDICTS))
    for variant in found.variants:
        lines.append(f"  {variant:<8}" + "".join(f"{found.count(name, variant):>11}" for name in VERDICTS))
    cut = sum(one.finish == "length" for one in found.outcomes)
    if cut:
        lines.append(f"  {cut} replies were cut at --max-tokens: what they would have answered is not known")
    return "\n".join(lines) + "\n"


def document(found: Quality) -> dict[str, object]:
    """Plain values only; the replies are in the folder."""
    from agentx.quality.answers import VERDICTS
    from agentx.quality.schema import RUN

    return {
        "schema": RUN,
        "problems": len(found.outcomes),
        "complete": found.complete,
        **{name: found.count(name) for name in VERDICTS},
        "by_variant": {variant: {name: found.count(name, variant) for name in VERDICTS} for variant in found.variants},
    }
