"""Bools in variables and texts in tuples make no ways of their own, unless they have to be known."""

import heapq
import math

import pytest

from fold.comparing import CALLS, compare, followed
from helpers import assert_same
from wengert import jit, value_and_grad
from wengert.tracer.fold.region import Loop, Take
from wengert.transforms import cache

pytestmark = pytest.mark.usefixtures("folding_at_once")


def region():
    """What is known of the only function."""
    (entry,) = cache.entries.values()
    (known,) = entry.folding.known.values()
    return known


def carried_flag(x, n):
    """It halves and goes on by turns, as its last step says."""
    halved, total = True, 0.0
    for i in range(n):
        step = x / (i + 1) if halved else 0.5 * x
        far = step > 0.7
        if far or total > 1.5:
            total, halved = 0.5 * (total + step), True
        else:
            total, halved = total + step * step, False
    return total if halved else -total


def kinds_in_a_heap(x, n):
    events, t, open_, total = [], 0.0, 0, 0.0
    for i in range(n):
        t += x * (i % 3 + 1)
        heapq.heappush(events, (t, i, "arrives"))
    while events:
        now, i, what = heapq.heappop(events)
        if what == "arrives":
            open_ += 1
            heapq.heappush(events, (now + 1.3 * x * (i % 2 + 1), i, "leaves"))
        else:
            open_ -= 1
            total += now * open_ + math.sin(now)
    return total


class Machine:
    def __init__(self):
        self.on = False
        self.seen = [True]

    def flip(self, x):
        self.on = not self.on
        self.seen.append(self.on)
        return x if self.on else 0.5 * x

    def is_on(self):
        return self.on


def flags_of_an_object(x, n):
    machine, total = Machine(), 0.0
    for i in range(n):
        total += machine.flip(x + i)
        if machine.is_on() and i % 3:
            total *= x
    return total + sum(x for flag in machine.seen if flag)


@pytest.mark.parametrize("f", [carried_flag, kinds_in_a_heap, flags_of_an_object])
def test_followed(f):
    followed(f)
    assert region().loose > 0


def test_a_loop_that_carries_a_flag_has_one_body():
    compare(carried_flag)
    (loop,) = [op for op in region().folded.ops() if type(op) is Loop]
    assert len(loop.bodies) == 1


def test_events_of_several_kinds_are_taken_out_in_one_state():
    compare(kinds_in_a_heap)
    assert not any(type(op) is Take and len(op.results) > 1 for op in region().folded.ops())


def asked_by_identity(x, n):
    """A bool is one of two objects, and no number is one of them."""
    high, total = n > 3, 0.0
    for i in range(n):
        odd = i % 2 == 1
        total += x if odd is True else 2.0
        total += x * x if odd is high else 0.0
        total -= 3.0 if x is True or i is False else x
        if (odd is not False) == high:
            total *= x
    return total


def as_numbers(x, n):
    high, total = n > 3, 0.0
    for i in range(n):
        odd = i % 2 == 1
        total += odd * x + (odd + high) * x * x - (odd == high) + (odd < high) / 2
        total += [x, 0.5 * x][odd] + (high & odd) * x + (odd | 2) + -odd
        total += float(odd) + int(high) + (x if odd == 1 else 0.0)
        total += x if isinstance(odd, bool) and bool(odd) else len(f"{odd}") * x
    return total


def beside_nan(x, n):
    y = math.nan if n == 3 else x
    same, less = y == y, y < x
    total = x
    for _ in range(n):
        total = total * x if same else total + 1.0
        same, less = less, same
    return total


def matched(x, n):
    total = 0.0
    for i in range(n):
        odd = i % 2 == 1
        match odd:
            case True:
                total += x * x
            case False:
                total -= x
    return total


def negated(x, n):
    total, calm = 0.0, False
    for i in range(n):
        outside = not (0.3 < x * i < 2.0)
        odd = not i % 2 == 0
        steady = not not outside
        if (not odd) if outside else calm:
            total += x
        if not outside or not odd:
            total += x * x
        calm = not (odd and steady)
        total += (not calm) * x - (not i) * 0.5
    return total


@pytest.mark.parametrize("f", [asked_by_identity, as_numbers, beside_nan, matched, negated])
def test_bools_are_what_they_are(f):
    followed(f)
    assert region().loose > 0


class Ball:
    def __init__(self, x):
        self.height, self.speed = x, x * x


def of_ball(x, n):
    ball, total = Ball(x), 0.0
    for name, weight in [("height", 2.0), ("speed", 3.0)] * n:
        setattr(ball, name, 0.9 * getattr(ball, name))
        total += weight * getattr(ball, name)
    return total


def sorted_by_flag(x, n):
    down = False
    for i in range(n):
        down = i % 2 == 1
    return sorted([x, 1.0, x * x], reverse=down)[0] * x


@pytest.mark.parametrize("f", [of_ball, sorted_by_flag])
def test_what_has_to_be_known_is_known(f):
    followed(f)
    assert region().loose < 2


def strict(x, n):
    """The engine must not be taken for the TypeError that the program expects."""
    all_of_them = n > 3
    try:
        return sum(a * b for a, b in zip([x, x], [x, 2.0 * x], strict=all_of_them))
    except TypeError:
        return x


def test_an_error_of_the_engine_is_none_of_the_program():
    both = value_and_grad(strict)
    for k in range(CALLS):
        x, n = 0.5 + k / 10, k % 6
        value, slope = both(x, n)
        assert_same(value, strict(x, n))
        assert slope == pytest.approx(6.0 * x)
        with jit(False):
            assert both(x, n)[1] == pytest.approx(6.0 * x)
