"""The command line: check every gradient, time the contenders, write the report."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

from . import gradbench, large, scalars, small
from .contenders import PEERS, Contender, hand, installed, ours, prepared
from .extras import figures
from .program import Program, Skipped, disagreement
from .report import Report, Row
from .timing import Clock, measure

FAMILIES = {
    "scalars": scalars.PROGRAMS,
    "small arrays": small.PROGRAMS,
    "large arrays": large.PROGRAMS,
    "GradBench": gradbench.PROGRAMS,
}
QUICK = 5  # rounds
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


def main() -> None:
    options = parsed()
    report = Report(options.out, options.peers, options.clock)
    for family, programs in FAMILIES.items():
        for program in programs:
            if options.only is None or program.name in options.only or family in options.only:
                row = compared(
                    program, family, options.peers, options.rounds, CLOCKS[options.clock]
                )
                print(row.line(), flush=True)
                report.rows.append(row)
    if options.only is None or "figures" in options.only:
        report.figures = figures(options.rounds, CLOCKS[options.clock])
    report.write()
    if any(row.wrong for row in report.rows):
        sys.exit("a gradient of Wengert's is wrong")


def parsed() -> argparse.Namespace:
    names = [program.name for programs in FAMILIES.values() for program in programs]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="NAME",
        choices=[*names, *FAMILIES, "figures"],
        help=f"programs or families: {', '.join([*FAMILIES, 'figures', *names])}",
    )
    parser.add_argument("--rounds", type=int, default=21, help="default: %(default)s")
    parser.add_argument(
        "--clock",
        choices=CLOCKS,
        default="wall",
        help="cpu: the seconds that the process was computing, for a machine that has other things to do",
    )
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} rounds")
    parser.add_argument(
        "--peers",
        nargs="*",
        choices=PEERS,
        default=list(PEERS),
        metavar="PEER",
        help=f"of {', '.join(PEERS)}; none if only --peers is given; default: all that are installed",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("build/benchmarks"),
        help="folder of the table, the plot and the raw figures; default: %(default)s",
    )
    options = parser.parse_args()
    if options.quick:
        options.rounds = min(options.rounds, QUICK)
    for peer in options.peers:
        if installed(PEERS[peer][0]) is None:
            print(f"{peer} is skipped: {PEERS[peer][0]} is not installed")
    options.peers = [peer for peer in options.peers if installed(PEERS[peer][0])]
    return options


def compared(program: Program, family: str, peers: list[str], rounds: int, clock: Clock) -> Row:
    """One program: everybody who computes the right gradient, timed."""
    arguments = program.arguments()
    row = Row(program.name, family, program.bound)
    base = hand(program, arguments)
    expected = base.call(*base.arguments)
    contenders = [base]
    for contender in ours(program, arguments):
        row.wrong = row.wrong or checked(contender, expected)
        contenders.append(contender)
    for name in peers:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                contender = prepared(name, program, arguments)
                error = checked(contender, expected)
            except Skipped as reason:
                row.skipped[name] = str(reason)
            except Exception as failure:
                row.skipped[name] = in_short(failure)
            else:
                if error:
                    row.skipped[name] = f"WRONG: {error}"
                else:
                    contenders.append(contender)
    row.seconds = measure(contenders, rounds, clock)
    row.extra = {c.name: c.extra for c in contenders if c.extra}
    return row


def checked(contender: Contender, expected: object) -> str | None:
    """What is wrong with value and gradients, if anything."""
    with contender.around():
        return disagreement(contender.plain(contender.call(*contender.arguments)), expected)


def in_short(failure: Exception) -> str:
    """An exception in one line: the first of its lines that says something."""
    lines = [line.strip() for line in str(failure).splitlines()]
    said = [line for line in lines if " " in line and line != "Tangent Error"]
    return f"{type(failure).__name__}: {said[0] if said else failure}"[:160]
