"""From regions made by hand to programs: values to the bit, gradients against formulas and differences."""

import math
import operator as o

import pytest

from wengert.tracer.fold.region import (
    APPEND,
    DICT,
    EXHAUSTED,
    LENGTH,
    LIST,
    LOAD,
    OBJECT,
    POP,
    REPEAT,
    STORE,
    Constant,
    Reference,
)
from wengert.transforms.fold.reverse import Reverse
from wengert.transforms.fold.ways import Unemittable

from .regions import At, Miss, body, function, item, program, source_of, whole


def differences(f, args):
    """The gradient in the floats by central differences."""
    found = []
    for i, x in enumerate(args):
        if type(x) is float:
            h = 1e-6 * max(1.0, abs(x))
            up = f(*args[:i], x + h, *args[i + 1 :])
            down = f(*args[:i], x - h, *args[i + 1 :])
            found.append((up - down) / (2 * h))
    return found


def check(folded, f, *runs):
    run = program(folded)
    for args in runs:
        value, gradient = run(*args)
        assert repr(value) == repr(f(*args))
        assert gradient == pytest.approx(differences(f, args), rel=1e-5, abs=1e-7)


def test_straight():
    folded, at, (x, y) = whole(float, float)
    a = at.op(o.mul, x, y)
    b = at.op(math.sin, at.op(o.add, a, 2.0))
    at.give(at.op(o.sub, at.op(o.truediv, b, y), at.op(o.pow, x, 3)))
    check(folded, lambda x, y: math.sin(x * y + 2.0) / y - x**3, (1.5, 0.7), (-2.0, 3.0))


def test_the_formulas_of_straight_code():
    folded, at, (x, y) = whole(float, float)
    at.give(at.op(o.mul, at.op(o.mul, x, y), x))
    assert program(folded)(3.0, 5.0) == (45.0, [30.0, 9.0])


def test_an_input_that_does_not_matter():
    folded, at, (x, _) = whole(float, float)
    at.give(at.op(o.neg, x))
    assert program(folded)(3.0, 5.0) == (-3.0, [-1.0, 0.0])


def powers(folded, at, x, n):
    """``n`` times ``v = v * x + 1`` in a loop over integers."""
    loop = at.loop([1.0], at.op(range, n, kind=range))
    head, (v,) = body(loop, "float", float)
    turn, nothing = head.decide(EXHAUSTED)
    item(turn)
    turn.end("next", "float", turn.op(o.add, turn.op(o.mul, v, x), 1.0))
    nothing.end("leave", "float", v)
    return at.after(loop, "float", float)


def test_a_counted_loop():
    folded, at, (x, n) = whole(float, int)
    at, (v,) = powers(folded, at, x, n)
    at.give(v)

    def plain(x, n):
        v = 1.0
        for _ in range(n):
            v = v * x + 1.0
        return v

    check(folded, plain, (1.3, 5), (0.5, 1), (0.5, 0), (-0.7, 12))


def test_a_decision_in_a_loop_and_its_join():
    folded, at, (x, y) = whole(float, float)
    loop = at.loop([x, 0])
    head, (v, i) = body(loop, "s", float, int)
    going, done = head.test(o.ge, i, 6)
    done.end("leave", "s", v)
    scope, inner = going.scope()
    small, large = inner.test(o.gt, v, 1.0)
    large.end("return", "s", large.op(o.truediv, v, y))
    small.end("return", "s", small.op(o.add, small.op(o.mul, v, v), y))
    going, (w,) = going.after(scope, "s", float)
    going.end("next", "s", w, going.op(o.add, i, 1, kind=int))
    at, (v,) = at.after(loop, "s", float)
    at.give(at.op(o.mul, v, y))

    def plain(x, y):
        v = x
        for _ in range(6):
            v = v / y if v > 1.0 else v * v + y
        return v * y

    check(folded, plain, (0.3, 1.7), (5.0, 1.2), (-0.2, 0.9))


def test_a_break():
    folded, at, (x, n) = whole(float, int)
    loop = at.loop([x], at.op(range, n, kind=range))
    head, (v,) = body(loop, "s", float)
    turn, nothing = head.decide(EXHAUSTED)
    i = item(turn)
    w = turn.op(o.mul, v, turn.op(o.add, x, i))
    going, stop = turn.test(o.gt, w, 50.0)
    going.end("next", "s", w)
    stop.end("leave", "broken", v, w)
    nothing.end("leave", "s", v)
    (a, (v,)), (b, (p, q)) = at.afters(loop, {"s": (float,), "broken": (float, float)})
    a.give(a.op(math.exp, v))
    b.give(b.op(o.add, b.op(o.mul, p, 2.0), q))

    def plain(x, n):
        v = x
        for i in range(n):
            w = v * (x + i)
            if w > 50.0:
                return v * 2.0 + w
            v = w
        return math.exp(v)

    check(folded, plain, (0.5, 3), (0.5, 20), (1.2, 0), (60.0, 2))


def test_a_list_that_is_written_by_index():
    folded, at, (x, n) = whole(float, int)
    one = at.op(LIST, 0.0, kind=list)
    cells = at.op(REPEAT, one, n, kind=list)
    loop = at.loop([], at.op(range, n, kind=range))
    head, _ = body(loop, "s")
    turn, nothing = head.decide(EXHAUSTED)
    i = item(turn)
    old = turn.op(LOAD, cells, turn.op(o.sub, i, 1, kind=int))
    turn.op(STORE, cells, i, turn.op(o.add, turn.op(o.mul, old, x), turn.op(o.mul, x, i)))
    turn.end("next", "s")
    nothing.end("leave", "s")
    at, _ = at.after(loop, "s")
    last = at.op(LOAD, cells, -1)
    at.give(at.op(o.add, last, at.op(LOAD, cells, 0)))

    def plain(x, n):
        cells = [0.0] * n
        for i in range(n):
            cells[i] = cells[i - 1] * x + x * i
        return cells[-1] + cells[0]

    check(folded, plain, (0.8, 4), (1.1, 9), (2.0, 1))


def test_a_list_that_grows_and_shrinks():
    folded, at, (x, n) = whole(float, int)
    stack = at.op(LIST, x, kind=list)
    loop = at.loop([], at.op(range, n, kind=range))
    head, _ = body(loop, "s")
    turn, nothing = head.decide(EXHAUSTED)
    i = item(turn)
    turn.op(APPEND, stack, turn.op(o.mul, x, turn.op(o.add, i, 2, kind=int)))
    a = turn.op(POP, stack)
    turn.op(APPEND, stack, turn.op(o.mul, a, a))
    turn.op(APPEND, stack, turn.op(math.sin, a))
    turn.end("next", "s")
    nothing.end("leave", "s")
    at, _ = at.after(loop, "s")
    total = at.loop([0.0])
    head, (v,) = body(total, "s", float)
    going, done = head.test(o.eq, head.op(LENGTH, stack, kind=int), 0)
    going.end("next", "s", going.op(o.add, v, going.op(POP, stack)))
    done.end("leave", "s", v)
    at, (v,) = at.after(total, "s", float)
    at.give(v)

    def plain(x, n):
        stack = [x]
        for i in range(n):
            a = x * (i + 2)
            stack += [a * a, math.sin(a)]
        v = 0.0
        while stack:
            v += stack.pop()
        return v

    check(folded, plain, (0.8, 0), (0.8, 4), (-1.1, 7))


def test_lists_that_change_places():
    """Which list is meant is told by identity: two names are carried, and swapped at each pass."""
    folded, at, (x, n) = whole(float, int)
    a = at.op(LIST, x, kind=list)
    b = at.op(LIST, 1.0, kind=list)
    loop = at.loop([a, b], at.op(range, n, kind=range))
    head, (p, q) = body(loop, "s", list, list)
    turn, nothing = head.decide(EXHAUSTED)
    item(turn)
    new = turn.op(o.mul, turn.op(LOAD, p, 0), turn.op(o.add, turn.op(LOAD, q, 0), x))
    turn.op(STORE, q, 0, new)
    turn.end("next", "s", q, p)
    nothing.end("leave", "s", p, q)
    at, (p, q) = at.after(loop, "s", list, list)
    at.give(at.op(o.sub, at.op(LOAD, p, 0), at.op(LOAD, q, 0)))

    def plain(x, n):
        p, q = [x], [1.0]
        for _ in range(n):
            q[0] = p[0] * (q[0] + x)
            p, q = q, p
        return p[0] - q[0]

    check(folded, plain, (0.8, 0), (0.8, 1), (0.9, 4), (-0.7, 5))


def test_two_candidates_have_to_be_one_object():
    folded, at, (x, n) = whole(float, int)
    a = at.op(LIST, x, kind=list)
    b = at.op(LIST, x, kind=list)
    outer = at.op(LIST, a, b, kind=list)
    found = at.op(LOAD, outer, n, kind=list)
    at.give(at.op(o.mul, at.op(LOAD, Reference([a, found]), 0), 3.0))
    run = program(folded)
    assert run(2.0, 0) == (6.0, [3.0])
    with pytest.raises(Miss):
        run(2.0, 1)


def test_dicts_and_objects():
    class Point:
        pass

    folded, at, (x, y) = whole(float, float)
    point = at.op(OBJECT, Constant(Point), "x", x, "y", y, kind=Point)
    table = at.op(DICT, "a", point, "b", x, kind=dict)
    held = at.op(LOAD, table, "a", kind=Point)
    at.op(STORE, held, "x", at.op(o.mul, at.op(LOAD, point, "y"), at.op(LOAD, table, "b")))
    at.op(STORE, table, "c", at.op(math.cos, at.op(LOAD, point, "x")))
    at.give(at.op(o.add, at.op(LOAD, table, "c"), at.op(LOAD, held, "x")))
    check(folded, lambda x, y: math.cos(y * x) + y * x, (1.5, 0.7), (-2.0, 3.0))


def test_a_scope_with_two_states():
    folded, at, (x, y) = whole(float, float)
    scope, inner = at.scope()
    low, high = inner.test(o.gt, x, y)
    low.end("return", None, low.op(math.exp, x))
    high.end("return", (float, float), high.op(o.mul, x, y), high.op(math.sin, x))
    (a, (p,)), (b, (q, r)) = at.afters(scope, {None: (float,), (float, float): (float, float)})
    a.give(a.op(o.mul, p, p))
    b.give(b.op(o.sub, q, b.op(o.mul, r, y)))

    def plain(x, y):
        return x * y - math.sin(x) * y if x > y else math.exp(x) * math.exp(x)

    check(folded, plain, (1.5, 0.7), (0.5, 0.7))


def test_a_scope_with_one_way_is_written_out():
    folded, at, (x,) = whole(float)
    scope, inner = at.scope()
    inner.give(inner.op(o.mul, x, x))
    at, (y,) = at.after(scope, (float,), float)
    at.give(at.op(math.exp, y))
    check(folded, lambda x: math.exp(x * x), (0.3,), (-1.1,))
    assert "if" not in source_of(folded)[0]


def test_recursion():
    folded, at, (x, n) = whole(float, int)
    made, inside, (v, k) = function(float, int)
    deeper, stop = inside.test(o.le, k, 0)
    stop.give(stop.op(math.sin, v))
    half = deeper.op(o.mul, v, 0.5)
    first = deeper.invoke(made, half, deeper.op(o.sub, k, 1, kind=int))
    deeper, (a,) = deeper.after(first, (float,), float)
    second = deeper.invoke(made, deeper.op(o.add, half, a), deeper.op(o.sub, k, 2, kind=int))
    deeper, (b,) = deeper.after(second, (float,), float)
    deeper.give(deeper.op(o.add, deeper.op(o.mul, a, b), v))
    folded.functions["f"] = made
    call = at.invoke(made, x, n)
    at, (r,) = at.after(call, (float,), float)
    at.give(at.op(o.mul, r, x))

    def f(v, k):
        if k <= 0:
            return math.sin(v)
        a = f(v * 0.5, k - 1)
        return a * f(v * 0.5 + a, k - 2) + v

    check(folded, lambda x, n: f(x, n) * x, (0.7, 0), (0.7, 1), (1.3, 5))


def test_recursion_with_two_states_loops_and_a_list():
    """The function is left with a number, or with nothing; it fills a list that it is given."""
    folded, at, (x, n) = whole(float, int)
    made, inside, (v, k, into) = function(float, int, list)
    deeper, stop = inside.test(o.le, k, 0)
    stop.end("return", None)
    deeper.op(APPEND, into, deeper.op(o.mul, v, k))
    again = deeper.invoke(made, deeper.op(math.cos, v), deeper.op(o.sub, k, 1, kind=int), into)
    (none, _), (some, (a,)) = deeper.afters(again, {None: (), (float,): (float,)})
    none.give(v)
    inner, (w,) = powers(folded, some, a, 3)
    inner.give(inner.op(o.add, w, v))
    folded.functions["f"] = made
    into = at.op(LIST, x, kind=list)
    call = at.invoke(made, x, n, into)
    at, (r,) = at.after(call, (float,), float)
    last = at.op(LOAD, into, -1)
    at.give(at.op(o.add, at.op(o.mul, r, last), at.op(LOAD, into, 0)))

    def f(v, k, into):
        if k <= 0:
            return None
        into.append(v * k)
        a = f(math.cos(v), k - 1, into)
        if a is None:
            return v
        w = 1.0
        for _ in range(3):
            w = w * a + 1.0
        return w + v

    def plain(x, n):
        into = [x]
        r = f(x, n, into)
        return r * into[-1] + into[0]

    check(folded, plain, (0.7, 1), (0.7, 2), (0.4, 4))
    with pytest.raises(Miss):
        program(folded)(0.7, 0)


def test_exceptions():
    folded, at, (x, y) = whole(float, float)
    q = at.op(o.truediv, x, y)
    broken = at.raised(q, ZeroDivisionError)
    broken.give(broken.op(o.mul, x, 7.0))
    root = at.op(math.sqrt, q)
    wrong = at.raised(root, ValueError)
    wrong.give(wrong.op(o.neg, q))
    at.give(at.op(o.add, root, x))

    def plain(x, y):
        try:
            q = x / y
        except ZeroDivisionError:
            return x * 7.0
        try:
            return math.sqrt(q) + x
        except ValueError:
            return -q

    check(folded, plain, (2.0, 3.0), (-2.0, 3.0))
    assert program(folded)(2.0, 0.0) == (14.0, [7.0, 0.0])


def test_an_attribute_that_is_missing():
    class Point:
        pass

    folded, at, (x,) = whole(float)
    point = at.op(OBJECT, Constant(Point), "x", x, kind=Point)
    found = at.op(LOAD, point, "y")
    missing = at.raised(found, AttributeError)
    missing.give(missing.op(o.mul, missing.op(LOAD, point, "x"), x))
    at.give(found)
    assert program(folded)(3.0) == (9.0, [6.0])


def test_an_exception_of_another_class_is_missed():
    """Also of a class that is derived from one that was seen."""
    folded, at, (x, y) = whole(float, float)
    q = at.op(o.truediv, x, y)
    at.raised(q, ArithmeticError).give(x)
    at.give(q)
    assert program(folded)(3.0, 2.0)[0] == 1.5
    with pytest.raises(Miss):
        program(folded)(3.0, 0.0)


def test_exceptions_that_leave_a_loop_and_a_scope():
    folded, at, (x, n) = whole(float, int)
    loop = at.loop([x], at.op(range, n, kind=range))
    head, (v,) = body(loop, "s", float)
    turn, nothing = head.decide(EXHAUSTED)
    i = item(turn)
    scope, inner = turn.scope()
    q = inner.op(math.log, v)
    wrong = inner.raised(q, ValueError)
    wrong.end("raise", (ValueError, "s"), wrong.op(o.mul, v, 3.0))
    inner.end("return", "s", q)
    (good, (a,)), (bad, (b,)) = turn.afters(scope, {"s": (float,), (ValueError, "s"): (float,)})
    good.end("next", "s", good.op(o.mul, a, x))
    bad.end("leave", (ValueError, "s"), bad.op(o.add, b, i))
    nothing.end("leave", "s", v)
    (a, (v,)), (b, (w,)) = at.afters(loop, {"s": (float,), (ValueError, "s"): (float,)})
    a.give(v)
    b.give(b.op(o.mul, w, w))

    def plain(x, n):
        v = x
        for i in range(n):
            try:
                v = math.log(v) * x
            except ValueError:
                return (v * 3.0 + i) * (v * 3.0 + i)
        return v

    check(folded, plain, (5.0, 2), (0.5, 1), (0.5, 4), (1.7, 6))


def test_a_loop_whose_variable_changes_its_class():
    folded, at, (x, n) = whole(float, int)
    loop = at.loop([0], at.op(range, n, kind=range))
    head, (v,) = body(loop, "int", int)
    turn, nothing = head.decide(EXHAUSTED)
    i = item(turn)
    turn.end("next", "float", turn.op(o.add, v, turn.op(o.mul, x, turn.op(o.add, i, 1, kind=int))))
    nothing.end("leave", "int", v)
    head, (w,) = body(loop, "float", float)
    turn, nothing = head.decide(EXHAUSTED)
    item(turn)
    turn.end("next", "float", turn.op(o.mul, w, w))
    nothing.end("leave", "float", w)
    (a, (v,)), (b, (w,)) = at.afters(loop, {"int": (int,), "float": (float,)})
    a.give(a.op(o.mul, x, v))
    b.give(b.op(o.mul, x, w))

    def plain(x, n):
        v = 0
        for i in range(n):
            v = v * v if type(v) is float else v + x * (i + 1)
        return x * v

    check(folded, plain, (0.9, 1), (0.9, 3))
    assert program(folded)(0.9, 0) == (0.0, [0.0])


def test_a_loop_is_written_backwards_once(monkeypatch):
    """Which of its variables have no cotangent behind the last pass is known before the passes are written."""
    folded, at, (x, n) = whole(float, int)
    loop = at.loop([x, x], at.op(range, n, kind=range))
    for state, other, fn in (("off", "on", math.sin), ("on", "off", None)):
        head, (u, old) = body(loop, state, float, float)
        turn, nothing = head.decide(EXHAUSTED)
        item(turn)
        turn.end("next", other, turn.op(fn, u) if fn else turn.op(o.mul, u, old), u)
        nothing.end("leave", state, u)
    for end, (u,) in at.afters(loop, {"off": (float,), "on": (float,)}):
        end.give(end.op(o.mul, u, 2.0))
    attempts = []
    attempt = Reverse.attempt
    monkeypatch.setattr(Reverse, "attempt", lambda *args: attempts.append(1) or attempt(*args))

    def plain(x, n):
        u = old = x
        for i in range(n):
            u, old = (u * old if i % 2 else math.sin(u)), u
        return u * 2.0

    check(folded, plain, (0.9, 0), (0.9, 1), (0.9, 4), (1.3, 5))
    assert len(attempts) == 2  # of which each is for one end of the function


def test_nested_loops():
    folded, at, (x, n) = whole(float, int)
    loop = at.loop([0.0], at.op(range, n, kind=range))
    head, (v,) = body(loop, "s", float)
    turn, nothing = head.decide(EXHAUSTED)
    i = item(turn)
    inner, (w,) = powers(folded, turn, turn.op(math.sin, turn.op(o.add, v, x)), i)
    inner.end("next", "s", inner.op(o.add, inner.op(o.mul, v, 0.5), w))
    nothing.end("leave", "s", v)
    at, (v,) = at.after(loop, "s", float)
    at.give(v)

    def plain(x, n):
        v = 0.0
        for i in range(n):
            w, s = 1.0, math.sin(v + x)
            for _ in range(i):
                w = w * s + 1.0
            v = v * 0.5 + w
        return v

    check(folded, plain, (0.9, 1), (0.9, 3), (-0.3, 6))


def test_what_a_loop_does_not_change_is_no_variable_of_its():
    folded, at, (x, n) = whole(float, int)
    cells = at.op(LIST, x, kind=list)
    loop = at.loop([x, x, cells], at.op(range, n, kind=range))
    head, (v, same, held) = body(loop, "s", float, float, list)
    turn, nothing = head.decide(EXHAUSTED)
    item(turn)
    w = turn.op(o.mul, v, same)
    turn.op(STORE, Reference([cells, held]), 0, turn.op(o.add, w, turn.op(LOAD, held, 0)))
    turn.end("next", "s", w, same, Reference([cells, held]))
    nothing.end("leave", "s", v, same, held)
    at, (v, same, held) = at.after(loop, "s", float, float, list)
    at.give(at.op(o.add, v, at.op(o.mul, same, at.op(LOAD, held, 0))))

    def plain(x, n):
        v, cell = x, x
        for _ in range(n):
            v = v * x
            cell = v + cell
        return v + x * cell

    check(folded, plain, (0.9, 0), (0.9, 3), (-1.3, 6))
    source, _ = source_of(folded)
    assert "shadow" not in source
    assert source.count("= x0\n") == 1


def test_no_zero_meets_infinity():
    """Where no cotangent flows there is none: the slope of a root at zero is not asked for."""
    folded, at, (x, y) = whole(float, float)
    scope, inner = at.scope()
    root = inner.op(o.truediv, 1.0, x)
    low, high = inner.test(o.gt, y, 0.0)
    low.give(y)
    high.give(root)
    at, (r,) = at.after(scope, (float,), float)
    at.give(at.op(o.mul, r, 2.0))
    run = program(folded)
    assert run(1e-300, -1.0) == (-2.0, [0.0, 2.0])


def test_powers():
    folded, at, (x, n) = whole(float, int)
    a = at.op(o.pow, x, n)
    b = at.op(o.pow, x, -0.5)
    c = at.op(o.pow, 2.0, x)
    at.give(at.op(o.add, at.op(o.mul, a, b), at.op(o.add, c, at.op(o.pow, x, x))))
    check(folded, lambda x, n: x**n * x**-0.5 + (2.0**x + x**x), (1.7, 3), (0.6, 0), (0.3, -2))
    with pytest.raises(Miss):  # complex
        program(folded)(-1.7, 3)


@pytest.mark.parametrize("f", [math.acos, math.acosh, math.atanh, math.log, math.tan, abs])
def test_functions_that_are_not_defined_everywhere(f):
    folded, at, (x,) = whole(float)
    at.give(at.op(f, x))
    check(folded, f, (1.4,) if f is math.acosh else (0.4,))


def test_another_way_is_missed():
    folded, at, (x,) = whole(float)
    at.test(o.gt, x, 1.0)[1].give(at.op(o.mul, x, x))
    folded, at, (x,) = whole(float)
    (more,) = at.decide(at.op(o.gt, x, 1.0, kind=bool), True)
    more.give(more.op(o.mul, x, x))
    run = program(folded)
    assert run(2.0) == (4.0, [4.0])
    with pytest.raises(Miss):
        run(0.5)


def test_what_python_does_not_compile_is_refused():
    folded, at, (x,) = whole(float)
    for _ in range(120):
        low, at = at.test(o.gt, x, 1.0)
        low.give(x)
    at.give(x)
    with pytest.raises(Unemittable):
        program(folded)


def nest(at: At, x, depth):
    if not depth:
        return at, at.op(o.mul, x, x)
    loop = at.loop([0.0], at.op(range, 1, kind=range))
    head, (v,) = body(loop, "s", float)
    turn, nothing = head.decide(EXHAUSTED)
    item(turn)
    inner, w = nest(turn, x, depth - 1)
    inner.end("next", "s", inner.op(o.add, v, w))
    nothing.end("leave", "s", v)
    at, (r,) = at.after(loop, "s", float)
    return at, r


def test_loops_inside_one_another():
    folded, at, (x,) = whole(float)
    at, r = nest(at, x, 12)
    at.give(r)
    assert program(folded)(3.0) == (9.0, [6.0])
    folded, at, (x,) = whole(float)
    at, r = nest(at, x, 25)
    at.give(r)
    with pytest.raises(Unemittable):
        program(folded)


def test_a_result_that_is_no_float_has_no_gradient():
    folded, at, (x,) = whole(float)
    at.end("return", (int,), at.op(math.floor, x, kind=int))
    with pytest.raises(Unemittable):
        program(folded)


def test_a_derivative_through_a_class_that_is_not_known_is_refused():
    folded, at, (x,) = whole(float)
    both = at.op(math.modf, x, kind=tuple)
    at.give(at.op(o.getitem, both, 0))
    with pytest.raises(Unemittable, match="tuple"):
        program(folded)


def test_a_rule_that_is_missing_is_refused():
    folded, at, (x,) = whole(float)
    at.give(at.op(without_a_rule, x))
    with pytest.raises(Unemittable, match="rule"):
        program(folded)


def without_a_rule(x):
    return x
