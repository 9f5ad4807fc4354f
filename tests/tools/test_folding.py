"""What is shown as a loop, a branch or a call is exactly the ops of the tape, and its operands are called right."""

import math

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from wengert import forward, reverse, trace
from wengert.tracer.tape import Guard, Input, Op
from wengert.transforms.patterns import refilled
from wengert.transforms.tools.folding import Block, Branch, Call, Line, Loop, folded, unfolded
from wengert.transforms.tools.references import References


def logistic(r, x):
    for _ in range(30):
        x = r * x * (1 - x)
    return x


def collatz(x):
    while x > 1.5:
        if x % 2 < 0.5:
            x = x / 2
        else:
            x = 3 * x + 1
    return x


def triangle(x):
    s = x
    for i in range(6):
        for j in range(i):
            s = s * x + j
            if j == 2:
                continue
            s = s / 2
    return s


def unmarked(x):
    return sum(x * k for k in range(9)) + max([x, x * 2])


def swapped(a, b):
    for i in range(7):
        a, b = b, a + b * i
    return a - b


def filled(v, x):
    u = [x]
    for i in range(6):
        u.append(u[i] * v[i] + u[max(i - 2, 0)])
    return u[-1] + u[3]


def arrays(w, x):
    for i in range(5):
        h = np.tanh(w @ x)
        x = h if i % 2 else h + x
    return np.concatenate([x, h]).sum(axis=0)


def recursive(x, n):
    return x if n == 0 else math.sin(recursive(x * 1.1, n - 1)) + recursive(x, n - 1)


def left(x):
    for i in range(10):
        x = x * 1.5
        if x > 5:
            break
        try:
            if i == 1:
                raise ValueError
        except ValueError:
            x = x + 1
    else:
        x = x * 100
    return x


RATE = [0.5, 2.0, 3.0]


def outside(x):
    total = 0.0
    for i in range(3):
        total += x * RATE[i]
        print(end="")
    return total


PROGRAMS = [
    (logistic, (3.7, 0.5)),
    (collatz, (11.0,)),
    (collatz, (1.0,)),
    (triangle, (1.3,)),
    (unmarked, (1.3,)),
    (swapped, (1.3, 0.4)),
    (filled, (np.arange(6.0), 2.0)),
    (arrays, (np.eye(2) / 2, np.ones(2))),
    (recursive, (0.7, 3)),
    (left, (1.3,)),
    (outside, (1.3,)),
]
TAPES = {"tape": lambda tape: tape, "tangent": forward, "final": reverse}
for form in ("naive", "pairs"):
    TAPES[form] = lambda tape, form=form: reverse(tape, form=form)


def same_ops(tape):
    """The ops that the listing shows: each once, and in their order, but for inputs that stand before a loop."""
    shown = [op for op in unfolded(folded(tape)) if not isinstance(op, Input)]
    assert [id(op) for op in shown] == [id(op) for op in tape if not isinstance(op, Input)]
    inputs = [op for op in unfolded(folded(tape)) if isinstance(op, Input)]
    assert {id(op) for op in inputs} == {id(op) for op in tape if isinstance(op, Input)}


class Player:
    """Runs the program that a listing shows, by what it says alone, and looks whether it gives what the tape has.

    It knows of each line its first op's callable, and of each operand the reference that is printed: never an op of
    the pass that it is in.
    """

    def __init__(self, tape):
        self.block = folded(tape)
        self.references = References(self.block, tape.result)
        self.values = {}  # of lines, by pass
        self.carried = {}
        self.gone = 0

    def operand(self, slot, p):
        if slot.carried is not None and p not in slot.own:
            return self.carried[slot.carried]
        found = self.references.reference(slot.values[p], slot.block, p)
        if found.kind == "constant":
            return found.of
        if found.kind == "carried":
            return self.carried[found.of]
        line, q = self.references.where[slot.values[p]]
        assert line is found.of
        return self.values[line][q]

    def run(self, block, p):
        for item in block.items:
            if isinstance(item, Line):
                self.line(item, p)
            elif isinstance(item, Call):
                self.run(item.body, p)
            elif isinstance(item, Branch):
                self.run(item.ways[item.taken[p]], item.inner[p])
            else:
                self.loop(item, p)

    def loop(self, loop, p):
        carried = self.references.carried.get(loop, [])
        for x in carried:
            self.carried[x] = None if x.first is None else self.operand(x.first, p)
        for b in range(loop.starts[p], loop.starts[p + 1]):
            self.run(loop.body, b)
            handed = {}
            for x in carried:
                for source in x.sources:  # the later ones count
                    done = self.references.values_of(source, loop.body)
                    if b in done:
                        line, q = self.references.where[done[b]]
                        handed[x] = self.values[line][q]
            self.carried.update(handed)

    def line(self, line, p):
        op = line.ops[p]
        proto = line.ops[0]
        given = [self.operand(x, p) for x in self.references.slots[line]]
        if isinstance(proto, Input):
            value = op.value
        elif isinstance(proto, Guard):
            held = bool(given[0]) if type(op.value) is bool else given[0]
            assert held == given[1] == op.value
            return
        else:
            count = len([0 for _ in given])
            args, kwargs = refilled((proto.args, proto.kwargs), iter(given[:count]))
            value = proto.fn(*args, **kwargs) if proto.kind == "call" else None
        if isinstance(op.value, float | np.ndarray):
            assert np.array_equal(value, op.value, equal_nan=True), (proto.fn, value, op.value)
        self.values.setdefault(line, {})[p] = value


@pytest.mark.parametrize("form", TAPES)
@pytest.mark.parametrize(("program", "args"), PROGRAMS, ids=lambda x: getattr(x, "__name__", ""))
def test_a_listing_is_the_tape(program, args, form):
    tape = TAPES[form](trace(program, *args))
    same_ops(tape)
    player = Player(tape)
    player.run(player.block, 0)
    assert len(player.values)
    str(tape)
    tape.format(depth=0, values=True)


# Random programs: a statement is an assignment, a branch or a loop, of which inner ones are shorter.
NAMES = "abc"
EXPRESSIONS = st.sampled_from(
    [
        "a * b",
        "b - c",
        "c * 0.5",
        "math.sin(a)",
        "a + 1.0",
        "g(b, c)",
        "x[i % 3]",
        "b * i",
        "-c",
        "i + 0.5",
    ]
)
TESTS = st.sampled_from(["a > b", "i % 2", "i < 2", "c < 0.3", "b * c > 0.1"])


def statements(depth):
    assignment = st.tuples(st.just("set"), st.sampled_from(NAMES), EXPRESSIONS)
    if depth == 0:
        return st.lists(assignment, min_size=1, max_size=3)
    inner = statements(depth - 1)
    branch = st.tuples(st.just("if"), TESTS, inner, inner)
    loop = st.tuples(st.just("for"), st.integers(1, 4), inner)
    return st.lists(st.one_of(assignment, branch, loop), min_size=1, max_size=3)


def written(body, pad):
    lines = []
    for kind, *parts in body:
        if kind == "set":
            lines.append(f"{pad}{parts[0]} = {parts[1]}")
        elif kind == "if":
            lines += [f"{pad}if {parts[0]}:", *written(parts[1], pad + "    ")]
            lines += [f"{pad}else:", *written(parts[2], pad + "    ")]
        else:
            lines += [f"{pad}for i in range({parts[0]}):", *written(parts[1], pad + "    ")]
    return lines


@settings(max_examples=60, deadline=None, derandomize=True, phases=[Phase.generate])
@given(statements(3))
def test_listings_of_random_programs(body):
    source = "\n".join(
        ["def f(a, b, c, x):", "    i = 1", *written(body, "    "), "    return a + b + c"]
    )
    scope = {"math": math, "g": lambda x, y: x * y + 0.25}
    exec(source, scope)
    tape = trace(scope["f"], 0.3, 0.7, -0.2, [0.1, 0.2, 0.4])
    for find in TAPES.values():
        found = find(tape)
        same_ops(found)
        player = Player(found)
        player.run(player.block, 0)
        str(found)


def test_loops_are_one_body_each():
    (body,) = [x for x in folded(trace(logistic, 3.7, 0.5)).items if isinstance(x, Call)]
    (loop,) = body.body.items
    assert isinstance(loop, Loop)
    assert loop.counts == [30]
    assert [len(x.ops) for x in loop.body.items] == [30, 30, 30]
    assert isinstance(loop.body, Block)
    assert all(isinstance(op, Op) for x in loop.body.items for op in x.ops)
