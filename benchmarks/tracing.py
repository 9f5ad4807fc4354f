"""What tracing costs: the logistic map x = r*x*(1-x), a thousand steps, traced anew at every call.

    python benchmarks/tracing.py [STEPS] [ROUNDS]

Every round runs each contender once, so all see the same machine; the medians are printed. HIPS
autograd (`pip install autograd`) runs beside Wengert where it is installed. At the end: what
`import wengert` costs on top of `import numpy`, and how many lines the engine has.
"""

import gc
import os
import statistics
import subprocess
import sys
import time
import tokenize
from pathlib import Path

from wengert import pullback, trace, value_and_grad

try:
    import autograd
except ImportError:
    autograd = None

ROOT = Path(__file__).parent.parent


def logistic(x, r, steps):
    for _ in range(steps):
        x = r * x * (1 - x)
    return x


def contenders(x, r, steps):
    """What is timed, by name. Each is called with nothing and does the whole work anew."""
    kept = []

    def forward():
        kept[:] = [pullback(logistic, x, r, steps)[1]]

    both = value_and_grad(logistic, argnums=(0, 1))
    found = {
        "plain Python, value only": lambda: logistic(x, r, steps),
        "trace": lambda: trace(logistic, x, r, steps),
        "pullback (value and tape)": forward,
        "back (reverse sweep)": lambda: kept[0](1.0),
        "value_and_grad": lambda: both(x, r, steps),
    }
    if autograd is not None:
        peer = autograd.value_and_grad(logistic, (0, 1))
        assert agree(both(x, r, steps), peer(x, r, steps))
        found["autograd's value_and_grad"] = lambda: peer(x, r, steps)
    return found


def agree(ours, theirs):
    """The same value to the bit and the same gradients to rounding."""
    (value, gradients), (expected, wanted) = ours, theirs
    close = [abs(a - b) <= 1e-9 * abs(b) for a, b in zip(gradients, wanted, strict=True)]
    return value == expected and all(close)


def medians(functions, rounds):
    """Seconds of each function, called in turn."""
    seconds = {name: [] for name in functions}
    for function in functions.values():
        function()
    gc.collect()
    for _ in range(rounds):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in seconds.items()}


def speed(steps, rounds):
    x, r = 0.4, 3.7
    operations = sum(op.kind == "call" for op in trace(logistic, x, r, steps))
    seconds = medians(contenders(x, r, steps), rounds)
    print(f"{steps} steps, {operations} recorded operations, medians of {rounds} rounds:\n")
    for name, time_taken in seconds.items():
        each = 1e6 * time_taken / operations
        print(f"  {name:<28}{1e3 * time_taken:>9.2f} ms{each:>9.2f} µs an operation")
    if autograd is None:
        print("\n  autograd is not installed; it would run beside these")
    else:
        ratio = seconds["autograd's value_and_grad"] / seconds["value_and_grad"]
        print(f"\n  value_and_grad is {ratio:.1f} times as fast as autograd's")


def import_cost(rounds=11):
    program = (
        "import time, numpy; start = time.perf_counter(); import wengert;"
        "print(time.perf_counter() - start)"
    )
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}  # compiled once, as installed
    times = []
    for _ in range(rounds + 1):
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, env=environment, capture_output=True, check=True)
        times.append(float(done.stdout))
    del times[0]
    print(f"\nimport wengert, after import numpy: {1e3 * statistics.median(times):.0f} ms")


def lines_of_code(path):
    """Lines that hold more than a comment or a string of their own (a docstring)."""
    code, statement = set(), []
    with tokenize.open(path) as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type in (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT):
                continue
            if token.type in (tokenize.NEWLINE, tokenize.ENDMARKER):
                if [t.type for t in statement] != [tokenize.STRING]:
                    for t in statement:
                        code.update(range(t.start[0], t.end[0] + 1))
                statement = []
            else:
                statement.append(token)
    return len(code)


def sizes():
    print("\nlines:            in all      code")
    total = [0, 0]
    for folder in ("tracer", "transforms", "rules"):
        files = list((ROOT / folder).rglob("*.py"))
        counts = [
            sum(len(path.read_text().splitlines()) for path in files),
            sum(lines_of_code(path) for path in files),
        ]
        total = [a + b for a, b in zip(total, counts, strict=True)]
        print(f"  {folder:<14}{counts[0]:>8}{counts[1]:>10}")
    print(f"  {'together':<14}{total[0]:>8}{total[1]:>10}")


if __name__ == "__main__":
    steps, rounds = (*map(int, sys.argv[1:]), *(1000, 31)[len(sys.argv) - 1 :])
    print(f"CPython {sys.version.split()[0]}")
    speed(steps, rounds)
    import_cost()
    sizes()
