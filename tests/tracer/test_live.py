"""What a function does that a solver in C calls back happens as in plain Python, and once more for no derivative."""

import contextlib
import functools
import io
import math
import random

import numpy as np
import pytest

from wengert import TraceError, WengertError, custom_rule, grad, jvp, pullback, value_and_grad

optimize = pytest.importorskip("scipy.optimize")
integrate = pytest.importorskip("scipy.integrate")

log: list[float] = []
memo: dict[float, float] = {}
counts = {"n": 0}
buffer = np.zeros(3)
total = 0
scale = 3.0


class Counter:
    n = 0


counter = Counter()


def appended(t):
    log.append(float(np.sum(t)))  # for SciPy lends its own array


def counted(t):
    counts["n"] += 1


def held(t):
    counter.n += 1


def rebound(t):
    global total
    total += 1


def printed(t):
    print("called", end=" ")


def remembered(t):
    memo.setdefault(round(float(np.sum(t)), 6), 1.0)


def written(t):
    buffer[0] += 1.0


def deleted(t):
    counter.once = counter.n
    del counter.once


EFFECTS = [appended, counted, held, rebound, printed, remembered, written, deleted]


def by_brentq(x, does):
    n = 0

    def h(t):
        nonlocal n
        n += 1
        does(t)
        return t * t - x

    root = optimize.brentq(h, 0.0, 10.0)
    counts["n"] += n
    return root


def by_newton(x, does):
    return optimize.newton(
        lambda t: (does(t), t * t - x)[1], 1.0, fprime=lambda t: (does(t), 2 * t)[1]
    )


def by_fixed_point(x, does):
    return optimize.fixed_point(lambda t: (does(t), 0.5 * (t + x / t))[1], 1.0)


def by_fsolve(x, does):
    return optimize.fsolve(lambda t: (does(t), [t[0] * t[0] - x])[1], 1.0)[0]


def by_root(x, does):
    return optimize.root(lambda t: (does(t), t * t - x)[1], np.array([1.0])).x[0]


def by_quad(x, does):
    return integrate.quad(lambda t: (does(t), 3 * t * t * math.sqrt(x))[1], 0.0, 1.0)[0]


def by_odeint(x, does):
    rate = lambda y, t: (does(t), [0.5 * y[0] * math.log(x)])[1]
    return integrate.odeint(rate, [1.0], np.linspace(0.0, 1.0, 3), rtol=1e-8, atol=1e-8)[-1, 0]


SOLVERS = [by_brentq, by_newton, by_fixed_point, by_fsolve, by_root, by_quad, by_odeint]


def world():
    """What the effects have done since the last time."""
    global total
    found = [*log], {**memo}, counts["n"], counter.n, vars(counter).get("once"), total, [*buffer]
    log.clear()
    memo.clear()
    counts["n"] = counter.n = total = 0
    buffer[:] = 0.0
    return found


@pytest.mark.parametrize("does", EFFECTS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_effects_happen_as_often_as_the_solver_calls(solver, does):
    world()
    with contextlib.redirect_stdout(io.StringIO()) as plainly:
        value = solver(2.0, does)
    expected = world()
    for ask in (value_and_grad(solver), asked_by_pullback(solver), asked_by_jvp(solver)):
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            found, slope = ask(2.0, does)
        assert found == value
        assert world() == expected
        assert shown.getvalue() == plainly.getvalue()
        assert math.isclose(slope, 0.5 / math.sqrt(2.0), rel_tol=1e-5)


def asked_by_pullback(f):
    def ask(x, does):
        value, back = pullback(f, x, does)
        return value, back(1.0)[0]

    return ask


def asked_by_jvp(f):
    return lambda x, does: jvp(lambda y: f(y, does), (x,), (1.0,))


@pytest.mark.parametrize("solver", SOLVERS)
def test_second_derivatives_have_no_effects(solver):
    world()
    solver(2.0, appended)
    expected = world()
    slope = grad(grad(lambda x: solver(x, appended)))(2.0)
    assert world() == expected
    assert math.isclose(slope, -0.25 * 2.0**-1.5, rel_tol=1e-4)


def test_a_pullback_knows_the_world_of_its_call():
    global scale

    def helper(t):
        return scale * t * t

    def f(x):
        return optimize.brentq(lambda t: helper(t) - x, 0.0, 10.0)

    def g(x):
        return integrate.quad(lambda t: scale * t * x, 0.0, 1.0)[0]

    try:
        by_root, by_quad = pullback(f, 2.0)[1], pullback(g, 2.0)[1]
        scale = 7.0
        assert math.isclose(by_root(1.0)[0], 0.5 / math.sqrt(6.0), rel_tol=1e-8)
        assert math.isclose(by_quad(1.0)[0], 1.5, rel_tol=1e-8)
    finally:
        scale = 3.0


def test_what_a_solver_gives_has_no_derivative_by_another_way():
    def f(x):
        last = []
        root = optimize.brentq(lambda t: (last.append(t), t * t - x)[1], 0.0, 10.0)
        return root + last[-1]

    with pytest.raises(WengertError, match="brentq"):
        grad(f)(2.0)


def test_what_it_computes_of_captures_alone_is_followed():
    def f(x):
        kept = []
        root = optimize.brentq(lambda t: (kept.append(x * x), t * t - x)[1], 0.0, 10.0)
        return root * kept[0]

    assert math.isclose(grad(f)(2.0), 2.5 * 2.0**1.5, rel_tol=1e-8)


def test_a_random_function_is_refused_by_name():
    def f(x):
        return optimize.brentq(lambda t: t * t - x + 1e-9 * random.random(), 0.0, 10.0)

    with pytest.raises(TraceError, match="random"):
        grad(f)(2.0)


def test_draws_beside_the_derivative_are_those_of_plain_python():
    def f(x):
        return optimize.brentq(lambda t: t * t - 2.0 + 1e-9 * random.random(), 0.0, 10.0) * x

    random.seed(1)
    expected = f(2.0), random.random()
    random.seed(1)
    assert (value_and_grad(f)(2.0)[0], random.random()) == expected


def test_an_error_in_the_function_is_the_users():
    def f(x):
        def h(t):
            log.append(t)
            if len(log) > 3:
                raise ValueError("enough")
            return t * t - x

        try:
            return optimize.brentq(h, 0.0, 10.0)
        except ValueError as error:
            return x * len(str(error))

    world()
    assert f(2.0) == 12.0
    expected = world()
    assert value_and_grad(f)(2.0) == (12.0, 6.0)
    assert world() == expected


class Model:
    def __init__(self):
        self.calls, self.seen, self.k = 0, [], 2.0

    def rate(self, t, x):
        self.calls += 1
        self.seen.append(t)
        return self.k * t * t - x


@pytest.mark.parametrize("where", ["inside", "outside"])
def test_objects_that_count(where):
    outside = Model()

    def f(x):
        model = Model() if where == "inside" else outside
        root = optimize.brentq(lambda t: model.rate(t, x), 0.0, 5.0)
        area = integrate.quad(lambda t: model.rate(t, x), 0.0, 5.0)[0]
        return root * area * model.calls

    value = f(1.5)
    seen = [*outside.seen]
    outside.__init__()
    found, slope = value_and_grad(f)(1.5)
    assert (found, outside.seen) == (value, seen)
    outside.__init__()
    more = f(1.5 + 1e-6)
    outside.__init__()
    assert math.isclose(slope, (more - f(1.5 - 1e-6)) / 2e-6, rel_tol=1e-6)


def test_what_the_function_reads_is_set_later():
    settings = {}

    def by_item(x):
        w = [1.0]
        y = integrate.quad(lambda t: w[0] * t * x * x, 0.0, 1.0)[0]
        w[0] = 50.0
        return y

    def by_array(x):
        w = np.array([1.0])
        y = optimize.brentq(lambda t: w[0] * t - x * x, 0.0, 9.0)
        w[0] = 50.0
        return y

    def in_turn(x):
        out = 0.0
        for k in (2.0, 3.0):
            settings["k"] = k
            out += optimize.brentq(lambda t: settings["k"] * t - x * x, 0.0, 9.0)
        return out

    assert math.isclose(grad(by_item)(1.5), 1.5)
    assert math.isclose(grad(by_array)(1.5), 3.0)
    assert math.isclose(grad(in_turn)(1.5), 3.0 * (1 / 2 + 1 / 3))


class Base:
    rate = 2.0


class Derived(Base):
    pass


class Slotted:
    __slots__ = ("rate",)

    def __init__(self):
        self.rate = 2.0


def through(f):
    @functools.wraps(f)
    def wrapper(*args):
        return f(*args)

    return wrapper


class Owner(Base):
    """Reads by a method: an attribute of another object, a class attribute, a global."""

    def __init__(self):
        self.part, self.parts, self.last = Slotted(), [Slotted()], None
        self.table, self.level = [[2.0]], 2.0

    def __mul__(self, t):
        return self.level * t

    @through
    def by_a_wrapper(self, t, x):
        return self.level * t - x * x

    @property
    def by_a_property(self):
        return self.level

    def of_the_part(self, t, x):
        return self.part.rate * t - x * x

    def of_a_part_in_a_list(self, t, x):
        return self.parts[0].rate * t - x * x

    def of_the_class(self, t, x):
        return Derived.rate * t - x * x

    def of_the_module(self, t, x):
        return level * t - x * x

    def by_another_method(self, t, x):
        return self.of_the_part(t, x)


level = 2.0


def set_level(owner, value):
    global level
    level = value


def set_base(owner, value):
    Base.rate = value


def set_part(owner, value):
    owner.part.rate = value


def set_in_list(owner, value):
    owner.parts[0].rate = value


def set_owners_level(owner, value):
    owner.level = value


def set_in_table(owner, value):
    owner.table[0][0] = value


def shadow(owner, value):
    if value == 2.0:
        del owner.rate
    else:
        owner.rate = value


def add(owner, value):
    if value == 2.0:
        del Base.limit
    else:
        Base.limit = value


READ_AND_SET = [
    (lambda owner: owner.by_a_wrapper, set_owners_level, "'level' of an Owner"),
    (lambda owner: lambda t, x: owner.by_a_property * t - x * x, set_owners_level, "'level'"),
    (lambda owner: lambda t, x: owner * t - x * x, set_owners_level, "'level' of an Owner"),
    (lambda owner: lambda t, x: getattr(owner, "level") * t - x * x, set_owners_level, "'level'"),
    (lambda owner: lambda t, x: owner.table[0][0] * t - x * x, set_in_table, "a list"),
    (lambda owner: lambda t, x: owner.rate * t - x * x, shadow, "'rate' of an Owner"),
    (lambda owner: lambda t, x: getattr(owner, "limit", 2.0) * t - x * x, add, "'limit' of Base"),
    (lambda owner: owner.of_the_part, set_part, "'rate' of a Slotted"),
    (lambda owner: owner.by_another_method, set_part, "'rate' of a Slotted"),
    (lambda owner: owner.of_a_part_in_a_list, set_in_list, "'rate' of a Slotted"),
    (lambda owner: owner.of_the_class, set_base, "'rate' of Base"),
    (lambda owner: owner.of_the_module, set_level, "the global 'level'"),
    (lambda owner: lambda t, x: owner.part.rate * t - x * x, set_part, "'rate' of a Slotted"),
    (lambda owner: lambda t, x: Derived.rate * t - x * x, set_base, "'rate' of Base"),
]


@pytest.mark.parametrize(("reader", "put", "named"), READ_AND_SET)
def test_what_is_read_and_set_later_is_refused_by_name(reader, put, named):
    owner = Owner()

    def f(x, later):
        read = reader(owner)
        root = optimize.brentq(lambda t: read(t, x), 0.0, 9.0)
        area = integrate.quad(lambda t: read(t, x), 0.0, 1.0)[0]
        if later is not None:
            put(owner, later)
        return root - area

    try:
        assert math.isclose(grad(f)(1.5, None), 2 * 1.5 / 2.0 + 2 * 1.5)
        with pytest.raises(TraceError, match=named):
            grad(f)(1.5, 7.0)
    finally:
        put(owner, 2.0)


def test_what_is_not_read_may_be_set_later():
    owner = Owner()

    def f(x):
        owner.last = optimize.brentq(lambda t: owner.of_the_part(t, x), 0.0, 9.0)
        Derived.last = owner.last
        return owner.last

    assert math.isclose(grad(f)(1.5), 1.5)


def test_an_attribute_that_is_set_later_is_refused_by_name():
    model = Model()

    def f(x):
        root = optimize.brentq(lambda t: model.rate(t, x), 0.0, 5.0)
        model.k = 7.0
        return root

    with pytest.raises(TraceError, match="'k' of a Model"):
        grad(f)(1.5)


def test_a_memory_of_what_was_computed_is_refused_by_name():
    known = {}

    def f(x):
        def h(t):
            if "square" not in known:
                known["square"] = x * x
            return known["square"] * t - 1.0

        return optimize.brentq(h, 0.0, 5.0)

    with pytest.raises(TraceError, match="called before"):
        grad(f)(1.5)


def test_values_stay_what_they_were_where_an_inner_derivative_needs_them():
    def inner(v):
        return np.outer(v, v).prod()

    def by_gradient(v):
        found = grad(inner)(v)
        v[...] = 7.0
        return found.sum()

    def by_tangent(v):
        found = jvp(lambda w: np.power.reduce(w), (v,), (np.ones(2),))[1]
        v[...] = 7.0
        return found

    for f in (by_gradient, by_tangent):
        x = np.array([3.0, 1.0])
        unchanged = [
            (f(x + h) - f(x - h)) / 2e-6 for h in (np.array([1e-6, 0.0]), np.array([0.0, 1e-6]))
        ]
        for _ in range(4):
            assert np.allclose(grad(f)(x.copy()), unchanged, rtol=1e-6)
    x = np.array([3.0, 1.0])
    back = pullback(grad(inner), x)[1]
    before = back(np.ones(2))[0].copy()
    x[...] = 77.0
    assert np.array_equal(back(np.ones(2))[0], before)


def test_functions_keep_their_rules():
    @custom_rule
    def cube(t):
        return t**3, lambda d: (30.0 * t * t * d,)  # ten times as much, to be told apart

    def f(x):
        return integrate.quad(lambda t: cube(x) * t, 0.0, 1.0)[0]

    def inner(x):
        return integrate.quad(lambda t: grad(lambda y: y**3)(x) * t, 0.0, 1.0)[0]

    assert math.isclose(grad(f)(2.0), 60.0)
    assert math.isclose(grad(inner)(2.0), 6.0)


@pytest.mark.parametrize("where", ["inside", "outside"])
def test_a_buffer_that_is_written_anew_at_each_call(where):
    def f(x):
        into = np.zeros(2) if where == "inside" else buffer[:2]

        def rate(y, t):
            into[0] = y[1]
            into[1] = -x * y[0]
            return into

        return integrate.odeint(rate, [1.0, 0.0], [0.0, 1.0], rtol=1e-10, atol=1e-10)[-1, 0]

    found, slope = value_and_grad(f)(1.5)
    assert found == f(1.5)
    assert math.isclose(slope, (f(1.5 + 1e-5) - f(1.5 - 1e-5)) / 2e-5, rel_tol=1e-5)
