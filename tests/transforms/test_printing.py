"""What a reader sees: the tape, its reverse, both as source; and the tape as a public data structure."""

import ast
import collections
import math
import operator
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from helpers import assert_close, calls, names
from wengert import grad, pullback, reverse, trace

V = np.array([0.5, -1.2, 2.0])
HERE = os.path.basename(__file__)
CALL = re.compile(r"%\d+ = [\w.]+\(.*\) :: [\w\[\],. ()]+  # [\w.]+\.py:\d+$")
INPUT = re.compile(r"%\d+ = (input|outside) .+ :: .+$")
GUARD = re.compile(r"guard %\d+ == .+  # [\w.]+\.py:\d+$")
EFFECT = re.compile(r"effect [\w.]+\(.*\)  # [\w.]+\.py:\d+$")


def g(a, b):
    return a * b


def h(a):
    return math.sin(a)


def f(x1, x2):
    return g(x1, x2) + h(x1)


def first(function):
    return function.__code__.co_firstlineno


# ------------------------------------------------------------------------------------------- the tape


def test_tape_is_read_at_a_glance():
    lines = [line.strip() for line in str(trace(f, 2.0, 3.0)).splitlines()]
    assert lines == [
        f"tape of f  # {HERE}:{first(f)}",
        "x1 = input :: float",
        "x2 = input :: float",
        f"%3 = mul(x1, x2) :: float  # {HERE}:{first(g) + 1}",
        f"%4 = sin(x1) :: float  # {HERE}:{first(h) + 1}",
        f"%5 = add(%3, %4) :: float  # {HERE}:{first(f) + 1}",
        "return %5",
    ]


def test_the_flat_list_has_a_number_for_each_variable():
    lines = [line.strip() for line in str(trace(f, 2.0, 3.0, flat=True)).splitlines()]
    assert lines == [
        f"tape of f  # {HERE}:{first(f)}",
        "%1 = input x1 :: float",
        "%2 = input x2 :: float",
        f"%3 = mul(%1, %2) :: float  # {HERE}:{first(g) + 1}",
        f"%4 = sin(%1) :: float  # {HERE}:{first(h) + 1}",
        f"%5 = add(%3, %4) :: float  # {HERE}:{first(f) + 1}",
        "return %5",
    ]


def busy(v, x, table):
    log.append(x)
    print(x)
    total = 0.0
    for i, item in enumerate(v):
        if item > 0:
            total += item * RATE**i
    a = v.copy()
    a[1:] *= x
    a[0] = total
    return {"a": a, "b": [total, (np.sum(a, axis=0, keepdims=True), table["b"])]}


log = []
RATE = 0.5


def test_each_line_has_its_form(capsys):
    text = trace(busy, V, 1.5, {"b": 2.0, "c": None}).format(flat=True)
    lines = text.splitlines()
    assert lines[0].startswith("tape of busy")
    assert lines[-1].lstrip().startswith("return {'a': %")
    for line in map(str.strip, lines[1:-1]):
        assert any(form.match(line) for form in (CALL, INPUT, GUARD, EFFECT)), line
    for part in (
        "float64[3]",
        "guard",
        "effect",
        "print",
        "axis=0",
        "keepdims=True",
        "RATE",
        "True",
    ):
        assert part in text
    assert "0x" not in text
    assert "Box" not in text


SCRIPT = """
import math, numpy as np
from wengert import TraceError, trace, reverse, pullback

class Model:
    def __init__(self):
        self.w = np.array([1.0, 2.0])
        self.names = {"b", "a", "c"}
    def __call__(self, x):
        for name in sorted(self.names):
            x = x * len(name)
        seen.append(x)
        return (self.w * x).sum() + {"k": math.sin}["k"](x) + sum(z for z in (x, 1.0))

def shown(tape):
    try:
        return tape.source()
    except TraceError as error:  # it appends to a list outside
        return str(error)

seen = []
model = Model()
def f(x, table):
    callback = lambda y: y * x
    return model(callback(x)) * table["a"] if x in {2.0, 3.0} or x > 0 else x

tape = trace(f, 2.0, {"a": 1.0, "b": {"d", "e", "f"}})
for t in (tape, reverse(tape), trace(model, 2.0), trace(lambda x: [print, len, object(), x][3], 1.0)):
    print(t)
    print(shown(t))
print(pullback(f, 2.0, {"a": 1.0})[1].source())
"""


def test_prints_the_same_from_run_to_run(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    texts = []
    for seed in ("1", "2", "77"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, str(tmp_path / "script.py")]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
        texts.append(done.stdout)
    assert texts[0] == texts[1] == texts[2]
    assert "tape of f" in texts[0]
    assert "0x" not in texts[0]


def test_tape_of_the_pullback_prints():
    value, back = pullback(f, 2.0, 3.0)
    text = str(back.tape)
    assert "cos(x1)" in text
    assert "dy" in text
    text = str(reverse(trace(f, 2.0, 3.0)))
    assert "cos(x1)" in text
    assert f"# {HERE}:{first(h) + 1}" in text


# ------------------------------------------------------------------------------------------ as a source


def run(source, name, *args):
    """Run the source of a tape as a reader would: it imports what it needs."""
    scope = {}
    exec(source, scope)
    return scope[name](*args)


def only_function(source):
    *helpers, function = [x for x in ast.parse(source).body if isinstance(x, ast.FunctionDef)]
    return function.name  # helpers stand above it


def test_source_reads_as_written_by_hand():
    assert trace(f, 2.0, 3.0).source() == (
        "import math\n\n\ndef f(x1, x2):\n"
        f'    """f ({HERE}:{first(f)}), traced for x1: float, x2: float."""\n'
        "    t3 = x1 * x2\n    t4 = math.sin(x1)\n    t5 = t3 + t4\n    return t5\n"
    )
    assert "\ndef other(x1, x2):" in trace(f, 2.0, 3.0).source("other")
    assert "math.cos(x1)" in reverse(trace(f, 2.0, 3.0)).source()


def loops(x, y):
    for i in range(3):
        x = x * y if x < 4 else x - y / (i + 1)
    return abs(x) ** 1.5 + max(x, y) - (x > y) + -x


def arrays(v, m):
    h = np.tanh(m @ v + 0.1)
    return (
        (h * h).sum(axis=0) + np.exp(h[0]) * m[1:, 0].mean() + np.max(v) + np.concatenate([v, h])[2]
    )


def in_place(v, x):
    a = np.zeros(4)
    a[0] = x
    a[1:] = v
    b = a[::2]
    b *= x
    np.add.at(a, [0, 0], x)
    a += 1.0
    return np.sum(a * a)


def structured(table, pair):
    first, second = pair
    return table["w"] * first + second[0] * table["b"]["c"]


M = np.arange(6.0).reshape(2, 3) / 5

PROGRAMS = [
    (f, (2.0, 3.0)),
    (loops, (1.3, 2.1)),
    (arrays, (V, M)),
    (in_place, (V, 1.7)),
    (structured, ({"w": 2.0, "b": {"c": 3.0}}, (1.5, [2.5]))),
]


@pytest.mark.parametrize(("program", "args"), PROGRAMS, ids=lambda x: getattr(x, "__name__", ""))
def test_source_of_a_tape_runs(program, args):
    tape = trace(program, *args)
    source = tape.source()
    result = run(source, only_function(source), *args)
    assert_close(result, program(*args), tol=0)


@pytest.mark.parametrize(("program", "args"), PROGRAMS, ids=lambda x: getattr(x, "__name__", ""))
def test_source_of_the_gradient_runs(program, args):
    tape = reverse(trace(program, *args))
    source = tape.source()
    value, gradients = run(source, only_function(source), *args)
    assert_close(value, program(*args), tol=0)
    expected = list(flat(pullback(program, *args)[1](value * 0 + 1)))
    for mine, theirs in zip(gradients, expected, strict=True):
        assert mine == pytest.approx(theirs, rel=1e-12)


def flat(x):
    """The leaves of a structure, in order."""
    if isinstance(x, dict):
        x = list(x.values())
    if isinstance(x, list | tuple):
        for item in x:
            yield from flat(item)
    else:
        yield x


def test_names_that_are_no_names():
    """Arguments named like keywords of the source, deep inputs, lambdas."""
    source = trace(lambda t3, np, math: t3 * np + math, 1.0, 2.0, 3.0).source()
    name = only_function(source)
    scope = {"operator": operator}
    exec(source, scope)
    assert scope[name](2.0, 3.0, 4.0) == 10.0


# ----------------------------------------------------------------------------- the tape is a data structure


def test_operations():
    tape = trace(f, 2.0, 3.0)
    assert [op.kind for op in tape] == ["input", "input", "call", "call", "call"]
    assert calls(tape) == [operator.mul, math.sin, operator.add]
    x1, x2, product, sine, total = tape.ops
    assert list(tape.inputs) == [x1, x2]
    assert [x1.name, x2.name] == ["x1", "x2"]
    assert tape.result is total
    assert list(product.args) == [x1, x2]
    assert dict(product.kwargs) == {}
    assert list(sine.args) == [x1]
    assert list(total.args) == [product, sine]
    assert [op.value for op in tape] == [2.0, 3.0, 6.0, math.sin(2.0), 6.0 + math.sin(2.0)]
    assert {str(op.type) for op in tape} == {"float"}
    assert (product.site.filename, product.site.lineno, product.site.function) == (
        __file__,
        first(g) + 1,
        "g",
    )
    assert sine.site.function == "h"


def test_arguments_may_be_nested():
    tape = trace(lambda v, w: np.concatenate([v, w * 2], axis=0), V, V)
    (joined,) = [op for op in tape if op.kind == "call" and op.fn is np.concatenate]
    (parts,) = joined.args
    assert type(parts) is list
    assert parts[0] is tape.inputs[0]
    assert joined.kwargs == {"axis": 0}
    assert "float64" in str(joined.type)
    assert "6" in str(joined.type)


def test_guards_name_the_decision():
    def choose(x, y):
        if x > y:
            return x
        return y

    tape = trace(choose, 2.0, 3.0)
    (guard,) = [op for op in tape if op.kind == "guard"]
    assert guard.value is False
    (decision,) = guard.args
    assert decision.fn is operator.gt
    assert guard.site.lineno == first(choose) + 1
    assert tape.result is tape.inputs[1]


@pytest.mark.parametrize(
    ("decide", "value"),
    [
        (lambda x: [x] * int(x), 2),
        (lambda x: [1.0, 2.0, x][int(x)], 2),
        (lambda x: x if x in (1.0, 2.5) else 0.0, True),
        (lambda x: {2.5: x}[x], 2.5),
        (lambda x: x if bool(x) else 0.0, True),
        (lambda x: sorted([x, 1.0]), None),
        (lambda x: [x for _ in range(round(x))], None),
    ],
)
def test_every_decision_is_guarded(decide, value):
    guards = [op for op in trace(decide, 2.5) if op.kind == "guard"]
    assert guards
    if value is not None:
        assert value in [guard.value for guard in guards]


def test_a_number_that_is_only_computed_with_is_no_decision():
    tape = trace(lambda x, n: x * n + n / 2 + float(n) + abs(n), 2.5, 3)
    assert [op for op in tape if op.kind == "guard"] == []


def test_types_and_values():
    def kinds(x, v):
        return x * 2, v * x, v > 0, v.astype(np.float32), int(x) * 3, (v @ v), x * 1j, np.float64(x)

    texts = [str(op.type) for op in trace(kinds, 1.5, V) if op.kind == "call"]
    for text in ("float", "float64[3]", "bool[3]", "float32[3]", "complex"):
        assert text in texts


def test_lines_of_one_statement_over_several():
    # fmt: off
    def f(x):
        y = (
            x
            * 2.0
        )
        return math.sin(
            y
        )
    # fmt: on

    tape = trace(f, 1.0)
    lines = [op.site.lineno - first(f) for op in tape if op.kind == "call"]
    assert lines[0] in (1, 2, 3)
    assert lines[1] in (5, 6)


# ------------------------------------------------------ other passes on the same tracer, each in a page


def norm(v):
    return math.sqrt(sum(x * x for x in v))


def unit(v):
    n = norm(v)
    return [x / n for x in v]


def test_the_caller_decides_what_is_a_primitive():
    v = [3.0, 4.0]
    plain = trace(unit, v)
    assert math.sqrt in calls(plain)
    chosen = trace(unit, v, primitives=[norm])
    assert norm in calls(chosen)
    assert math.sqrt not in calls(chosen)
    (op,) = [op for op in chosen if op.kind == "call" and op.fn is norm]
    assert op.value == 5.0
    assert list(op.args) == [list(chosen.inputs)]
    same = trace(unit, v, primitives=lambda fn: fn is norm or fn is operator.truediv)
    assert calls(same).count(norm) == 1
    assert calls(same).count(operator.truediv) == 2


COSTS = {
    operator.mul: 1,
    operator.add: 1,
    operator.sub: 1,
    operator.truediv: 4,
    math.sin: 20,
    math.sqrt: 10,
}


def count_operations(f, *args):
    """An operation counter in a page: how many floating point operations does a call take?"""
    total = collections.Counter()
    for op in trace(f, *args):
        if op.kind == "call":
            if op.fn is operator.matmul:
                (n, k), (_, m) = (np.shape(arg.value) for arg in op.args)
                total["matmul"] += 2 * n * k * m
            else:
                total[op.fn.__name__] += COSTS[op.fn] * np.size(op.value)
    return total


def test_operation_counter():
    assert count_operations(f, 2.0, 3.0) == {"mul": 1, "sin": 20, "add": 1}

    def layers(x, w):
        for _ in range(3):
            x = (w @ x) * 0.5
        return x

    assert count_operations(layers, np.ones((4, 2)), np.ones((4, 4))) == {
        "matmul": 3 * 64,
        "mul": 3 * 8,
    }


def depends_on(f, *args):
    """A sparsity detector in a page: which inputs does each result depend on?"""
    tape = trace(f, *args)
    reached = {}
    for op in tape:
        if op.kind == "input":
            reached[op] = {op.name}
        elif op.kind == "call":
            reached[op] = set().union(*(reached[x] for x in op.operands()))
    return [reached.get(op, set()) for op in tape.result]


def test_sparsity_detector():
    def f(a, b, c):
        d = a * b
        return [d, math.sin(c), d + c, 3.0, a if b > 0 else c]

    assert depends_on(f, 1.0, 2.0, 3.0) == [{"a", "b"}, {"c"}, {"a", "b", "c"}, set(), {"a"}]


def evaluate(tape, *inputs):
    """An interpreter of tapes in a page."""
    values = dict(zip(tape.inputs, inputs, strict=True))

    def look(arg):
        if isinstance(arg, list | tuple):
            return type(arg)(look(item) for item in arg)
        if isinstance(arg, slice) or not hasattr(arg, "kind"):
            return arg
        return values[arg]

    for op in tape:
        if op.kind == "call":
            values[op] = op.fn(*look(op.args), **{k: look(x) for k, x in op.kwargs.items()})
        elif op.kind == "guard":
            assert look(op.args)[0] == op.value
    return look(tape.result)


def test_interpreter():
    tape = trace(f, 2.0, 3.0)
    assert evaluate(tape, 2.0, 3.0) == f(2.0, 3.0)
    assert evaluate(tape, 0.5, -1.0) == f(0.5, -1.0)
    backward = reverse(tape)
    value, gradients = evaluate(backward, 0.5, -1.0)
    assert value == f(0.5, -1.0)
    assert gradients == pytest.approx((-1.0 + math.cos(0.5), 0.5))
    assert_close(evaluate(trace(arrays, V, M), V * 2, M * 3), arrays(V * 2, M * 3), tol=0)


def test_trace_of_a_gradient():
    tape = trace(grad(lambda x: x**3), 2.0)
    assert tape.result.value == 12.0
    assert evaluate(tape, 3.0) == 27.0
    assert "pow" in names(tape) or "mul" in names(tape)
