"""`explain` says what to do: each reason in the code why a call is not kept has a cure, and each cure has a reason."""

import ast
import copy
import decimal
import functools
import itertools
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import wengert
from wengert import explain, grad
from wengert.transforms.tools.cures import CURES, cure_of

ROOT = Path(wengert.__file__).parents[1]
# Where a reason is handed on: it was made at another place, which is looked at by itself.
HANDED_ON = {"why", "str(why)", "self.reads.problems[0]", "self.done.tape.once", "rigid", "None"}
HANDED_ON |= {"self.once", "tape.once", "tracer.tape.once", "done.tape.once"}
# Of the tapes that `reverse` and `forward` show, of which no program is made.
HANDED_ON |= {f"led_by_values({x}.decided)" for x in ("machine", "pusher")}


def texts(node):
    """The texts that an expression may be, with X in the place of what is filled in; None for one handed on."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.JoinedStr):
        return ["".join(map(part, node.values))]
    if isinstance(node, ast.IfExp):
        return [*texts(node.body), *texts(node.orelse)]
    if isinstance(node, ast.BoolOp):
        return [text for value in node.values for text in texts(value)]
    assert ast.unparse(node) in HANDED_ON or ast.unparse(node).endswith(".rigid")
    return []


def part(node):
    """A part of a text; the article of what is filled in may be either, so the longer one stands there."""
    if isinstance(node, ast.Constant):
        return node.value
    call = node.value
    spoken = isinstance(call, ast.Call) and ast.unparse(call.func) == "with_article"
    return "an X" if spoken else "X"


def reason_in(node):
    """The expression of a reason, if a node of the source notes one."""
    if isinstance(node, ast.Call):
        fn = node.func
        name = fn.attr if isinstance(fn, ast.Attribute) else getattr(fn, "id", "")
        if name in ("Unfit", "Late", "Unrolled") or (
            name == "problem" and isinstance(fn, ast.Attribute)
        ):
            return node.args[0]
        if name == "problem" or name == "pin" and len(node.args) == 2:
            return node.args[-1]
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
        target = node.targets[0]
        if target.attr in ("unfit", "once") and ast.unparse(target) != "self.unfit":
            return node.value
        if target.attr == "rigid" and not isinstance(node.value, ast.List):
            return node.value
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "why":
        return node.value if isinstance(node.value, ast.Constant) else None
    return None


def reasons():
    found = {}
    for path in sorted(
        itertools.chain(*[(ROOT / x).rglob("*.py") for x in ("tracer", "transforms")])
    ):
        for node in ast.walk(ast.parse(path.read_text())):
            reason = reason_in(node)
            if reason is not None:
                for i, text in enumerate(texts(reason)):
                    found[f"{path.name}:{node.lineno}{'.' * i}"] = text
    return found


REASONS = reasons()


def test_the_reasons_are_found():
    assert len(REASONS) > 100
    assert "a NaN is looked for" in REASONS.values()
    assert "X is an X from outside, which each run consumes" in REASONS.values()
    assert any("operations long" in x for x in REASONS.values())
    assert "it builds a list, set or dict" in REASONS.values()


@pytest.mark.parametrize("place", REASONS)
def test_each_reason_has_a_cure(place):
    assert cure_of(f"/some/file.py:12: {REASONS[place]}") is not None, REASONS[place]


@pytest.mark.parametrize("pattern, cure", CURES)
def test_each_cure_is_one_of_a_reason(pattern, cure):
    """A pattern that no reason in the code has any more would mislead."""
    for part in pattern.split("|"):
        assert any(re.search(part, x) for x in REASONS.values()), part
    assert len(cure) > 10 and not cure.endswith(".")


def kept(f, *args):
    slope = grad(f)
    for _ in range(3):
        slope(*args)
    return str(explain(slope, *args))


def test_explain_tells_the_cure():
    numbers = iter([1.0] * 100)
    text = kept(lambda x: x * next(numbers), 1.5)
    assert "could not be kept as a program: " in text and "which each run consumes" in text
    assert "\n    what to do: make a list of it before the call" in text

    def catching(x):
        try:
            return x / 0.0
        except ZeroDivisionError:
            return x * 2.0

    text = kept(catching, 1.5)
    assert "a ZeroDivisionError was caught" in text
    assert "what to do: ask before instead of catching afterwards" in text


def test_cures_that_help():
    """What was told in these cases, and what becomes of the function when it is followed."""

    def warns(x):
        warnings.warn("far away", stacklevel=2)
        return x * 2.0

    with warnings.catch_warnings(action="ignore"):
        assert "what to do: give the warning outside" in kept(warns, 1.5)

    @functools.lru_cache
    def square(x):
        return x * x

    assert "leave the cache away where it is called with what" in kept(square, 1.5)
    assert "what to do" not in kept(square.__wrapped__, 1.5)

    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    assert "x.filled(0.0) of a masked one" in kept(lambda x: x * masked.sum(), 1.5)
    filled = masked.filled(0.0)
    assert "what to do" not in kept(lambda x: x * filled.sum(), 1.5)

    text = kept(lambda x: x * decimal.Decimal("0.5").__float__(), 1.5)
    assert "what to do: do this before the call" in text
    half = float(decimal.Decimal("0.5"))
    assert "what to do" not in kept(lambda x: x * half, 1.5)

    given = {"a": [1.5]}
    text = kept(
        lambda x: x * copy.deepcopy(given)["a"][0], 1.5
    )  # a line of the library's, and of the user's
    assert "copy before the call" in text
    looked = r"(id\(\) is used|C code looks into _atomic_types)"
    assert re.search(rf"copy\.py:\d+ \(called from .*test_cures\.py:\d+\): {looked}", text)


def test_a_tape_that_is_too_long_tells_of_the_loops_in_it(monkeypatch):
    monkeypatch.setattr("wengert.transforms.budget.LONG", 500)
    monkeypatch.setattr("wengert.transforms.budget.PER_OPERATION", 100.0)

    def f(x):
        total, seen = x, {}
        for i in range(200):
            seen[i % 7] = total * 0.5
            total = total + seen.get(i % 5, x) * 1e-3
            total = total * 0.9999 + x * 0.0001
        return total

    text = kept(f, 1.0)
    assert "operations long" in text and "or write loops so that they are rolled" in text
    assert re.search(r"the loop at test_cures\.py:\d+ is not rolled: ", text)


def test_a_program_that_is_kept_needs_no_cure():
    assert "what to do" not in kept(lambda x: x * x, 1.5)
