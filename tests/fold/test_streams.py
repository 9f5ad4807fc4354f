"""Folded functions that draw random numbers: from generators outside, of Python's and of NumPy's.

Every call is compared with plain Python from the same state of every generator, also with the state that is left.
"""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from wengert import NoRuleError, explain, jit, pullback, value_and_grad
from wengert.transforms import cache

pytestmark = pytest.mark.usefixtures("folding_at_once")

CALLS = 25
rng = np.random.default_rng(0)
old = np.random.RandomState(1)
R = random.Random(2)
toss = R.random


class Walker:
    def __init__(self) -> None:
        self.stream = random.Random(3)
        self.rng = np.random.default_rng(4)
        self.step = 0.3

    def walk(self, x: float) -> float:
        total, n = x, 0
        while self.stream.random() < 0.7 and n < 20:
            total += self.step * x * self.rng.normal()
            n += 1
        return total


walker = Walker()


def stops(x: float) -> float:
    total = 0.0
    while R.random() < 0.7:
        total += x * R.random()
    return total * x


def of_the_module(x: float) -> float:
    total = 0.0
    while random.random() < 0.6:
        total += x * x * random.uniform(1.0, 2.0)
    return total


def kept_method(x: float) -> float:
    return x * x if toss() < 0.5 else 3.0 * x * toss()


def of_numpy(x: float) -> float:
    total = x
    for _ in range(rng.integers(1, 6)):
        total = total + x * rng.normal(0.0, 1.0) if rng.random() < 0.5 else total * x
    return total


def of_numpys_module(x: float) -> float:
    total = 0.0
    while np.random.rand() < 0.6:
        total += np.sin(x) * np.random.standard_normal()
    return float(total)


def of_old_numpy(x: float) -> float:
    return x * old.randn() if old.rand() < 0.5 else x**2


def arrays(x: float) -> float:
    noise = rng.standard_normal(rng.integers(1, 5))
    while rng.random() < 0.5:
        noise = noise + rng.normal(size=len(noise))
    return float(np.sum(x * noise**2))


def by_argument(x: float, source: Any) -> float:
    total = x
    while source.random() < 0.5:
        total *= 1.0 + x * source.random()
    return total


def in_a_dict(x: float, tools: Any = {"rng": random.Random(5)}) -> float:  # noqa: B006
    total = x
    while tools["rng"].random() < 0.5:
        total += x * x
    return total


def chosen(x: float) -> float:
    stream = R if x > 0.0 else walker.stream
    total = x
    while stream.random() < 0.5:
        total += x * stream.random()
    return total


def rarely(x: float) -> float:
    """A way that is met late, behind draws that were made."""
    first, second = R.random(), rng.random()
    if first * second > 0.8:
        return x * first + R.random()
    return x * x * second


def walked(x: float) -> float:
    return walker.walk(x)


def unneeded(x: float) -> float:
    """A draw that nobody looks at is made all the same."""
    R.random()
    return x * x if R.random() < 0.5 else x


def inside(x: float, depth: int = 0) -> float:
    return x if R.random() < 0.5 or depth > 8 else x * inside(x, depth + 1) + R.random()


DATA = np.linspace(0.5, 2.0, 30).reshape(10, 3)


def indexed(x: float) -> float:
    total = 0.0
    while rng.random() < 0.7:
        total += x * DATA[rng.integers(10), old.randint(3)]
    return float(total)


def picked(x: float) -> float:
    return x ** R.choice([1.0, 2.0, 3.0]) * R.randrange(1, 5) + R.randint(1, 300)


def of_its_own(x: float) -> float:
    """Generators that it makes itself, from a number that is drawn."""
    seed = int(R.random() * 1000)
    mine, numpys, old_one = (
        random.Random(seed),
        np.random.default_rng(seed),
        np.random.RandomState(seed),
    )
    total = 0.0
    while mine.random() < 0.8:
        total += x * numpys.normal() * old_one.rand() + float(np.sum(numpys.random(3)))
    return total * x


def normals(x: float) -> float:
    """Every second one of these is kept in the generator."""
    total = x
    while random.random() < 0.8:
        total += x * random.gauss(0.0, 1.0) + R.gauss(x, 0.3) * R.normalvariate(0.0, 0.1)
        total *= R.gauss() if total > 1.0 else 1.0
    return total


def straight(x: float) -> float:
    return x * R.gauss(x, 2.0) + R.gauss()


def streams() -> list[Any]:
    return [rng, old, R, random._inst, np.random.mtrand._rand, walker.stream, walker.rng] + [
        in_a_dict.__defaults__[0]["rng"]  # type: ignore[index]
    ]


def state(stream: Any) -> Any:
    if type(stream) is random.Random:
        return stream.getstate()
    if type(stream) is np.random.Generator:
        return stream.bit_generator.state
    return stream.get_state(legacy=False)


def put(stream: Any, to: Any) -> None:
    if type(stream) is random.Random:
        stream.setstate(to)
    elif type(stream) is np.random.Generator:
        stream.bit_generator.state = to
    else:
        stream.set_state(to)


def like(stream: Any) -> Any:
    """Another generator of the same kind, which is as at the start of every test."""
    kind = type(stream)
    return np.random.default_rng(7) if kind is np.random.Generator else kind(7)


def states() -> list[Any]:
    return [copy.deepcopy(state(x)) for x in streams()]


def put_all(to: list[Any]) -> None:
    for stream, x in zip(streams(), to, strict=True):
        put(stream, copy.deepcopy(x))


def from_here(f: Callable[..., Any], here: list[Any], *args: Any) -> Any:
    """What plain Python gives from a state of all generators."""
    put_all(here)
    return f(*args)


NOT_FOLDED = [normals, straight]  # what is kept in the generator is an attribute of it


@pytest.fixture(autouse=True)
def as_at_the_start():
    put_all([state(like(x)) for x in streams()])


PROGRAMS = [
    stops, of_the_module, kept_method, of_numpy, of_numpys_module, of_old_numpy, arrays, in_a_dict, chosen, rarely,
    walked, unneeded, inside, indexed, picked, of_its_own, normals, straight,
]  # fmt: skip


@pytest.mark.parametrize("how", ["value_and_grad", "pullback"])
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_draws_are_those_of_plain_python(f, how):
    g = value_and_grad(f)
    for i in range(CALLS):
        x = 0.3 + 0.05 * i
        here = states()
        value = from_here(f, here, x)
        left = states()
        h = 1e-6
        slope = (from_here(f, here, x + h) - from_here(f, here, x - h)) / (2 * h)
        put_all(here)
        if how == "pullback":
            found, back = pullback(f, x)
            gradient = back(1.0)[0]
            if i % 3 == 0:  # the tape of this very call, which draws nothing again
                assert back(np.float64(2.0))[0] == pytest.approx(2.0 * gradient, rel=1e-12)
        else:
            found, gradient = g(x)
        assert found == value
        assert gradient == pytest.approx(slope, rel=1e-5, abs=1e-6)
        assert pickle.dumps(states()) == pickle.dumps(left)
    if how == "value_and_grad" and f not in NOT_FOLDED:
        assert " for all ways that runs have gone" in str(explain(g, 1.0)), str(explain(g, 1.0))


def test_a_generator_that_is_an_argument_may_be_another_one_each_time():
    g = value_and_grad(by_argument)
    for i in range(CALLS):
        make = random.Random if i % 3 else np.random.default_rng
        here, twin = make(i), make(i)
        x = 0.2 + 0.01 * i
        value = by_argument(x, twin)
        found, gradient = g(x, here)
        assert found == value
        assert pickle.dumps(state(here)) == pickle.dumps(state(twin))
        slope = by_argument(x + 1e-6, make(i)) - by_argument(x - 1e-6, make(i))
        assert gradient == pytest.approx(slope / 2e-6, rel=1e-5)
    assert " for all ways that runs have gone" in str(explain(g, 1.0, random.Random(1)))


def test_what_was_drawn_is_served_once_when_a_run_is_refused():
    """Whatever refuses a run behind draws, the traced run goes on with these draws."""

    def f(x, late):
        first = R.random()
        if late:
            return x * first * len(str(late)) * eval("R.random()")
        return x * first

    for on in (True, False):
        with jit(on):
            cache.clear_cache() if hasattr(cache, "clear_cache") else None
            g = value_and_grad(f)
            for i in range(20):
                here = states()
                value = from_here(f, here, 2.0, i % 7 == 6)
                left = states()
                put_all(here)
                assert g(2.0, i % 7 == 6) == (value, value / 2.0)
                assert pickle.dumps(states()) == pickle.dumps(left)


def test_an_error_behind_a_draw():
    def f(x):
        a = R.random()
        while a < 0.5:
            a += R.random()
        if a > 1.3:
            raise ValueError(f"too large: {a}")
        return x * a

    g = value_and_grad(f)
    raised = 0
    for _ in range(2 * CALLS):
        here = states()
        try:
            expected = from_here(f, here, 2.0)
        except ValueError as error:
            left = states()
            put_all(here)
            with pytest.raises(ValueError, match=str(error)):
                g(2.0)
            raised += 1
        else:
            left = states()
            put_all(here)
            assert g(2.0) == (expected, expected / 2.0)
        assert pickle.dumps(states()) == pickle.dumps(left)
    assert raised


def test_a_method_that_is_replaced_is_seen():
    class Source:
        def __init__(self) -> None:
            self.stream = random.Random(1)

    source = Source()

    def f(x):
        return x if source.stream.random() < 0.5 else x * x

    g = value_and_grad(f)
    for _ in range(20):
        twin = copy.deepcopy(source.stream)
        assert g(3.0) == ((3.0, 1.0) if twin.random() < 0.5 else (9.0, 6.0))
    source.stream.random = lambda: 0.9  # type: ignore[method-assign]
    assert g(3.0) == (9.0, 6.0)
    source.stream.random = lambda: 0.1  # type: ignore[method-assign]
    assert g(3.0) == (3.0, 1.0)
    del source.stream.random
    source.stream = np.random.default_rng(3)
    twin = copy.deepcopy(source.stream)
    assert g(3.0) == ((3.0, 1.0) if twin.random() < 0.5 else (9.0, 6.0))


SPREAD = 0.5


def by_both(x: float) -> float:
    total = 0.0
    while rng.random() < 0.6:
        total += rng.normal(x, SPREAD * x) ** 2
    return total + x


def by_a_global(x: float) -> float:
    total = x
    while rng.random() < 0.6:
        total += x * rng.normal(0.0, SPREAD) + old.uniform(SPREAD, 2.0 * x)
    return total


def by_arrays(x: float) -> float:
    total = 0.0
    while rng.random() < 0.6:
        total += float(np.sum(rng.normal(x * DATA[0], SPREAD, size=3) ** 2))
    return total + x


def by_a_list(x: float) -> float:
    total = x
    while rng.random() < 0.6:
        y = rng.multivariate_normal([x, 2.0 * x], [[1.0, 0.2], [0.2, 1.0]])
        total += float(y[0] * y[1])
    return total


def steeply(x: float) -> float:
    """A location so far away that the noise is drawn again from a copy."""
    total = 0.0
    while rng.random() < 0.6:
        total += rng.normal(1e6 * x, 1e-3 * x)
    return total + x


@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "later"])
@pytest.mark.parametrize(
    "f", [by_both, by_a_global, by_arrays, by_a_list, steeply], ids=lambda f: f.__name__
)
def test_parameters_of_a_draw_that_have_derivatives(f, at_once, monkeypatch):
    """A draw from a distribution by parameters is followed by its noise."""
    if (
        not at_once
    ):  # so that flat programs are left in the middle, and regions given what these have drawn
        monkeypatch.setattr(cache, "VARIED", 3)
    g = value_and_grad(f)
    for i in range(CALLS):
        x = 1.0 + 0.1 * i
        here = states()
        value = from_here(f, here, x)
        left = states()
        h = 1e-6 * x
        slope = (from_here(f, here, x + h) - from_here(f, here, x - h)) / (2 * h)
        put_all(here)
        found, gradient = g(x)
        assert found == value
        assert gradient == pytest.approx(slope, rel=1e-5)
        assert pickle.dumps(states()) == pickle.dumps(left)
    assert " for all ways that runs have gone" in str(explain(g, 1.0)), str(explain(g, 1.0))


def test_a_method_in_c_is_another_object_at_each_mention_and_the_same_method():
    """A program of one way answers, until the generator is another one."""
    world = {"stream": random.Random(1)}

    def f(x):
        return x * x * world["stream"].random()

    with jit(True):
        g = value_and_grad(f)
        for _ in range(6):
            twin = copy.deepcopy(world["stream"])
            assert g(2.0)[0] == 4.0 * twin.random()
        assert "0 misses" in str(explain(g, 2.0))
        world["stream"] = random.Random(2)
        twin = copy.deepcopy(world["stream"])
        assert g(2.0)[0] == 4.0 * twin.random()


def common_numbers(x: float) -> float:
    """Common random numbers: the state is put back, so that the next call draws the same ones."""
    start = rng.bit_generator.state
    total = 0.0
    for _ in range(30):
        z = rng.normal()
        total += max(x + z, 0.0) if z < x else x * z
    rng.bit_generator.state = start
    return total


def common_numbers_of_python(x: float) -> float:
    start = R.getstate()
    total = R.gauss(0.0, 1.0) * x
    while R.random() < 0.7:
        total += x * R.gauss(x, 1.0)
    R.setstate(start)
    return total + R.random()


@pytest.mark.parametrize("fold", [True, False], ids=["folded", "flat"])
@pytest.mark.parametrize("f", [common_numbers, common_numbers_of_python], ids=lambda f: f.__name__)
def test_a_state_is_read_before_what_changes_it(f, fold, monkeypatch):
    """A run that takes up what a program has drawn must not find the state after these draws."""
    if not fold:
        monkeypatch.setenv("WENGERT_FOLD", "0")
    g = value_and_grad(f)
    for x in (1.0, 3.59, 2.11, 1.37, 2.5, 1.0, 1.0, 0.3, 4.0, 2.2, 1.1, 0.7):
        here = states()
        value = from_here(f, here, x)
        left = states()
        slope = (from_here(f, here, x + 1e-7) - from_here(f, here, x - 1e-7)) / 2e-7
        put_all(here)
        found, gradient = g(x)
        assert found == value
        assert gradient == pytest.approx(slope, rel=1e-5)
        assert pickle.dumps(states()) == pickle.dumps(left)


def seeded_inside(x: float) -> float:
    random.seed(0)
    return x * random.gauss(0.0, 1.0) * float(np.sum(np.ones(2)))


def numpys_state_put_back(x: float) -> float:
    start = np.random.get_state()
    y = x * np.random.rand() + 0.5 * start[2]
    np.random.set_state(start)
    return y


@pytest.mark.parametrize("fold", [True, False], ids=["folded", "flat"])
@pytest.mark.parametrize("f", [seeded_inside, numpys_state_put_back], ids=lambda f: f.__name__)
def test_states_of_modules(f, fold, monkeypatch):
    if not fold:
        monkeypatch.setenv("WENGERT_FOLD", "0")
    g = value_and_grad(f)
    for i in range(12):
        np.random.seed(1)
        np.random.rand(i)
        here = states()
        value = from_here(f, here, 1.0 + i)
        left = states()
        slope = from_here(f, here, 2.0 + i) - value
        put_all(here)
        found, gradient = g(1.0 + i)
        assert found == value
        assert gradient == pytest.approx(slope, rel=1e-9)
        assert pickle.dumps(states()) == pickle.dumps(left)


def mostly_nothing(ask, at):
    """A function that asks a generator for more in its last calls alone, and what it is given then."""

    def f(x, lists, i):
        total = x
        if rng.random() < 2.0 and lists[i] is not None:
            total += float(ask(x))
        return total

    return f, [None] * at + [[1.0]] * 8


@pytest.mark.parametrize("at", [0, 12], ids=["at once", "late"])
@pytest.mark.parametrize(
    "ask",
    [lambda x: rng.dirichlet([x, 2 * x])[0], lambda x: rng.standard_t(np.array([x, 2 * x]))[0]],
    ids=["dirichlet", "array"],
)
def test_what_is_drawn_of_numbers_with_derivatives_is_no_constant(ask, at):
    """Such a draw has no rule: that is an error, never a slope without it."""
    f, lists = mostly_nothing(ask, at)
    g = value_and_grad(f)
    for i, asked in enumerate(lists):
        if asked is None:
            assert g(2.0, lists, i) == (2.0, 1.0)
        else:
            with pytest.raises(NoRuleError):
                g(2.0, lists, i)


@pytest.mark.parametrize("at", [0, 12], ids=["at once", "late"])
@pytest.mark.parametrize(
    "ask",
    [
        lambda x: rng.permutation([x, 2 * x, 3 * x])[0],
        lambda x: rng.choice([x, 2 * x]),
        lambda x: rng.choice(np.array([x, 2 * x])),
        lambda x: rng.permutation(rng.permutation(np.ones(2)) * x)[0],
    ],
    ids=["permutation", "choice", "array", "constant"],
)
def test_what_is_picked_of_numbers_with_derivatives_has_theirs(ask, at):
    f, lists = mostly_nothing(ask, at)
    g = value_and_grad(f)
    for i in range(len(lists)):
        here = states()
        expected, left = f(2.0, lists, i), states()
        put_all(here)
        assert g(2.0, lists, i) == (expected, expected / 2.0)
        assert pickle.dumps(states()) == pickle.dumps(left)


def test_a_list_that_is_chosen_late_is_no_constant():
    """Which of two lists is drawn from says an index, and one of them holds numbers with a derivative."""

    def f(x, i):
        lists = [[1.0, 2.0], [x, 2.0 * x]]
        return x + float(rng.choice(lists[i]))

    g = value_and_grad(f)
    for i in (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1):
        value, slope = g(3.0, i)
        assert slope == (value / 3.0 if i else 1.0)
