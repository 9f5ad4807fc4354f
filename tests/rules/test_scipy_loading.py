"""SciPy's rules come with SciPy: not before, once, and without disturbing what is there."""

import functools
import subprocess
import sys

import pytest

from wengert import grad, rrule
from wengert.rules import registry

special = pytest.importorskip("scipy.special")


def python(program):
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_rules_are_loaded_when_a_function_is_met():
    program = (
        "import sys, wengert; print('scipy' in sys.modules);"
        "import scipy.special as s; print('wengert.rules.scipy_special' in sys.modules);"
        "print(round(wengert.grad(lambda x: s.erf(x))(0.0), 6));"
        "print('wengert.rules.scipy_special' in sys.modules, 'wengert.rules.scipy_linalg' in sys.modules)"
    )
    assert python(program) == ["False", "False", "1.128379", "True", "False"]


def test_an_import_inside_the_function():
    program = (
        "import wengert\n"
        "def f(x):\n    from scipy import special\n    return special.erf(x)\n"
        "print(round(wengert.grad(f)(0.0), 6))"
    )
    assert python(program) == ["1.128379"]


def test_a_users_own_rule_stays_and_programs_are_kept():
    program = (
        "import scipy.special as s, wengert\n"
        "wengert.rrule(s.erf)(lambda x: (s.erf(x), lambda d: (7.0 * d,)))\n"
        "square = wengert.grad(lambda x: x * x)\n"
        "print([square(x) for x in (1.0, 2.0, 3.0)][2])\n"
        "print(wengert.grad(lambda x: s.erfc(x))(0.0) < -1, wengert.grad(lambda x: s.erf(x))(0.0))\n"
        "print('would answer' in wengert.explain(square, 2.0))"
    )
    assert python(program) == ["6.0", "True", "7.0", "True"]


def test_a_pickled_pullback_finds_its_rules(tmp_path):
    import pickle

    from wengert import pullback

    path = tmp_path / "back"
    path.write_bytes(pickle.dumps(pullback(special.erf, 0.0)[1]))
    program = f"import pickle; print(round(pickle.load(open({str(path)!r}, 'rb'))(1.0)[0], 6))"
    assert python(program) == ["1.128379"]


def decorated(f):
    @functools.wraps(f)
    def inner(x):
        return f(x)

    return inner


def test_primitives_that_share_their_code():
    functions = {decorated(lambda x, k=k: k * x): k for k in (2.0, 3.0)}
    for f, k in functions.items():
        rrule(f)(lambda x, f=f, k=k: (f(x), lambda d: (d * k,)))
    try:
        for _ in range(3):
            for f, k in functions.items():
                assert grad(f)(1.0) == grad(functools.partial(f))(1.0) == k
                assert grad(lambda x, f=f: f(x))(1.0) == k
    finally:
        for f in functions:
            del registry.rules[f]


def test_what_is_not_asked_for_needs_no_formula():
    assert grad(special.jv, argnums=1)(1, 0.0) == pytest.approx(0.5)
    slope = grad(lambda x: special.jv(1.0, x))
    assert grad(lambda x: slope(x))(0.0) == pytest.approx(0.0)
