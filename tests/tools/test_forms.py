"""The forms of the reverse sweep: each is run, and gives the gradient; and each reads as the works say it should."""

import math

import numpy as np
import pytest

from helpers import assert_close
from wengert import (
    NoRuleError,
    Op,
    TraceError,
    custom_rule,
    pullback,
    reverse,
    rrule,
    stages,
    trace,
)
from wengert.rules.registry import rules

FORMS = ("pairs", "naive", "final")


def evaluate(tape, *inputs):
    """Run a tape, one op after the other, as anybody could."""
    values = dict(zip(tape.inputs, inputs, strict=True))

    def look(x):
        if isinstance(x, list | tuple):
            return type(x)(look(item) for item in x)
        if isinstance(x, slice):
            return slice(look(x.start), look(x.stop), look(x.step))
        return values[x] if isinstance(x, Op) else x

    for op in tape:
        if op.kind == "call":
            values[op] = op.fn(*look(op.args), **{k: look(x) for k, x in op.kwargs.items()})
        elif op.kind == "guard":
            assert look(op.args)[0] == op.value
    return look(tape.result)


def haaland(x1, x2):
    y1 = x1 / 3.7
    y2 = y1**1.11
    y3 = 6.9 / x2
    y4 = y2 + y3
    y5 = math.log(y4)
    y6 = -1.8 * y5
    return y6**-2


def quotient(a, b):
    return a / (a + b * b)


def logistic(r, x):
    for _ in range(20):
        x = r * x * (1 - x)
    return x


def network(w, x):
    for i in range(4):
        h = np.tanh(w @ x)
        x = h if i % 2 else h + x
    return float(np.concatenate([x, h], axis=0).sum(axis=0)) * 1.0


def written(x):
    a = np.zeros(3)
    a[0] = x
    a[1:] = x * x
    a *= x
    return a @ a


def parts(a):
    q, r = np.linalg.qr(a)
    return float(np.sum(q * np.array([[1.0, 2.0], [3.0, 4.0]]))) * 1.0


def decided(x, y):
    z = x if x > y else y
    return z * max(x, y) + abs(x - y)


PROGRAMS = [
    (haaland, (0.01, 3000.0)),
    (quotient, (2.0, 3.0)),
    (logistic, (3.7, 0.5)),
    (
        lambda w, x: np.concatenate([np.tanh(w @ x), x], axis=0).sum(axis=0),
        (np.eye(2) / 2, np.ones(2)),
    ),
    (lambda v: np.sum(v[::2] * v[1::2]), (np.arange(4.0),)),
    (written, (1.7,)),
    (
        lambda a: np.sum(np.linalg.qr(a)[0] * np.array([[1.0, 2.0], [3.0, 4.0]])),
        (np.array([[2.0, 1.0], [0.5, 3.0]]),),
    ),
    (decided, (0.4, 1.5)),
    (lambda x: 3.0, (1.0,)),
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("program", "args"), PROGRAMS, ids=lambda x: getattr(x, "__name__", ""))
def test_each_form_gives_the_gradient(program, args, form):
    tape = reverse(trace(program, *args), form=form)
    given = [op.value for op in tape.inputs]
    value, gradients = evaluate(tape, *given)
    expected, back = pullback(program, *args)
    assert_close(value, expected, tol=0)
    for mine, theirs in zip(gradients, back(np.ones_like(expected)[()]), strict=True):
        assert mine == pytest.approx(theirs, rel=1e-12)


def test_each_form_can_be_run_elsewhere():
    for form in FORMS:
        tape = reverse(trace(haaland, 0.01, 3000.0), form=form)
        value, gradients = evaluate(tape, 0.02, 2000.0)
        assert value == haaland(0.02, 2000.0)
        assert gradients == pytest.approx(pullback(haaland, 0.02, 2000.0)[1](1.0), rel=1e-12)


def lines(tape):
    return [x.partition("  # ")[0].strip() for x in str(tape).splitlines()[1:]]


def line(m, x, b):
    return m * x + b


def test_from_the_naive_form_down_to_m():
    tape = trace(line, 2.0, 3.0, 1.0)
    inputs = [f"{name} = input :: float" for name in "mxb"]
    assert lines(reverse(tape, wrt="x", value=False, form="pairs")) == [
        *inputs,
        "%4, back4 = pair(mul)(m, x) :: float",
        "%5, back5 = pair(add)(%4, b) :: float",
        "%6, db = back5(1.0) :: float, float",
        "dm, dx = back4(%6) :: float, float",
        "return dx",
    ]
    assert lines(reverse(tape, wrt="x", value=False, form="naive")) == [
        *inputs,
        "%4 = mul(m, x) :: float",
        "%5 = add(%4, b) :: float",
        "dm = mul(1.0, x) :: float",
        "dx = mul(1.0, m) :: float",
        "return dx",
    ]
    assert lines(reverse(tape, wrt="x", value=False)) == [*inputs, "return m"]


def test_cotangents_have_the_names_of_what_they_are_of():
    tape = reverse(trace(haaland, 0.01, 3000.0), form="pairs")
    assert lines(tape)[9:] == [
        "dy6, = back9(1.0) :: float",
        "_, dy5 = back8(dy6) :: float",
        "dy4, = back7(dy5) :: float",
        "dy2, dy3 = back6(dy4) :: float, float",
        "_, dx2 = back5(dy3) :: float",
        "dy1, = back4(dy2) :: float",
        "dx1, = back3(dy1) :: float",
        "return (%9, (dx1, dx2))",
    ]


def test_what_is_used_twice_is_accumulated():
    tape = reverse(trace(quotient, 2.0, 3.0), form="pairs")
    text = lines(tape)
    assert "da = add(%6, %8) :: float" in text
    assert "db = add(%11, %12) :: float" in text
    value, gradients = evaluate(tape, 2.0, 3.0)
    assert value == pytest.approx(2 / 11)
    assert gradients == pytest.approx((9 / 121, -12 / 121))


def test_a_loop_of_pairs():
    text = lines(reverse(trace(logistic, 3.7, 0.5), form="pairs"))
    assert "%9, %10 = back6[19…0](dx) :: float, float" in text
    assert len(text) < 20


def test_unknown_forms_and_rules_are_refused():
    tape = trace(line, 2.0, 3.0, 1.0)
    with pytest.raises(TraceError, match="form is one of 'pairs', 'naive', 'final', not 'last'"):
        reverse(tape, form="last")

    def opaque(x):
        return float(np.spacing(x))

    tape = trace(lambda x: opaque(x) * x, 2.0, primitives=[opaque, *[line]])
    with pytest.raises(NoRuleError, match="opaque has no rule"):
        reverse(tape, form="pairs")

    @custom_rule
    def noted(x):
        return x, lambda d: (d,)

    with pytest.raises(TraceError, match="declare it with pure=True"):
        reverse(trace(lambda x: noted(x) * x, 2.0), form="pairs")


def test_stages_show_what_really_runs():
    def decay(x):
        for _ in range(100):
            x = x * 0.5 if x > 1e-3 else x * 0.9
        return x

    way = stages(decay, 3.0)
    assert way.tape.result.value == decay(3.0)
    assert "for " in way.program or "while " in way.program
    assert "raise Miss" in way.program
    text = str(stages(line, 2.0, 3.0, 1.0))
    for title in ("tape\n----", "pairs\n-----", "naive\n-----", "final\n-----", "program\n-------"):
        assert title in text
    assert "def value_and_grad_line(" in text
    assert "def back(" in stages(lambda v: v * 2.0, np.ones(3)).program


def test_the_program_of_the_stages_has_all_gradients_that_they_show():
    assert "(x, m, 1.0, ))" in stages(line, 2.0, 3.0, 1.0).program
    named = stages(lambda x, *, k, how="up": x * k, x=2.0, k=3.0, how="down")
    assert "argnums=('x', 'k')" in named.program
    assert "argnums=(0, 2)" in stages(lambda x, name, y: x * y, 2.0, "a", 3.0).program


def test_what_cannot_be_kept_says_why():
    assert "could not be kept" in stages(lambda x: x * next(STREAM), 1.0).program


STREAM = iter([1.0] * 10)


def test_the_colours_and_the_source_of_pairs():
    """The pairs belong to the forward run; their source would need the rules themselves."""
    tape = reverse(trace(quotient, 2.0, 3.0), form="pairs")
    names = ["" if op.fn is None else op.fn.__name__ for op in tape]
    assert {*tape.forward} == {*tape[: names.index("back")]}
    with pytest.raises(TraceError, match=r'form="naive"\) has the pullbacks written out'):
        tape.source()


@pytest.mark.parametrize("form", ["pairs", "naive", "final"])
def test_the_cotangent_of_any_real_number_is_one(form):
    single = np.array([1.0, 3.0], np.float32)
    value, (dx,) = reverse(trace(lambda x: (x * x).sum(), single), form=form)(single)
    assert type(value) is np.float32 and dx.dtype == np.float32 and dx.tolist() == [2.0, 6.0]
    assert reverse(trace(lambda x: np.array(x * x), 3.0), form=form)(3.0) == (9.0, (6.0,))


def test_pairs_of_a_rule_that_is_not_pure_say_what_to_declare():
    def cube(x):
        return x**3

    @custom_rule
    def square(x):
        return x * x, lambda dy: (2 * x * dy,)

    @rrule(cube)
    def rule(x):
        return cube(x), lambda dy: (3 * x * x * dy,)

    try:
        for fn, name in ((square, "square"), (cube, "cube")):
            tape = trace(lambda x, fn=fn: fn(x) * x, 2.0)
            for form in ("pairs", "naive", "final"):
                with pytest.raises(TraceError, match="is not pure") as error:
                    reverse(tape, form=form)
                assert "declare it with pure=True" in str(error.value)
                assert 'form="naive"' not in str(error.value)
    finally:
        del rules[cube]


def test_stages_of_a_function_that_changes_its_arguments():
    def emptied(d, xs):
        s = 0.0
        while xs:
            s = s * d["k"] + xs.pop()
        return s * d.pop("k")

    given = {"k": 0.5}, [1.0, 2.0, 3.0]
    way = stages(emptied, *given)
    assert "def " in way.program and "gradient of emptied" in str(way)
    assert given == ({}, [])  # as by a call
