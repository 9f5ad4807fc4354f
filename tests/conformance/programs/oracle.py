"""The oracle: a program must go the same in plain Python and in every mode of the engine.

Words
-----
mode         a state of the engine in which the whole plan is played: `kept` with the JIT, `traced` without it.
difference   what must not be: where the engine did something else than plain Python, or gave another gradient than in
             another mode, or than differences of the plain function say.
slope        the derivative of a call along a random direction of all its arguments, by differences.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import sys
import types
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import wengert
from wengert.tracer.active import active
from wengert.transforms import cache

from .moves import Directions, Mover, Unlike, cotangent, is_number, members, pairing, product
from .pictures import ANOTHER, MODULE, Album, Comparison
from .plan import Program
from .play import Meter, Play, Record, TooLong, surroundings
from .ways import NOTHING, WAYS, Answer, fitting, generator, made

LINES = 1500  # a call that runs more is not worth its time
ROUNDING = (
    1e-9  # gradients of two modes may differ by so much: a reverse sweep may choose its order
)
CANCELLED = 1e-14  # and so much where all cancels out, as in `(q*d + p*d) - q*d - p*d`, with cotangents of about one
COARSE = 1e-3  # where single precision is at work
NEAR = 1e-5  # and from differences by so much


@dataclasses.dataclass(frozen=True)
class Mode:
    name: str
    context: Callable[[], contextlib.AbstractContextManager[Any]]


MODES = [
    Mode("kept", lambda: wengert.jit(True)),
    Mode("traced", lambda: wengert.jit(False)),
]


@dataclasses.dataclass
class Difference:
    """Where a program went another way."""

    mode: str
    part: str  # value, error, printed, warned, world, identity, gradient, slope, refusal, leak, engine
    step: int
    text: str
    raised: tuple[str | None, str | None] = (
        None,
        None,
    )  # by the engine and by plain Python at this step

    @property
    def place(self) -> tuple[str, int]:
        return self.part, self.step

    @property
    def kind(self) -> tuple[Any, ...]:
        return self.mode, self.part, self.raised

    def __str__(self) -> str:
        return f"{self.mode}: {self.part} at step {self.step}: {self.text}"


@dataclasses.dataclass
class Verdict:
    """What came of a program."""

    difference: Difference | None = None
    refusals: list[str] = dataclasses.field(default_factory=list)
    counts: Counter[str] = dataclasses.field(default_factory=Counter)
    useful: bool = True  # worth the time


def judge(program: Program, modes: Sequence[Mode] = tuple(MODES), slopes: bool = True) -> Verdict:
    """Play a program in plain Python and in every mode, and compare."""
    verdict = Verdict()
    try:
        plain, ways = play_plainly(program)
    except (TooLong, MemoryError):  # of the program itself
        verdict.useful = False
        return verdict
    calls = [r for r in plain if r.step.kind == "call"]
    answered = sum(r.error is None for r in calls)
    verdict.counts.update(calls=len(calls), raised=len(calls) - answered)
    verdict.useful = 3 * answered >= 2 * len(calls)
    played: dict[str, list[Record]] = {}
    for mode in modes:
        records, hits, found = play_mode(program, mode, ways)
        played[mode.name] = records
        verdict.counts.update(refused=sum(r.refused is not None for r in records), hits=hits)
        verdict.refusals += [r.refused for r in records if r.refused is not None]
        found = compare(mode.name, records, plain) or found
        if found is not None and verdict.difference is None:
            verdict.difference = found
        elif found is not None and found.place == verdict.difference.place:
            verdict.difference.mode += f" and {mode.name}"
    if verdict.difference is None:
        verdict.difference = compare_modes(played)
    if verdict.difference is None and slopes:
        verdict.difference = compare_slopes(
            program, modes[-1].name, played[modes[-1].name], verdict.counts
        )
    return verdict


def same_difference(program: Program, wanted: Difference) -> bool:
    """Whether a program differs in the way that is wanted; as quickly as it can be told."""
    modes = [mode for mode in MODES if mode.name in wanted.mode]
    if " and " in wanted.mode:
        modes = modes[-1:]
    found = judge(program, modes, slopes=wanted.part in ("slope", "structure")).difference
    return found is not None and (found.part, found.raised) == (wanted.part, wanted.raised)


def play_plainly(program: Program) -> tuple[list[Record], list[str]]:
    """The records of plain Python, and the way in which the engine is to be asked at each step."""
    ways = [step.way for step in program.plan]

    def ask(f: Any, args: Any, kwargs: Any, number: int, record: Record) -> Any:
        asked, ways[number] = (
            ways[number],
            "pullback",
        )  # which can be asked of anything, exceptions included
        value = Meter(LINES).run(f, args, kwargs)
        ways[number] = fitting(asked, value, args)
        return value

    with surroundings(clean=True), wengert.jit(False):
        return Play(program).perform(ask), ways


def play_mode(
    program: Program, mode: Mode, ways: list[str]
) -> tuple[list[Record], int, Difference | None]:
    """The records of a mode, how many calls programs answered, and what the engine left behind."""

    def ask(f: Any, args: Any, kwargs: Any, number: int, record: Record) -> Any:
        record.coarse = any(map(is_coarse, (*args, *kwargs.values())))
        record.answer = WAYS[ways[number]](f, args, kwargs, number)
        return record.answer.value

    wengert.clear_cache()
    with surroundings(clean=True), mode.context():
        play = Play(program)
        records = play.perform(ask)
        found = ask_again(mode.name, records)
    made.cache_clear()
    hits = sum(int(entry.hits) for entry in cache.entries.values())
    wengert.clear_cache()
    return records, hits, found or left_behind(mode.name, len(records))


def ask_again(mode: str, records: list[Record]) -> Difference | None:
    """A pullback answers for the moment of its call, however late it is asked."""
    for number, record in enumerate(records):
        answer = record.answer
        if answer is None or answer.later is None or record.refused:
            continue
        try:
            with np.errstate(all="ignore"):
                gradients = answer.later()
        except wengert.WengertError as error:
            if answer.gradients is None:
                record.refused = f"{type(error).__name__}: {error}"
                continue
            return Difference(mode, "refusal", number, f"only when asked again: {error}")
        if answer.gradients is None:
            answer.gradients = gradients
        elif found := where_unlike(gradients, answer.gradients):
            return Difference(mode, "gradient", number, f"asked again, {found}")
    return None


def left_behind(mode: str, number: int) -> Difference | None:
    if active.tracer is not None:
        active.tracer = None
        return Difference(mode, "engine", number, "a tracer is active after the call")
    return None


# ------------------------------------------------------------------------------- against plain Python


def compare(mode: str, records: list[Record], plain: list[Record]) -> Difference | None:
    comparison = Comparison()
    for number, (mine, theirs) in enumerate(zip(records, plain)):
        if mine.step.kind == "change":
            continue
        if mine.leak is not None:
            return Difference(mode, "leak", number, mine.leak)
        if mine.refused is not None:
            return None
        for part in ("error", "printed", "warned", "value", "world"):
            a, b = getattr(mine, part), getattr(theirs, part)
            if part == "value" and mine.answer is not None and mine.answer.value is NOTHING:
                continue
            found = comparison.where(a, b)
            if found is not None:
                part = "identity" if found.endswith(ANOTHER) else part
                return Difference(mode, part, number, found, (kind_of(mine), kind_of(theirs)))
    return None


def kind_of(record: Record) -> str | None:
    """The class of the exception that a call raised."""
    return record.error[0] if record.error is not None else None


# ----------------------------------------------------------------------------------- mode against mode


def compare_modes(played: dict[str, list[Record]]) -> Difference | None:
    (first, theirs), *others = played.items()
    for name, mine in others:
        for number, (a, b) in enumerate(zip(theirs, mine)):
            if (
                (a.refused is None) != (b.refused is None)
                or len(mine) != len(theirs)
                and a is theirs[-1]
                and not a.refused
            ):
                return Difference(
                    f"{first}/{name}", "refusal", number, f"{a.refused} and {b.refused}"
                )
            if a.refused is not None or a.answer is None or b.answer is None:
                continue
            for part in ("gradients", "tangent"):
                x, y = getattr(a.answer, part), getattr(b.answer, part)
                found = where_unlike(x, y, COARSE if a.coarse else ROUNDING)
                if found is not None:
                    return Difference(f"{first}/{name}", "gradient", number, found)
    return None


def where_unlike(a: Any, b: Any, rounding: float = ROUNDING) -> str | None:
    """Where two structures of gradients differ by more than rounding, in words."""
    scale = max(largest(b), CANCELLED / rounding)
    return unlike(a, b, scale if math.isfinite(scale) else 1.0, rounding, "")


def largest(x: Any) -> float:
    if isinstance(x, np.ndarray) or is_number(x):
        finite = np.abs(np.asarray(x)[np.isfinite(x)])
        return float(finite.max()) if finite.size else 0.0
    return max([largest(item) for item in (members(x) or {}).values()], default=0.0)


def unlike(a: Any, b: Any, scale: float, rounding: float, path: str) -> str | None:
    if type(a).__name__ != type(b).__name__:
        return f"{path}: {a!r} is a {type(a).__name__} and not {b!r}"
    if isinstance(b, np.ndarray) or is_number(b):
        x, y = np.asarray(a), np.asarray(b)
        if (x.shape, x.dtype) != (y.shape, y.dtype):
            return f"{path}: {x.dtype}{x.shape} and not {y.dtype}{y.shape}"
        rounding = rounding if x.dtype.itemsize >= 8 else COARSE
        if not np.allclose(x, y, rtol=rounding, atol=rounding * scale, equal_nan=True):
            return f"{path}: {a!r} and not {b!r}"
        return None
    inside, other = members(a), members(b)
    if inside is None or other is None:
        return None if inside is other and a == b else f"{path}: {a!r} and not {b!r}"
    if list(inside) != list(other):
        return f"{path}: {list(inside)} and not {list(other)}"
    for key in inside:
        found = unlike(inside[key], other[key], scale, rounding, f"{path}[{key!r}]")
        if found is not None:
            return found
    return None


# --------------------------------------------------------------------------------- against differences


def compare_slopes(
    program: Program, mode: str, records: list[Record], counts: Counter[str]
) -> Difference | None:
    """Gradients against differences of plain Python, for some of the calls."""
    numbers = [
        number
        for number, record in enumerate(records)
        if record.answer is not None and record.refused is None and record.answer.order == 1
    ]
    for number in [*numbers[-1:], *numbers[: len(numbers) - 1 : 3]]:
        answer = records[number].answer
        measured = Slope(program, number, answer)
        try:
            slope = measured.measure()
        except TooLong:  # another step goes another way, which takes far longer
            slope = None
        except Unlike as error:
            return Difference(mode, "structure", number, str(error))
        counts["slopes"] += 1
        if slope is None:
            counts["no slope"] += 1
            continue
        found, scale = measured.found, max(measured.scale, 1e-4 * (1 + measured.size))
        if math.isfinite(found) and abs(found - slope) > NEAR * scale:
            if measured.is_isolated(slope, NEAR * scale):
                counts["isolated"] += 1
                continue
            return Difference(
                mode, "slope", number, f"{found:.9g} and not {slope:.9g}; {measured.gradients!r}"
            )
        if not math.isfinite(found):
            counts["no slope"] += 1
    return None


class Slope:
    """The derivative of one call along a direction: by differences, and as the engine has it."""

    def __init__(self, program: Program, number: int, answer: Answer) -> None:
        self.program = dataclasses.replace(program, plan=program.plan[: number + 1])
        self.number = number
        self.answer = answer
        self.gradients = answer.gradients if answer.tangent is None else answer.tangent
        self.found = self.scale = self.size = 0.0
        self.dy: Any = NOTHING
        self.entangled = False

    def measure(self) -> float | None:
        """The slope, if there is one: the same from both sides and for two steps, on one way through the program."""
        self.at(
            0.0
        )  # the first time that code is watched, CPython does not report every instruction
        middle, path = self.at(0.0)
        if self.entangled or not math.isfinite(middle):
            return None
        self.size = abs(middle)
        slopes = []
        for h in (1e-5, 2.5e-6):
            (right, path_right), (left, path_left) = self.at(h), self.at(-h)
            if path_right != path or path_left != path:
                return None
            slopes += [(right - middle) / h, (middle - left) / h, (right - left) / (2 * h)]
        self.scale = max(self.scale, *map(abs, slopes))
        if not all(map(math.isfinite, slopes)) or self.scale > 1e6:
            return None
        if max(slopes) - min(slopes) > 1e-3 * self.scale:
            return None
        if abs(slopes[2] - slopes[5]) > 0.1 * NEAR * self.scale:
            return None
        wide, narrow = abs(slopes[0] - slopes[1]), abs(slopes[3] - slopes[4])
        if narrow > max(0.5 * wide, 0.1 * NEAR * self.scale):  # a small kink: no step levels it
            return None
        return slopes[2]

    def at(self, t: float) -> tuple[float, Any]:
        """What is differentiated, at a step along the direction, and the way through the program."""
        result: list[Any] = [math.nan, None]

        def ask(f: Any, args: Any, kwargs: Any, number: int, record: Record) -> Any:
            if number < self.number:
                return f(*args, **kwargs)
            args, kwargs = self.moved(args, kwargs, t)
            meter = Meter(100 * LINES, opcodes=True)
            value = meter.run(f, args, kwargs)
            if self.dy is NOTHING:  # at the call itself: what is an int there has none
                self.dy = self.cotangent(value)
            self.entangled |= is_coarse(value) or has_coarse_world(f)
            result[:] = pairing(self.dy, value), meter.path
            return value

        with surroundings(), wengert.jit(False):
            QuickPlay(self.program).perform(ask)
        return result[0], result[1]

    def is_isolated(self, slope: float, tolerance: float) -> bool:
        """Whether the engine has this very slope on both sides: the point is one by itself to it.

        There it takes the slope of the way that it went, as of ``x if not b else 0.0`` at 0, or one out of several,
        as of ``min(max(x, 1.0), 1.0)`` at 1 (see ``docs/conventions.md``); what is differentiated may be smooth all
        the same.
        """
        found = []

        def ask(f: Any, args: Any, kwargs: Any, number: int, record: Record) -> Any:
            if number < self.number:
                return f(*args, **kwargs)
            directions = Directions(generator(self.number))
            steps = {key: directions.of(x) for key, x in (dict(enumerate(args)) | kwargs).items()}
            args, kwargs = self.moved(args, kwargs, t)
            tangents = tuple([steps[i] for i in range(len(args))])
            value, tangent = wengert.jvp(functools.partial(f, **kwargs), args, tangents)
            found.append(pairing(self.dy, tangent))
            return value

        for t in (1e-5, -1e-5):
            with surroundings(), wengert.jit(False):
                try:
                    QuickPlay(self.program).perform(ask)
                except wengert.WengertError:
                    return False
        return len(found) == 2 and all(abs(x - slope) <= tolerance for x in found)

    def cotangent(self, value: Any) -> Any:
        if self.answer.tangent is not None:
            dy = cotangent(value, generator(self.number + 500))
            self.found = pairing(dy, self.answer.tangent)
            return dy
        if self.answer.later is not None:
            return cotangent(value, generator(self.number))
        return 1.0

    def is_entangled(self, given: dict[Any, Any]) -> bool:
        """Whether a container or an array of the arguments belongs to the world as well.

        There it is a constant, and cannot be moved on its own.
        """
        album = Album()
        for name, x in vars(sys.modules[MODULE]).items():
            if not name.startswith(("kept_", "__")) and not isinstance(x, types.ModuleType):
                album.take(x)
        stack, seen = [*given.values()], set()
        while stack:
            x = stack.pop()
            owner = x
            while isinstance(owner, np.ndarray) and isinstance(owner.base, np.ndarray):
                owner = owner.base
            if (
                id(owner) in album.memories
                or id(owner) in album.numbers
                and isinstance(owner, list | dict | deque)
            ):
                return True
            if id(x) not in seen:
                seen.add(id(x))
                stack += (members(x) or {}).values()
        return False

    def moved(self, args: Any, kwargs: Any, t: float) -> tuple[Any, Any]:
        directions = Directions(generator(self.number))
        given = dict(enumerate(args)) | kwargs
        if t == 0.0:
            self.entangled = self.is_entangled(given) or any(map(is_coarse, given.values()))
        wanted = set(given) if self.answer.tangent is not None else set(self.answer.gradients or ())
        if self.answer.tangent is not None:
            wanted -= set(kwargs)
        steps = {key: directions.of(x) if key in wanted else None for key, x in given.items()}
        if t == 0.0 and self.answer.tangent is None:
            seen: set[int] = set()
            self.found = sum(
                product((self.answer.gradients or {}).get(key), steps[key], x, seen, f"[{key!r}]")
                for key, x in given.items()
            )
        mover = Mover(directions, t)
        new = {key: mover.move(x, steps[key]) for key, x in given.items()}
        return tuple([new[i] for i in range(len(args))]), {key: new[key] for key in kwargs}


def is_coarse(x: Any) -> bool:
    """Whether there are numbers of single precision, of which no differences can be taken."""
    if isinstance(x, np.ndarray | np.generic):
        return x.dtype.kind == "f" and x.dtype.itemsize < 8
    return isinstance(x, list | tuple | dict) and any(map(is_coarse, (members(x) or {}).values()))


def has_coarse_world(f: Any, deepest: int = 4) -> bool:
    """Whether there are such numbers among the globals of a function, which may go into what it gives."""
    named = getattr(f, "__globals__", {})
    todo = [(x, 0) for name, x in named.items() if name != "__builtins__"]
    for x, depth in todo:
        if type(x) in WORLDS and depth < deepest:
            todo += [(y, depth + 1) for y in (x.values() if type(x) is dict else x)]
        elif isinstance(x, np.ndarray | np.generic) and is_coarse(x):
            return True
    return False


WORLDS = (list, tuple, dict)


class QuickPlay(Play):
    """A play of which nothing is recorded.

    Where the program counts what is alive, pictures are taken all the same: they keep alive what they show.
    """

    noting = True

    def world(self, args: Any, kwargs: Any) -> Any:
        return super().world(args, kwargs) if "Tracked" in vars(self.module) else None

    def pictured_error(self, error: BaseException) -> Any:
        return type(error)
