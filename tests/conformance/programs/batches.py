"""Many programs in processes of their own, so that a crash or a hang is a finding and not the end.

A worker takes programs one after the other and says so, a line of JSON each; when it dies or says nothing for too long,
the program that it was at differs, and another worker goes on behind it.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import json
import os
import queue
import re
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

from .oracle import Verdict, judge, same_difference
from .plan import Program, generate, parsed
from .shrink import shrink

ROOT = Path(__file__).parents[3]
BATCH = 250  # programs of one worker
MEMORY = 8 << 30  # of one worker
ATTEMPTS = 4  # at a program of a seed that is worth its time


def attempt(seed: int, everything: bool = False) -> tuple[Program, Verdict]:
    """The program of a seed, and what came of it: the first attempt that does something, or that differs."""
    for number in range(ATTEMPTS):
        program = generate(seed, number, everything)
        verdict = judge(program)
        if verdict.useful or verdict.difference is not None:
            break
    return program, verdict


def smaller(program: Program, verdict: Verdict, seconds: float) -> Program:
    """The smallest program that differs in the same way."""
    wanted = verdict.difference
    assert wanted is not None
    if not seconds:
        return program
    return shrink(program, lambda candidate: same_difference(candidate, wanted), seconds)


# --------------------------------------------------------------------------------------- in a worker


def prepare() -> None:
    import wengert
    from wengert.transforms.budget import Budget

    wengert.settings.strict = True  # an error of the engine's own is an error
    Budget.limited = False  # as many programs as can be, whatever the clock says


def work(options: argparse.Namespace) -> int:
    """Do a batch, and say what came of each program."""
    import resource

    prepare()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what programs print when nobody listens
    for seed in range(options.seed, options.seed + options.count):
        gc.collect()
        gc.freeze()  # what is still there now, so that the collections of a program have little to look at
        say(out, seed=seed, begins=True)
        start = time.monotonic()
        try:
            program, verdict = attempt(seed, options.all)
        except Exception:
            say(out, seed=seed, broken=traceback.format_exc())
            continue
        said: dict[str, Any] = {"counts": verdict.counts, "refusals": verdict.refusals}
        said["seconds"] = time.monotonic() - start
        if verdict.difference is not None:
            said["kind"] = verdict.difference.kind
            said["difference"] = str(verdict.difference)
            said["program"] = str(program)
            say(out, seed=seed, shrinking=True, **said)  # what it is made of may hang
            program = smaller(program, verdict, options.shrink)
            said["program"] = str(program)
            found = judge(program).difference
            said["difference"] = str(found or verdict.difference)
        say(out, seed=seed, **said)
    return 0


def say(out: Any, **words: Any) -> None:
    out.write(json.dumps(words, default=str) + "\n")
    out.flush()


# --------------------------------------------------------------------------------------- outside of it


@dataclasses.dataclass
class Report:
    """What came of all programs so far."""

    programs: int = 0
    differences: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    broken: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    counts: Counter[str] = dataclasses.field(default_factory=Counter)
    refusals: Counter[str] = dataclasses.field(default_factory=Counter)

    def add(self, said: dict[str, Any]) -> None:
        self.programs += 1
        self.counts.update(said.get("counts", {}))
        self.refusals.update(map(class_of, said.get("refusals", ())))
        if "broken" in said:
            self.broken.append(said)
            print(f"--- seed {said['seed']}: the oracle itself fails\n{said['broken']}", flush=True)
        if "difference" in said:
            self.differences.append(said)
            print(
                f"--- seed {said['seed']}: {said['difference']}\n\n{said.get('program', '')}",
                flush=True,
            )

    def __str__(self) -> str:
        counts, lines = self.counts, []
        lines.append(
            f"{self.programs} programs, {counts['calls']} calls, {len(self.differences)} differences; "
            f"{counts['raised']} calls raise, {counts['refused']} are refused, {counts['hits']} answered by programs; "
            f"{counts['slopes'] - counts['no slope']} of {counts['slopes']} gradients compared with differences, "
            f"{counts['isolated']} at points by themselves"
        )
        for kind, count in Counter(str(d.get("kind")) for d in self.differences).most_common():
            lines.append(f"  {count:6} {kind}")
        lines.append("refused:")
        lines += [f"  {count:6} {text}" for text, count in self.refusals.most_common(40)]
        return "\n".join(lines)


def class_of(refusal: str) -> str:
    """A refusal without what differs from program to program."""
    text = re.sub(r"\(called from [^)]*\)", "", refusal)
    text = re.sub(r"<program>:\d+, in \w+ ?:?", "", text)
    text = re.sub(r"\(<program>:\d+\)|<program>:\d+", "", text)
    text = re.sub(r"\b[a-z]+\d+\b|0x[0-9a-f]+|-?\d+(\.\d+)?(e-?\d+)?", "#", text)
    return " ".join(text.split())[:150]


def run(options: argparse.Namespace) -> int:
    """All programs, in as many workers as there are jobs."""
    start = time.monotonic()
    todo: queue.Queue[tuple[int, int]] = queue.Queue()
    for first in range(options.seed, options.seed + options.count, BATCH):
        todo.put((first, min(BATCH, options.seed + options.count - first)))
    report, lock = Report(), threading.Lock()
    threads = [
        threading.Thread(target=consume, args=(options, todo, report, lock))
        for _ in range(options.jobs)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(report)
    print(
        f"{time.monotonic() - start:.0f} s, {report.programs / (time.monotonic() - start):.1f} programs a second"
    )
    return 1 if report.differences or report.broken else 0


def consume(options: argparse.Namespace, todo: Any, report: Report, lock: threading.Lock) -> None:
    while True:
        try:
            first, count = todo.get_nowait()
        except queue.Empty:
            return
        while count > 0:
            done = batch(options, first, count, report, lock)
            first, count = first + done, count - done


def batch(
    options: argparse.Namespace, first: int, count: int, report: Report, lock: threading.Lock
) -> int:
    """Run a worker; returns how many programs it did, one that it died of included."""
    command = [sys.executable, "-m", "tests.conformance.programs", "--worker"]
    command += ["--seed", str(first), "--count", str(count), "--shrink", str(options.shrink)]
    command += ["--all"] if options.all else []
    worker = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    lines: queue.Queue[str | None] = queue.Queue()
    threading.Thread(target=read, args=(worker.stdout, lines), daemon=True).start()
    complaints: list[str] = []
    threading.Thread(target=lambda: complaints.extend(worker.stderr or ()), daemon=True).start()
    done, current, patience = 0, first, options.timeout
    found: dict[str, Any] = {}
    while True:
        try:
            line = lines.get(timeout=patience)
        except queue.Empty:
            worker.kill()
            hang = {"seed": current, "kind": "hang", "difference": f"no end after {patience} s"}
            with lock:
                report.add(found or hang)
            return done + 1
        if line is None:
            break
        said = json.loads(line)
        current, found = said["seed"], said if "shrinking" in said else {}
        patience = options.timeout + (20 * options.shrink if "shrinking" in said else 0)
        if "begins" in said or "shrinking" in said:
            continue
        done += 1
        with lock:
            report.add(said)
    status = worker.wait()
    if status != 0 or done < count:
        text = f"the process ends with status {status}\n" + "".join(complaints)[-3000:]
        with lock:
            report.add(found or {"seed": current, "kind": "crash", "difference": text})
        return done + 1
    return done


def read(stream: Any, lines: queue.Queue[str | None]) -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)


def show(options: argparse.Namespace) -> int:
    """One program, what is found, and what is left of it."""
    prepare()
    if options.file is not None:
        program = parsed(Path(options.file).read_text())
        verdict = judge(program)
    else:
        program, verdict = attempt(options.show, options.all)
        print(program)
    print(verdict.difference, dict(verdict.counts), *verdict.refusals, sep="\n")
    if verdict.difference is None:
        return 0
    program = smaller(program, verdict, options.shrink)
    print(f"\n--- smaller: {judge(program).difference}\n\n{program}")
    return 1
