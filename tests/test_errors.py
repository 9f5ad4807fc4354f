"""Errors say what, where and what to do; what other libraries call things gets the right form."""

import decimal
import re
import traceback
from pathlib import Path

import numpy as np
import pytest

import wengert
from wengert import (
    CotangentError,
    EscapeError,
    GradientError,
    GuardError,
    NoRuleError,
    TangentError,
    TraceError,
    WengertError,
    check_grads,
    checkpoint,
    custom_rule,
    grad,
    hessian,
    jacobian,
    jit,
    jvp,
    numeric_rule,
    pullback,
    rrule,
    settings,
    trace,
    value_and_grad,
)
from wengert.tracer import habits

V = np.array([1.0, 2.0, 3.0])
PAGE = (Path(__file__).parents[1] / "docs" / "errors.md").read_text()


def total(x):
    return x.sum()


def text(x):
    return f"{x}"


def nothing(x):
    x * 2


def sees_masks(x):
    return np.ma.array(x, mask=[0, 1, 0]).sum()


def sign(x):
    if x > 0:
        return x
    return -x


def steep_without_programs():
    with jit(False):
        grad(lambda x: (x * 1e-200) ** -1.0)(1.0)


@numeric_rule
def squares_into(x, out):
    out[:] = x * x


def filled(x):
    out = np.empty(3)
    squares_into(x, out)
    return out.sum()


@custom_rule
def bare(x):
    return 2.0 * x, lambda dy: 2.0 * dy


@custom_rule
def twice(x):
    return x, lambda dy: (2.0 * dy,)


def later(x):
    yield x


async def waits(x):
    return x


class Own(np.ndarray):
    pass


def cheapest(c):
    from scipy.optimize import linprog

    return linprog(c, A_ub=[[1.0, 1.0, 1.0]], b_ub=[1.0]).fun


CASES = {
    "text": (lambda: grad(text)(1.0), CotangentError, "the str '1.0'", "the number itself"),
    "None": (lambda: grad(nothing)(1.0), CotangentError, "is None", "`return` missing"),
    "one element": (
        lambda: grad(lambda x: x[:1])(V),
        CotangentError,
        "(1,)",
        "`y.sum()`.*jacobian",
    ),
    "elements": (lambda: grad(lambda x: x)(V), CotangentError, "(3,)", "`y.sum()`.*jacobian"),
    "a tuple": (lambda: grad(lambda x: (x, x))(1.0), CotangentError, "tuple of 2", "has_aux=True"),
    "a dict": (lambda: grad(lambda x: {"a": x})(1.0), CotangentError, "a dict", "has_aux=True"),
    "an aux": (
        lambda: grad(lambda x: (x, 1), has_aux=True)(V),
        CotangentError,
        "(3,)",
        "jacobian",
    ),
    "complex": (lambda: grad(lambda x: x * 1j)(1.0), CotangentError, "a complex number", "y.real"),
    "a bool": (lambda: grad(lambda x: x > 2)(1.0), CotangentError, "the bool False", "decision"),
    "integers": (lambda: grad(total)(np.arange(3)), TraceError, "array of int", "astype"),
    "bools": (lambda: grad(total)(V > 2), TraceError, "array of bool", "astype"),
    "a masked array": (
        lambda: grad(total)(np.ma.array(V, mask=[0, 1, 0])),
        TraceError,
        "MaskedArray",
        "np.where",
    ),
    "a masked array inside": (lambda: grad(sees_masks)(V), TraceError, "MaskedArray", "np.where"),
    "another class": (lambda: grad(total)(V.view(Own)), TraceError, "an Own", "np.array"),
    "a string": (lambda: grad(lambda x: 1.0)("a"), TraceError, "a str", "float"),
    "a number": (lambda: grad(3.0), TraceError, "not a float", "grad(f)(x)"),
    "a result": (lambda: grad(total(V)), TraceError, "not a float64", "grad(f)(x)"),
    "the argument": (lambda: grad(total, V), TraceError, "argnums must be", "(x, y)"),
    "no such argument": (lambda: grad(total, 1)(V), TraceError, "argnums is 1", "counts from 0"),
    "no such name": (lambda: jacobian(total, "y")(V), TraceError, "argnums is 'y'", "names a par"),
    "not in this call": (
        lambda: grad(lambda x, k=1.0: x, "k")(1.0),
        TraceError,
        "argnums is 'k', but 1 positional argument was given",
        "add k=",
    ),
    "no pair": (lambda: grad(total, has_aux=True)(V), TraceError, "(value, aux)", "leave has_aux"),
    "no tuple": (lambda: jvp(total, V, V), TangentError, "must be a tuple", "jvp(f, (x,), (v,))"),
    "no Jacobian of nothing": (lambda: jacobian(nothing)(V), CotangentError, "is None", "`return`"),
    "no Jacobian of a text": (
        lambda: hessian(text)(1.0),
        CotangentError,
        "the str",
        "not its text",
    ),
    "no Jacobian of integers": (
        lambda: jacobian(np.argsort)(V),
        CotangentError,
        "int64[3]",
        "compute with floats",
    ),
    "no flag": (lambda: grad(total, 0, 2.0), TraceError, "has_aux is True or False", "(x, y)"),
    "no mode": (lambda: jacobian(total, mode="up"), TraceError, "not 'up'", "jacfwd"),
    "no such cotangent": (
        lambda: pullback(lambda x: x, V)[1](1.0),
        CotangentError,
        "must have the shape (3,)",
        "np.ones_like(value)",
    ),
    "no such tangent": (
        lambda: jvp(total, (V,), (1.0,)),
        TangentError,
        "must have the shape (3,)",
        "shapes of its primal",
    ),
    "no tangent": (lambda: jvp(total, (V,), ()), TangentError, "0 tangents", "for each argument"),
    "no function to checkpoint": (lambda: checkpoint(3), TraceError, "not an int", "the function"),
    "another way of a tape": (
        lambda: trace(sign, 1.0)(-1.0),
        GuardError,
        "`if x > 0:` was True",
        "trace the function",
    ),
    "too many for a tape": (lambda: trace(sign, 1.0)(1.0, 2.0), TypeError, "(x)", "as the traced"),
    "another type for a tape": (lambda: trace(sign, 1.0)("a"), TraceError, "is a str", "types and"),
    "a rule of a number": (lambda: rrule(3)(sign), TypeError, "not of an int", "@rrule("),
    "no switch": (lambda: jit(3), TraceError, "not an int", "jit(f)"),
    "an array of objects": (lambda: grad(total)(V.astype(object)), TraceError, "of object", "x.astype(float)"),
    "an array of texts": (lambda: grad(len)(V.astype(str)), TraceError, "of <U", "an array of floats"),
    "arrays of integers in a list": (
        lambda: grad(lambda xs: 1.0 * xs[0].sum())([np.arange(3)]), TraceError, "a list with an array of int64",
        "x.astype(float)",
    ),
    "fields": (lambda: grad(lambda x: x["a"].sum())(np.zeros(2, [("a", float)])), TraceError, "without", "x['a']"),
    "a function given back": (lambda: grad(lambda x: total)(1.0), CotangentError, "a function", "call it"),
    "a cotangent of another class": (
        lambda: pullback(abs, V)[1](np.ma.ones(3)), CotangentError, "not one of the class MaskedArray", "ones_like",
    ),
    "a cotangent of nothing": (lambda: pullback(nothing, 1.0)[1](1.0), CotangentError, "None have none", "docs"),
    "a pullback without a tuple": (lambda: grad(bare)(1.0), CotangentError, "bare", "return (dx,)"),
    "values to come": (lambda: grad(later)(1.0), TraceError, "returns a generator", "def later(x):.*return a list"),
    "asynchronous": (lambda: grad(waits)(1.0), TraceError, "an async function", "async def waits(x):.*synchronous"),
    "a wrong derivative": (
        lambda: check_grads(twice, (np.ones(9),)), GradientError, "9 of 9", "a kink, a wrong rule",
    ),
    "differences of nothing": (lambda: grad(filled)(V), TraceError, "squares_into returns None", "returns a number"),
    "an object without numbers": (
        lambda: grad(lambda x: float(decimal.Decimal(x)))(1.0), NoRuleError, "into which no gradient", "numeric_rule",
    ),
    "a slope beyond all floats": (
        lambda: grad(lambda x: (x * 1e-200) ** -1.0)(1.0), NoRuleError, "larger than the largest float", "scale",
    ),
    "and without programs": (
        steep_without_programs, NoRuleError, "larger than", "scale",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_and_what_to_do(case):
    ask, kind, what, cure = case
    with pytest.raises(kind) as error:
        ask()
    message = str(error.value)
    first, *rest = message.splitlines()
    assert what in first
    assert re.search(
        re.escape(cure).replace(r"\.\*", ".*"), " ".join([first.partition(what)[2], *rest])
    )
    assert 2 <= len(message.splitlines()) <= 6
    assert {*re.findall(r"docs/errors\.md#([a-z-]+)", message)} <= anchors()
    where = traceback.extract_tb(error.value.__traceback__)
    assert all("wengert" not in frame.filename for frame in where if frame.filename != __file__)


def test_where_is_the_line_of_the_function_with_its_text():
    with pytest.raises(CotangentError) as error:
        grad(text)(1.0)
    line = text.__code__.co_firstlineno
    assert f"text ({__file__}:{line})" in str(error.value)
    assert "\n    def text(x):\n" in str(error.value)


def test_a_derivative_that_is_missing_shows_the_line_of_its_operation():
    def opaque(x):
        return x[np.lexsort((x,))].sum() + np.poly(x)[0] + np.random.poisson(x).sum()

    def g(x):
        return (x * 1e-200) ** -1.0

    for ask in (lambda: grad(g)(1.0), lambda: jvp(g, (1.0,), (1.0,)), lambda: grad(opaque)(V)):
        with pytest.raises(NoRuleError) as error:
            ask()
        *_, last = traceback.extract_tb(error.value.__traceback__)
        assert last.filename == __file__ and last.name in ("g", "opaque")
        assert last.line.startswith("return ")
        assert error.value.__cause__ is None


def test_compiled_code_is_named_by_what_the_user_has_called():
    pytest.importorskip("scipy")
    with pytest.raises(EscapeError, match=r"(?s)in cheapest\).*\n.*linprog\(\).*numeric_rule"):
        grad(cheapest)(-V)
    with pytest.raises(EscapeError, match=r"\n    .*linprog\(.*\n"):
        grad(cheapest)(-V)


def test_what_cannot_be_called_otherwise_in_a_library_is_put_into_a_function():
    distance = pytest.importorskip("scipy.spatial.distance")
    with pytest.raises(
        NoRuleError, match=r"(?s)cdist_canberra has no rule\nput all.*nondiff"
    ) as error:
        grad(lambda x: distance.cdist(x, x, "canberra").sum())(np.eye(2))
    assert "pybind" not in str(error.value)


def test_users_exceptions_show_the_users_frames_alone():
    def f(x):
        raise ValueError("mine")

    class Plant:
        drag = 1.0
        slope = grad(f)

    made = [make(f) for make in (grad, value_and_grad, hessian, jacobian, jit)]
    calls = [*[lambda ask=ask: ask(1.0) for ask in made], lambda: pullback(f, 1.0), Plant().slope]
    for call in calls:
        with pytest.raises(ValueError, match="mine") as error:
            call()
        files = {frame.filename for frame in traceback.extract_tb(error.value.__traceback__)}
        assert files == {__file__}


def test_settings():
    with pytest.raises(
        AttributeError, match=r"no setting nosuch; there is programs\n.*settings\.programs = 128"
    ):
        settings.nosuch = 3
    with pytest.raises(AttributeError, match="no setting nosuch"):
        settings.nosuch
    with pytest.raises(AttributeError, match=r"(?s)no setting jit.*with jit\(False\)"):
        settings.jit = False
    assert "nosuch" not in vars(settings)
    with pytest.raises(TypeError, match=r"(?s)a number of functions, .*not 'many'.*jit\(False\)"):
        settings.programs = "many"
    for number in (0, -1):
        with pytest.raises(ValueError, match="1 or more, and not"):
            settings.programs = number
    assert repr(settings) == f"<settings: programs = {settings.programs}>"


# ---------------------------------------------------------------------------------------------- habits


@pytest.mark.parametrize("make", [grad, value_and_grad, jacobian, hessian, wengert.jacfwd, jit])
@pytest.mark.parametrize("option", ["argnum", "static_argnums", "create_graph"])
def test_options_of_other_libraries(make, option):
    with pytest.raises(
        TypeError, match=rf"no option {option}\n.*leave|no option argnum\n.*argnums"
    ):
        make(total, **{option: 1})


@pytest.mark.parametrize(
    ("option", "right"),
    [
        ("argnames", r"argnums='x'"),
        ("inputs", r"grad\(f\)\(x\)"),
        ("vectorize", "one sweep"),
        ("strategy", "jacfwd"),
        ("nopython", "nothing to choose"),
    ],
)
def test_more_options_of_other_libraries(option, right):
    with pytest.raises(TypeError, match=rf"jacobian has no option {option}\n.*{right}"):
        jacobian(total, **{option: 1})


@pytest.mark.parametrize("make", [jit, wengert.checkpoint])
def test_arguments_in_the_place_of_options(make):
    with pytest.raises(TypeError, match=rf"2 were given\n.*: {make.__name__}\(f\)\(x\)"):
        make(total, V)
    with pytest.raises(TypeError, match="no option policy\n"):
        make(total, policy=None)


@pytest.mark.parametrize("made", [grad(total), jit(total), jacobian(total)])
def test_attributes_that_are_asked_of_a_function(made):
    for name in ("backward", "grad", "lower"):
        with pytest.raises(AttributeError, match=r"(?s)'function' object.*wengert.grad\(f\)\(x\)"):
            getattr(made, name)
        assert not hasattr(made, name)
    with pytest.raises(AttributeError) as error:
        made.nothing
    assert str(error.value) == "'function' object has no attribute 'nothing'"
    assert grad(lambda x: x * getattr(made, "nothing", 2.0))(3.0) == 2.0


def test_attributes_that_are_asked_of_a_tape():
    tape = trace(sign, 1.0)
    for name in ("backward", "gradient", "grad"):
        with pytest.raises(
            AttributeError, match=r"(?s)'Tape' object.*wengert.reverse\(tape\)\(x\)"
        ):
            getattr(tape, name)
    with pytest.raises(AttributeError) as error:
        tape.nothing
    assert str(error.value) == "'Tape' object has no attribute 'nothing'"


@pytest.mark.parametrize("make", [grad, value_and_grad, jacobian])
def test_what_a_function_holds_is_asked_of_its_pullback(make):
    with pytest.raises(TypeError, match=r"no option wrt_self\n.*pullback\(f, x, wrt_self=True\)"):
        make(total, wrt_self=True)

    def scaled(k):
        return lambda x: k * x

    assert grad(lambda f, x: f(x))(scaled(3.0), 2.0) == {"k": 2.0}  # as the error says


def test_a_value_in_the_place_of_the_function():
    with pytest.raises(wengert.TraceError, match=r"trace\(f, x\), grad\(f\)\(x\), not"):
        wengert.trace(total(V))


@pytest.mark.parametrize(
    "name", ["backward", "grad", "requires_grad", "detach", "at", "exp", "clone", "mul_", "subs"]
)
def test_attributes_of_tensors(name):
    for ask, x in ((grad, 2.0), (pullback, V)):
        f = lambda x: getattr(x * 1.0, name)
        with pytest.raises(AttributeError) as error:
            ask(f)(x) if ask is grad else ask(f, x)
        plain = f"has no attribute '{name}'"
        assert plain in str(error.value)
        (note,) = error.value.__notes__
        assert any(x in note for x in ("wengert", "x[i] = y", "np.exp(x)", "x.copy()"))
        assert "docs/errors.md#other-libraries" in note


def test_attributes_that_are_told_of_are_those_that_numbers_and_arrays_do_not_have():
    for name in habits.ATTRIBUTES:
        assert not hasattr(V, name) and not hasattr(1.0, name), name


@pytest.mark.parametrize(
    ("call", "note"),
    [
        (lambda: grad(lambda x: x.sum(dim=0))(V), "axis="),
        (lambda: grad(lambda x: np.mean(x, keepdim=True))(V), "keepdims="),
        (lambda: pullback(total, V, argnums=0), "gradients by all arguments"),
        (lambda: wengert.vjp(total, V, retain_graph=True), "as often as you like"),
    ],
)
def test_keyword_arguments_of_other_libraries(call, note):
    with pytest.raises(TypeError, match="unexpected keyword argument") as error:
        call()
    assert note in error.value.__notes__[0] and len(error.value.__notes__) == 1


@pytest.mark.parametrize("name", [*habits.NAMES, *habits.ALSO])
def test_names_of_other_libraries(name):
    with pytest.raises(AttributeError) as error:
        getattr(wengert, name)
    first, second = str(error.value).splitlines()
    assert first == f"module 'wengert' has no attribute {name!r}"
    assert "docs/errors.md#other-libraries" in second
    assert not hasattr(wengert, name) and getattr(wengert, name, 3) == 3
    with pytest.raises(ImportError, match=f"cannot import name '{name}' from 'wengert'\n."):
        exec(f"from wengert import {name}")


def test_what_is_asked_for_in_vain_shows_the_users_frames_alone():
    back = pullback(total, V)[1]
    for code in ("wengert.vmap", "from wengert import vmap", "back.backward()", "wengert.gard"):
        with pytest.raises((AttributeError, ImportError)) as error:
            exec(code, {"wengert": wengert, "back": back})
        assert [x.name for x in traceback.extract_tb(error.value.__traceback__)][1:] == ["<module>"]


def test_a_call_that_is_wrong_is_told_by_the_name_it_was_called_by():
    with pytest.raises(TangentError, match=r"write hvp\(f, \(x,\), \(v,\)\)"):
        wengert.hvp(total, V, V)
    with pytest.raises(TangentError, match=r"write jvp\(f, \(x,\), \(v,\)\)"):
        jvp(total, V, V)
    for _ in range(4):
        with pytest.raises(
            TypeError, match=r"^back\(\) missing 1 required positional argument: 'dy'"
        ):
            pullback(total, V)[1]()


@pytest.mark.parametrize("options", [{"order": 0}, {"order": -1}, {"order": 1.5}, {"modes": ()}])
def test_a_check_of_nothing_is_refused(options):
    with pytest.raises(ValueError, match=r"order is 1, 2|modes is empty"):
        wengert.check_grads(total, (V,), **options)


def test_names_that_are_nearly_right():
    for name, right in (
        ("gard", "grad"),
        ("value_and_grd", "value_and_grad"),
        ("hesian", "hessian"),
    ):
        with pytest.raises(AttributeError, match=rf"\ndo you mean wengert\.{right}\?"):
            getattr(wengert, name)
        with pytest.raises(ImportError, match=rf"\ndo you mean wengert\.{right}\?"):
            exec(f"from wengert import {name}")
    with pytest.raises(AttributeError) as error:
        wengert.zzz
    assert str(error.value) == "module 'wengert' has no attribute 'zzz'"


def test_what_stands_for_names_of_other_libraries_is_there():
    for text in habits.NAMES.values():
        for name in re.findall(r"wengert\.(\w+)", text):
            assert name in wengert.__all__
    xs = np.array([0.3, 0.7])
    np.testing.assert_allclose(pullback(np.sin, xs)[1](np.ones_like(xs))[0], np.cos(xs))


def test_other_attribute_errors_are_pythons_own():
    with pytest.raises(AttributeError) as error:
        grad(lambda x: x.nothing)(1.0)
    assert not hasattr(error.value, "__notes__")

    class Model:
        pass

    with pytest.raises(AttributeError) as error:
        grad(lambda x: Model().backward)(1.0)
    assert not hasattr(error.value, "__notes__")


def test_attributes_of_a_pullback():
    _, back = pullback(total, V)
    with pytest.raises(AttributeError, match=r"(?s)back\(1.0\).*wengert.grad"):
        back.backward()
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        back.nothing
    assert not hasattr(back, "nothing")


@pytest.mark.parametrize("make", [grad, value_and_grad])
def test_holomorphic_leads_to_the_jacobian(make):
    with pytest.raises(
        TypeError, match=r"(?s)no option holomorphic.*jacobian\(f, holomorphic=True"
    ):
        make(total, holomorphic=True)
    assert jacobian(lambda z: z * z, holomorphic=True)(1.0 + 2.0j) == 2.0 + 4.0j


# --------------------------------------------------------------------------------------------- frames


def mine(x):
    raise ValueError("mine")


TAPE = trace(sign, 1.0)
ASKED = {
    "call": lambda: TAPE(-1.0),
    "item": lambda: TAPE[99],
    "name": lambda: TAPE["%99"],
    "replace": lambda: TAPE.replace(3, abs),
    "insert": lambda: TAPE.insert(99, abs, TAPE[0]),
    "substitute": lambda: TAPE.substitute(3, 1.0),
    "primitives": lambda: TAPE.with_primitives(None),
    "cotangents": lambda: TAPE.cotangents(-1.0),
    "compiled": lambda: TAPE.compile()(-1.0),
    "in bulk": lambda: TAPE.compile(math=np)(-1.0),
    "reverse": lambda: wengert.reverse(TAPE, wrt="y"),
    "forward": lambda: wengert.forward(TAPE, wrt="y"),
    "bytecode": lambda: wengert.bytecode(abs),
    "stages": lambda: wengert.stages(mine, 1.0).tape,
    "all stages": lambda: str(wengert.stages(mine, 1.0)),
    "save": lambda: wengert.save(mine, "never.py", 1.0),
    "profile": lambda: wengert.profile(mine, 1.0),
    "why": lambda: wengert.why(mine, 1.0),
    "check_grads": lambda: wengert.check_grads(mine, (1.0,)),
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_no_question_shows_our_own_frames(ask):
    with pytest.raises(Exception) as error:
        ask()
    shown = traceback.extract_tb(error.value.__traceback__)
    assert {frame.filename for frame in shown} == {__file__}


# ------------------------------------------------------------------------------------------------ page


def anchors():
    headings = re.findall(r"^#+ (.*)", PAGE, re.MULTILINE)
    return {heading.lower().replace(" ", "-") for heading in headings}


def test_each_error_class_has_a_section():
    classes = [getattr(wengert, name) for name in wengert.__all__]
    errors = [x for x in classes if isinstance(x, type) and issubclass(x, WengertError)]
    assert len(errors) >= 6
    assert {x.__name__.lower() for x in errors} - {"wengerterror"} <= anchors()


def test_links_lead_to_sections_that_are_there():
    root = Path(__file__).parents[1]
    used = set()
    for folder in ("tracer", "transforms"):
        for path in (root / folder).rglob("*.py"):
            source = path.read_text()
            used |= {*re.findall(r"docs/errors\.md#([a-z-]+)", source)}
    used |= {*re.findall(r"\]\(#([a-z-]+)\)", PAGE)}
    assert {"compiled-code", "other-libraries"} <= used
    assert used <= anchors()
