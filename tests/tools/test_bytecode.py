"""The bytecode and its instrumented copy side by side, on each CPython."""

import dis
import functools
import subprocess
import sys
import textwrap

import pytest

import wengert
from wengert import TraceError, bytecode, grad, value_and_grad
from wengert.tracer import hooks
from wengert.tracer.rewrite import instrument


def f(x, n):
    y = x * 2.0
    for i in range(n):
        y = -y + abs(x)
    if y > 0.5:
        return [z * x for z in (y, 1.0)]
    return y


def plain(code):
    return [x for x in dis.get_instructions(code) if x.opname not in ("CACHE", "EXTENDED_ARG")]


def test_each_instruction_is_there_once_and_in_order():
    shown = bytecode(f)
    before = plain(f.__code__)
    after = plain(instrument(f.__code__, hooks))
    assert [row.before.split()[0] for row in shown.rows] == [x.opname for x in before]
    steps = [step for row in shown.rows for step in row.after]
    assert [step.text.split()[0] for step in steps] == [x.opname for x in after]


def test_what_is_not_marked_is_the_original():
    for row in bytecode(f).rows:
        kept = [step for step in row.after if not step.hooked]
        assert [step.text for step in kept] in ([], [row.before])


def test_hooks_are_marked_and_named():
    shown = bytecode(f)
    hooked = [step.text for row in shown.rows for step in row.after if step.hooked]
    for name in (
        "binary mul",
        "binary add",
        "unary neg",
        "call",
        "load_global abs",
        "loop",
        "iter",
    ):
        assert f"LOAD_CONST <hook: {name}>" in hooked
    assert any("<hook: compare gt" in text for text in hooked)


def test_it_prints_the_lines():
    text = str(bytecode(f))
    head = text.splitlines()
    line = f.__code__.co_firstlineno
    assert head[0] == f"bytecode of f  # test_bytecode.py:{line}"
    assert f"  line {line + 1}:  y = x * 2.0" in head
    assert f"  line {line + 4}:  if y > 0.5:" in head
    assert " at 0x" not in text
    row = next(x for x in head if "<hook: binary mul>" in x)
    assert row.split()[1] == "BINARY_OP"
    assert ">" in row


def test_jumps_lead_to_numbers_that_are_there():
    shown = bytecode(f)
    numbers = {row.number for row in shown.rows}
    jumps = [
        text.rpartition(" to ")[2]
        for row in shown.rows
        for text in [row.before, *[step.text for step in row.after]]
        if " to " in text and text.split()[0] in dis.opmap and "JUMP" in text or "FOR_ITER" in text
    ]
    assert jumps
    assert {int(x) for x in jumps} <= numbers


def test_inner_functions_follow():
    def outer(x):
        def inner(y):
            return y * x

        return inner(x)

    shown = bytecode(outer)
    assert [x.code.co_name for x in shown.inner] == ["inner"]
    assert "bytecode of test_inner_functions_follow.<locals>.outer.<locals>.inner" in str(shown)


def test_what_it_takes():
    class Model:
        def __call__(self, x):
            return x + 1.0

        def method(self, x):
            return x + 2.0

    @functools.wraps(f)
    def wrapper(*args):
        return f(*args)

    assert bytecode(Model()).code is Model.__call__.__code__
    assert bytecode(Model().method).code is Model.method.__code__
    assert bytecode(wrapper).code is f.__code__
    assert bytecode(f.__code__).code is f.__code__
    assert bytecode(instrument(f.__code__, hooks)).code is f.__code__
    for wrong in (abs, 3.0, "f"):
        with pytest.raises(TraceError, match="takes a Python function"):
            bytecode(wrong)

    async def later():
        return 1

    with pytest.raises(TraceError, match="asynchronous"):
        bytecode(later)


def test_tools_are_imported_where_they_are_asked_for():
    program = """
        import sys, wengert
        assert not [name for name in sys.modules if name.startswith("wengert.transforms.tools")]
        wengert.bytecode, wengert.stages
        assert "wengert.transforms.tools.bytecode" in sys.modules
        try:
            wengert.nosuch
        except AttributeError as error:
            assert "nosuch" in str(error)
        else:
            raise AssertionError
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True)
    assert set(wengert.ON_DEMAND) <= set(wengert.__all__)


def test_what_is_no_python_function_is_refused_by_its_own_name():
    with pytest.raises(TraceError, match="and 'len' is none"):
        bytecode(len)
    with pytest.raises(TraceError, match="and 3 is none"):
        bytecode(3)


def test_of_a_gradient_it_is_that_of_the_function():
    def f(x):
        return x * x

    assert str(bytecode(grad(f))) == str(bytecode(value_and_grad(grad(f)))) == str(bytecode(f))


def test_an_import_is_shown_too():
    def f(x):
        from math import sin, sqrt

        return sin(x) + sqrt(x)

    assert "<hook: " in str(bytecode(f)) and "IMPORT_NAME" in str(bytecode(f))
