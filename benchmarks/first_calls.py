"""The first calls of a gradient: what tracing and building cost before a program answers.

    python -m benchmarks.first_calls

For each program, fresh processes measure the CPU time of `value_and_grad` at its first four calls with new data, JIT on
and off, after the gradient of another function has been taken once; the median of the processes is shown.

    1 … 4        milliseconds of each call with the JIT on
    off 1, 2     the same with the JIT off
    two / off    the first two calls together over two with the JIT off; `four / off` likewise
    yardstick    milliseconds of a fixed loop of Python and NumPy in the same processes
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

CALLS, PROCESSES = 4, 5


def minors(m):
    if len(m) == 1:
        return m[0][0]
    return sum(
        (-1) ** j * m[0][j] * minors([row[:j] + row[j + 1 :] for row in m[1:]])
        for j in range(len(m))
    )


def network(layers, x):
    for w, b in layers:
        x = np.tanh(x @ w + b)
    return (x * x).sum()


def dict_of_arrays(table):
    return sum((a * a).sum() for a in table.values())


def oscillator(k):
    from scipy.integrate import solve_ivp

    found = solve_ivp(lambda t, y: [y[1], -k * y[0]], (0.0, 5.0), [1.0, 0.0])
    return found.y[0, -1]


def logistic(r):
    x = 0.5
    for _ in range(1000):
        x = r * x * (1.0 - x)
    return x


def ten_lines(x):
    a = np.sin(x)
    b = x * x + 1.0
    c = a / b
    d = c if c > 0.1 else c * 0.5
    total = 0.0
    for k in range(3):
        total = total + d**k
    e = np.exp(-total)
    return e * a + b


Draw = Callable[[np.random.Generator], tuple[Any, ...]]
PROGRAMS: dict[str, tuple[Callable[..., Any], Draw]] = {
    "determinant-6": (minors, lambda r: (r.normal(size=(6, 6)).tolist(),)),
    "network-4": (
        network,
        lambda r: (
            [(r.normal(size=(20, 20)), r.normal(size=20)) for _ in range(4)],
            r.normal(size=(8, 20)),
        ),
    ),
    "dict-3000": (dict_of_arrays, lambda r: ({f"a{i}": r.normal(size=3) for i in range(3000)},)),
    "solve_ivp": (oscillator, lambda r: (1.0 + r.random(),)),
    "logistic": (logistic, lambda r: (3.2 + 0.1 * r.random(),)),
    "ten-lines": (ten_lines, lambda r: (r.random(),)),
}


def yardstick() -> float:
    """The CPU time of a fixed loop."""
    start = time.process_time()
    a, s = np.ones(100), 0.0
    for k in range(20_000):
        s += k * 0.5
    for _ in range(2_000):
        a = np.sin(a) * 0.5 + a
    return time.process_time() - start


def measured(name: str, on: bool) -> list[float]:
    """The CPU time of the first calls in this process, and of the yardstick."""
    from wengert import grad, jit, value_and_grad

    function, draw = PROGRAMS[name]
    rng = np.random.default_rng(1)
    data = [draw(rng) for _ in range(CALLS)]
    with jit(on):
        grad(lambda x: x * x)(2.0)
        slope = value_and_grad(function)
        times = []
        for args in data:
            start = time.process_time()
            slope(*args)
            times.append(time.process_time() - start)
    return [*times, yardstick()]


def run(name: str, on: bool) -> list[float]:
    """The same in fresh processes: the medians."""
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.first_calls", "--one", name]
    found = [
        json.loads(subprocess.run([*command, str(int(on))], capture_output=True, check=True).stdout)
        for _ in range(PROCESSES)
    ]
    return [statistics.median(column) for column in zip(*found, strict=True)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_calls", description=__doc__)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured(options.one[0], options.one[1] == "1")))
        return 0
    titles = [*map(str, range(1, CALLS + 1)), "off 1", "off 2", "two / off", "four / off"]
    print("| program | " + " | ".join(titles) + " | yardstick |")
    print("| --- |" + " --- |" * (len(titles) + 1))
    for name in PROGRAMS:
        on, off = run(name, True), run(name, False)
        cells = [x * 1e3 for x in (*on[:CALLS], *off[:2])]
        cells += [sum(on[:2]) / sum(off[:2]), sum(on[:4]) / sum(off[:4]), on[-1] * 1e3]
        print(f"| {name} | " + " | ".join(f"{x:.3g}" for x in cells) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
