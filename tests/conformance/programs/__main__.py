"""Run many random programs, and print those that differ, made as small as possible.

python -m tests.conformance.programs --count 20000 --seed 0 --jobs 2
python -m tests.conformance.programs --show 17       # the program of a seed, and what is found
python -m tests.conformance.programs --file x.txt    # a program that was printed before
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.conformance.programs import batches  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.conformance.programs", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--count", type=int, default=200, help="how many programs (200)")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first one (0)")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes (1)")
    parser.add_argument(
        "--all", action="store_true", help="also what is known to differ (see known.py)"
    )
    parser.add_argument(
        "--shrink",
        type=float,
        default=60.0,
        help="seconds of computing to make a program smaller (60; 0: not at all)",
    )
    parser.add_argument(
        "--timeout", type=float, default=60.0, help="seconds after which a program hangs (60)"
    )
    parser.add_argument(
        "--show", type=int, metavar="SEED", help="print one program and what is found"
    )
    parser.add_argument("--file", metavar="FILE", help="judge a program that was printed before")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return batches.work(options)
    if options.show is not None or options.file is not None:
        return batches.show(options)
    return batches.run(options)


if __name__ == "__main__":
    sys.exit(main())
