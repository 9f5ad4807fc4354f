"""Stories of gradients that are not as hoped for: `why` names the line (marked ``# here``), the cause and the cure."""

import colorsys
import inspect
import linecache
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest

from wengert import (
    TraceError,
    checkpoint,
    custom_rule,
    grad,
    profile,
    stop_gradient,
    value_and_grad,
    why,
)

A = np.array
STORIES = []


def story(*args, path, kind, cause, says="", gradient=None):
    """A function, its arguments, and what there is to be found; ``gradient`` is what `grad` gives at that path."""

    def note(f):
        STORIES.append(pytest.param(f, args, path, kind, cause, says, id=f.__name__))
        return f

    return note


def here(f):
    lines, start = inspect.getsourcelines(f)
    return next((start + i for i, line in enumerate(lines) if line.rstrip().endswith("# here")), 0)


# ------------------------------------------------------------------------------------------------- zeros


@story(1.4, path="x", kind="zero", cause="integers", says="int(2.8)")
def cast_to_int(x):
    steps = x * 2.0
    whole = int(steps)  # here
    return whole * 0.5 + 1.0


@story(A([1.4, 2.6]), path="x[0]", kind="zero", cause="integers", says="astype(1.4, int) at [0]")
def cast_of_an_array(x):
    n = x.astype(int)  # here
    return n.sum() * 1.0


@story(A([1.4, 2.6]), path="x[0]", kind="zero", cause="integers", says="setitem")
def put_into_an_array_of_integers(x):
    out = np.zeros(2, dtype=int)
    out[:] = x  # here
    return out.sum() * 1.0


@story(2.6, path="x", kind="zero", cause="rounding", says="round(2.6)")
def rounded(x):
    return round(x) * 2.0  # here


@story(A([0.2, 0.9]), path="x[0]", kind="zero", cause="choice", says="argmax")
def position_of_the_largest(x):
    y = x * 3.0
    best = np.argmax(y)  # here
    return best * 1.5


@story(A([2.0, 0.0]), path="x[1]", kind="zero", cause="not taken", says="NaN or infinite")
def where_with_a_nan_branch(x):
    with np.errstate(all="ignore"):
        ratio = np.sin(x) / x
    y = np.where(x != 0, ratio, 1.0)  # here
    return y.sum()


@story(A([3.0, -1.0]), path="x[1]", kind="zero", cause="not taken", says="maximum(-2, 0) at [1]")
def rectified(x):
    h = np.maximum(2.0 * x, 0.0)  # here
    return (h * h).sum()


@story(0.0, path="x", kind="zero", cause="kink", says="sqrt(0)")
def root_at_zero(x):
    r = math.sqrt(x)  # here
    return r + 1.0


@story(A([0.0, 0.0]), path="x[0]", kind="zero", cause="kink", says="mul(0, 0) at [0]")
def length_at_zero(x):
    squares = x * x
    return np.sqrt(squares.sum())  # here


@story(A([0.0, 3.0]), path="x[0]", kind="zero", cause="kink", says="sqrt(0) at [0]")
def magnitudes_at_zero(x):
    squares = x**2
    return np.sqrt(squares).sum()  # here


@story(A([0.0, 0.0]), path="x[0]", kind="zero", cause="kink", says="linalg")
def norm_at_zero(x):
    return 2.0 * np.linalg.norm(x)  # here


@story(A([1.0, 1.0]), path="x[0]", kind="zero", cause="kink", says="std")
def spread_of_what_is_the_same(x):
    return x.std()  # here


@story(5.0, path="x", kind="zero", cause="rounding", says="divmod(5, 2)")
def whole_quotient(x):
    whole, rest = divmod(x, 2.0)  # here
    return whole * 3.0


@story(A([-1.0, 2.0]), path="x[0]", kind="zero", cause="step", says="sign(-1) at [0]")
def by_its_sign(x):
    return np.sign(x).sum()  # here


@story(A([[2.0, 1.0], [1.0, 1.0]]), path="a[0, 1]", kind="zero", cause="cancelled", says="sum")
def elements_that_cancel(a):
    inverse = np.array([[a[1, 1], -a[0, 1]], [-a[0, 1] * -1.0, a[0, 0]]])
    return inverse.sum()  # here


SCALE = 2.5


@story(3.0, path="scale", kind="zero", cause="constant", says="SCALE")
def a_constant(scale):
    return SCALE * 2.0


@story(3.0, path="x", kind="zero", cause="unused result")
def left_out(x):
    made = [x * 2.0]  # here
    return SCALE * len(made)


@story(1.26, path="x", kind="zero", cause="decision")
def by_its_text(x):
    label = f"{x:.0f}"  # here
    return {"1": 2.0, "2": 3.0}[label]


@story(A([1.0, 2.0]), path="x[0]", kind="zero", cause="overwritten", says="a slice is a view")
def an_aliased_write(x):
    y = x * 2.0
    first = y[:1]
    first[0] = 0.0  # here
    return y.sum()


@story(0.7, path="x", kind="zero", cause="decision", says="only decides which way")
def a_decision(x):
    if x > 0.5:  # here
        return 1.0
    return 2.0


@story(2.0, path="x", kind="zero", cause="stop_gradient", says="stop_gradient(6)")
def detached(x):
    y = x * 3.0
    return stop_gradient(y) * 2.0  # here


@story(60.0, path="x", kind="zero", cause="saturation", says="tanh(60)")
def saturated(x):
    return math.tanh(x) * 3.0  # here


@story(
    {"w": A([[1.0, 2.0], [3.0, 4.0]])}, path="params['w'][0, 1]", kind="zero", cause="times zero"
)
def a_mask(params):
    mask = A([[1.0, 0.0], [1.0, 1.0]])
    return (params["w"] * mask).sum()  # here


@story(3.0, path="x", kind="zero", cause="cancelled")
def cancels(x):
    y = x * 2.0
    z = y - y  # here
    return z + 1.0


@story(A([3.0, 4.0]), path="x[1]", kind="zero", cause="not picked")
def not_picked(x):
    return x[0] * 2.0  # here


@story(A([0.3, 0.6]), path="x[0]", kind="zero", cause="comparison", says="gt(0.3, 0.5) at [0]")
def a_count(x):
    return (x > 0.5).mean() * 1.0  # here


@story(1e-200, path="x", kind="zero", cause="underflow")
def underflow(x):
    y = x * 1e-200
    return y * 1e-200  # here


@story(2.0, path="x", kind="zero", cause="flat", says="broken")
def by_a_rule(x):
    return broken(x) * 2.0  # here


@custom_rule(pure=True)
def broken(x):
    return x * 3.0, lambda dy: (0.0 * dy,)


@story(2.0, path="x", kind="zero", cause="flat", says="broken_pair")
def by_a_rule_that_is_a_pair(x):
    y = broken_pair(x)  # here
    return y * 2.0


@custom_rule
def broken_pair(x):
    return x * 3.0, lambda dy: (0.0 * dy,)


@story(0.3, path="hue", kind="zero", cause="decision", says="colorsys.py:")
def decided_in_a_library(hue):
    r, g, b = colorsys.hls_to_rgb(hue, 0.5, 0.4)  # here
    return g


@story(0.5, path="red", kind="zero", cause="not taken", says="max(0.5, 0.2, 0.9)")
def computed_in_a_library(red):
    hue, light, saturation = colorsys.rgb_to_hls(red, 0.2, 0.9)  # here
    return light


@story(A([0.3, 0.7, -1.1]), path="x[2]", kind="zero", cause="not taken", says="maximum(-1.1, 0)")
def picked_and_not_taken(x):
    a = np.exp(x[0]) * x[1]
    return a + np.maximum(x[2], 0.0)  # here


@story(A([0.3, 0.7]), path="x[1]", kind="zero", cause="decision")
def picked_and_decided_on(x):
    if x[1] > 0:  # here
        return x[0] * 2.0
    return x[0] * 3.0


# ------------------------------------------------------------------------------- NaN, infinite, huge, tiny


@story(A([1.0, 0.0]), path="the result", kind="NaN", cause="logarithm", says="log(0) at [1] = -inf")
def a_mask_that_multiplies(x):
    mask = x > 0
    with np.errstate(all="ignore"):
        logs = np.log(x)  # here
        return (mask * logs).sum()


@story(A([0.5, 1.0]), path="x[1]", kind="infinite", cause="edge", says="arcsin(1) at [1]")
def at_the_edge(x):
    angle = np.arcsin(x)  # here
    return angle.sum() * 2.0


@story(A([1.0, 0.0]), path="x[1]", kind="NaN", cause="edge", says="cbrt(0)")
def infinite_then_nan(x):
    y = x - x[1]
    r = np.cbrt(y)  # here
    return r[1] * 1.0


@story(A([1.0, math.nan]), path="x[1]", kind="NaN", cause="given", says="x = nan")
def given_as_nan(x):
    return np.sum(x * x)


@story(1e-3, 0.0, path="the result", kind="infinite", cause="division", says="divides by zero")
def divided(x, y):
    with np.errstate(all="ignore"):
        return np.float64(x) / y  # here


@story(800.0, path="the result", kind="infinite", cause="overflow", says="exp")
def overflows(x):
    with np.errstate(all="ignore"):
        return np.exp(x) * 2.0  # here


@story(2.0, path="x", kind="huge", cause="small divisor", says="1e-12")
def small_divisor(x):
    return x / 1e-12  # here


@story(1.5, path="x", kind="huge", cause="repeated", says="100 times mul")
def explodes(x):
    for _ in range(100):
        x = x * 1.5  # here
    return x


@story(45.0, path="x", kind="tiny", cause="saturation")
def sigmoid(x):
    return 1.0 / (1.0 + math.exp(-x))  # here


@story(1.5, path="x", kind="tiny", cause="repeated", says="(0.5 each time)")
def fades(x):
    for _ in range(100):
        x = x * 0.5  # here
    return x


# ------------------------------------------------------------------------------------------------- None


@story(A([1, 2]), path="n", kind="None", cause="integer argument", says="astype(float)")
def an_integer_argument(n):
    return n.sum() * 1.0


@story("1.5", 2.0, path="text", kind="None", cause="text")
def a_text(text, x):
    return float(text) * x


@story(A([True, False]), path="mask", kind="None", cause="truth")
def a_truth(mask):
    return mask.sum() * 1.0


def test_there_are_stories_enough():
    assert len(STORIES) >= 12


@pytest.mark.parametrize("f, args, path, kind, cause, says", STORIES)
def test_story(f, args, path, kind, cause, says):
    told = why(f, *args)
    found = [x for x in told.findings if (x.path, x.kind) == (path, kind)]
    assert len(found) == 1, told
    (finding,) = found
    assert finding.cause == cause, told
    line = here(f)
    if line:
        assert finding.line == line, told
        site = finding.places[0].site
        assert (site.filename, site.function) == (__file__, f.__name__)
        assert f"{__file__}:{line}, in {f.__name__}: " in told
    assert says in told
    assert 1 <= told.count("what to do: ") <= sum(len(x.places) for x in told.findings)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("f, args, path, kind, cause, says", STORIES)
def test_the_gradient_is_what_the_story_says(f, args, path, kind, cause, says):
    """What `grad` gives, asked for without `why`."""
    if path == "the result":
        test = {"NaN": np.isnan, "infinite": np.isinf}[kind]
        assert test(f(*args))
    elif kind == "None":
        with pytest.raises(TraceError):
            grad(f)(*args)
    else:
        got = grad(f)(*args)
        found = np.asarray(got["w"] if isinstance(got, dict) else got)
        index = path[path.rindex("[") + 1 : -1].split(", ") if path.endswith("]") else ()
        number = found[tuple(map(int, index))]
        test = {
            "zero": lambda d: d == 0,
            "NaN": np.isnan,
            "infinite": np.isinf,
            "huge": lambda d: 1e8 <= abs(d) < np.inf,
            "tiny": lambda d: 0 < abs(d) <= 1e-12,
        }[kind]
        assert test(number)


# ------------------------------------------------------------------------------------------- the answer


def test_all_is_well():
    told = why(lambda x, y: (x * y).sum(), A([1.0, 2.0]), 3.0)
    assert told.findings == ()
    assert "all is well" in told and len(told.splitlines()) == 2


def test_what_is_found_is_counted_and_ordered():
    def f(p):
        return (np.maximum(p["w"] @ p["x"], 0.0) + np.arcsin(p["b"])).sum()

    p = {"w": -np.ones((2, 3)), "x": np.ones(3), "b": A([1.0, 0.5])}
    told = why(f, p)
    assert [(x.path, x.kind, x.count, x.total) for x in told.findings] == [
        ("p['b'][0]", "infinite", 1, 2),
        ("p['w'][0, 0]", "zero", 6, 6),
        ("p['x'][0]", "zero", 3, 3),
    ]
    assert "the gradient by p['w'][0, 0] is zero (6 of 6 elements are)" in told


def test_what_is_alike_is_told_at_once():
    def f(xs):
        return sum([round(x) * 1.0 for x in xs])

    told = why(f, [1.2] * 100)
    assert len(told.findings) == 100
    assert told.count("what to do") == 1 and len(told.splitlines()) < 12
    assert "and so it is by xs[1], xs[2], xs[3] and 46 others" in told


def test_growth_beyond_all_floats_on_the_way():
    def f(x):
        big = x * 1.0
        for _ in range(900):
            big = big * 3.0 * (1.0 / 3.0)  # grows and shrinks again
        return big * 1e12  # here

    (finding,) = why(f, 1.0).findings
    assert finding.kind == "huge"


def test_several_places():
    def f(x):
        a = np.floor(x)
        b = math.ceil(x)
        return a + b

    told = why(f, 1.5)
    (finding,) = told.findings
    start = inspect.getsourcelines(f)[1]
    assert [p.site.lineno - start for p in finding.places] == [1, 2]


def test_what_does_not_reach_the_result_is_not_blamed():
    def f(x):
        shown = [round(x)]
        y = np.floor(x)  # here
        return y + len(shown)

    (finding,) = why(f, 1.5).findings
    assert len(finding.places) == 1 and finding.line == here(f)


def test_arguments_are_chosen_as_grad_chooses_them():
    def f(x, y, *, z):
        return round(x) * 1.0 + round(y) * 1.0 + round(z) * 1.0

    def paths(told):
        return [x.path for x in told.findings]

    assert paths(why(f, 1.2, 2.2, z=3.2)) == ["x", "y", "z"]
    assert paths(why(f, 1.2, 2.2, z=3.2, argnums=1)) == ["y"]
    assert paths(why(f, 1.2, 2.2, z=3.2, argnums=(1, -2))) == ["y", "x"]
    assert paths(why(f, 1.2, 2.2, z=3.2, argnums="z")) == ["z"]
    assert paths(why(f, 1.2, 2.2, z=3.2, argnums=("y", 0))) == ["y", "x"]
    assert paths(why(grad(f), 1.2, 2.2, z=3.2)) == ["x"]
    assert paths(why(value_and_grad(f, argnums=1), 1.2, 2.2, z=3.2)) == ["y"]
    aux = grad(lambda x: (round(x) * 1.0, x * 2.0), has_aux=True)
    assert [x.cause for x in why(aux, 1.2).findings] == ["rounding"]


def test_objects_and_namedtuples_have_paths():
    class Model:
        def __init__(self):
            self.w = A([1.0, 2.0])
            self.parts = [{"b": 3.0}]

    def f(model):
        return model.w[0] * 2.0

    told = why(f, Model())
    assert [x.path for x in told.findings] == ["model.w[1]", "model.parts[0]['b']"]


def test_what_has_no_gradient_at_all_is_told():
    assert "the result is a str" in why(lambda x: "a", 1.0)
    assert "the result is None" in why(lambda x: None, 1.0)
    told = why(lambda x: float(f"{x:.1f}") * x, 1.0)
    assert "there is no gradient" in told and "text" in told and f"{__file__}:" in told
    assert [line[:6] for line in told.splitlines()[1:]] == ["  ther", "    co"]


def test_results_that_cancel():
    def f(x):
        y = x * 2.0
        return [y, -y]

    (finding,) = why(f, 3.0).findings
    assert (finding.kind, finding.cause) == ("zero", "cancelled")


def test_in_a_checkpointed_function():
    def inner(x):
        y = math.tanh(x)  # here
        return y * 2.0

    (finding,) = why(lambda x: checkpoint(inner)(x) * 3.0, 60.0).findings
    assert (finding.kind, finding.cause, finding.line) == ("zero", "saturation", here(inner))


def test_the_function_is_called_once_and_its_errors_are_its_own():
    calls = []

    def f(x):
        calls.append(x)
        return round(x) * 1.0

    why(f, 1.5)
    assert len(calls) == 1
    with pytest.raises(ZeroDivisionError):
        why(lambda x: 1.0 / x, 0.0)


def test_refusals():
    with pytest.raises(TraceError, match="must be a function"):
        why(3, 1.0)
    with pytest.raises(TraceError, match="inside a function that is being traced"):
        grad(lambda x: len(why(round, x)) * x)(1.0)
    with pytest.raises(TraceError, match="argnums is 2"):
        grad(lambda x: x, argnums=2)(1.0)
    assert "argnums is 2" in why(lambda x: x, 1.0, argnums=2)


def test_powers_at_zero_and_far_below():
    def cause(f, x):
        (finding,) = why(f, x).findings
        return finding.kind, finding.cause

    assert cause(lambda x: x**0.5, 0.0) == ("zero", "kink")
    assert cause(lambda x: x**3, 0.0) == ("zero", "stationary")
    assert cause(lambda x: 2.0**x, -2000.0) == ("zero", "underflow")


def test_what_a_contracting_loop_forgets_has_underflowed():
    """Each factor of a thousand is a number, and none of its operands is zero."""

    def logistic(x):
        for _ in range(1000):
            x = 3.5 * x * (1 - x)
        return x

    assert grad(logistic)(0.3) == 0.0
    (finding,) = why(logistic, 0.3).findings
    assert (finding.kind, finding.cause) == ("zero", "underflow")


@pytest.mark.parametrize("name", ["<python-input-3>", "<stdin>", "<ipython-input-2-0a1b>"])
def test_what_is_typed_at_a_prompt_is_the_users(name):
    """Its lines are told as those of a file are, not those of whoever has called it."""
    text = "def typed(x):\n    y = round(x)\n    return y * 2.0\n"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope = {}
    try:
        exec(compile(text, name, "exec"), scope)
        told = why(scope["typed"], 2.7)
        assert f"{name}:2, in typed: y = round(x)" in str(told)
        assert "test_why.py" not in str(told)
        assert [x.operations for x in profile(scope["typed"], 2.7).lines] == [1, 1]
    finally:
        del linecache.cache[name]


def test_operations_with_several_results():
    """The results of one operation have other shapes, and not all of them are numbers that are finite."""
    for f in (
        lambda a: np.linalg.svd(a)[1].sum(),
        lambda a: np.linalg.eigh(a)[0].sum(),
        lambda a: np.linalg.qr(a + np.eye(2))[1][1, 1],
    ):
        told = why(f, np.zeros((2, 2)))
        assert {x.kind for x in told.findings} == {"zero"}, told
    with np.errstate(all="ignore"):
        told = why(lambda x: sum(map(np.sum, np.modf(x))), A([1.5, np.inf]) * 1.0)
    assert "= inf" in told and "element" not in told.splitlines()[2]


def test_cures_fit_the_operation():
    def told(f, *args):
        with np.errstate(all="ignore"):
            return why(f, *args)

    assert "np.sqrt(x * x + 1e-12)" in told(abs, 0.0)
    assert "np.sqrt(x + 1e-12)" in told(math.sqrt, 0.0)
    assert "the base alone" in told(lambda x, y: x**y, -1.0, 2.0)
    assert "the base alone" in told(lambda x: x**0.5, np.float64(-2.0))
    assert "larger than the largest float" in told(lambda x: x**2, np.float64(-1e200))
    deviations = told(lambda x: (x - x.mean()).sum(), A([1.0, 2.0, 4.0]))
    assert "sum of deviations" in deviations and "each result" not in deviations
    assert "np.cbrt(x + 1e-12)" in told(np.cbrt, 0.0)
    assert "np.maximum(x, 1 + 1e-12)" in told(math.acosh, 1.0)
    assert "in : " not in told(math.acos, 1.0)  # a function written in C has no line
    words = told(lambda x, n: x**n, 2.0, np.array([1, 2]))
    assert "None" in words and "all else is well" in words


def test_a_long_line_is_shown_shortened():
    def f(x): return np.maximum(x, 0.0) if x is not None else [None, None, None, None, None, None, None, None, None, None, None, None, None, 1.0]  # fmt: skip  # noqa: E501

    told = why(f, -1.0)
    assert "return np.maximum(x, 0.0) if" in told
    assert " …\n" in told and max(map(len, told.splitlines())) < 300
    assert not any("# fmt" in line for line in told.splitlines())


# ------------------------------------------------------------------------------------- one of several results


def several(x):
    return x * x, round(x) * 1.0, {"a": x * 0.0, "v": np.array([x, 2.0])}, round(x)


@pytest.mark.parametrize(
    ("result", "cause"),
    [
        (0, ""), (1, "rounding"), ((2, "a"), "times zero"), ((2, "v"), ""), ((2, "v", 0), ""),
        ((2, "v", 1), "not picked"), ((2, "v", -2), ""), (-1, "rounding"), ((-2, "a"), "times zero"),
    ],
)  # fmt: skip
def test_one_of_several_results(result, cause):
    told = why(several, 1.5, result=result)
    assert [x.cause for x in told.findings] == ([cause] if cause else [])
    assert ("all is well" in told) == (not cause)
    assert "of the sum" not in told or result == 2


def test_that_it_is_of_the_sum_of_several_results_is_told_with_how_to_ask_for_one():
    told = why(several, 1.5)
    assert "of the sum of 5 results; result=0 asks for the first" in told
    assert not told.findings
    told = why(lambda x: {"s": [x, 2 * x]}, 1.5)
    assert "result=('s', 0) asks for the first" in told
    assert why(lambda x: {"s": [x, 2 * x]}, 1.5, result=("s", 0)).findings == ()
    assert "of the sum" not in why(lambda x: x * x, 1.5)
    cancelled = why(lambda x: (x, -x), 1.5)
    assert "why(f, …, result=0)" in cancelled


def test_an_element_of_an_array_and_an_attribute_of_an_object():
    v = np.array([1.0, -2.0])
    (finding,) = why(lambda v: np.maximum(v, 0.0), v, result=1).findings[-1:]
    assert finding.kind == "zero"
    (only,) = why(lambda v: np.outer(v, v) ** 3, v, result=(0, 0)).findings
    assert (only.path, only.cause) == ("v[1]", "not picked")
    told = why(lambda x: SimpleNamespace(loss=x * x, aux=0.0 * x), 2.0, result="aux")
    assert [x.cause for x in told.findings] == ["times zero"]


def test_the_results_of_a_gradient_with_more_beside_it():
    def f(x):
        return x * x, {"aux": 0.0 * x}

    assert not why(grad(f, has_aux=True), 2.0).findings
    assert why(f, 2.0, result=(1, "aux")).findings[0].cause == "times zero"


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ("z", "the result has no part 'z'\n    result is one of its keys, 0, 1, 2, 3,"),
        ((2, "z"), r"the result\[2\] has no part 'z'\n    result is one of its keys, 'a', 'v'"),
        ((2, "v", 5), r"the result\[2\]\['v'\], .*, has no element at 5: index 5 is out of bounds"),
        ((0, 0), r"the result\[0\], 2.25, has no element at 0"),
        (4, "the result has no part 4"),
    ],
)  # fmt: skip
def test_a_result_that_there_is_not(result, message):
    told = why(several, 1.5, result=result)
    assert re.search("there is no gradient: " + message, told)


def test_a_result_without_a_derivative():
    told = why(lambda x: (x, "text"), 1.5, result=1)
    assert "there is no gradient: the result[1] is a str, which has no derivative" in told


def test_a_parameter_of_the_name_result_is_that_of_the_function():
    assert not why(lambda x, result: x * result, 2.0, result=3.0).findings


def test_a_constant_exponent_of_zero_and_points_that_coincide():
    assert why(lambda x: x**0, 2.0).findings[0].cause == "times zero"
    assert why(lambda p: math.dist(p, [1.0, 2.0]), [1.0, 2.0]).findings[0].cause == "kink"


def test_what_was_caught_has_decided():
    def f(x):
        try:
            return math.log(x)
        except ValueError:
            return -1e9

    (finding,) = why(f, -1.0).findings
    assert finding.cause == "decision"
    assert "a ValueError was caught (test_why.py:" in finding.places[0].cause.what


def test_an_index_and_what_it_leaves_out_are_told_apart():
    told = why(lambda x, i: x[i] * 1.0, A([1.0, 2.0]), 1)
    assert [(x.path, x.cause) for x in told.findings] == [("x[0]", "not picked"), ("i", "choice")]


def test_a_rule_of_ours_is_no_place_in_the_users_program():
    """`np.nanmean` fills an array in by `np.copyto`, whose rule is Python that is traced."""

    def f(x):
        return np.nanmean(x)

    for place in why(f, A([1.0, np.nan])).findings[0].places:
        assert place.site.filename == __file__
        assert place.inner is None or "numpy" in place.inner.filename


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_is_huge_beside_what_is_infinite():
    told = why(lambda x: np.exp(x).sum(), np.array([80.0, 89.0], dtype=np.float32))
    assert [(x.kind, x.cause) for x in told.findings] == [
        ("infinite", "overflow"),
        ("infinite", "overflow"),
        ("huge", "steep"),
    ]
    assert "exp multiplies it by 5.54e+34" in told


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_zero_that_meets_an_infinite_slope_is_told_with_both_places():
    def squashed(x):
        e = np.exp(-x)
        y = 1.0 / (1.0 + e)
        return (y**2).sum()

    (finding,) = why(squashed, A([-800.0])).findings
    assert [x.cause.name for x in finding.places] == ["times zero", "overflow"]
    assert finding.places[0].operation == "pow(0, 2) at [0]"
    assert finding.places[1].operation == "exp(800) at [0]"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_is_told_of_results_that_are_not_finite_fits_them():
    told = why(lambda x: x * np.inf, 1.0)
    assert "= inf: mul takes an infinity" in told
    told = why(lambda x: (x**1.5).sum(), A([-1.0]))
    assert "argnums" not in told and "keep the base positive" in told


@pytest.mark.parametrize(
    "f, says",
    [
        (lambda x: None, "the result is None, which has no derivative\n    is a `return` missing?"),
        (lambda x: str(x), "the result is a str, which has no derivative\n    return the number"),
        (lambda x: x > 1.0, "the result is a bool"),
    ],
)
def test_results_without_numbers(f, says):
    assert says in why(f, 1.5)
    assert "missing" not in why(lambda x: {"a": None, "b": x}, 1.5, result="a")
