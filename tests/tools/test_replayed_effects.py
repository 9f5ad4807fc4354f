"""What a run does to its arguments and to random generators, when its tape is run again."""

import copy
import random

import numpy as np
import pytest

from wengert import TraceError, reverse, trace


class Box:
    def __init__(self, *items):
        self.items = [*items]


def taken_out(d, x):
    items = d.pop("items")
    items.append(x)
    d["kept"] = items
    return x


def added(s, x):
    s.add("z")
    return x


def one_in_the_other(d, x):
    d["inner"].append(x)
    d["outer"] = [d["inner"], {"too": d["inner"]}]
    return x


def replaced(box, x):
    before = box.items
    box.items = [before, x]
    before.append(x)
    return x


def emptied(rows, x):
    row = rows[0]
    rows.clear()
    row.append(x)
    rows.append(row)
    return x


CHANGES = [
    (taken_out, {"items": [1.0]}, {"items": [2.0]}),
    (added, {"a"}, {"a"}),
    (one_in_the_other, {"inner": []}, {"inner": []}),
    (replaced, Box(), Box()),
    (emptied, [[1.0]], [[2.0]]),
]


def seen(x):
    return vars(x) if isinstance(x, Box) else x


@pytest.mark.parametrize(("f", "first", "second"), CHANGES)
@pytest.mark.parametrize("make", [lambda t: t, reverse, lambda t: t.with_primitives([])])
def test_a_tape_does_to_what_is_given_what_the_function_does(f, first, second, make):
    first, second = copy.deepcopy((first, second))
    tape = make(trace(f, first, 1.5))
    then, plain = copy.deepcopy((first, second))
    f(plain, 2.5)
    tape(second, 2.5)
    assert seen(second) == seen(plain)
    assert seen(first) == seen(then)
    if f is one_in_the_other:
        assert second["outer"][0] is second["inner"] is second["outer"][1]["too"]


RNG = np.random.default_rng(1)


def seeded(x):
    np.random.seed(3)
    return x * np.random.normal()


def seeded_by_python(x):
    random.seed(3)
    return x * random.random()


def of_its_own(x):
    return x * np.random.default_rng(3).normal()


def of_its_own_in_python(x):
    return x * random.Random(3).random()


def counted(x):
    return x * int(RNG.integers(1000))


@pytest.mark.parametrize("f", [seeded, seeded_by_python, of_its_own, of_its_own_in_python, counted])
def test_a_tape_does_not_go_on_with_what_was_seeded(f):
    tape = trace(f, 1.5)
    for one in (tape, reverse(tape), tape.with_primitives([])):
        with pytest.raises(TraceError, match="cannot be run again"):
            one(1.5)
        with pytest.raises(TraceError, match="cannot be written down"):
            one.source()
    with pytest.raises(TraceError, match="cannot be run again"):
        tape.compile(math=np)(1.5)


def test_a_tape_draws_anew_from_a_generator_outside():
    tape = trace(lambda x: x * RNG.normal(), 1.5)
    state = RNG.bit_generator.state
    found = tape(2.0)
    RNG.bit_generator.state = state
    assert found == 2.0 * RNG.normal()


@pytest.mark.parametrize("make", [random.Random, np.random.default_rng, np.random.RandomState])
def test_a_tape_takes_generators_of_the_class_that_it_was_traced_with(make):
    tape = trace(lambda rng, x: rng.random() * x, make(1), 1.5)
    assert tape(make(2), 1.5) == make(2).random() * 1.5
    with pytest.raises(TraceError, match="is an object, but was"):
        tape(object(), 1.5)
