"""A tape is an object: it runs, is indexed and edited, and gives the cotangent of each of its ops."""

import dataclasses
import functools
import math
import operator
import pickle
from typing import NamedTuple

import numpy as np
import pytest

from helpers import assert_same
from wengert import GuardError, forward, grad, pullback, reverse, rrule, save, trace, value_and_grad
from wengert.rules.registry import rules
from wengert.tracer.errors import CotangentError, NoRuleError, TraceError
from wengert.tracer.tape import substitute

V = np.array([0.5, -1.2, 2.0])
M = np.array([[2.0, 0.3, 0.1], [0.4, 1.5, 0.2], [0.0, 0.6, 3.0]])
SCALE = np.array([1.0, 2.0, 3.0])


def f(x, y):
    return math.sin(x) * y + x * y


def choose(x, y):
    if x > y:
        return x * y
    return x - y


def structured(d, v, flag=True):
    w = d["w"] @ v * SCALE
    return {"sum": w.sum(), "parts": [w[0], d["b"]]} if flag else None


# --------------------------------------------------------------------------------------------- running


@pytest.mark.parametrize(
    ("function", "args", "others"),
    [
        (f, (1.2, 0.7), (2.5, -1.0)),
        (choose, (3.0, 2.0), (5.0, 1.0)),
        (structured, ({"w": M, "b": 2.0}, V), ({"w": M.T, "b": 3.0}, V + 1)),
        (lambda v: np.linalg.slogdet(np.outer(v, v) + np.eye(3)), (V,), (V * 2,)),
    ],
)
def test_a_tape_runs(function, args, others):
    tape = trace(function, *args)
    assert_same(tape(*args), function(*args))
    assert_same(tape(*others), function(*others))


def test_a_reverse_tape_runs():
    def total(d, v):
        return structured(d, v)["sum"]

    args, others = ({"w": M, "b": 2.0}, V), ({"w": M.T, "b": 3.0}, V + 1)
    tape = reverse(trace(total, *args), seed=False)
    value, (dw, db, dv) = tape(*others, 1.0)
    expected, gradients = value_and_grad(total, (0, 1))(*others)
    assert_same(value, expected)
    assert_same([dw, dv], [gradients[0]["w"], gradients[1]])
    assert db == 0.0
    assert_same(tape(*others, dy=1.0)[1][2], dv)


def test_a_tangent_tape_runs():
    value, tangent = forward(trace(f, 1.0, 2.0))(1.5, 0.5, 1.0, 0.0)
    h = 1e-6
    assert value == f(1.5, 0.5)
    assert tangent == pytest.approx((f(1.5 + h, 0.5) - f(1.5 - h, 0.5)) / (2 * h), rel=1e-8)


def test_a_pullback_tape_runs():
    _, back = pullback(structured, {"w": M, "b": 2.0}, V)
    dw, db, dv = back.tape({"w": M, "b": 2.0}, V, 1.0, 0.0, 3.0)
    expected = back({"sum": 1.0, "parts": [0.0, 3.0]})
    assert_same([dw, dv, db], [expected[0]["w"], expected[1], expected[0]["b"]])


def test_keywords_and_outside_values():
    def g(x, *, power):
        return x**power * SCALE[1]

    tape = trace(g, 2.0, power=3.0)
    assert tape(3.0, power=2.0) == 18.0
    with pytest.raises(TypeError, match=r"takes \(x, power=\)"):
        tape(3.0)
    with pytest.raises(TypeError, match=r"takes \(x, y\)"):
        trace(f, 1.0, 2.0)(1.0, 2.0, 3.0)


def test_a_decision_that_falls_otherwise_is_an_error():
    tape = trace(choose, 3.0, 2.0)
    with pytest.raises(
        GuardError, match=r"test_objects.py:\d+: what decides `if x > y:` was True.*is False"
    ):
        tape(2.0, 3.0)
    with pytest.raises(GuardError, match="flag is False, but was True"):
        trace(structured, {"w": M, "b": 2.0}, V, True)({"w": M, "b": 2.0}, V, False)


def test_the_order_of_keys_is_that_of_the_traced_run():
    def f(d):
        total = 1.0
        for key in d:
            total = total * d[key] + 1.0
        return total

    tape = trace(f, {"a": 1.0, "b": 3.0})
    assert tape({"a": 2.0, "b": 5.0}) == 16.0
    with pytest.raises(GuardError, match=r"d has its keys in another order .* \['a', 'b'\]"):
        tape({"b": 3.0, "a": 1.0})
    with pytest.raises(TraceError, match=r"d\['b'\] is missing"):
        tape({"a": 1.0, "c": 3.0})


@pytest.mark.parametrize(
    "length",
    [
        lambda x: len(x[x > 0]),
        lambda x: np.nonzero(x > 0)[0].size,
        lambda x: len(np.unique(np.maximum(x, 0.0))) - 1,
        lambda x: sum(1 for _ in np.flatnonzero(x > 0)),
    ],
)
def test_a_shape_that_the_data_decide_is_a_decision(length):
    def f(x):
        return x.sum() * length(x)

    x, alike, other = (
        np.array([3.0, 1.0, -2.0]),
        np.array([-1.0, 2.0, 4.0]),
        np.array([-1.0, -2.0, 4.0]),
    )
    tape = trace(f, x)
    assert tape(alike) == f(alike)
    back = pullback(f, x)[1]
    for made, args in [
        (tape, ()),
        (reverse(tape), ()),
        (reverse(tape, form="naive"), ()),
        (reverse(tape, value=False), ()),
        (forward(tape), (x,)),
        (forward(tape, value=False), (x,)),
        (back.tape, (1.0,)),
    ]:
        made(alike, *args)
        with pytest.raises(
            GuardError, match=r"test_objects.py:\d+: what .* had the shape .*\(2,\)"
        ):
            made(other, *args)


def test_a_tangent_alone_has_the_decisions_of_its_run():
    tape = forward(trace(lambda x: x * x if x > 0 else -x, 3.0), value=False)
    assert tape(2.0, 1.0) == 4.0
    with pytest.raises(GuardError, match="what decides"):
        tape(-2.0, 1.0)


def test_what_a_run_does_to_its_arguments_a_tape_does_to_those_it_is_given():
    class Account:
        def __init__(self, start):
            self.start, self.log = start, []

    def f(account, d, rate):
        account.log.append(account.start * rate)
        account.end = account.start + account.log[-1]
        d["seen"] = account.end
        d["all"].append(rate)
        return account.end * rate

    first, found = Account(2.0), {"all": []}
    tape = trace(f, first, found, 3.0)
    for other in (tape, reverse(tape)):
        account, d = Account(5.0), {"all": []}
        value = other(account, d, 4.0)
        assert (value if other is tape else value[0]) == 100.0
        assert (account.log, account.end, d) == ([20.0], 25.0, {"all": [4.0], "seen": 25.0})
    assert (first.log, first.end, found) == ([6.0], 8.0, {"all": [3.0], "seen": 8.0})


def test_a_decision_on_the_truth_of_a_number_goes_by_its_truth():
    def f(x, y):
        return x * y if x else (x or 3.0) * y

    for x in (0.5, 1.0, -2.0):
        tape = trace(f, x, 2.0)
        for other in (x, 1.0, 0.25):
            assert tape(other, 2.0) == f(other, 2.0)
            assert reverse(tape)(other, 2.0) == (f(other, 2.0), (2.0, other))
        with pytest.raises(GuardError, match="was True in the traced run, and is 0"):
            tape(0.0, 2.0)
    assert trace(f, 0.0, 2.0)(0.0, 4.0) == 12.0


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (({"w": M[:2], "b": 2.0}, V), r"d\['w'\] is a float64\[2,3\], but was a float64\[3,3\]"),
        (({"w": M}, V), r"d must be a dict with 2 items"),
        (({"w": M, "c": 2.0}, V), r"d\['b'\] is missing"),
        (({"w": M, "b": 2.0}, [1.0, 2.0, 3.0]), r"v is a list"),
    ],
)
def test_arguments_that_do_not_fit(args, message):
    with pytest.raises(TraceError, match=message):
        trace(structured, {"w": M, "b": 2.0}, V)(*args)


def test_arrays_of_integers_are_arguments_too():
    tape = trace(lambda v, k: v[k].sum(), V, np.array([2, 0, 0]))
    assert tape(V, np.array([1, 1, 1])) == 3 * V[1]


# -------------------------------------------------------------------------------------------- indexing


def test_lines():
    tape = trace(f, 1.2, 0.7)
    assert len(tape) == 6
    assert tape[2].fn is math.sin
    assert tape["%3"] is tape[2]
    assert tape[-1] is tape.ops[-1]
    assert tape[2:4] == tape.ops[2:4]
    line = f.__code__.co_firstlineno + 1
    assert repr(tape[3]) == f"<%4 = mul(%3, y) :: float  # test_objects.py:{line}>"
    with pytest.raises(IndexError):
        tape[6]
    with pytest.raises(KeyError, match="no variable '%9'"):
        tape["%9"]


def test_an_op_has_the_name_of_the_listing():
    """In a loop with the number of its pass, by which the tape finds it again."""

    def logistic(r, x):
        for _ in range(1000):
            x = r * x * (1 - x)
        return x

    tape = trace(logistic, 3.7, 0.4)
    assert len(repr(tape.cotangents()).splitlines()) == len(str(tape).splitlines()) < 12
    place = f"# test_objects.py:{logistic.__code__.co_firstlineno + 2}"
    assert repr(tape[10]) == f"<x.6[2] = mul(%4[2], %5[2]) :: float  {place}>"
    assert tape["x.6[2]"] is tape[10] and tape["%5[2]"] is tape[9]
    assert repr(tape[-1]) == f"<x.6 = mul(%4, %5) :: float  {place}>"
    assert f"    x.6 = mul(%4, %5) :: float  {place}" in str(tape).splitlines()
    for op in tape[::500]:
        assert tape[repr(op)[1:].partition(" = ")[0]] is op
    flat = trace(logistic, 3.7, 0.4, flat=True)
    assert repr(flat[10]) == f"<%11 = mul(%9, %10) :: float  {place}>"
    assert repr(flat[10])[1:-1] in str(flat)


def test_ops_of_a_reverse_tape_have_its_numbers():
    tape = reverse(trace(f, 1.2, 0.7))
    own = [op for op in tape if op not in tape.forward]
    assert len(own) == 4
    for op in own:
        assert repr(op)[1:-1] in str(tape)
        assert op.tape is tape


def test_reverse_leaves_the_tape_as_it_is():
    tape = trace(f, 1.2, 0.7)
    before = str(tape)
    reverse(tape)
    assert str(tape) == before
    assert all(op.tape is tape for op in tape)


# --------------------------------------------------------------------------------------------- editing


def test_replace():
    tape = trace(f, 1.2, 0.7)
    new = tape.replace(tape[2], math.cos)
    assert new(0.3, 2.0) == math.cos(0.3) * 2.0 + 0.3 * 2.0
    assert [op.value for op in new][2:] == [
        math.cos(1.2),
        math.cos(1.2) * 0.7,
        1.2 * 0.7,
        math.cos(1.2) * 0.7 + 1.2 * 0.7,
    ]
    other = tape.replace(tape[3], operator.sub, tape[2], 1.0)
    assert other(0.3, 2.0) == math.sin(0.3) - 1.0 + 0.3 * 2.0
    assert tape(0.3, 2.0) == f(0.3, 2.0)  # which is as it was
    gradients = reverse(new, value=False)(0.3, 2.0)
    assert gradients == (
        pytest.approx(-math.sin(0.3) * 2.0 + 2.0),
        pytest.approx(math.cos(0.3) + 0.3),
    )


def test_insert_and_substitute():
    tape = trace(f, 1.2, 0.7)
    more = tape.insert(3, operator.mul, tape[2], 10.0)
    assert more[3].value == math.sin(1.2) * 10.0
    assert more(0.3, 2.0) == f(0.3, 2.0)  # nobody uses it yet
    used = more.substitute(more[2], 1.0)
    assert used(0.3, 2.0) == 1.0 * 2.0 + 0.3 * 2.0
    same = more.replace(more[4], operator.mul, more[3], more[1])
    assert same(0.3, 2.0) == math.sin(0.3) * 10.0 * 2.0 + 0.3 * 2.0
    constant = tape.substitute(tape[1], 3.0)  # an argument, which stays one
    assert constant(0.3, 2.0) == f(0.3, 3.0)
    assert tape.substitute(tape[1], tape[0])(0.3, 2.0) == f(0.3, 0.3)


def test_edits_are_checked():
    tape, other = trace(f, 1.2, 0.7), trace(f, 1.2, 0.7)
    with pytest.raises(TraceError, match="%6 is used before it is defined: %6 = add"):
        tape.insert(2, operator.mul, tape[5], 2.0)
    with pytest.raises(TraceError, match="%6 is used before it is defined"):
        tape.substitute(tape[2], tape[5])
    with pytest.raises(TraceError, match="is no op of this tape"):
        tape.insert(3, operator.mul, other[2], 2.0)
    with pytest.raises(TraceError, match="must be an op of this tape"):
        tape.replace(other[2], math.cos)
    with pytest.raises(TraceError, match="only calls can be replaced, not the input"):
        tape.replace(tape[0], math.cos)
    with pytest.raises(
        TraceError, match="cannot be called on this tape, with operands float: TypeError"
    ):
        tape.replace(tape[2], math.atan2)
    with pytest.raises(TraceError, match="with operands float, str: TypeError"):
        tape.replace(tape[2], math.atan2, tape[0], "a")
    with pytest.raises(TraceError, match="an op calls a function, not a float"):
        tape.replace(tape[2], 2.0)
    with pytest.raises(IndexError, match="has no place 9"):
        tape.insert(9, math.sin, tape[0])


def test_an_edit_that_a_decision_forbids():
    tape = trace(choose, 3.0, 2.0)
    with pytest.raises(GuardError, match="if x > y"):
        tape.substitute(tape[0], 1.0)


# ------------------------------------------------------------------------------------------- primitives


def norm(v):
    return math.sqrt(sum(x * x for x in v))


def unit(v):
    n = norm(v)
    return [x / n for x in v]


def first_of_unit(v):
    return unit(v)[0]


def test_a_tape_of_other_primitives():
    coarse = trace(unit, [3.0, 4.0], primitives=[norm])
    assert norm in [op.fn for op in coarse]
    fine = coarse.with_primitives([])
    assert norm not in [op.fn for op in fine]
    assert math.sqrt in [op.fn for op in fine]
    assert fine([6.0, 8.0]) == [0.6, 0.8]
    assert [op.value for op in fine[-2:]] == [0.6, 0.8]
    assert norm in [op.fn for op in coarse.with_primitives(lambda fn: fn is norm)]


def test_results_of_several_parts_are_looked_into():
    def halves(x):
        return x / 2, [x * 3]

    def both(x):
        a, (b,) = halves(x)
        return a * b

    coarse = trace(both, 2.0, primitives=[halves])
    fine = coarse.with_primitives([])
    assert halves not in [op.fn for op in fine]
    assert fine(4.0) == both(4.0)


def test_a_predicate_sees_the_arguments():
    seen = []

    def chosen(fn, args):
        if fn is norm:
            seen.append(args)
            return len(args[0]) == 2
        return False

    assert norm in [op.fn for op in trace(unit, [3.0, 4.0], primitives=chosen)]
    assert norm not in [op.fn for op in trace(unit, [3.0, 4.0, 5.0], primitives=chosen)]
    assert seen == [([3.0, 4.0],), ([3.0, 4.0, 5.0],)]
    with pytest.raises(
        TraceError, match="primitives must be a collection of callables or a predicate"
    ):
        trace(unit, [3.0], primitives=3)


@pytest.fixture
def ruled():
    calls = []

    @rrule(norm, pure=True)
    def rule(v):
        n = norm(v)
        return n, lambda dy: ([dy * x / n for x in v],)

    yield calls
    del rules[norm]


def test_gradients_by_chosen_primitives(ruled):
    expected = grad(first_of_unit)([3.0, 4.0])
    for primitives in ([norm], [], lambda fn: fn is norm, lambda fn, args: False):
        found = grad(first_of_unit, primitives=primitives)([3.0, 4.0])
        assert found == pytest.approx(expected, rel=1e-15)
        assert found == [pytest.approx(0.128), pytest.approx(-0.096)]
        value, back = pullback(unit, [3.0, 4.0], primitives=primitives)
        assert value == [0.6, 0.8]
        assert back([1.0, 0.0])[0] == pytest.approx(expected, rel=1e-15)
    assert value_and_grad(first_of_unit, primitives=[norm])([3.0, 4.0])[0] == 0.6


def test_gradients_of_gradients_by_chosen_primitives(ruled):
    def g(x, primitives):
        return grad(first_of_unit, primitives=primitives)([x, 4.0])[1]

    h = 1e-5
    numeric = (g(3.0 + h, []) - g(3.0 - h, [])) / (2 * h)
    for primitives in ([norm], []):
        assert grad(lambda x: g(x, primitives))(3.0) == pytest.approx(numeric, rel=1e-8)


def test_a_predicate_is_asked_at_each_call(ruled):
    asked = []

    def chosen(fn):
        asked.append(fn)
        return fn is norm

    slope = grad(first_of_unit, primitives=chosen)
    outer = grad(lambda x: grad(first_of_unit, primitives=chosen)([x, 4.0])[1])
    for f, x in ((slope, [3.0, 4.0]), (outer, 3.0)):
        found = []
        for _ in range(5):
            asked.clear()
            found.append(f(x))
            assert norm in asked
        assert all(y == found[0] for y in found)


def test_a_primitive_without_a_rule_is_an_error():
    with pytest.raises(NoRuleError, match="norm has no rule"):
        grad(first_of_unit, primitives=[norm])([3.0, 4.0])
    with pytest.raises(NoRuleError, match="norm has no rule"):
        pullback(unit, [3.0, 4.0], primitives=[norm])[1]([1.0, 0.0])
    assert grad(first_of_unit)([3.0, 4.0]) == [pytest.approx(0.128), pytest.approx(-0.096)]


# ------------------------------------------------------------------------------------------- cotangents


def test_cotangents_of_all_that_is_computed():
    tape = trace(f, 1.2, 0.7)
    found = tape.cotangents()
    x, y, sine, first, second, total = tape
    assert list(found) == list(tape)
    assert [found[total], found[first], found[second], found[sine]] == [1.0, 1.0, 1.0, 0.7]
    assert found[y] == math.sin(1.2) + 1.2
    assert found[x] == pytest.approx(math.cos(1.2) * 0.7 + 0.7)
    at = tape.cotangents(0.3, 2.0)
    assert at[sine] == 2.0
    assert at[y] == math.sin(0.3) + 0.3
    lines = repr(at).splitlines()
    assert lines[3].startswith("  %3 = sin(x) :: float   d = 2  # test_objects.py:")


def test_cotangents_by_differences():
    """Each is the derivative of the result by a number that is added to the op."""

    def g(v, m):
        a = np.zeros(4)
        a[1:] = m @ v
        a[0] = v[1] * a[2]
        q, r = np.linalg.qr(m + np.outer(a[1:], v))
        return np.tanh(a).sum() + r[0, 1] * q[1, 0]

    tape = trace(g, V, M)
    found = tape.cotangents()
    h = 1e-6
    checked = 0
    for op, d in found.items():
        if op.kind != "call" or isinstance(op.value, tuple):
            continue
        direction = np.cos(1.0 + np.arange(np.size(op.value))).reshape(np.shape(op.value))

        def moved(t):
            other = tape.insert(tape.ops.index(op) + 1, operator.add, op, t * direction)
            return tape_with(other, tape.ops.index(op))

        slope = (moved(h) - moved(-h)) / (2 * h)
        assert float(np.sum(d * direction)) == pytest.approx(slope, rel=1e-6, abs=1e-8), op
        checked += 1
    assert checked > 10


def tape_with(tape, index):
    """The result where what follows uses the line after ``index`` in the place of it."""
    old, new = tape[index], tape[index + 1]
    values = {}
    for op in tape:
        if op.kind == "input":
            values[op] = op.value
        elif op.kind == "call":
            known = {**values, old: values[new]} if new in values else values
            values[op] = call(op, known)
    return values[tape.result] if tape.result is not old else values[new]


def call(op, known):
    return op.fn(*[substitute(x, known.__getitem__) for x in op.args], **op.kwargs)


def test_cotangents_of_results_of_several_numbers():
    tape = trace(structured, {"w": M, "b": 2.0}, V)
    with pytest.raises(CotangentError, match="say with dy="):
        tape.cotangents()
    found = tape.cotangents(dy={"sum": 2.0, "parts": [None, 5.0]})
    w, b, v = (
        next(op for op in tape.inputs if op.name == name) for name in ("d['w']", "d['b']", "v")
    )
    assert found[b] == 5.0
    np.testing.assert_allclose(found[v], 2.0 * SCALE @ M)
    np.testing.assert_allclose(found[w], 2.0 * np.outer(SCALE, V))
    with pytest.raises(CotangentError, match=r"dy is float64\[2\] where the result is float64"):
        tape.cotangents(dy={"sum": V[:2], "parts": [None, 5.0]})


def test_what_has_no_influence_has_no_cotangent():
    tape = trace(lambda x: (math.sin(x), x * 2)[1], 1.0)
    sine = next(op for op in tape if op.fn is math.sin)
    assert sine not in tape.cotangents()


def test_a_pullback_says_what_it_is():
    for _ in range(4):  # traced, and kept
        _, back = pullback(f, 1.2, 0.7)
        assert repr(back) == f"<pullback of f (test_objects.py:{f.__code__.co_firstlineno})>"


def test_a_tape_is_pickled_with_what_it_takes():
    tape = reverse(trace(choose, 3.0, 2.0))
    again = pickle.loads(pickle.dumps(tape))
    assert str(again) == str(tape)
    assert again(4.0, 2.0) == tape(4.0, 2.0) == (8.0, (2.0, 4.0))
    assert again.source() == tape.source()


def test_what_a_solver_in_c_has_found():
    """A tape runs where the rule computes the root again; what C code read behind it is not needed for that."""
    optimize = pytest.importorskip("scipy.optimize")

    def cubic(x, a):
        return x**3 - a

    def root(a):
        return optimize.brentq(cubic, 0.0, 3.0, args=(a,))

    tape = trace(root, 2.0)
    assert tape(3.0) == root(3.0)
    assert tape.cotangents(3.0)[tape[0]] == pytest.approx(1 / (3 * 3.0 ** (2 / 3)), rel=1e-9)


def test_ops_are_found_by_the_names_they_are_printed_under():
    def f(x):
        for _ in range(6):
            y = math.sin(x)
            x = y * 2.0
        z = x * 3.0
        return math.exp(z) + 1.0

    tape = trace(f, 0.5)
    text = str(tape)
    assert "  %6 = exp(z)" in text and "  z = mul(x.2, 3.0)" in text  # which are not their numbers
    assert tape["%6"].fn is math.exp and tape["z"] is tape["%6"].args[0]
    assert tape["x"] is tape[0] and tape["x.2"] is tape["z"].args[0]
    assert tape["y[0]"] is tape[1] and tape["y[0]"].args[0] is tape["x"]
    assert tape["y"] is tape["x.2"].args[0]  # of the last pass
    with pytest.raises(KeyError, match="no variable '%5'"):  # a number that no line has
        tape["%5"]
    tape.options = {"flat": True}
    assert "%6 = sin(%5)" in str(tape) and tape["%6"].fn is math.sin


def test_what_is_no_tape_or_a_tape_of_pairs_is_refused():
    def f(x):
        return math.sin(x)

    for transform in (reverse, forward):
        with pytest.raises(TraceError, match=rf"{transform.__name__}\(trace\(f, x\)\)"):
            transform(f)
        with pytest.raises(TraceError, match="gradient of f is a tape of pairs"):
            transform(reverse(trace(f, 0.5), form="pairs"))


def test_a_file_has_no_constants_that_nothing_uses():
    def f(x, *, k=2.0):
        return x * k

    source = trace(f, 3.0, k=2.5).source()
    assert "2.0" not in source


# --------------------------------------------------------------------------------- functions and what they hold


class Scaled:
    def __init__(self, w):
        self.w = w

    def __call__(self, x):
        return self.w * x * x

    def twice(self, x):
        return 2 * self(x)


def closure(w):
    def inner(x):
        return w * x * x

    return inner


def decorated(f):
    @functools.wraps(f)
    def around(*args):
        return 1.0 * f(*args)

    return around


def powers(w, x, k):
    return w * x * x * k


HOLDERS = {
    "closure": (closure(3.0), [3.0]),
    "decorated": (decorated(closure(3.0)), [3.0]),
    "object": (Scaled(3.0), [3.0]),
    "method": (Scaled(1.5).twice, [1.5]),
    "partial": (functools.partial(powers, 1.5, k=2.0), [1.5, 2.0]),
    "partial of a closure": (functools.partial(closure(3.0)), [3.0]),
}


def called(f, x):
    return f(x)


def own(tape):
    """The inputs that are no arguments of the call."""
    return [op for op in tape.inputs if op.role == "argument" and op.name != "x"]


@pytest.mark.parametrize(("f", "held"), HOLDERS.values(), ids=HOLDERS)
def test_what_a_function_among_the_arguments_holds_is_an_input(f, held):
    tape = trace(called, f, 2.0)
    names = [op.name for op in tape.inputs if op.role == "argument"]
    assert sorted(op.value for op in own(tape)) == sorted(held)
    assert tape(f, 2.0) == 12.0 and tape(f, 3.0) == 27.0
    value, gradients = reverse(tape)(f, 2.0)
    by_name = dict(zip(names, gradients, strict=True))
    assert value == 12.0 and by_name.pop("x") == 12.0
    assert sorted(by_name.values()) == sorted(12.0 / x for x in held)
    file = {}
    exec(reverse(tape).source("slopes"), file)
    assert file["slopes"](f, 2.0) == (value, gradients)


@pytest.mark.parametrize(("f", "held"), HOLDERS.values(), ids=HOLDERS)
def test_a_tape_with_the_callables_own_variables(f, held):
    tape = trace(f, 2.0, wrt_self=True)
    names = [op.name for op in tape.inputs if op.role == "argument"]
    values = [op.value for op in own(tape)]
    assert sorted(values) == sorted(held)
    assert tape(2.0, *values) == f(2.0)
    assert tape(2.0, *[2 * x for x in values]) == f(2.0) * 2 ** len(held)
    by_name = dict(zip(names, reverse(tape)(2.0, *values)[1], strict=True))
    assert by_name.pop("x") == 12.0
    assert sorted(by_name.values()) == sorted(12.0 / x for x in held)
    assert not own(trace(f, 2.0))


def test_an_edited_tape_keeps_its_loops():
    def f(r, x):
        for _ in range(100):
            x = r * x * (1 - x)
        return x

    tape = trace(f, 3.7, 0.4)
    for new in (
        tape.insert(2, math.exp, tape[0]),
        tape.replace(tape["%4[50]"], operator.mul, 2.0, tape["x.6[49]"]),
        tape.substitute(tape[0], 3.0),
        tape.with_primitives([]),
    ):
        assert "loop 100 times, carrying x." in str(new) and len(str(new).splitlines()) < 16


def test_what_has_no_derivative_in_an_argument_of_a_call_that_is_looked_into():
    def chosen(pair):
        x, which = pair
        return np.where(which, x * 2.0, x)

    def f(x):
        return chosen((x * x, x > 1.0)).sum()

    x, y = np.array([0.5, 1.5]), np.array([3.0, 0.9])
    tape = trace(f, x, primitives=[chosen])
    assert [op.fn for op in tape if op.kind == "call"].count(chosen) == 1
    assert tape.with_primitives([])(y) == f(y) == 18.0 + 0.81


# --------------------------------------------------------------------------- what has no derivative


class Pair(NamedTuple):
    number: float
    name: str


A, B = np.array([1.0, -2.0, 3.0]), np.array([2.0, 4.0, -1.0])
MIXED = {
    "a comparison": (lambda a: (a > 0, a * 2.0), A, B),
    "integers": (lambda a: {"order": np.argsort(a), "to": a.astype(int), "sum": a.sum()}, A, B),
    "a decision": (lambda x: (x > 1.0, [x, {"low": x < 1.0}]), 2.0, 0.5),
    "any": (lambda a: (bool((a > 2.5).any()), (a > 2.5).all(), np.array_equal(a, a)), A, B),
    "constants": (lambda x: ("text", None, True, {1, 2}, range(3), np.float64, x), 2.0, 3.0),
    "of a shape": (lambda a: (a.shape, a.dtype, a.ndim, len(a)), A, B),
    "twice": (lambda x: [[x, "a", x > 1.0]] * 2, 2.0, 0.5),
    "named": (lambda x: Pair(x, "b"), 2.0, 3.0),
    "text of a number": (lambda x: (f"{x:.1f}", x), 2.0, 3.0),
    "text of an array": (lambda a: (str(a), a * 2.0), A, B),
    "a function": (lambda x: (lambda y: x * y, x), 2.0, 3.0),
}


@pytest.mark.parametrize("case", MIXED)
def test_a_tape_gives_what_has_no_derivative_as_well(case, tmp_path):
    """As the function does, or not at all."""
    f, x, other = MIXED[case]
    tape = trace(f, x)
    if case in ("text of an array", "a function"):
        for ask in (lambda: tape(x), tape.source, lambda: save(f, tmp_path / "f.py", x)):
            with pytest.raises(TraceError, match="in its result|there is a|cannot be"):
                ask()
        return
    assert repr(tape(x)) == repr(f(x))
    scope = {}
    exec(tape.source("made"), scope)
    assert repr(scope["made"](x)) == repr(f(x))
    save(f, tmp_path / "f.py", x)
    exec((tmp_path / "f.py").read_text(), scope)
    assert repr(scope["lambda_"](x)) == repr(f(x))
    for run, error in (
        (tape, GuardError),
        (scope["made"], ValueError),
        (scope["lambda_"], ValueError),
    ):
        try:
            assert repr(run(other)) == repr(f(other))
        except error:
            pass


def test_what_is_computed_from_constants_alone_has_a_cotangent():
    """As a small change of it shows."""

    def weighted(x):
        share = np.asarray(0.3) * 6.0
        return x * share + np.floor(share)

    tape = trace(weighted, 2.0)
    found = tape.cotangents()
    (share,) = [op for op in tape if op.kind == "call" and op.value == 0.3 * 6.0]
    step = 1e-6
    up, down = (tape.substitute(share, 0.3 * 6.0 + t)(2.0) for t in (step, -step))
    assert found[share] == 2.0 and math.isclose((up - down) / (2 * step), 2.0, rel_tol=1e-8)
    assert found[share.args[0]] == 12.0


def test_what_is_looked_into_goes_by_the_value_of_an_integer_of_numpy():
    knots = np.array([1.0, 2.0, 3.0])
    tape = reverse(trace(lambda x: np.interp(x, knots, knots**2), 1.5)).with_primitives([])
    assert tape(1.75)[1] == (3.0,)
    with pytest.raises(GuardError):
        tape(2.5)


def test_a_tangent_tape_takes_tangents_of_the_structures_of_its_arguments():
    @dataclasses.dataclass
    class Line:
        slope: float
        points: list

    def length(line, d, *, scale):
        return line.slope * sum(line.points) * d["k"] ** d["n"] * scale

    def at(t):
        return length(Line(3.0 + t, [1.0, 2.0 - t]), {"n": 2, "k": 1.5 + 3 * t}, scale=0.5 - t)

    tape = forward(trace(length, Line(2.0, [1.0, 3.0]), {"n": 2, "k": 1.2}, scale=1.0))
    given = (Line(3.0, [1.0, 2.0]), {"n": 2, "k": 1.5})
    tangents = (Line(1.0, [0.0, -1.0]), {"n": 0, "k": 3.0}, -1.0)
    value, tangent = tape(*given, *tangents, scale=0.5)
    h = 1e-6
    assert value == at(0.0)
    assert tangent == pytest.approx((at(h) - at(-h)) / (2 * h), rel=1e-8)
    names = {}
    exec(tape.source("f"), names)
    assert names["f"](*given, *tangents, scale=0.5) == (value, tangent)
    assert tape(*given, *tangents[:2], dscale=-1.0, scale=0.5) == (value, tangent)
    with pytest.raises(TraceError, match="dd is a list, but was a dict"):
        tape(*given, tangents[0], [0, 3.0], -1.0, scale=0.5)


def test_tangents_of_what_functions_have_captured():
    def scaled(k):
        return lambda x: k * x * x

    applied = forward(trace(lambda f, x: f(x) * x, scaled(3.0), 2.0))
    assert applied(scaled(5.0), 2.0, scaled(1.0), 0.0) == (40.0, 8.0)
    own = forward(trace(scaled(3.0), 2.0, wrt_self=True))
    assert own(2.0, 5.0, 0.0, 1.0) == (20.0, 4.0)  # by k


def test_parameters_that_are_called_as_tangents_and_cotangents_are():
    def f(x, dx):
        return x * dx * dx

    tape = trace(f, 2.0, 3.0)
    assert forward(tape)(2.0, 3.0, 1.0, 0.0) == (18.0, 9.0)
    assert forward(tape)(2.0, 3.0, 0.0, 1.0) == (18.0, 12.0)
    names = {}
    exec(forward(tape).source("f"), names)
    assert names["f"](2.0, 3.0, 0.0, 1.0) == (18.0, 12.0)
    back = reverse(trace(lambda x, dy: x * dy, 2.0, 3.0), seed=False)
    assert back(2.0, 3.0, 10.0) == (6.0, (30.0, 20.0))
    exec(back.source("f"), names)
    assert names["f"](2.0, 3.0, dy_=10.0) == back(2.0, 3.0, dy_=10.0) == (6.0, (30.0, 20.0))


def test_a_line_that_is_not_there():
    with pytest.raises(IndexError, match="a tape of 6 lines has no line 6"):
        trace(f, 1.0, 2.0)[6]
