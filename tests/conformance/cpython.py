"""CPython's own tests under the tracer: what passes in plain Python must pass when it is traced.

    python -m tests.conformance.cpython                 every file of the table, in this interpreter
    python -m tests.conformance.cpython test_list ...   only these
    python -m tests.conformance.cpython --how jit --calls 3

Every test method of a file is run plainly, in a process of its own, and those that pass are run again as part of a
function that is differentiated, in another one. A method that then fails differs; one that ends in a `WengertError`
is refused. `cpython_known` says which files there are, and what is known to differ or be refused, and why.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

from . import cpython_known as known

HERE = Path(__file__).parent
WAITING = 6  # what a method may take beside its seconds of work: asleep, or on a busy machine


@dataclass
class Method:
    """What came of a test method: its outcome is passed, failed, skipped, crashed or timeout."""

    name: str
    outcome: str
    seconds: float = 0.0
    kind: str = ""
    message: str = ""
    traceback: str = ""
    refused: bool = False

    @property
    def file(self) -> str:
        return self.name.partition(".")[0]

    @property
    def verdict(self) -> str:
        if self.outcome == "passed":
            return "passed"
        return "refused" if self.refused else "differs"

    @property
    def short(self) -> str:
        lines = self.message.strip().splitlines()
        return f"{self.kind}: {lines[0] if lines else ''}"[:300]


@dataclass
class File:
    """What came of a file: the methods that passed plainly, and what these came to when they were traced."""

    name: str
    plain: list[Method] = field(default_factory=list)
    traced: list[Method] = field(default_factory=list)
    out_of_reach: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


def surprises(found: File) -> list[str]:
    """Where a quick file and the tables of what is known disagree, a line for each."""
    bad = [m for m in found.traced if m.verdict != "passed"]
    lines = [
        f"{m.verdict}, and is not in the table: {m.name}\n    {m.short}"
        for m in bad
        if known.cause(m) is None
    ]
    for pattern, why in known.entries():
        if not fnmatch.fnmatchcase(found.name, pattern.partition(".")[0]):
            continue
        if not any(fnmatch.fnmatchcase(m.name, pattern) for m in bad):
            lines.append(f"no longer differs or is refused ({why}): {pattern}")
    passed = [m.name for m in found.traced if m.verdict == "passed"]
    for pattern, _ in known.entries():
        lines += [f"passes, and is in the table: {x}" for x in fnmatch.filter(passed, pattern)]
    return lines


def available() -> bool:
    """Whether the tests of the running interpreter are installed."""
    import importlib.util

    return all(importlib.util.find_spec(f"test.{x}") is not None for x in ("support", "test_list"))


# ---------------------------------------------------------------------------------------- one file


def run_file(name: str, how: str, calls: int, limit: float, pattern: str | None = None) -> File:
    """Run the methods of a file plainly, and those that pass once more, traced."""
    start = time.perf_counter()
    found = File(name)
    found.plain, found.out_of_reach, marks = run_methods(name, "plain", calls, limit, None)
    chosen = []
    for method in found.plain:
        why = known.out_of_reach(method.name, marks.get(method.name))
        if pattern is not None and pattern not in method.name:
            continue
        if method.outcome == "skipped":
            found.out_of_reach["skipped by the test itself"] += 1
        elif method.outcome != "passed":
            found.out_of_reach["does not pass plainly"] += 1
        elif why is not None:
            found.out_of_reach[why] += 1
        else:
            chosen.append(method.name)
    if chosen:
        found.traced, others, _ = run_methods(name, how, calls, limit, chosen)
        for method in [m for m in found.traced if m.outcome == "skipped"]:
            found.traced.remove(method)
            found.out_of_reach[method.message] += 1
            chosen.remove(method.name)
        missing = {*chosen} - {m.name for m in found.traced}
        why = "; ".join(others) or "the process did not reach it"
        found.traced += [Method(x, "crashed", kind="lost", message=why) for x in sorted(missing)]
    found.seconds = time.perf_counter() - start
    return found


def run_methods(
    name: str, how: str, calls: int, limit: float, only: list[str] | None
) -> tuple[list[Method], Counter[str], dict[str, str]]:
    """Run methods of a file in a process, and in a new one after each that ends or hangs it.

    Returns what came of them, how many tests are no methods, and what marks the source of methods bears.
    """
    done: dict[str, Method] = {}
    others: Counter[str] = Counter()
    marked: dict[str, str] = {}
    while True:
        task = {
            "file": name,
            "how": how,
            "calls": calls,
            "limit": limit,
            "marks": list(known.MARKS),
            "done": list(done),
            "only": only,
        }
        before = len(done)
        current = None
        with worker(task, limit) as lines:
            for line in lines:
                if "others" in line:
                    others, marked = Counter(line["others"]), line["marked"]
                elif "begin" in line:
                    current = line["begin"]
                elif "end" in line:
                    current = None
                    line["name"] = line.pop("end")
                    done[line["name"]] = Method(**line)
                elif "lost" in line and current is not None:
                    done[current] = Method(
                        current, line["lost"], kind=line["lost"], message=line["why"]
                    )
                elif "lost" in line:
                    others[f"the process {line['lost']} outside of a method"] += 1
                    break  # what is left is run in another one
                elif "finished" in line:
                    return list(done.values()), others, marked
        if len(done) == before:
            return list(done.values()), others, marked


@contextlib.contextmanager
def worker(task: dict, limit: float):
    """The lines that a process writes; the last tells that it has finished, or how it was lost."""
    process = subprocess.Popen(
        [sys.executable, "-P", str(HERE / "cpython_worker.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "PYTHONHASHSEED": "0"},
    )
    try:
        process.stdin.write(json.dumps(task).encode())
        process.stdin.close()
        yield lines_of(process, limit)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        process.stderr.close()


def lines_of(process: subprocess.Popen, limit: float):
    chosen = selectors.DefaultSelector()
    for stream in (process.stdout, process.stderr):
        os.set_blocking(stream.fileno(), False)
        chosen.register(stream, selectors.EVENT_READ)
    rest, said = b"", b""
    patience = WAITING * limit
    deadline = time.monotonic() + patience
    while True:
        ready = chosen.select(max(0.0, deadline - time.monotonic()))
        if not ready:
            yield {"lost": "timeout", "why": f"no answer within {patience:g} s"}
            return
        for key, _ in ready:
            data = key.fileobj.read(1 << 16)
            if key.fileobj is process.stderr:
                said = (said + (data or b""))[-4000:]
                if data == b"":
                    chosen.unregister(process.stderr)
                continue
            if data == b"":
                status, why = process.wait(), said.decode(errors="replace")
                if status == -signal.SIGPROF:
                    yield {"lost": "timeout", "why": f"more than {limit:g} s of work"}
                else:
                    yield {"lost": "crashed", "why": f"exit status {status}\n{why}"}
                return
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                deadline = time.monotonic() + patience
                answer = json.loads(line)
                yield answer
                if "finished" in answer:
                    return


# -------------------------------------------------------------------------------------- the command


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", help="test_list and the like; all of the table if none")
    parser.add_argument("--how", choices=("traced", "jit"), default="traced")
    parser.add_argument("--calls", type=int, default=1, help="how often each method is called")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of work for a method")
    parser.add_argument("--only", help="only methods whose name contains this")
    parser.add_argument("--show", action="store_true", help="tracebacks of what is not known")
    parser.add_argument("--json", help="write every method that does not pass to this file")
    asked = parser.parse_args()
    if not available():
        print(f"left out: the tests of CPython {sys.version.split()[0]} are not installed")
        return 0
    start = time.perf_counter()
    files = asked.files or known.present(known.FILES)

    def one(name: str) -> File:
        return run_file(name, asked.how, asked.calls, asked.limit, asked.only)

    results = []
    with ThreadPoolExecutor(asked.jobs) as pool:
        for done in as_completed([pool.submit(one, name) for name in files]):
            found = done.result()
            results.append(found)
            print(line_of(found), flush=True)
            if asked.json:
                write_json(asked.json, results)
    print(summary(results))
    print(f"{time.perf_counter() - start:.0f} s, CPython {sys.version.split()[0]}")
    bad = [m for found in results for m in found.traced if m.verdict != "passed"]
    surprises = [m for m in bad if known.cause(m) is None]
    for m in surprises:
        print(f"\nunknown: {m.verdict}: {m.name}\n    {m.short}")
        if asked.show:
            print(m.traceback)
    return 1 if surprises else 0


def write_json(path: str, results: list[File]) -> None:
    """Every method that does not pass, with its traceback."""
    bad = [m for found in results for m in found.traced if m.verdict != "passed"]
    Path(path).write_text(json.dumps([{**vars(m), "verdict": m.verdict} for m in bad], indent=1))


def line_of(found: File) -> str:
    counts = Counter(m.verdict for m in found.traced)
    return (
        f"{found.name:28} {len(found.traced):5} reached {counts['passed']:5} pass {counts['differs']:4} differ "
        f"{counts['refused']:4} refused {sum(found.out_of_reach.values()):4} out of reach {found.seconds:7.1f} s"
    )


def summary(results: list[File]) -> str:
    """How many methods were reached, what came of them, and why not of the others."""
    traced = [m for found in results for m in found.traced]
    verdicts = Counter(m.verdict for m in traced)
    share = 100 * verdicts["passed"] / max(1, len(traced))
    lines = [
        "",
        f"{len(results)} files, {len(traced)} methods reached that pass plainly: {verdicts['passed']} pass "
        f"({share:.1f} %), {verdicts['differs']} differ, {verdicts['refused']} refused",
    ]
    for verdict in ("differs", "refused"):
        causes = Counter(
            known.cause(m) or f"not in the table: {m.kind}" for m in traced if m.verdict == verdict
        )
        lines += [f"{verdict}:"] + [f"    {n:5}  {why}" for why, n in causes.most_common()]
    beyond: Counter[str] = sum((found.out_of_reach for found in results), Counter())
    lines += ["out of reach:"] + [f"    {n:5}  {why}" for why, n in beyond.most_common()]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
