"""What programs may cost: with a clock of our own, in which a traced call takes one second."""

import math
import re
from collections import Counter

import numpy as np
import pytest
from worlds import clear_cache

from wengert import explain, grad, settings, value_and_grad
from wengert.transforms import budget, dispatch
from wengert.transforms.budget import FREE, SHARE, Budget
from wengert.transforms.gradients import Gradient
from wengert.transforms.programs import Program


@pytest.fixture
def work(monkeypatch):
    """What was done, and what building and a program's run take."""
    clear_cache()
    done: Counter[str] = Counter()
    done.building, done.running, done.now = 10.0, 0.05, 0.0
    monkeypatch.setattr(Budget, "limited", True)
    monkeypatch.setattr(dispatch, "clock", lambda: done.now)
    monkeypatch.setattr(dispatch, "working", lambda: done.now)
    monkeypatch.setattr(budget, "PER_OPERATION", 2.0)
    traced, build, alone = Gradient.traced, Gradient.build, vars(Program)["alone"]

    def tracing(self, *args):
        done["traced"] += 1
        done.now += 1.0
        return traced(self, *args)

    def building(self, run):
        done["built"] += 1
        done.now += done.building
        return build(self, run)

    def running(self):
        def run(*args, **kwargs):
            done.now += done.running
            return alone.func(self)(*args, **kwargs)

        return run

    monkeypatch.setattr(Gradient, "traced", tracing)
    monkeypatch.setattr(Gradient, "build", building)
    monkeypatch.setattr(Program, "alone", property(running))
    return done


text = ""


def other_each_time(x):
    return x * len(text)


def test_what_never_answers(work):
    """Programs of a function that is another one at each call cost their share, and less and less of it."""
    global text
    g = grad(other_each_time)
    for n in range(1, 400):
        text = "a" * n
        assert g(1.5) == n
        credit = work.building if work["built"] else 0.0  # it does the same, the length apart
        assert work.now - n <= max(FREE, SHARE * n) + credit
        if n >= 100:
            assert work.now <= 1.3 * n
    assert 2 <= work["built"] <= 6
    assert work.now < 1.2 * n


@pytest.mark.parametrize("building", [0.1, 10.0, 1000.0])
def test_what_does_not_vary_answers_from_the_fourth_call_on(work, building):
    work.building = building
    g = value_and_grad(lambda x: x * x)
    for x in range(20):
        assert g(float(x)) == (x * x, 2.0 * x)
    assert (work["built"], work["traced"]) == (1, 3)


def test_what_goes_another_way_each_time_is_given_no_credit(work):
    def f(x, n):
        for i in range(n):
            x = math.sin(x) if n >> i % 7 & 1 else math.cos(x)
        return x

    g = grad(f)
    for n in range(1, 40):
        g(1.5, n)
        assert work.now <= 2.5 * n and (n < 10 or work.now <= 1.3 * n)


def test_what_was_won_may_be_spent(work):
    """Paths that come again are all kept in the end."""

    def f(x):
        for i in range(6):
            if x < i:
                return x * i
        return x

    g = grad(f)
    for _ in range(60):
        for i in range(1, 6):
            assert g(i - 0.5) == i
    before = work["traced"]
    for i in range(1, 6):
        assert g(i - 0.5) == i
    assert work["traced"] == before
    assert work["built"] <= 10


def test_programs_that_do_not_answer_are_tried_less_often(work):
    global text
    work.running, work.building = 2.0, 0.0
    g = grad(other_each_time)
    for n in range(1, 300):
        text = "a" * n
        assert g(1.5) == n
    assert work.now < 1.3 * n


def test_calls_that_raise_are_traced_calls(work):
    def f(x):
        raise KeyError(x)

    g = grad(f)
    for _ in range(5):
        with pytest.raises(KeyError):
            g(1.5)
    assert work["traced"] == 5 and work["built"] == 0


def test_the_budget_is_told(work):
    global text
    work.building = 100.0
    g = grad(other_each_time)
    for n in range(6):
        text = "a" * n
        g(1.5)
    assert "programs have cost 100" in explain(g)


@pytest.mark.parametrize("name", ["paths", "patience", "unroll"])
def test_settings_without_a_meaning(name):
    before = getattr(settings, name)
    with pytest.warns(DeprecationWarning, match=f"settings.{name} does nothing"):
        setattr(settings, name, 1)
    assert getattr(settings, name) == before
    with pytest.raises(AttributeError, match="there is no setting path;"):
        settings.path = 3


def test_a_loop_over_rows_goes_the_same_way(work):
    """The places of some operations are made anew at each call, and are the same places."""

    def total(rows, x, n):
        state = 0.0
        for row in rows:
            state = state * 0.5 + np.tanh(row * x).sum()
        for _ in range(n):
            state = state * x
        return state

    step = grad(total, argnums=1)
    for x in (0.1, 0.2, 0.3):
        step(np.ones((4, 3)), x, 3)
    assert work["traced"] == 3 and work["built"] == 1
    assert "for all ways" not in str(explain(step))


def test_a_long_program_waits_until_tracing_has_taken_as_long():
    spent = Budget()
    spent.note_trace(1.0, 1, 60_000)
    assert spent.may_be_long(30_000) and not spent.may_be_long(60_000)
    spent.note_trace(1.0, 1, 60_000)
    assert spent.may_be_long(60_000)


def test_long_straight_code_is_kept():
    lines = ("x = x * y", "y = y - 0.5 * x", "x = 0.5 * x + 0.1")
    text = "\n    ".join(lines[i % 3] for i in range(21_000))
    scope: dict = {}
    exec(f"def straight(x, y):\n    {text}\n    return x + y\n", scope)
    straight = scope["straight"]
    both = value_and_grad(straight, argnums=(0, 1))
    for _ in range(3):
        both(0.3, 0.2)
    told = explain(both, 0.3, 0.2)
    assert "would answer" in told
    assert int(re.search(r"(\d+) operations forward", told)[1]) > 30_000
    value, slopes = both(0.4, 0.1)
    assert value == straight(0.4, 0.1)
    for i, slope in enumerate(slopes):
        h = 1e-6
        up, down = [0.4, 0.1], [0.4, 0.1]
        up[i] += h
        down[i] -= h
        assert slope == pytest.approx((straight(*up) - straight(*down)) / (2 * h), abs=1e-7)
