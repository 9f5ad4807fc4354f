"""`debug=True`: an error at the user's line where a NaN or an infinity is born, forward or in reverse."""

import inspect
import math
import pickle
import traceback

import numpy as np
import pytest

from wengert import (
    NonFiniteError,
    WengertError,
    checkpoint,
    custom_rule,
    grad,
    jacobian,
    jit,
    pullback,
    value_and_grad,
)


def at(f, text):
    """``file:line`` of the line of `f` that contains `text`."""
    lines, start = inspect.getsourcelines(f)
    (found,) = [i for i, line in enumerate(lines) if text in line]
    return f"{__file__}:{start + found}"


def forward(x):
    y = x * 2.0
    z = np.log(y)  # born
    return (z + 1.0).sum()


def steep(x):
    y = np.arcsin(x)  # born
    return y.sum()


def at_zero(x):
    r = math.cbrt(x)  # born
    return r * 3.0


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("make", [grad, value_and_grad])
def test_born_in_the_run(make):
    with pytest.raises(NonFiniteError) as caught:
        make(forward, debug=True)(np.array([1.0, 0.0]))
    text = str(caught.value)
    assert text.startswith(at(forward, "# born"))
    assert "log gives float64[2] [0.6931   -inf]" in text
    assert "of float64[2] [2. 0.]" in text and "forward (" in text
    assert len(text.splitlines()) == 3
    assert isinstance(caught.value, WengertError) and isinstance(caught.value, FloatingPointError)
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert frames[-1].name == "forward" and frames[-1].line.endswith("# born")


@pytest.mark.parametrize("make", [grad, value_and_grad])
@pytest.mark.parametrize(
    "f, x, name", [(steep, np.array([0.5, 1.0]), "arcsin"), (at_zero, 0.0, "cbrt")]
)
def test_born_in_the_reverse_sweep(make, f, x, name):
    with pytest.raises(NonFiniteError) as caught:
        make(f, debug=True)(x)
    text = str(caught.value)
    assert text.startswith(at(f, "# born"))
    assert f"the derivative of {name} gives" in text and "with the cotangent" in text


def test_a_program_that_catches_arithmetic_errors_is_refused_all_the_same():
    def f(x):
        try:
            return x * float(np.float64(1e308) * 10.0 * x)
        except ArithmeticError:
            return x

    with np.errstate(all="ignore"), pytest.raises(NonFiniteError):
        grad(lambda x: f(np.exp(x * 1000.0)), debug=True)(1.0)


def test_the_traceback_ends_at_the_line_in_the_reverse_sweep_as_well():
    def f(x):
        y = x - 1.0
        z = np.arccos(y + 1.0)  # here
        return z.sum()

    with pytest.raises(NonFiniteError) as error:
        grad(f, debug=True)(np.ones(2))
    *_, last = traceback.extract_tb(error.value.__traceback__)
    assert (last.filename, last.name) == (__file__, "f")
    assert last.line == "z = np.arccos(y + 1.0)  # here"


def test_pullback():
    value, back = pullback(at_zero, 8.0, debug=True)
    assert value == 6.0 and back(1.0) == (0.25,)
    value, back = pullback(at_zero, 0.0, debug=True)
    assert value == 0.0
    with pytest.raises(NonFiniteError, match="derivative of cbrt"):
        back(1.0)


def test_in_a_checkpointed_function_and_behind_a_rule():
    with pytest.raises(NonFiniteError) as caught:
        grad(lambda x: checkpoint(at_zero)(x) * 2.0, debug=True)(0.0)
    assert str(caught.value).startswith(at(at_zero, "# born"))

    @custom_rule
    def broken(x):
        return x * 2.0, lambda dy: (dy * math.nan,)

    with pytest.raises(NonFiniteError, match="broken"):
        grad(lambda x: broken(x) * 3.0, debug=True)(1.0)


def test_infinities_that_are_given_are_no_error():
    def f(x):
        best = math.inf
        for i in range(3):
            best = min(best, x[i] * x[i])
        return best

    assert grad(f, debug=True)(np.array([3.0, 2.0, 4.0])).tolist() == [0.0, 4.0, 0.0]


def test_the_same_gradients_as_without():
    x = np.array([0.3, 0.2])
    assert grad(steep, debug=True)(x).tolist() == grad(steep)(x).tolist()
    assert value_and_grad(lambda x, y: (x * y, "aux"), argnums=1, has_aux=True, debug=True)(
        2.0, 3.0
    ) == ((6.0, "aux"), 2.0)
    assert grad(grad(lambda x: x * x * x, debug=True))(2.0) == 12.0


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_in_a_function_that_is_traced_itself():
    def f(x):
        return (x**-0.5).sum()  # here

    x = np.array([1e-250, 1.0])
    slope = grad(f, debug=True)
    both = value_and_grad(lambda p: f(p["x"]), debug=True)
    outside = [jit(slope), jacobian(slope), grad(lambda x: slope(x).sum())]
    outside.append(grad(lambda x: both({"x": x})[1]["x"].sum()))
    for ask in outside:
        for _ in range(4):
            with pytest.raises(NonFiniteError, match=r"test_debug\.py:\d+, in f: .* gives .*inf"):
                ask(x)
        assert np.isfinite(ask(np.ones(2))).all()


def test_pickled():
    f = pickle.loads(pickle.dumps(grad(at_zero, debug=True)))
    with pytest.raises(NonFiniteError):
        f(0.0)


def test_a_derivative_in_a_library_is_told_with_the_line_that_called_it():
    def f(x):
        return np.linalg.norm(x, 100)  # of 1e-320, the slope of the root is larger than any float

    line = f.__code__.co_firstlineno + 1
    for run in (
        lambda x: grad(f, debug=True)(x),
        lambda x: pullback(f, x, debug=True)[1](1.0),
    ):
        with pytest.raises(NonFiniteError, match=rf"in norm \(called from .*:{line}, in f\)"):
            run(np.array([10**-3.2, 0.0]))


@pytest.mark.parametrize(
    ("f", "x", "cure"),
    [
        (lambda x: np.exp(x * 500.0), 2.0, "work with logarithms"),
        (lambda x: np.log(x - 1.0), 1.0, "bound its operand (np.log(np.maximum(x, tiny)))"),
        (lambda x: np.float64(1.0) / np.float64(x), 0.0, "bound the divisor"),
    ],
)
def test_what_to_do_is_told_by_the_cause(f, x, cure):
    with np.errstate(all="ignore"), pytest.raises(NonFiniteError) as caught:
        grad(f, debug=True)(x)
    assert str(caught.value).splitlines()[2].startswith(f"  what to do: {cure}")


def test_a_nan_among_the_arguments_is_not_blamed_on_the_operation():
    with pytest.raises(NonFiniteError, match="clean the data"):
        grad(lambda x: (x * x).sum(), debug=True)(np.array([np.nan, 1.0]))
