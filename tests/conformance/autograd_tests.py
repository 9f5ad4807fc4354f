"""HIPS autograd's own tests, with plain NumPy in the place of `autograd.numpy` and Wengert in that of autograd.

    python -m tests.conformance.autograd_tests               downloads its source distribution with pip
    python -m tests.conformance.autograd_tests --at FOLDER   takes the tests that lie there
    python -m tests.conformance.autograd_tests test_fft.py -k rfft

`autograd_shim` is the package that the tests import. They run in another process and in a folder of their own.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import xml.etree.ElementTree
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
PINNED = "autograd==1.9.1"

# What is about autograd itself, and has no counterpart here.
OUT_OF_REACH = {
    "test_builtins.*": "every argument of autograd's grad may be something without a derivative",
    "test_core.test_*eq": "bools count as numbers there",
    "test_core.test_lt": "bools count as numbers there",
    "test_core.test_gt": "bools count as numbers there",
    "test_graphs.test_assignment_raises_error": "assignment to arrays is differentiated here",
    "test_fft.test_rfftn_odd_not_implemented": "odd sizes are differentiated here",
    "test_logic.test_nograd": "asks for a certain exception",
    "test_logic.test_no_*_def": "a primitive of theirs without a rule is traced here",
    "test_misc.test_const_graph*": "their cache of graphs",
    "test_numpy.test_scalar_array_box_attributes": "a Python float has no shape here",
    "test_wrappers.test_deprecated_*": "their deprecated interface",
    "test_wrappers.test_custom_where*": "where() of theirs takes keywords and keeps Python types",
    "test_wrappers.test_wrapped_name_and_docs": "their docstrings",
    "test_scipy.test_convolve_generalization": "convolve() of theirs has more options",
    "test_scipy.test_convolve_ignore*": "convolve() of theirs has more options",
    "test_numpy.test_make_diagonal": "a function of theirs",
    "test_numpy.test_diagonal": "a function of theirs",
    "test_linalg.test_pinv": "calls a private function of NumPy",
    "test_systematic.test_row_stack_*": "np.row_stack is gone in NumPy 2.4",
}
# What fails and should not, by what it says, and why.
KNOWN: dict[str, str] = {}


def out_of_reach(name: str) -> str | None:
    return next(
        (w for pattern, w in OUT_OF_REACH.items() if fnmatch.fnmatchcase(name, pattern)), None
    )


def known(name: str, what: str) -> str | None:
    return next((why for text, why in KNOWN.items() if re.search(text, f"{name}: {what}")), None)


def download(folder: Path) -> Path:
    """The folder of the tests in autograd's source distribution."""
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps"]
    subprocess.run(
        [*command, "--no-binary", ":all:", "-d", str(folder), PINNED],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    with tarfile.open(next(folder.glob("autograd-*.tar.gz"))) as archive:
        archive.extractall(folder, filter="data")
    return next(folder.glob("autograd-*/tests"))


def run(
    tests: Path, files: list[str], pattern: str | None, jobs: int
) -> tuple[dict[str, str], str]:
    """What comes of each test, as "passed", "skipped" or why it failed; and what pytest wrote."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "tests"
        shutil.copytree(tests, place)  # without the autograd that lies beside them
        report = Path(folder) / "report.xml"
        paths = [str(HERE), *sys.path[1:]]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        command = [sys.executable, "-P", "-m", "pytest", "-q", "--tb=short", "-p", "autograd_shim"]
        command += ["-c", os.devnull, "--rootdir", str(place), "-p", "no:cacheprovider"]
        command += [f"--junitxml={report}", *(["-k", pattern] if pattern else []), *files]
        command += ["-n", str(jobs)] if jobs > 1 else []
        done = subprocess.run(command, cwd=place, env=env, capture_output=True, text=True)
        if not report.exists():
            raise RuntimeError(done.stdout + done.stderr)
        return outcomes(report), done.stdout


def outcomes(report: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        bad = case.find("failure") if case.find("failure") is not None else case.find("error")
        if bad is not None:
            found[name] = (bad.get("message") or "failed").strip()
        else:
            found[name] = "skipped" if case.find("skipped") is not None else "passed"
    return found


def show(title: str, reasons: list[str | None]) -> None:
    counts = Counter(why for why in reasons if why is not None)
    if counts:
        print(f"{title}:")
    for why, n in counts.most_common():
        print(f"    {n:4}  {why}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", help="test_fft.py and the like; all if none")
    parser.add_argument("--at", type=Path, help="where autograd's tests lie")
    parser.add_argument("-k", dest="pattern", help="as pytest has it")
    parser.add_argument(
        "--jobs", type=int, default=1, help="processes, where pytest-xdist is installed"
    )
    parser.add_argument("--show", action="store_true", help="what pytest wrote")
    asked = parser.parse_args()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        try:
            tests = asked.at or download(Path(folder))
        except subprocess.CalledProcessError:
            print(f"left out: {PINNED} cannot be downloaded")
            return 0
        found, text = run(tests, asked.files, asked.pattern, asked.jobs)
    if asked.show:
        print(text)
    reached = {name: what for name, what in found.items() if out_of_reach(name) is None}
    bad = {name: what for name, what in reached.items() if what not in ("passed", "skipped")}
    print(
        f"{len(found)} tests, {len(reached)} reached: {sum(x == 'passed' for x in reached.values())} pass, "
        f"{sum(x == 'skipped' for x in reached.values())} skip themselves, {len(bad)} fail"
    )
    show("out of reach", [out_of_reach(name) for name in found])
    show("known to fail", [known(name, what) for name, what in bad.items()])
    surprises = {name: what for name, what in bad.items() if known(name, what) is None}
    for name, what in surprises.items():
        print(f"fails: {name}\n    {what.splitlines()[0][:200]}")
    print(f"{time.perf_counter() - start:.0f} s")
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main())
