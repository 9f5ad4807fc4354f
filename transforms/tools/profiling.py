"""``profile``: what each line of a function costs, forward and in reverse.

Words
-----
cost    of a line: how many operations it made, the seconds and the bytes that they took in the run, and the same of
        the steps of the reverse sweep.
kept    of memory in the run: the arrays that live until the reverse sweep.
"""

from __future__ import annotations

import ast
import html
import linecache
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from ...rules.registry import RRULE, lookup
from ...tracer.active import active
from ...tracer.arrays import owner_of
from ...tracer.entrances import entrance
from ...tracer.errors import TraceError
from ...tracer.kinds import isinstance
from ...tracer.run import describe, run
from ...tracer.structure import leaves
from ...tracer.tape import Op, Site, cell_of
from ..explain import state_of
from ..gradients import Gradient
from .callers import Callers
from .values import numbers_in
from .walk import Walk, one

ROUNDS = 3  # a short call is made so often, and the reverse sweep; the fastest counts
SHORT = 1e-3  # seconds


@dataclass
class Cost:
    """What a line costs: operations, seconds and bytes, in the run and in the reverse sweep."""

    site: Site
    operations: int = 0
    forward: float = 0.0
    kept: int = 0
    steps: int = 0
    reverse: float = 0.0
    cotangents: int = 0

    def add(self, other: Cost) -> None:
        """Add what another line costs."""
        self.operations += other.operations
        self.forward += other.forward
        self.kept += other.kept
        self.steps += other.steps
        self.reverse += other.reverse
        self.cotangents += other.cotangents


class Profile:
    """What `profile` has measured. Printed it is a text, in a notebook a table.

    ``lines`` has the cost of each line that computes something, by file and line; ``total`` is their sum. Of that,
    ``libraries`` has what the functions of libraries cost that these lines call.
    """

    def __init__(self, title: str, lines: list[Cost], libraries: list[Cost], site: Site) -> None:
        self.title = title
        self.lines = sorted(lines, key=lambda x: (x.site.filename, x.site.lineno))
        self.libraries = sorted(libraries, key=lambda x: -x.forward - x.reverse)
        self.total = Cost(site)
        for line in self.lines:
            self.total.add(line)

    def __str__(self) -> str:
        rows = [f"{self.title}", HEADS]
        for place, text, cost in self.rows():
            rows.append(
                f"{columns(cost) if cost else ' ' * len(HEADS)} {place:>6}  {text}".rstrip()
            )
        rows.append(f"{columns(self.total)}         in all")
        return "\n".join(rows)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The table for a notebook: the darker a line, the more of the time is its."""
        whole = (self.total.forward + self.total.reverse) or 1.0
        heads = "".join(f"<th>{x}</th>" for x in NAMES)
        rows = []
        for place, text, cost in self.rows():
            share = 0.0 if cost is None else (cost.forward + cost.reverse) / whole
            cells = fields(cost) if cost else [""] * len(NAMES)
            numbers = "".join(f"<td>{x}</td>" for x in cells)
            style = f' style="background: rgba(255, 140, 0, {0.6 * share:.2f})"' if share else ""
            rows.append(
                f'<tr{style}>{numbers}<td>{html.escape(place)}</td><td style="text-align: left">'
                f'<pre style="margin: 0; background: none">{html.escape(text)}</pre></td></tr>'
            )
        total = "".join(f"<th>{x}</th>" for x in fields(self.total))
        return (
            f"<table><caption>{html.escape(self.title)}</caption><thead><tr>{heads}<th>line</th><th></th></tr></thead>"
            f"<tbody>{''.join(rows)}</tbody><tfoot><tr>{total}<th></th><th>in all</th></tr></tfoot></table>"
        )

    def rows(self) -> Iterator[tuple[str, str, Cost | None]]:
        """The user's functions line by line, each with its cost; then that of library code, by function."""
        files: dict[str, dict[int, Cost]] = {}
        for cost in self.lines:
            files.setdefault(cost.site.filename, {})[cost.site.lineno] = cost
        for filename, costs in files.items():
            yield "", cell_of(filename) or os.path.basename(filename), None
            for first, last in ranges(filename, costs):
                for number in range(first, last + 1):
                    text = linecache.getline(filename, number).rstrip()
                    yield str(number), text, costs.get(number)
        if self.libraries:
            yield "", "of that, in libraries", None
        for cost in self.libraries:
            yield "", f"  {cost.site.function}, in {os.path.basename(cost.site.filename)}", cost


def ranges(filename: str, costs: dict[int, Cost]) -> list[tuple[int, int]]:
    """From where to where the functions go that the lines are in; one within another is a part of that."""
    found: list[tuple[int, int]] = []
    try:
        tree = ast.parse("".join(linecache.getlines(filename)))
    except SyntaxError:
        return [(number, number) for number in sorted(costs)]
    functions = [
        (node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
    ]
    for number in sorted(costs):
        around = [x for x in functions if x[0] <= number <= x[1]]
        whole = max(around, key=lambda x: x[0]) if around else (number, number)
        if not any(first <= number <= last for first, last in found):
            found.append(whole)
    return sorted(
        x for x in found if not any(y != x and y[0] <= x[0] and x[1] <= y[1] for y in found)
    )


NAMES = ("ops", "forward", "kept", "steps", "reverse", "cotangents")
WIDTHS = (6, 10, 9, 6, 10, 10)
HEADS = " ".join(f"{name:>{width}}" for name, width in zip(NAMES, WIDTHS, strict=True))


def fields(cost: Cost) -> list[str]:
    """A cost in words, column by column."""
    return [
        str(cost.operations) if cost.operations else "",
        time_text(cost.forward) if cost.operations else "",
        bytes_text(cost.kept),
        str(cost.steps) if cost.steps else "",
        time_text(cost.reverse) if cost.steps else "",
        bytes_text(cost.cotangents),
    ]


def columns(cost: Cost) -> str:
    return " ".join(f"{x:>{width}}" for x, width in zip(fields(cost), WIDTHS, strict=True))


def time_text(seconds: float) -> str:
    """A time in the unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def bytes_text(count: int) -> str:
    """A number of bytes in the unit that suits it; nothing for none."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} B" if count else ""


@entrance
def profile(f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Profile:
    """What each line of ``f`` costs at these arguments: time and memory, in the run and in the reverse sweep.

    ``f`` is a function, or what `grad` or `value_and_grad` made of one. It is called once, and traced, with the JIT
    off; then the reverse sweep is walked through, three times. What is measured, by the line of the user's program (of
    ``f`` and of every Python function that it calls) that an operation comes from; what the standard library or an
    installed package computes belongs to the line that called it:

    ops         operations of the run that compute with traced values; a write into an array is none.
    forward     seconds that these calls took, without what the tracer takes for itself, and without what plain Python
                does between them. Calls shorter than 1 ms that do nothing but compute are made three times.
    kept        bytes of the arrays that were made there and live until the reverse sweep.
    steps       operations that hand a cotangent on to their operands.
    reverse     seconds that this took, with what the sweep itself does for a step (some microseconds); of the three
                sweeps the fastest counts for each step. Pullbacks of rules that are not pure run in each.
    cotangents  bytes of the arrays of cotangents that were made for that.

    A kept program (the JIT) does the same operations with less between them, so that the shares are its shares, and
    small numbers go faster. The sweep begins with the cotangent 1, or ones, of each result.

    The result prints as the source with these numbers beside it and shows itself as a table in notebooks;
    ``profile(f, x).lines`` are the numbers. Raises `TraceError` for what cannot be traced, `NoRuleError` where a
    callable without a rule is in the way, and whatever ``f`` itself raises.

    >>> import numpy as np
    >>> from wengert import profile
    >>> (line,) = profile(lambda x: np.sum(x * x), np.ones(1000)).lines
    >>> line.operations, line.kept, line.steps
    (2, 8000, 2)
    """
    if active.tracer is not None:
        raise TraceError(
            "profile cannot be used inside a function that is being traced\n"
            "call it outside, of the function itself"
        )
    state = state_of(f)
    f = state.f if isinstance(state, Gradient) else f
    name, site = describe(f)
    costs: dict[tuple[str, int], Cost] = {}
    libraries: dict[tuple[str, str], Cost] = {}
    callers = Callers()

    def costs_at(site: Site, caller: Site) -> Iterator[Cost]:
        """Of a line of the user's; and of the library function that it has called."""
        yield costs.setdefault((caller.filename, caller.lineno), Cost(caller))
        if caller is not site:
            yield libraries.setdefault((site.filename, site.function), Cost(site))

    def perform(fn: Any, given: Any, named: Any, site: Site, go: Any) -> Any:
        caller = callers.note(site)
        value, took = timed(fn, given, named, go)
        for cost in costs_at(site, caller):
            cost.operations += 1
            cost.forward += took
        return value

    done = run(f, args, kwargs, perform=perform)
    ops = done.tape.ops
    callers.close(done.tape)
    for op, count in kept_by(ops):
        for cost in costs_at(op.site, callers.of(op)):
            cost.kept += count
    seeds = [(x.op, one(x)) for x in leaves(done.result) if x.op is not None]
    wrt = [op for op in ops if op.kind == "input"]
    for op, seconds, count in swept(ops, wrt, seeds):
        for cost in costs_at(op.site, callers.of(op)):
            cost.steps += 1
            cost.reverse += seconds
            cost.cotangents += count
    title = f"{name}  # {site}" if site.filename else name
    return Profile(title, list(costs.values()), list(libraries.values()), site)


def timed(fn: Any, args: Any, kwargs: Any, go: Any) -> tuple[Any, float]:
    """The value of a call, and the seconds that it took."""
    start = perf_counter()
    value = go(*args, **kwargs)
    took = perf_counter() - start
    rule = lookup(fn)
    if (
        took < SHORT
        and rule is not None
        and rule.kind == RRULE
        and rule.pure
        and not kwargs.get("out")
    ):
        for _ in range(ROUNDS - 1):
            start = perf_counter()
            go(*args, **kwargs)
            took = min(took, perf_counter() - start)
    return value, took


def kept_by(ops: list[Op]) -> Iterator[tuple[Op, int]]:
    """The ops that made arrays which live until the sweep, and the bytes; memory that several share counts once."""
    inputs = [op.value for op in ops if op.kind == "input" and isinstance(op.value, np.ndarray)]
    seen = {id(owner_of(x)) for x in inputs}
    for op in ops:
        if op.kind != "call" or not isinstance(op.value, np.ndarray):
            continue
        owner = owner_of(op.value)
        if id(owner) not in seen and isinstance(owner, np.ndarray):
            seen.add(id(owner))
            yield op, owner.nbytes


def swept(
    ops: list[Op], wrt: list[Op], seeds: list[tuple[Op, Any]]
) -> Iterator[tuple[Op, float, int]]:
    """The steps of the reverse sweep, each with its seconds and the bytes of the cotangents that it made."""
    fastest: dict[Op, float] = {}
    made: dict[Op, int] = {}
    for _ in range(ROUNDS):
        walk = Walk(ops, wrt, seeds)
        known: set[int] = set()
        for step in walk:
            fastest[step.op] = min(step.seconds, fastest.get(step.op, step.seconds))
            count = 0
            for x in set(step.op.operands()):
                for d in numbers_in(walk.cotangents.get(x)):
                    own = isinstance(d, np.ndarray) and d.base is None and id(d) not in known
                    if own and d is not step.handed:
                        known.add(id(d))
                        count += d.nbytes
            known.discard(id(step.handed))  # which may be another array's soon
            made[step.op] = count
    for op in fastest:
        yield op, fastest[op], made[op]
