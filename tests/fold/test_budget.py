"""When the program of a region is written: with a clock of our own, in which a traced call takes one second."""

import subprocess
import sys

import numpy as np
import pytest
from worlds import clear_cache

from wengert import explain, jit, value_and_grad
from wengert.transforms import dispatch
from wengert.transforms.budget import CREDIT, Budget
from wengert.transforms.fold import keep
from wengert.transforms.gradients import Gradient


@pytest.fixture
def budget(monkeypatch):
    """That of a function of which two calls were traced, where an op of a program takes 0.1 seconds."""
    monkeypatch.setattr(Budget, "limited", True)
    monkeypatch.setattr(Budget, "latest", 0.1)
    found = Budget()
    for way in (1, 2):
        found.note_trace(1.0, way, 10)
    return found


def nothing():
    return 0.0


def test_a_pass_that_has_added_nothing_is_worth_more_than_one_that_has(budget):
    assert budget.may_fold(nothing)
    assert not budget.may_write(30, True, nothing)  # after the first one there is hardly any credit
    budget.note_pass(8.0, 40)  # in which what it calls was instrumented: a traced call of it counts
    assert budget.region == 1.0
    assert budget.may_write(20, True, nothing) and not budget.may_write(40, True, nothing)
    assert budget.may_write(70, False, nothing) and not budget.may_write(90, False, nothing)
    assert budget.may_write(90, False, lambda: 20.0)  # what was won may be spent


def test_a_pass_is_recorded_where_its_program_could_be_paid(budget):
    budget.note_pass(8.0, 40)
    assert budget.may_fold(nothing)  # of six seconds
    budget.note_pass(1.0, 90)
    assert not budget.may_fold(nothing) and budget.may_fold(lambda: 20.0)
    budget.note_pass(1.0, 50)
    assert budget.may_fold(nothing)
    budget.note_fold(7.0, 50)
    assert not budget.may_fold(nothing)  # what it is written anew for adds to it


def test_no_call_pays_for_the_import():
    loaded = "import sys, wengert; print({f'wengert.transforms.fold.{x}' in sys.modules for x in ('keep', 'reverse')})"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True)
    assert done.stdout == "{True}\n", done.stderr


def test_what_was_spent_on_a_region_counts(budget):
    budget.note_pass(1.0, 70)
    budget.note_fold(9.0, 70)
    assert Budget.latest == pytest.approx(0.1) and budget.regions == 1
    budget.note_pass(1.0, 70)
    assert budget.may_write(0, False, nothing) and not budget.may_write(20, False, nothing)
    for _ in CREDIT:
        budget.regions += 1
    assert not budget.may_write(0, False, nothing)


def test_of_a_small_function_a_program_is_written_as_soon_as_it_would_have_answered(monkeypatch):
    """A few milliseconds are many of its calls, and nobody notices them."""
    monkeypatch.setattr(Budget, "limited", True)
    monkeypatch.setattr(Budget, "latest", 5e-5)
    small = Budget()
    for way in (1, 2):
        small.note_trace(1e-4, way, 10)
    small.note_pass(1e-3, 20)
    assert not small.may_write(20, True, nothing) and small.may_write(20, False, nothing)
    assert not small.may_write(200, False, nothing)  # which would be noticed
    small.regions = len(CREDIT)
    assert not small.may_write(20, False, nothing)


def test_a_program_that_was_slow_to_write_says_little_of_others(budget):
    budget.note_pass(1.0, 30)
    budget.note_fold(500.0, 30)  # it had to import something, say
    assert Budget.latest == pytest.approx(0.125)
    budget.note_fold(2.0, 30)
    assert Budget.latest == pytest.approx(0.04)


def test_ways_that_come_again_are_recorded_before_the_next_program_is_written(monkeypatch):
    monkeypatch.setattr(Budget, "limited", True)
    monkeypatch.setattr(Budget, "latest", 0.1)
    budget = Budget()
    for way in (1, 2):
        budget.note_trace(1.0, way, 10)
    budget.note_pass(1.0, 20)
    budget.note_fold(2.0, 20)
    for way in range(3, 40):
        budget.note_trace(1.0, way, 10)
    budget.price = budget.per_op = 1.0
    assert not budget.may_fold(nothing)  # each call may go a way of its own
    budget.note_trace(1.0, 7, 10)
    assert budget.recurs and budget.may_fold(nothing)
    budget.note_pass(1.0, 30)
    assert not budget.may_write(30, True, nothing)
    assert budget.may_fold(nothing)  # until a pass adds nothing
    budget.note_pass(1.0, 30)
    assert not budget.grows and not budget.may_fold(nothing)
    assert not budget.may_write(
        30, False, nothing
    )  # of fifty seconds, where forty have been traced
    budget.per_op = 0.6
    assert budget.may_write(30, False, nothing) and not budget.may_write(30, True, nothing)


def test_other_shapes_are_another_way(monkeypatch):
    monkeypatch.setattr(Budget, "limited", True)
    for module in (dispatch, keep):
        monkeypatch.setattr(module, "working", lambda: 0.0)
    clear_cache()
    g = value_and_grad(lambda w, x: np.tanh(x @ w).sum())
    shapes = [(np.ones((k, 3)), np.ones((4, k))) for k in (2, 3)]
    for i in range(8):
        value, slope = g(*shapes[i % 2])
        assert (
            value == np.tanh(shapes[i % 2][1] @ shapes[i % 2][0]).sum()
            and slope.shape == shapes[i % 2][0].shape
        )
    told = explain(g, *shapes[0])
    assert "for all ways" in told and "1 program," in told


def accumulated(r, n):
    xs = [0.3]
    for _ in range(n):
        xs.append(r * xs[-1] * (1.0 - xs[-1]))
    return sum(xs)


def branching(r, n):
    x, total = 0.3, 0.0
    for _ in range(n):
        x = r * x * (1.0 - x)
        if x > 0.5:
            total += x
        else:
            total -= x * x
    return total


def put_first(r, n):
    xs = []
    for i in range(n):
        xs.insert(0, r * i)
    return sum(xs)


@pytest.mark.parametrize("f, n", [(accumulated, 4_000), (branching, 4_000)])
def test_after_one_long_call_the_next_is_answered_by_a_program(monkeypatch, f, n):
    monkeypatch.setattr(Budget, "limited", True)
    clear_cache()
    g = value_and_grad(f)
    with jit(False):
        expected = value_and_grad(f)(2.5, n)
    g(2.4, n)
    assert "0 programs" in explain(g)
    assert g(2.5, n) == pytest.approx(expected, rel=1e-12)
    assert "1 program, " in explain(g)
    with jit(False):
        expected = value_and_grad(f)(2.6, n // 2)
    assert g(2.6, n // 2) == pytest.approx(expected, rel=1e-12)
    assert "1 program, 1 hit" in explain(g)


def test_a_pass_that_takes_far_longer_than_tracing_is_given_up(monkeypatch):
    """What is recorded of an insertion moves all the elements."""
    monkeypatch.setattr(Budget, "limited", True)
    monkeypatch.setattr("wengert.transforms.budget.AT_LEAST", 0.0)
    clear_cache()
    g = value_and_grad(put_first)
    for n in (8_000, 8_010, 8_000, 8_000):
        assert g(2.5, n)[0] == put_first(2.5, n)
    assert "far longer than tracing it" in explain(g)


def test_a_region_that_grows_for_long_is_written_late(monkeypatch):
    """Its passes are recorded and its calls traced, until a pass adds nothing: then a program answers all ways."""

    class Clock:
        now = 0.0
        written = 0
        traced = 0

    clock = Clock()
    monkeypatch.setattr(Budget, "limited", True)
    monkeypatch.setattr(Budget, "latest", 0.12)
    for module in (dispatch, keep):
        monkeypatch.setattr(module, "working", lambda: clock.now)
    traced, program_of, run = Gradient.traced, keep.program_of, keep.Known.run

    def tracing(self, *args):
        clock.now += 1.0
        clock.traced += 1
        return traced(self, *args)

    def passing(self, *args):
        clock.now += 1.0
        return run(self, *args)

    def writing(*args):
        clock.now += 5.0
        clock.written += 1
        return program_of(*args)

    monkeypatch.setattr(Gradient, "traced", tracing)
    monkeypatch.setattr(keep.Known, "run", passing)
    monkeypatch.setattr(keep, "program_of", writing)
    clear_cache()

    def f(x, kind):
        y = x
        for i in range(40):
            if kind > 2:
                y = y * 1.01 + x * i
            elif kind > 1:
                y = y + x / (i + 1) - 0.1 * y
            else:
                y = y - x * x * 0.01 + i * x
        return y

    g = value_and_grad(f)
    slopes = {}
    kinds = [0.5, 1.5, 2.5] * 13
    for kind in kinds:
        value, slope = g(1.5, kind)
        assert value == f(1.5, kind)
        assert slopes.setdefault(kind, slope) == pytest.approx(slope, rel=1e-12)
        h = 1e-6
        assert slope == pytest.approx((f(1.5 + h, kind) - f(1.5 - h, kind)) / 2 / h, rel=1e-6)
    assert 1 <= clock.written <= 2
    assert clock.traced <= 12
    assert clock.now <= 0.8 * len(kinds)
