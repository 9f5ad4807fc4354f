"""The budget: what the programs of one function may cost.

A program pays for itself by the calls that it answers, if there are any: a function that goes another way at each call
would pay for ever. So building may cost a share of what tracing the function costs anyway, and what programs have
won; trying them is held to a share of its own, for it costs little and is what wins. The first program of a function
that did the same in two calls is built in the next one, on credit.

Words
-----
price    what the latest attempt at a program has cost: recording the run, comparing, building.
barren   attempts since a program has answered: each doubles what the next one is taken to cost.
usual    what a traced call of the function takes, but for the first, in which what it calls is instrumented.
way      a number that stands for all that a traced call did, in its order.
"""

from __future__ import annotations

from collections.abc import Callable

FREE = 3  # so many traced calls may be spent before anything is won
SHARE = 0.3  # of the traced time that may be spent on building
TRYING = 0.1  # of it on programs that did not answer
RECORDING = 0.2  # of a recorded run: what tracing alone would not take (0.1 to 0.4)
PER_OPERATION = 40e-6  # seconds: the price of a first program (20 to 230 µs an operation)
FIRST_REGION = 3e-3  # seconds: the price of the first program of a region, and
PER_PLACE = 0.12e-3  # of each place of the user's program in it
CREDIT = 7  # traced calls that the first region may cost from the fifth call on: it mostly answers the next ones
LATER = (4, 4)  # and what it may cost to add to it, once and twice
MOST_BARREN = 10
EARLIEST = 2  # calls are traced before anything is built


class Budget:
    """What the calls of a function took, and what was spent on its programs; all times in seconds."""

    limited = True  # the tests of Wengert build whenever they can, whatever the clock says

    def __init__(self) -> None:
        self.calls = 0
        self.first = 0.0
        self.traced = 0.0
        self.spent = 0.0  # on building
        self.wasted = 0.0  # on programs that did not answer
        self.won = 0.0  # by programs that are no longer kept
        self.price = 0.0
        self.barren = 0
        self.regions = 0  # calls that were recorded as a pass
        self.unfolded = 0  # of these, without a program for it: the latest ones in a row
        self.folding = 0.0  # that the latest program of a region took
        self.places = 0  # of the user's program that the latest traced call came by
        self.way: int | None = None  # of the latest traced call
        self.steady = False  # whether the one before it went the same way

    @property
    def usual(self) -> float:
        if self.calls < 2:
            return self.first
        return (self.traced - self.first) / (self.calls - 1)

    def note_trace(self, seconds: float, way: int | None, operations: int) -> None:
        """A call was traced, and not recorded."""
        self.calls += 1
        self.traced += seconds
        self.steady, self.way = way is not None and way == self.way, way
        if self.calls == 1:
            self.first = seconds
        if not self.spent:
            self.price = operations * PER_OPERATION

    def note_attempt(self, seconds: float, building: float) -> None:
        """A call was recorded, and then an attempt made at its program, which took ``building`` on top."""
        self.calls += 1
        self.traced += seconds * (1.0 - RECORDING)
        self.price = seconds * RECORDING + building
        self.spent += self.price
        self.barren += 1

    def note_miss(self, seconds: float) -> None:
        """A program was tried and did not answer."""
        self.wasted += seconds

    def gain(self, hits: int, cost: float) -> float:
        """What was won by a program that has answered so many calls, at such a cost."""
        return hits * max(0.0, self.usual - cost)

    def may_build(self, won: Callable[[], float]) -> bool:
        """Whether a call may be recorded and made a program; ``won`` tells what programs have won."""
        if not self.limited:
            return self.calls > 0
        if self.calls < EARLIEST:
            return False
        if self.steady and not self.spent:
            return True
        price = self.price * 2.0 ** min(self.barren, MOST_BARREN)
        return price <= self.left() or price <= self.left() + won()

    def may_fold(self, won: Callable[[], float]) -> bool:
        """Whether a call may be recorded as a pass over a region: each pass adds to what the earlier ones have made."""
        price = self.usual + (self.folding or FIRST_REGION + PER_PLACE * self.places)
        price *= 2.0 ** min(self.unfolded, MOST_BARREN)
        credit = (CREDIT, *LATER)[self.regions] if self.regions <= len(LATER) else 0
        if not self.limited or (price <= credit * self.usual and self.calls > 3):
            return True
        return price <= self.left() or price <= self.left() + won()

    def note_fold(self, seconds: float, building: float) -> None:
        """A call was recorded as a pass, and a program of all passes made, which took ``building`` on top."""
        self.calls += 1
        self.traced += self.usual
        self.folding = building
        self.regions += 1
        self.unfolded = 0
        self.spent += seconds + building

    def note_unfolded(self, seconds: float) -> None:
        """A call was recorded as a pass, and is traced all the same."""
        self.regions += 1
        self.unfolded += 1
        self.spent += seconds

    def left(self) -> float:
        """What may still be spent on building, but for what was won."""
        allowed = max(FREE * self.usual, SHARE * self.traced)
        return allowed - self.spent - self.wasted

    def may_try(self, won: Callable[[], float]) -> bool:
        """Whether programs may be tried that might not answer."""
        allowed = max(self.usual, TRYING * self.traced)
        return self.wasted <= allowed or not self.limited or self.wasted <= allowed + won()
