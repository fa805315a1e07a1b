"""The parser and nothing else: a verb's module is imported when that verb is chosen.

A verb module offers `add_arguments(parser)`, `run(args) -> exit code` and `EPILOG` with examples. Users' mistakes
end in one line on stderr and the exit code of the error; a traceback is a bug.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from agentx import __version__
from agentx.errors import EXIT_BAD_INPUT, EXIT_INTERRUPTED, AgentxError

VERBS: dict[str, tuple[str, str]] = {  # verb -> (module, what it does)
    "demo": ("demo", "show on this machine what a cache's size does to agent traffic"),
    "generate": ("generate", "make a trace from a workload spec"),
    "import": ("import_", "make a trace from another tool's file"),
    "record": ("record", "record agents' traffic through a reverse proxy"),
    "compile": ("compile_", "make a trace from a capture"),
    "export": ("export", "turn a trace into a file that another tool reads"),
    "fit": ("fit", "make a workload spec that makes such traffic as a trace"),
    "inspect": ("inspect_", "say what is in a trace"),
    "cut": ("cut", "make a smaller trace"),
    "check": ("check", "check a spec against what it expects, or a trace against the format's rules"),
    "serve": ("serve", "run the embedded engine as an HTTP server"),
    "replay": ("replay", "play a trace against a server and record what it does"),
    "simulate": ("simulate", "play a trace against the embedded engine in virtual time"),
    "doctor": ("doctor", "check a target: what of it would spoil a measurement, and how to mend it"),
    "calibrate": ("calibrate", "fit the embedded engine's times to runs of a server"),
    "report": ("report", "say what a run measured"),
    "compare": ("compare", "hold runs against each other, and say what is known against it"),
    "quality": ("quality", "ask a target problems with one right answer, and compare two such runs"),
    "list": ("list", "list the catalogues"),
    "show": ("show", "print a file of a catalogue"),
    "copy": ("copy", "copy a file of a catalogue, to change it"),
}

EPILOG = """examples:
  agentx demo
  agentx generate coding-agent --seed 7 -o a.trace
  agentx inspect a.trace
  agentx serve laptop --port 8100
  agentx replay a.trace --target http://127.0.0.1:8100 -o run/
  agentx report run/

exit codes: 0 done, 1 bug, 2 usage or bad input, 3 objective or gate missed, 4 target unreachable or every turn
failed, 5 measurement invalid, 130 interrupted with results written
"""


EXIT_CODES = "\nexit codes: 0 done, 2 usage or bad input, 130 interrupted\n"  # of a verb that names no others


def parser(verb: str | None) -> argparse.ArgumentParser:
    """The whole parser; only the chosen verb's own arguments are filled in."""
    main = argparse.ArgumentParser(
        prog="agentx",
        description="Synthesise, record and replay agent sessions against LLM servers, and account for every "
        "reused token.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    main.add_argument("--version", action="version", version=f"agentx {__version__}")
    verbs = main.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name, (module_name, help_text) in VERBS.items():
        formatter = argparse.RawDescriptionHelpFormatter
        sub = verbs.add_parser(name, help=help_text, description=help_text[0].upper() + help_text[1:] + ".")
        sub.formatter_class = formatter
        if name == verb:
            module = import_module(f"agentx.cli.{module_name}")
            module.add_arguments(sub)
            sub.epilog = module.EPILOG if "exit codes:" in module.EPILOG else module.EPILOG + EXIT_CODES
            sub.set_defaults(run=module.run)
    return main


def _parsed(whole: argparse.ArgumentParser, words: list[str]) -> argparse.Namespace:
    """The arguments. Where a verb takes several files, some may stand behind options, at which argparse stops."""
    args, left = whole.parse_known_args(words)
    several = getattr(args, "what", None)
    if left and isinstance(several, list) and not any(word.startswith("-") for word in left):
        args.what = [*several, *left]
    elif left:
        whole.error(f"unrecognized arguments: {' '.join(left)}")
    return args


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line. Returns its exit code; argparse itself exits on wrong usage (2) and --help (0)."""
    words = list(sys.argv[1:] if argv is None else argv)
    verb = next((word for word in words if not word.startswith("-")), None)
    args = _parsed(parser(verb), words)
    try:
        code: int = args.run(args)
        sys.stdout.flush()
        return code
    except AgentxError as error:
        print(f"agentx {args.verb}: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print(f"agentx {args.verb}: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # the reader of our output, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.filename is None and error.errno is None:
            raise
        where = f"{error.filename}: " if error.filename else ""
        print(f"agentx {args.verb}: {where}{error.strerror}", file=sys.stderr)
        return EXIT_BAD_INPUT


def entry() -> None:
    """The console script."""
    for name in ("stdout", "stderr"):  # a closed stream is None: what is written there is not wanted
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  open until the process ends
    sys.exit(main())
