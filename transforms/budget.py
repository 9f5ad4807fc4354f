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

import math
import time
from collections.abc import Callable

FREE = 3  # so many traced calls may be spent before anything is won
SHARE = 0.3  # of the traced time that may be spent on building
TRYING = 0.1  # of it on programs that did not answer
RECORDING = 0.2  # of a recorded run: what tracing alone would not take (0.1 to 0.4)
PER_OPERATION = 40e-6  # seconds: the price of a first program (20 to 230 µs an operation)
LONG = 30_000  # operations, of which the program takes a second and more to write
OF_TRACED = 1.5  # of what tracing has taken: what a long program may take
PER_OP = 40e-6  # seconds: the price of a program for each op, block and end of a region, until one was written
BESIDES = 20  # ops, by which every region is taken to be larger
# Traced calls that a region may have cost with its first program, with the second and the third. A pass that has added
# nothing says that the program would have answered: it mostly answers the next calls.
CREDIT = (11, 14, 17)
GROWING = 5  # so many fewer after a pass that has added something
FIRST_PASS = 3  # and so many after the first pass, in which what the function calls is instrumented
LITTLE = 5e-3  # seconds: or so much, which nobody notices, after a pass that has added nothing
# Of what tracing has taken: what recording passes of a function may take whose ways come again, and all that may be
# spent once its region has all of them. The first calls then take at most 2.5 times as long as without programs.
RECURRING, ALL_WAYS = 0.5, 1.25
MOST_WAYS = 4_000
# Operations of few places, from which on a region is recorded after one call: a pass costs 1 to 4 traced calls then, a
# program of the tape 3 to 40. Where there are fewer that program comes first, which runs up to six times as fast.
ROUNDS = 10_000
# A pass is given up after so many times what the longest traced call took, and so many seconds besides.
OF_LONGEST, AT_LEAST = 4.0, 0.2
RISING = 1.25
MOST_BARREN = 10
EARLIEST = 2  # calls are traced before anything is built

# Seconds that this thread has worked: what others do on a busy machine is not counted, where the system can tell.
fine = time.get_clock_info("thread_time").resolution <= 1e-6
working = time.thread_time if fine else time.perf_counter


class Budget:
    """What the calls of a function took, and what was spent on its programs; all times in seconds."""

    limited = True  # the tests of Wengert build whenever they can, whatever the clock says
    latest = PER_OP  # what programs of regions took lately, of whatever function

    def __init__(self) -> None:
        self.calls = 0
        self.first = 0.0
        self.longest = 0.0
        self.traced = 0.0
        self.spent = 0.0  # on building
        self.wasted = 0.0  # on programs that did not answer
        self.won = 0.0  # by programs that are no longer kept
        self.price = 0.0
        self.barren = 0
        self.region = 0.0  # what was spent on the region
        self.passes = 0  # calls that were recorded as a pass
        self.size = 0  # of the region
        self.waiting = False  # whether its latest passes are in no program
        self.regions = 0  # programs of regions
        self.failed = 0.0  # of what was spent: on passes that were given up
        self.given_up = 0.0  # what the latest of these took
        self.unfolded = 0  # calls that could not be recorded as a pass: the latest ones in a row
        self.per_op = 0.0  # that the latest program of a region took
        self.way: int | None = None  # of the latest traced call
        self.turns = 0.0  # its operations, if they were those of few places
        self.steady = False  # whether the one before it went the same way
        self.ways: set[int] = set()  # of traced calls
        self.recurs = False  # whether the latest went a way that one before it had gone
        self.grows = False  # whether the latest pass has added to the region

    @property
    def usual(self) -> float:
        if self.calls < 2:
            return self.first
        return (self.traced - self.first) / (self.calls - 1)

    def note_trace(
        self, seconds: float, way: int | None, operations: int, turns: float = 0.0
    ) -> None:
        """A call was traced, and not recorded."""
        self.turns = turns
        self.longest = max(self.longest, seconds)
        self.calls += 1
        self.traced += seconds
        self.steady, self.way = way is not None and way == self.way, way
        self.recurs = way in self.ways
        if way is not None and len(self.ways) < MOST_WAYS:
            self.ways.add(way)
        if self.calls == 1:
            self.first = seconds
        if self.spent <= self.failed:
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

    def goes_round(self) -> bool:
        """Whether the latest call went round for so long that its region is had sooner than a program of its tape."""
        return self.limited and self.turns >= ROUNDS and not self.failed

    def may_build(self, won: Callable[[], float]) -> bool:
        """Whether a call may be recorded and made a program; ``won`` tells what programs have won."""
        if not self.limited:
            return self.calls > 0
        if self.calls < EARLIEST:
            return False
        if self.steady and self.spent <= self.failed:
            return True
        price = self.price * 2.0 ** min(self.barren, MOST_BARREN)
        return price <= self.left() or price <= self.left() + won()

    def may_fold(self, won: Callable[[], float]) -> bool:
        """Whether a call may be recorded as a pass over a region: after the first one, where a program may follow.

        What no program answers mostly adds to the region; beside what waits already it may add nothing.
        """
        if not self.limited or not self.passes + self.unfolded:
            return True
        if self.recurs and self.grows and self.region <= RECURRING * self.traced:
            return True  # the ways are few: the next program is to have all of them
        price = max(self.writing(self.size), self.given_up)
        price *= 2.0 ** min(self.unfolded, MOST_BARREN)
        return self.affords(price, not self.waiting, won)

    def writing(self, size: int) -> float:
        """The price of the program of a region of this size."""
        return (self.per_op or Budget.latest) * (size + BESIDES)

    def may_write(self, size: int, grown: bool, won: Callable[[], float]) -> bool:
        """Whether the program of a region of this size may be written, after a pass that has ``grown`` it or not."""
        return not self.limited or self.affords(self.writing(size), grown, won)

    def affords(self, price: float, grown: bool, won: Callable[[], float]) -> bool:
        """Whether so much may be spent on a region to which a pass has added, or not."""
        credit = CREDIT[self.regions] - GROWING * grown if self.regions < len(CREDIT) else 0
        credit = credit if self.passes else FIRST_PASS
        if price + self.region <= credit * self.usual:
            return True
        if credit and not grown and price <= LITTLE:
            return True
        if self.recurs and not grown and self.spent + price <= ALL_WAYS * self.traced:
            return True
        return price <= self.left() or price <= self.left() + won()

    def note_pass(self, seconds: float, size: int) -> None:
        """A call was recorded as a pass over a region, which has this size now."""
        self.unfolded = 0
        self.given_up = 0.0
        seconds = seconds if self.passes else min(seconds, self.usual)
        self.spent += seconds
        self.region += seconds
        self.passes += 1
        self.grows = size > self.size
        self.size, self.waiting = size, True

    def note_fold(self, building: float, size: int) -> None:
        """A program of all passes was made, which answers the call that was recorded last."""
        self.traced += self.usual
        self.calls += 1
        self.per_op = building / (size + BESIDES)
        # One that had to import, or to lower rules, says little of the next.
        Budget.latest = min(self.per_op, RISING * Budget.latest)
        self.regions += 1
        self.waiting = False
        self.spent += building
        self.region += building

    def may_be_long(self, length: int) -> bool:
        """Whether the program of a traced call of so many operations may be written.

        The calls so far then take at most two and a half times as long as without programs.
        """
        return length <= LONG or length * PER_OPERATION <= OF_TRACED * self.traced

    def longest_pass(self) -> float:
        """How long a pass may take."""
        if not self.limited:
            return math.inf
        if self.calls < EARLIEST:
            return OF_LONGEST * self.longest
        return OF_LONGEST * self.longest + AT_LEAST

    def note_unfolded(self, seconds: float) -> None:
        """A call could not be recorded as a pass."""
        self.unfolded += 1
        self.spent += seconds
        self.failed += seconds
        self.given_up = seconds if self.calls >= EARLIEST else 0.0

    def left(self) -> float:
        """What may still be spent on building, but for what was won."""
        allowed = max(FREE * self.usual, SHARE * self.traced)
        return allowed - self.spent - self.wasted

    def may_try(self, won: Callable[[], float]) -> bool:
        """Whether programs may be tried that might not answer."""
        allowed = max(self.usual, TRYING * self.traced)
        return self.wasted <= allowed or not self.limited or self.wasted <= allowed + won()
