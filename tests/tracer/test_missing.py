"""What a missing rule says: the stub that it shows works when it is pasted."""

import builtins
import math
import os
import re
import sysconfig
import textwrap
import types
from _statistics import _normal_dist_inv_cdf

import numpy as np
import pytest

from wengert import NoRuleError, grad
from wengert.rules.registry import rules
from wengert.tracer.missing import no_rule
from wengert.tracer.tape import Site

HERE = Site("user.py", 7, "f")


def stub_of(message):
    """The indented block of a message, as somebody would copy it."""
    assert message.count("\n") == 5  # six lines: what, what to do, and the rule
    return textwrap.dedent(message.partition("\n")[2])


def pasted(message, *cotangents):
    """The names that the stub defines, with expressions for its holes."""
    source = stub_of(message)
    for expression in cotangents:
        source = source.replace("...", expression, 1)
    names = {"math": math, "np": np}
    exec(source, names)
    return names


def test_the_stub_of_a_c_function(registered):
    def f(p):
        return _normal_dist_inv_cdf(0.5 * p, 1.0, 2.0)  # here

    with pytest.raises(NoRuleError) as error:
        grad(f)(0.6)
    message = str(error.value)
    assert f"{__file__}:{f.__code__.co_firstlineno + 1}, in f" in message
    assert "wengert.numeric_rule(_statistics._normal_dist_inv_cdf)" in message
    assert "def _normal_dist_inv_cdf_rule(p, mu, sigma):" in message
    slope = "dy * sigma * math.sqrt(2 * math.pi) * math.exp(((value - mu) / sigma) ** 2 / 2)"
    pasted(message, slope, "dy", "dy * (value - mu) / sigma")
    step = 1e-6
    differences = (f(0.6 + step) - f(0.6 - step)) / (2 * step)
    for _ in range(3):
        assert grad(f)(0.6) == pytest.approx(differences, rel=1e-8)


def test_the_stub_of_a_ufunc_and_the_offer_of_differences(registered):
    special = pytest.importorskip("scipy.special")
    fn = special.mathieu_a  # any that has no rule will do
    if fn in rules:
        del rules[fn]

    def f(x):
        return fn(1.0, x) * 3

    with pytest.raises(NoRuleError) as error:
        grad(f)(2.0)
    message = str(error.value)
    assert "def mathieu_a_rule(x1, x2):" in message
    names = pasted(message, "None", "dy * (fn(x1, x2 + 1e-6) - fn(x1, x2 - 1e-6)) / 2e-6")
    names["fn"] = fn
    step = 1e-6
    differences = (f(2.0 + step) - f(2.0 - step)) / (2 * step)
    assert grad(f)(2.0) == pytest.approx(differences, rel=1e-8)


def test_the_stub_of_a_method_with_options(registered):
    rng = np.random.default_rng(0)
    with pytest.raises(NoRuleError) as error:
        grad(lambda x: rng.noncentral_chisquare(x, 2.0))(0.3)
    message = str(error.value)
    assert "numpy.random.Generator.noncentral_chisquare has no rule" in message
    assert "import wengert, numpy.random\n" in message
    assert "def noncentral_chisquare_rule(self, df, nonc, size=None):" in message
    assert (
        "return value, lambda dy: (None, ..., ...)  # the cotangents of self, df, nonc" in message
    )


@pytest.mark.filterwarnings("ignore::wengert.NumericRuleWarning")
def test_the_offer_of_differences(registered):
    def f(p):
        return _normal_dist_inv_cdf(p, 0.0, 1.0)

    with pytest.raises(NoRuleError) as error:
        grad(f)(0.5)
    offer = re.search(r"wengert\.numeric_rule\(\S+\)", str(error.value)).group()
    exec(f"import wengert, _statistics\n{offer}")
    assert grad(f)(0.5) == pytest.approx(math.sqrt(2 * math.pi), rel=1e-10)


def function(a, b, /, c, d=1, e=object(), *rest, key, other=None, **more):  # noqa: B008
    return a


function.__module__ = "somewhere"
somewhere = types.SimpleNamespace(function=function)


@pytest.mark.parametrize(
    ("args", "kwargs", "head", "call"),
    [
        (
            (1.0, 2.0, 3.0),
            {"key": 4.0},
            "(a, b, c, d=1, *, key, other=None)",
            "(a, b, c, d=d, key=key, other=other)",
        ),
        (
            (1.0, 2.0, 3.0, 4.0, 5.0),
            {"key": 4.0, "extra": 2},
            "(a, b, c, d=1, e=None, *, key, other=None, extra=2)",
            "(a, b, c, d=d, e=e, key=key, other=other, extra=extra)",
        ),
    ],
)
def test_the_signature_of_a_stub(monkeypatch, args, kwargs, head, call):
    monkeypatch.setitem(__import__("sys").modules, "somewhere", somewhere)
    message = no_rule(function, HERE, args, kwargs)
    assert message.startswith("user.py:7, in f: somewhere.function has no rule")
    stub = stub_of(message)
    assert f"def function_rule{head}:" in stub
    assert f"somewhere.function{call}" in stub
    compile(stub, "stub", "exec")


def test_the_stub_of_what_nobody_else_finds():
    message = no_rule([].append, HERE, (1.0, "text"), {"flag": True})
    assert "@wengert.custom_rule" in message
    assert "numeric_rule" not in message
    assert "call it instead" in message
    names = pasted(message, "x1 * 3", "3 * dy")
    assert names["append"](2.0, "text") == 6.0
    assert grad(lambda x: names["append"](x, "text"))(2.0) == 3.0


def test_names_that_a_stub_must_not_hide():
    message = no_rule(builtins.pow, HERE, (1.0, 2.0), {})
    assert "@wengert.rrule(pow)" in message
    assert "import builtins" not in message

    def odd(value, dy):
        return value

    message = no_rule(odd, HERE, (1.0, 2.0), {})
    assert "return value_, lambda dy_: (" in message
    compile(stub_of(message), "stub", "exec")


def test_a_refusal_in_a_library_names_the_function_of_the_user():
    text = "def corner(qr, a):\n    return qr(a)[0][0, 0]\n"
    library = {}
    exec(compile(text, os.path.join(sysconfig.get_path("purelib"), "somebody.py"), "exec"), library)

    def smooth(x):
        return library["corner"](np.linalg.qr, x * np.ones((3, 2)))

    with pytest.raises(NoRuleError) as error:
        grad(smooth)(1.5)
    what, todo = str(error.value).splitlines()
    line = smooth.__code__.co_firstlineno
    assert (
        f", in corner (called inside smooth, {__file__}:{line}): qr has no derivative here: "
        in what
    )
    assert "called from" not in what  # who calls now has not led there: the run is over
    assert "give qr another rule" in todo


def test_a_wrapper_in_c_says_what_to_call_instead():
    wrapt = pytest.importorskip("wrapt")
    loss = wrapt.PartialCallableObjectProxy(lambda x: (x**2).sum())
    if "_wrappers" in type(loss).__module__:
        with pytest.raises(NoRuleError, match=r"wrapper in C\ncall what it wraps"):
            grad(lambda x: loss(x))(np.ones(3))
        np.testing.assert_array_equal(grad(lambda x: loss.__wrapped__(x))(np.ones(3)), 2.0)
