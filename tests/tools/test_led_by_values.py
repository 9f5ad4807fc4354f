"""Tapes and texts of derivatives for which a rule goes by values: for other values they raise."""

import math

import numpy as np
import pytest

from wengert import (
    GuardError,
    TraceError,
    checkpoint,
    custom_rule,
    pullback,
    reverse,
    save,
    trace,
    value_and_grad,
)
from wengert import forward as forward_tape

SCALE = 2.0


@custom_rule(pure=True)
def leaky(x):
    if x > 0:
        return x * 2.0, lambda d: (2.0 * d,)
    return x * 0.1, lambda d: (0.1 * d,)


@custom_rule(pure=True)
def safe(x):
    try:
        return math.sqrt(x), lambda d: (d / (2.0 * math.sqrt(x)),)
    except ValueError:
        return x, lambda d: (d,)


@custom_rule(pure=True)
def masked(x):
    positive = x > 0
    count = len(x[positive])

    def back(d):
        dx = np.zeros(len(x))
        dx[positive] = d * count
        return (dx,)

    return np.sum(x[positive]) * count, back


@custom_rule(pure=True)
def scaled(x):
    return x * SCALE, lambda d: (d * SCALE,)


@checkpoint
def counted(x):
    return np.sum(x[x > 0] ** 2) * len(x[x > 0])


def by_leaky(x):
    return leaky(x) * x


def by_safe(x):
    return safe(x) * x


def by_masked(x):
    return masked(x) * 2.0


def by_scaled(x):
    return scaled(x) * x


def by_counted(x):
    return counted(x) * 2.0


A, B = np.array([1.0, -1.0, 2.0]), np.array([1.0, 3.0, 2.0])
LED = [(by_leaky, 1.5, -1.5), (by_safe, 4.0, -1.0), (by_masked, A, B)]


@pytest.mark.parametrize(("f", "x", "other"), LED)
@pytest.mark.parametrize("make", [
    lambda f, x: reverse(trace(f, x)),
    lambda f, x: reverse(trace(f, x), form="naive"),
    lambda f, x: forward_tape(trace(f, x)),
])  # fmt: skip
def test_a_tape_of_a_derivative_holds_for_the_traced_arguments(f, x, other, make):
    tape = make(f, x)
    with pytest.raises(GuardError, match="goes by the values that it is given"):
        tape(*[other] * len(tape.parameters or tape.inputs))


@pytest.mark.parametrize(("f", "x", "other"), LED)
def test_a_pullback_holds_for_the_traced_arguments(f, x, other):
    value, back = pullback(f, x)
    assert np.array_equal(back.tape(x, 1.0)[0], back(1.0)[0])
    with pytest.raises(GuardError, match="goes by the values"):
        back.tape(other, 1.0)
    with pytest.raises(TraceError, match="cannot be written down"):
        back.source()


@pytest.mark.parametrize(("f", "x", "other"), LED)
def test_a_file_would_not_check_it(f, x, other, tmp_path):
    with pytest.raises(TraceError, match="cannot be written down"):
        save(value_and_grad(f), tmp_path / "s.py", x)


def test_what_a_rule_reads_outside_is_a_constant_as_ever(tmp_path):
    save(value_and_grad(by_scaled), tmp_path / "s.py", 1.5)
    names = {}
    exec((tmp_path / "s.py").read_text(), names)
    assert names["value_and_grad_by_scaled"](2.5) == (12.5, 10.0)
    assert reverse(trace(by_scaled, 1.5))(2.5) == (12.5, (10.0,))


def test_the_source_of_a_checkpointed_call_checks_the_shapes_that_the_data_decide(tmp_path):
    save(value_and_grad(by_counted), tmp_path / "s.py", A)
    for text, name, args in (
        (trace(by_counted, A).source("made"), "made", ()),
        (pullback(by_counted, A)[1].source(), "back", (1.0,)),
        ((tmp_path / "s.py").read_text(), "value_and_grad_by_counted", ()),
    ):
        names = {}
        exec(text, names)
        names[name](A, *args)
        with pytest.raises(ValueError, match=r"had the shape \(2,\) in the traced run"):
            names[name](B, *args)


@pytest.mark.parametrize(("f", "x", "other"), LED)
def test_so_does_an_edited_one(f, x, other):
    tape = reverse(trace(f, x))
    for edited in (tape.with_primitives([]), tape.insert(len(tape), np.sin, 1.0)):
        with pytest.raises(GuardError, match="goes by the values"):
            edited(other)


def rooted(x):
    try:
        return math.sqrt(x) * 2.0
    except ValueError:
        return x * 3.0


def divided(x):
    try:
        return 2.0 / x
    except ZeroDivisionError:
        return x * 3.0


@custom_rule(pure=True)
def bounded(x):
    if x > 2.0:
        raise LookupError("too far")
    return x * x, lambda d: (2.0 * x * d,)


def by_bounded(x):
    try:
        return bounded(x) * x
    except LookupError:
        return x * 5.0


@pytest.mark.parametrize(
    ("f", "x", "other"), [(rooted, -1.0, 1.0), (divided, 0.0, 1.0), (by_bounded, 3.0, 1.0)]
)
def test_a_tape_that_caught_an_exception_holds_for_the_traced_arguments(f, x, other, tmp_path):
    tape = trace(f, x)
    assert tape(x) == f(x)
    back = pullback(f, x)[1]
    for one, args in (
        (tape, ()),
        (reverse(tape), ()),
        (tape.compile(math=np), ()),
        (back.tape, (1.0,)),
    ):
        with pytest.raises(GuardError, match="was caught"):
            one(other, *args)
    for write in (tape.source, back.source, lambda: save(f, tmp_path / "s.py", x)):
        with pytest.raises(TraceError, match="was caught"):
            write()
