"""agentx replay: play a trace against a server, or against the embedded engine."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from agentx.cli.address import port
from agentx.cli.playing import add_shared, code_of, interrupted, play_many, sets_of
from agentx.errors import EXIT_OK, BadInput

if TYPE_CHECKING:
    from agentx.pages.live import LivePage
    from agentx.replayer.progress import Watch

EPILOG = """examples:
  agentx replay a.trace -o run/                                        against the embedded engine
  agentx replay a.trace --target http://127.0.0.1:30000 --sessions 4   four sessions at a time
  agentx replay a.trace --plan smoke --target my-server.yaml --set gaps.scale=0.5
  agentx replay a.trace --plan smoke --slo ttft=2s,ttft_p95=5s         goodput and a verdict; exit code 3 when missed
  agentx replay a.trace --set target.cache.pool=8000                   the embedded engine with a small cache
  agentx replay a.trace --salt 3fa9c1d0                                the words of an earlier run
  agentx replay a.trace --plan agentx-c4 --dry-run                     what would be sent, how long, at what cost
  agentx replay a.trace --target http://127.0.0.1:30000 --find 'rate: ttft_p95 <= 5s' --repeats 3 -o find/
  agentx replay a.trace --target http://127.0.0.1:30000 --sweep load.sessions=1,2,4,8 -o sweep/
  agentx replay a.trace --target http://127.0.0.1:30000 --cold prove   with a cache that is known to be empty
  agentx replay a.trace --target http://127.0.0.1:30000 --live         a page that shows the run as it goes
  agentx replay a.trace --sessions 256 --workers 4                     four processes, 64 of the sessions each
  agentx replay a.trace --target http://server:30000 --workers 8 --ray auto  the workers are actors of a Ray cluster

Without a plan every session is played once, one at a time, with pauses scaled and capped so that they end in minutes.
The report's summary goes to stdout; 'agentx report RUN --full' has every table. Ctrl-C ends the run and writes its
books; again, it ends the process.
exit codes: 0 done, 2 bad input, 3 objective missed, 4 target unreachable or every turn failed, 5 measurement
invalid, 130 interrupted
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trace", metavar="TRACE", nargs="?", help="a trace, or a workload's name (default: the plan's)")
    parser.add_argument("--plan", metavar="PLAN", help="a plan's name ('agentx list replays') or a path")
    parser.add_argument("--target", metavar="TARGET", help="a URL, a target's name or a path (default: the plan's)")
    parser.add_argument("-o", "--out", metavar="RUN", help="the run folder to make (default: run-DATE-TIME)")
    add_shared(parser)
    parser.add_argument("--seed", type=int, metavar="N", help="of the order of play (seed)")
    parser.add_argument("--salt", metavar="S", help="repeat the words of the run with this salt (default: a fresh one)")
    parser.add_argument(
        "--dry-run", action="store_true",
        help="send nothing: print turns, tokens, what does not fit, expected duration and cost",
    )  # fmt: skip
    parser.add_argument(
        "--cold", choices=["prove"], metavar="prove",
        help="first prove that the cache can be seen and emptied (a prompt must hit, and miss after a flush)",
    )  # fmt: skip
    parser.add_argument(
        "--forecast", metavar="FILE",
        help="what 'agentx simulate --forecast' expects of this run: kept in its folder, and scored by the report",
    )  # fmt: skip
    parser.add_argument(
        "--live", metavar="PORT", type=port, nargs="?", const=0,
        help="a page on this machine that shows the run as it goes, and its report in the end (default: a free port)",
    )  # fmt: skip
    parser.add_argument(
        "--workers", type=int, default=1, metavar="N", help="processes that share the plan (default: %(default)s)"
    )
    parser.add_argument(
        "--ray",
        metavar="ADDRESS",
        help="let the workers be actors of the Ray cluster there (auto: the one of this node)",
    )


def run(args: argparse.Namespace) -> int:
    sets = sets_of(args)
    if args.dry_run:
        return _dry_run(args, sets)
    if args.forecast is not None:
        from agentx.reporter.forecasts import load_forecast

        load_forecast(args.forecast)  # what is none is refused before the first request
        if args.find is not None or args.knobs or args.repeats:
            raise BadInput("--forecast is of one run: it takes no --find, no --sweep and no --repeats")
    if args.live is not None and (args.find is not None or args.knobs or args.repeats):
        raise BadInput("--live is of one run: it takes no --find, no --sweep and no --repeats")
    code = play_many(
        args,
        sets,
        simulated=False,
        more={"cold": args.cold is not None, "order_from": args.order_from, "workers": args.workers, "ray": args.ray},
    )
    return _replay(args, sets) if code is None else code


def _dry_run(args: argparse.Namespace, sets: list[str]) -> int:
    from agentx.replayer.dry_run import dry_run

    if args.find is not None or args.knobs or args.order_from is not None:
        raise BadInput("--dry-run is of one run by its plan, without --find, --sweep and --order-from")
    found = dry_run(args.trace, plan=args.plan, target=args.target, sets=sets)
    print(json.dumps(asdict(found), indent=1) if args.json else found.text())
    return EXIT_OK


def _replay(args: argparse.Namespace, sets: list[str]) -> int:
    """One run, with a page where it was asked for."""
    from agentx.replayer.progress import Watch

    watch = Watch()
    if args.live is None:
        return _one(args, sets, watch, None)
    from agentx.pages.live import LivePage

    live = LivePage(lambda: watch.ask(), args.live)
    print(f"agentx replay: the run as it goes: {live.url}", file=sys.stderr)
    try:
        return _one(args, sets, watch, live)
    finally:
        live.close()


def _one(args: argparse.Namespace, sets: list[str], watch: Watch, live: LivePage | None) -> int:
    from agentx.replayer.run import replay

    out = None if args.out is None else Path(args.out)
    result = replay(
        args.trace, plan=args.plan, target=args.target, out=out, sets=sets, salt=args.salt,
        cold=args.cold is not None, order_from=args.order_from, workers=args.workers, ray=args.ray,
        progress=True, signals=True, watch=watch,
    )  # fmt: skip
    print(f"agentx replay: results in {result.folder}", file=sys.stderr)
    if args.forecast is not None:
        from agentx.reporter.scored import FORECAST

        (result.folder / FORECAST).write_bytes(Path(args.forecast).read_bytes())
    from agentx.reporter.reporting import report  # only now: the first request should not wait for it

    if not result.attempts and not interrupted(result):
        return code_of(result)  # it raises: a report of nothing would hide why
    found = report(result)
    sys.stdout.write(json.dumps(found.document(), indent=1) + "\n" if args.json else found.summary())
    if live is not None:
        from agentx.pages.run_page import run_page

        live.finish(run_page(found, result))
        sys.stdout.flush()
        live.linger(until_interrupted=sys.stderr.isatty())
    return code_of(result, found)
