"""Python code of the user's that code in C, or of a library, comes upon: what it changes, the run sees changed."""

import ast
import csv
import functools
import io
import itertools
import math
import pickle
import tokenize
import traceback
import types

import numpy as np
import pytest

from wengert import WengertError, jit, value_and_grad
from wengert.tracer.leads import leads_to_users

STATE = {"n": 0}
COUNTS = np.zeros(1)


@pytest.fixture(params=[True, False])
def mode(request):
    with jit(request.param):
        yield


def count(*args):
    STATE["n"] += 1
    COUNTS[0] += 1
    return 1


class Raw(io.RawIOBase):
    def writable(self):
        return True

    def write(self, data):
        count()
        return len(data)


class Source(io.RawIOBase):
    def readable(self):
        return True

    def readinto(self, buffer):
        count()
        return 0


class Lines:
    left = math.inf

    def __iter__(self):
        return self

    def __next__(self):
        if not self.left:
            raise StopIteration
        self.left -= 1
        count()
        return "1,2"


class Texts(io.RawIOBase):
    left = 2

    def readable(self):
        return True

    def readinto(self, buffer):
        count()
        self.left -= 1
        buffer[:4] = b"1,2\n"
        return 4 if self.left >= 0 else 0


def rows():
    lines = Lines()
    lines.left = 3
    return csv.reader(lines)


def texts():
    return io.TextIOWrapper(io.BufferedReader(Texts()))


def by_for(make):
    for _ in make():
        pass


def by_unpacking(make):
    first, *_ = make()
    return first


def by_adding(make):
    items = []
    items += make()
    return items


def by_slice(make):
    items = [0]
    items[:] = make()
    return items


def gather(*args):
    return args


WAYS = {
    "for": by_for,
    "list": lambda make: list(make()),
    "unpacking": by_unpacking,
    "adding": by_adding,
    "slice": by_slice,
    "in": lambda make: 7 in make(),
    "arguments": lambda make: gather(*make()),
    "display": lambda make: [*make()],
    "comprehension": lambda make: [x for x in make()],
    "zip": lambda make: list(zip(make(), range(9), strict=False)),
    "tee": lambda make: list(itertools.tee(make())[1]),
    "reduce": lambda make: functools.reduce(lambda a, b: a, make()),
    "next": lambda make: next(iter(make())),
}


class Counting(io.BytesIO):
    def write(self, data):
        count()
        return super().write(data)


class File:
    def write(self, text):
        count()

    def readline(self):
        count()
        return b""


class Names(ast.NodeVisitor):
    def visit_Name(self, node):
        count()


OUT = io.TextIOWrapper(Raw(), write_through=True)
PRINTED = io.TextIOWrapper(io.BufferedWriter(Raw()), write_through=True)
ROWS = csv.reader(Lines())
LOW, HIGH = map(functools.cmp_to_key(count), (1, 2))
PAIRS = zip(itertools.count(), map(count, itertools.count()), strict=False)
PROPERTY = types.DynamicClassAttribute(count)
TREE = ast.parse("a")


def by_overflow():
    np.exp(np.array([1000.0]))


DOORS = {
    "text": lambda: OUT.write("abc"),
    "lines": lambda: OUT.writelines(["abc"]),
    "print": lambda: print("abc", file=PRINTED, flush=True),
    "reader": lambda: io.BufferedReader(Source()).read(1),
    "csv": lambda: next(csv.reader(Lines())),
    "csv outside": lambda: next(ROWS),
    "key": lambda: LOW < HIGH,
    "zip": lambda: next(PAIRS),
    "pickle": lambda: pickle.dump([1, 2], Counting()),
    "descriptor": lambda: PROPERTY.__get__(STATE, dict),
    "visitor": lambda: Names().visit(TREE),
    "tokens": lambda: list(tokenize.tokenize(File().readline)),
    "stack": lambda: traceback.print_stack(file=File()),
    "overflow": by_overflow,
}


@pytest.fixture
def error_handler():
    before = np.seterrcall(count)
    with np.errstate(over="call"):
        yield
    np.seterrcall(before)


@pytest.mark.parametrize("door", DOORS)
def test_what_it_changes_is_seen(door, mode, error_handler):
    def f(x):
        before = STATE["n"]
        DOORS[door]()
        return x * (STATE["n"] - before + STATE["n"])

    g = value_and_grad(f)
    for call in range(8):
        STATE["n"] = call
        slope = f(1.0)
        STATE["n"] = call
        assert g(2.0 + call) == ((2.0 + call) * slope, slope)


@pytest.mark.parametrize("make", [rows, texts])
@pytest.mark.parametrize("way", WAYS)
def test_its_items_are_asked_for_in_every_way(way, make, mode):
    def f(x):
        before = STATE["n"]
        WAYS[way](make)
        return x * (STATE["n"] - before)

    g = value_and_grad(f)
    slope = f(1.0)
    for call in range(5):
        assert g(2.0 + call) == ((2.0 + call) * slope, slope)


def test_a_file_is_closed_when_nobody_needs_it(mode):
    def f(x):
        raw = Texts()
        io.TextIOWrapper(io.BufferedReader(raw))
        return x * raw.closed

    assert value_and_grad(f)(2.0) == (2.0, 1.0)


@pytest.mark.parametrize("door", DOORS)
def test_an_array_that_it_writes_to(door, mode, error_handler):
    def f(x):
        before = COUNTS[0]
        DOORS[door]()
        return x * (COUNTS[0] - before + COUNTS[0])

    g = value_and_grad(f)
    for call in range(8):
        COUNTS[0] = call
        slope = f(1.0)
        COUNTS[0] = call
        assert g(2.0 + call) == ((2.0 + call) * slope, slope)


@pytest.mark.parametrize("door", [x for x in DOORS if x != "overflow"])
def test_a_traced_value_that_it_finds_outside(door, mode):
    def f(x):
        STATE["n"] = x
        DOORS[door]()
        return STATE["n"] * x

    for call in range(3):
        with pytest.raises(WengertError):
            value_and_grad(f)(2.0 + call)


def test_a_handler_of_errors_is_followed(mode, error_handler):
    def f(x):
        STATE["n"] = x
        np.exp(np.array([1000.0]) * x)
        return STATE["n"] * x

    assert value_and_grad(f)(2.0) == (6.0, 5.0)


def test_most_calls_lead_nowhere():
    assert not leads_to_users(len, ([1.0, 2.0],))
    assert not leads_to_users("a".split, (",",))
    assert not leads_to_users(io.StringIO().write, ("a",))
    assert not leads_to_users(np.random.default_rng(0).normal, (2.0, np.ones(3)))
    assert not leads_to_users(pickle.dumps, ({"a": [1, "b", None]},))
    assert leads_to_users(OUT.write, ("a",))
    assert leads_to_users(pickle.dumps, ({"a": [Lines()]},))
    assert leads_to_users(next, (ROWS,))
