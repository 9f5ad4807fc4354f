"""Functions of the user's that are declared to have no derivative: what they give is a decision."""

import numpy as np
import pytest

from wengert import GuardError, clear_cache, jit, nondiff, trace, value_and_grad
from wengert.transforms import cache


@nondiff
def side(x):
    return "right" if x > 0 else "left"


@nondiff
def found(x):
    return None if x < 0 else [1, 2]


@nondiff
def digits(x):
    return [1] * int(abs(x))


@nondiff
def both(x):
    return int(x), side(x)


def by_text(x):
    return x * 2.0 if side(x) == "right" else x * 3.0


def by_none(x):
    return x * 2.0 if found(x) is None else x * 3.0


def by_length(x):
    return x * len(digits(x))


def by_part(x):
    return x * 2.0 if both(x)[1] == "right" else x * 3.0


CASES = [
    (by_text, 1.5, -1.5),
    (by_none, 1.5, -1.5),
    (by_none, -1.5, 1.5),
    (by_length, 1.5, 2.5),
    (by_part, 1.5, -1.5),
]


@pytest.mark.parametrize(("f", "x", "other"), CASES)
@pytest.mark.parametrize("on", [True, False])
def test_a_program_asks_again(f, x, other, on):
    both = value_and_grad(f)
    with jit(on):
        for y in (x, x, x, other, other, x, other):
            assert both(y) == (f(y), f(y) / y)


@pytest.mark.parametrize(("f", "x", "other"), CASES)
def test_a_tape_holds_for_what_it_gave(f, x, other):
    tape = trace(f, x)
    assert tape(x) == f(x)
    with pytest.raises(GuardError):
        tape(other)


def test_so_does_its_text():
    names = {}
    exec(trace(by_part, 1.5).source("made"), names)
    assert names["made"](2.5) == 5.0
    with pytest.raises(ValueError, match="in the traced run"):
        names["made"](-1.5)


@nondiff
def kinds_of(x):
    return np.array(["low" if v < 2.0 else "high" for v in x.tolist()])


@pytest.mark.parametrize(
    "chosen", [lambda x: kinds_of(x)[0] == "low", lambda x: x.astype(str)[0] == "1.5"]
)
def test_an_array_of_texts_is_a_decision(chosen):
    """Programs, tapes and sources went on with the texts of the first run."""

    def f(x):
        return (x * x).sum() * (2.0 if chosen(x) else 1.0)

    both = value_and_grad(f)
    with jit(True):
        for first in (1.5, 1.5, 1.5, 3.0, 1.5, 4.0, 3.0, 1.5):
            x = np.array([first, 1.0])
            value, slope = both(x)
            assert value == f(x)
            assert slope.tolist() == (2.0 * x * (2.0 if first == 1.5 else 1.0)).tolist()
    tape = trace(f, np.array([1.5, 1.0]))
    assert tape(np.array([1.5, 1.0])) == 6.5
    with pytest.raises(GuardError, match="in the traced run, and is"):
        tape(np.array([3.0, 1.0]))
    names = {}
    exec(tape.source("f"), names)
    assert names["f"](np.array([1.5, 1.0])) == 6.5
    with pytest.raises(ValueError, match="in the traced run"):
        names["f"](np.array([3.0, 1.0]))


def test_what_it_does_is_seen_and_done_once_a_call():
    """It may write to what it is given and to what it reaches, and what is read after it is read anew."""
    log, count = [1.0], [0]

    @nondiff
    def fill(x, held):
        held.append(3.0)

    @nondiff
    def bump(i):
        log.append(float(i))

    @nondiff
    def tick():
        count[0] += 1
        return count[0]

    def f(x):
        held, total = [1.0], len(log) * x
        fill(x, held)
        for i in range(3):
            bump(i)
            total = total + log[-1] * x
        return total * sum(held) * tick() * len(log)

    for on in (False, True):
        with jit(on):
            both = value_and_grad(f)
            for turn in range(1, 8):
                log[:], count[0] = [1.0] * turn, turn
                expected = (turn + 3.0) * 4.0 * (turn + 1) * (turn + 3)
                assert both(1.0) == (expected, expected)
                assert (len(log), count) == (turn + 3, [turn + 1])


@nondiff(pure=True)
def bucket(x):
    return int(x // 10)


def test_one_that_only_computes_is_called_by_kept_programs():
    clear_cache()
    both = value_and_grad(lambda x: x * bucket(x))
    for x in (15.0, 16.0, 17.0, 18.0, 25.0, 35.0):
        assert both(x) == (x * bucket(x), bucket(x))
    (entry,) = cache.entries.values()
    assert sum(program.hits for program in entry.programs) > 0
