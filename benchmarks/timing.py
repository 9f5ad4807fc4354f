"""Seconds a call, contender after contender, round after round."""

from __future__ import annotations

import functools
import gc
import statistics
from collections.abc import Callable
from typing import Any

from .contenders import Contender

Clock = Callable[[], float]

SAMPLE = 2e-3  # seconds that a sample lasts at least
SLOW = 0.2  # seconds from which on a call needs no other call to warm up
BUDGET = 6.0  # seconds that a contender may take in all rounds together


def measure(contenders: list[Contender], rounds: int, clock: Clock) -> dict[str, dict[int, float]]:
    """For each contender its seconds a call, by round.

    The contenders take turns, in one order and then in the other, so that a change of the machine's mood and the
    traces that one leaves in the caches meet all of them alike. Slow ones sit out some of the rounds. The garbage
    collector stays on, and everything alive before is frozen: each pays for its own garbage.
    """
    samples = {c.name: Sample(c, rounds, clock) for c in contenders}
    seconds: dict[str, dict[int, float]] = {c.name: {} for c in contenders}
    gc.collect()
    gc.freeze()
    try:
        for k in range(rounds):
            for c in contenders if k % 2 else reversed(contenders):
                if k % samples[c.name].every == 0:
                    gc.collect()
                    seconds[c.name][k] = samples[c.name].take()
    finally:
        gc.unfreeze()
    return seconds


def ratio(seconds: dict[int, float], base: dict[int, float]) -> float:
    """The median over the rounds of what one took over what the other took."""
    return statistics.median(time / base[k] for k, time in seconds.items())


class Sample:
    """How one contender is timed: some calls in a row, after its warming up, which a slow one does not need.

    repeat      the calls of a sample, so many that the clock can see them
    every       it takes part in each so-manieth round
    """

    def __init__(self, contender: Contender, rounds: int, clock: Clock) -> None:
        self.contender = contender
        self.run = loop(len(contender.arguments), clock)
        self.repeat = 1
        self.warm = True
        while (lasted := self.take() * self.repeat) < SAMPLE:
            more = int(1.2 * self.repeat * SAMPLE / lasted)
            self.repeat = max(self.repeat + 1, min(10 * self.repeat, more))
        self.warm = lasted < SLOW or self.contender.warming > 1
        cost = lasted + self.warm * self.contender.warming * lasted / self.repeat
        self.every = max(1, rounds // max(3, int(BUDGET / cost)))

    def take(self) -> float:
        """Seconds a call."""
        call, arguments, before = (
            self.contender.call,
            self.contender.arguments,
            self.contender.before,
        )
        with self.contender.around():
            if before is not None:
                return self.apart(before)
            for _ in range(self.contender.warming if self.warm else 0):
                call(*arguments)
            return self.run(self.repeat, call, *arguments) / self.repeat

    def apart(self, before: Callable[[], Any]) -> float:
        """The same where something has to happen before each call."""
        total = 0.0
        for _ in range(self.repeat):
            before()
            total += self.run(1, self.contender.call, *self.contender.arguments)
        return total / self.repeat


@functools.cache
def loop(arguments: int, clock: Clock) -> Callable[..., float]:
    """Calls a function again and again with so many arguments, which are not packed and unpacked each time."""
    names = ", ".join(f"x{k}" for k in range(arguments))
    source = f"""
def run(repeat, function, {names}):
    start = clock()
    for _ in range(repeat):
        function({names})
    return clock() - start
"""
    world: dict[str, Any] = {"clock": clock}
    exec(source, world)
    return world["run"]
