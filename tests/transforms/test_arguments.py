"""Arguments by name and by keyword, and results with an aux beside the value."""

import inspect
import pickle

import numpy as np
import pytest

import wengert
from helpers import assert_close, assert_same, numeric_grad
from wengert import (
    TraceError,
    clear_cache,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jacrev,
    jit,
    jvp,
    linearize,
    pullback,
    value_and_grad,
    vjp,
)

V = np.array([0.5, -1.2, 2.0])
CALLS = range(5)  # traced, then kept


@pytest.fixture
def programs():
    """The JIT is on, whatever the environment says."""
    with jit(True):
        yield


def rate(x, y=3.0, *rest, k=1.0, **more):
    return x * x * y * k + sum(rest) * x + more.get("shift", 0.0) * y


WAYS = [
    ("x", (2.0,), {}, 12.0),
    ("x", (), {"x": 2.0}, 12.0),
    (0, (), {"x": 2.0}, 12.0),
    ("y", (2.0, 5.0), {}, 4.0),
    ("y", (2.0,), {"y": 5.0}, 4.0),
    (1, (2.0,), {"y": 5.0}, 4.0),
    ("k", (2.0,), {"k": 0.5}, 12.0),
    (("k", "x"), (2.0,), {"k": 0.5}, (12.0, 6.0)),
    (("y", 0), (2.0, 5.0), {}, (4.0, 20.0)),
    ("shift", (2.0, 5.0), {"shift": 1.5}, 5.0),
    (2, (2.0, 5.0, 7.0), {}, 2.0),
    (-1, (2.0, 5.0, 7.0), {}, 2.0),
]


@pytest.mark.parametrize("argnums, args, kwargs, expected", WAYS)
def test_each_argument_has_its_gradient_however_it_is_passed(argnums, args, kwargs, expected):
    slope, both = grad(rate, argnums), value_and_grad(rate, argnums=argnums)
    for _ in CALLS:
        assert slope(*args, **kwargs) == expected
        assert both(*args, **kwargs) == (rate(*args, **kwargs), expected)
        assert jacobian(rate, argnums)(*args, **kwargs) == expected


def test_the_same_function_called_in_several_ways():
    slope = grad(rate, "y")
    for _ in CALLS:
        assert slope(2.0, 5.0) == slope(2.0, y=5.0) == slope(y=5.0, x=2.0) == 4.0
        assert slope(3.0, 5.0, k=2.0) == slope(3.0, k=2.0, y=5.0) == 18.0


def test_names_of_methods_partials_and_objects():
    import functools

    class Model:
        def __init__(self, w):
            self.w = w

        def loss(self, x, scale):
            return self.w * x * scale

        __call__ = loss

    model = Model(3.0)
    for _ in CALLS:
        assert grad(model.loss, "scale")(2.0, 5.0) == 6.0
        assert grad(model, "scale")(2.0, scale=5.0) == 6.0
        assert grad(functools.partial(model.loss, scale=5.0), "x")(2.0) == 15.0
        assert grad(grad(lambda a, b: a * a * b * b, "a"), "b")(2.0, 3.0) == 24.0
        assert grad(Model.loss, "x")(model, 2.0, 5.0) == 15.0


def test_structures_by_name():
    def loss(params, x):
        return np.sum((x @ params["w"] + params["b"]) ** 2)

    x = np.outer(V, V)
    found = grad(loss, "params")(x=x, params={"w": V, "b": 0.5})
    assert_close(found["w"], numeric_grad(lambda w: loss({"w": w, "b": 0.5}, x), V), tol=1e-6)
    assert_same(found, grad(loss)({"w": V, "b": 0.5}, x))


def test_second_derivatives_by_name():
    def f(x, y):
        return np.sum(x**3) * y

    for _ in CALLS:
        assert_close(hessian(f, "x")(V, y=2.0), np.diag(12 * V))
        (xx, xy), (yx, yy) = hessian(f, ("x", "y"))(V, y=2.0)
        assert_close((xx, float(yy)), (np.diag(12 * V), 0.0))
        assert_close(xy, 3 * V**2)
        assert_close(yx, 3 * V**2)


def test_inside_a_traced_function():
    def outer(a):
        return grad(rate, "k")(a, k=a) * grad(rate, ("x",))(x=a)[0]

    for _ in CALLS:  # 3 a**2 * 6 a
        assert grad(outer)(2.0) == 54 * 4.0


def test_gradients_by_name_can_be_pickled():
    again = pickle.loads(pickle.dumps(grad(rate, "k")))
    assert again(2.0, k=0.5) == 12.0
    assert repr("k") in repr(again)


@pytest.mark.parametrize("argnums", ["z", "k", 1, ("x", "z"), 2])
def test_what_was_not_given(argnums):
    for make in (grad, value_and_grad, jacobian, hessian):
        with pytest.raises(TraceError, match=r"argnums is .*1 positional argument was given to"):
            make(lambda x, y=1.0, *, k=2.0: x * y * k, argnums)(1.0)


@pytest.mark.parametrize("argnums", ["y", 1, "k"])
def test_a_default_is_not_given(argnums):
    name = {1: "y"}.get(argnums, argnums)
    with pytest.raises(TraceError, match=rf"not by a default: add {name}=\.\.\."):
        grad(lambda x, y=1.0, *, k=2.0: x * y * k, argnums)(1.0)


@pytest.mark.parametrize("argnums", [1.0, None, (0, 1.0), V, [None]])
def test_what_is_no_argnum(argnums):
    for make in (grad, value_and_grad, jacobian, hessian):
        with pytest.raises(TraceError, match=r"argnums must be .*\n.*grad\(f, argnums"):
            make(rate, argnums)


# ------------------------------------------------------------------------------------------------- aux


def with_aux(x, w):
    y = np.tanh(x) * w
    return np.sum(y * x), {"y": y, "name": "aux", "parts": [x[0], None]}


def alone(x, w):
    return with_aux(x, w)[0]


def test_pullback_with_aux():
    value, back = pullback(alone, V, 2.0)
    expected = back(1.5)
    for _ in CALLS:
        for take in (pullback, vjp):
            found, back, aux = take(with_aux, V, 2.0, has_aux=True)
            assert_same((found, aux), with_aux(V, 2.0))
            assert_same(back(1.5), expected)
            assert_same(pickle.loads(pickle.dumps(back))(1.5), expected)
        named = pullback(with_aux, V, w=2.0, has_aux=True)[1](1.5)
        assert_same(named, (expected[0], {"w": expected[1]}))
    assert back.tape.inputs[-1].name == "dy"


def test_pullbacks_of_both_kinds_of_one_function():
    """What answers for one must not answer for the other."""
    for _ in CALLS:
        assert len(pullback(with_aux, V, 2.0)) == 2
        assert len(pullback(with_aux, V, 2.0, has_aux=True)) == 3
        assert len(jvp(with_aux, (V, 2.0), (V, 1.0))) == 2
        assert len(jvp(with_aux, (V, 2.0), (V, 1.0), has_aux=True)) == 3


def test_jvp_with_aux():
    expected = jvp(alone, (V, 2.0), (V, 1.0))
    for _ in CALLS:
        value, tangent, aux = jvp(with_aux, (V, 2.0), (V, 1.0), has_aux=True)
        assert_same((value, tangent), expected)
        assert_same(aux, with_aux(V, 2.0)[1])


@pytest.mark.parametrize("make", [jacobian, jacfwd, jacrev, hessian])
def test_jacobians_with_aux(make):
    expected = make(alone, argnums=(0, 1))(V, 2.0)
    for _ in CALLS:
        found, aux = make(with_aux, argnums=(0, 1), has_aux=True)(V, 2.0)
        assert_same(found, expected)
        assert_same(aux, with_aux(V, 2.0)[1])


def test_hvp_with_aux():
    expected = hvp(alone, (V, 2.0), (V, 1.0))
    for _ in CALLS:
        found, aux = hvp(with_aux, (V, 2.0), (V, 1.0), has_aux=True)
        assert_same(found, expected)
        assert_same(aux, with_aux(V, 2.0)[1])
        assert hvp(lambda x: (x**3, "aux"), (2.0,), (1.0,), has_aux=True) == (12.0, "aux")


def test_linearize_with_aux():
    expected = jvp(alone, (V, 2.0), (V, 1.0))
    for _ in CALLS:
        value, push, aux = linearize(with_aux, V, 2.0, has_aux=True)
        assert_same((value, push(V, 1.0)), expected)
        assert_same(aux, with_aux(V, 2.0)[1])
        assert len(linearize(with_aux, V, 2.0)) == 2

    def outer(x):
        _, push, aux = linearize(with_aux, x, 2.0, has_aux=True)
        return push(x, 0.0) + np.sum(aux["y"])

    for _ in CALLS:
        assert_close(grad(outer)(V), numeric_grad(outer, V), tol=1e-6)
    with pytest.raises(TraceError, match="has_aux is True or False"):
        linearize(with_aux, V, 2.0, has_aux=V)


def test_aux_needs_no_derivative():
    """What leads to the aux alone may have no rule."""

    def f(x):
        return x * x, "aux" if np.argmax([x, 1.0]) == 0 else "other"

    def opaque(x):
        import statistics

        return x * x, statistics.NormalDist().inv_cdf(x)

    for _ in CALLS:
        assert jacobian(f, has_aux=True)(3.0) == (6.0, "aux")
        assert jvp(f, (3.0,), (1.0,), has_aux=True) == (9.0, 6.0, "aux")
        assert pullback(opaque, 0.5, has_aux=True)[1](1.0) == (1.0,)


def test_aux_inside_a_traced_function():
    def outer(x):
        value, back, aux = pullback(with_aux, x, 2.0, has_aux=True)
        push = jvp(with_aux, (x, 2.0), (x, 0.0), has_aux=True)
        return np.sum(back(1.0)[0]) + value + np.sum(aux["y"]) + push[1] + np.sum(push[2]["y"])

    for _ in CALLS:
        assert_close(grad(outer)(V), numeric_grad(outer, V), tol=1e-6)


def test_aux_with_the_object_itself():
    class Model:
        def __init__(self):
            self.w = 2.0

        def __call__(self, x):
            return self.w * x, "aux"

    value, back, aux = pullback(Model(), 3.0, wrt_self=True, has_aux=True)
    assert (value, back(1.0), aux) == (6.0, ({"w": 3.0}, 2.0), "aux")


@pytest.mark.parametrize(
    "ask",
    [
        lambda f: pullback(f, 1.0, has_aux=True),
        lambda f: jvp(f, (1.0,), (1.0,), has_aux=True),
        lambda f: jacobian(f, has_aux=True)(1.0),
        lambda f: hessian(f, has_aux=True)(1.0),
        lambda f: grad(f, has_aux=True)(1.0),
        lambda f: hvp(f, (1.0,), (1.0,), has_aux=True),
        lambda f: linearize(f, 1.0, has_aux=True),
    ],
)
@pytest.mark.parametrize("f", [lambda x: x, lambda x: (x, x, x), lambda x: [x, x]])
def test_what_is_no_pair(ask, f):
    with pytest.raises(TraceError, match=r"must return the pair \(value, aux\)"):
        ask(f)


# ------------------------------------------------------------------------------------------- jacobians


def test_jacfwd_and_jacrev_are_the_modes_of_jacobian():
    def f(x):
        return x[:2] * x[2]

    for _ in CALLS:
        assert_same(jacfwd(f)(V), jacobian(f, mode="forward")(V))
        assert_same(jacrev(f)(V), jacobian(f, mode="reverse")(V))
    assert_close(jacfwd(jacrev(alone))(V, 2.0), hessian(alone)(V, 2.0))
    z = np.array([1 + 2j, 0.5j])
    assert_close(jacrev(lambda z: z * z, holomorphic=True)(z), np.diag(2 * z))


# ------------------------------------------------------------------------------------------------- jit


def newton(a):
    x, steps = a, 0
    while abs(x * x - a) > 1e-12:
        x = (x + a / x) / 2
        steps += 1
    return x, steps


def kept(f):
    """How many programs stand behind what ``jit`` gave."""
    return len(f.__self__.entry().programs)


def test_jit_gives_what_the_function_gives(programs):
    fast = jit(newton)
    for a in (2.0, 2.0, 3.0, 0.5, 2.0, 1.0, 7.0):
        assert_same(fast(a), newton(a))
    assert kept(fast) <= 2  # for any number of turns, and for none


def test_jit_answers_from_a_program(programs):
    @jit
    def f(x, names):
        return {"y": np.tanh(x) * 2, "names": [*names, "z"]}

    plain = inspect.unwrap(f)
    for x in (V, V * 2, V * 3):
        assert_same(f(x, ["a"]), plain(x, ["a"]))
    state = f.__self__
    assert state.program is not None
    assert state.program.hits + state.hits == 2
    assert_same(f(V[:2], ["a", "b"]), plain(V[:2], ["a", "b"]))


def test_what_jit_does_is_done_once_a_call(capsys):
    done = []

    @jit
    def f(x, tag="a"):
        done.append(tag)
        print("called")
        return x + len(done)

    assert [f(1.0), f(1.0), f(1.0, "b"), f(1.0, tag="b"), f(1.0)] == [2.0, 3.0, 4.0, 5.0, 6.0]
    assert done == ["a", "a", "b", "b", "a"]
    assert capsys.readouterr().out.count("called") == 5


def test_jit_sees_the_world_change():
    scale = 2.0

    @jit
    def f(x):
        return scale * x

    assert [f(3.0) for _ in CALLS] == [6.0] * 5
    scale = 4.0
    assert f(3.0) == 12.0


def test_jit_raises_what_the_function_raises():
    @jit
    def f(x):
        return 1.0 / x

    assert [f(2.0) for _ in CALLS] == [0.5] * 5
    for _ in CALLS:
        with pytest.raises(ZeroDivisionError):
            f(0.0)
        with pytest.raises(TypeError):
            f("text")


def test_gradients_of_what_jit_gives():
    f = jit(lambda x: x * x * x)
    for _ in CALLS:
        assert (f(2.0), grad(f)(2.0), grad(grad(f))(2.0)) == (8.0, 12.0, 12.0)
        assert grad(lambda x: f(x) * x)(2.0) == 32.0
        assert pullback(f, 2.0)[1](1.0) == (12.0,)


def test_jit_switched_off_is_the_function():
    seen = []

    def f(x):
        seen.append(type(x))
        return x * 2

    fast = jit(f)
    with jit(False):
        assert [fast(1.0) for _ in CALLS] == [2.0] * 5
        assert kept(fast) == 0
        with jit(True):
            fast(1.0)
            assert kept(fast) == 1
    with jit():
        assert fast(1.0) == 2.0
    assert seen == [float] * 7


def test_what_jit_gives_can_be_pickled_and_forgotten():
    fast = jit(newton)
    again = pickle.loads(pickle.dumps(fast))
    assert again(2.0) == newton(2.0)
    assert again.__name__ == "jit(newton)"
    clear_cache()
    assert fast(2.0) == newton(2.0)


def test_a_program_of_jit_does_not_answer_for_others():
    """Each transform of a function has programs of its own."""
    for _ in CALLS:
        assert jit(newton)(2.0) == newton(2.0)
        assert_close(jacobian(newton)(2.0)[0], 0.5 / 2.0**0.5, tol=1e-9)
        assert len(pullback(newton, 2.0)) == 2


def test_functions_whose_values_come_later_are_refused_at_once():
    def numbers(n):
        yield n

    async def later(x):
        return x

    for f in (numbers, later):
        with pytest.raises(TraceError, match=r"generator or an async function.*\n.*put jit on"):
            jit(f)


def test_a_function_that_cannot_be_traced_raises_at_its_first_call(programs):
    @jit
    def lost(x):
        return memoryview(np.array([x]))[0] * 2

    with pytest.raises(wengert.WengertError):
        lost(1.0)


def test_a_parameter_at_its_default_is_asked_for():
    def f(a, b=1.0, *, k=2.0):
        return a * b * k

    for name in ("b", "k"):
        with pytest.raises(TraceError, match=f"add {name}=") as caught:
            grad(f, name)(2.0)
        assert "counts from 0" not in str(caught.value)
        assert grad(f, name)(2.0, **{name: 3.0}) in (4.0, 2.0)
