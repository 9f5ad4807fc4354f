"""Calls in a world that changes between them, and what must come out the same whether programs are kept or not.

Words
-----
scenario  a generator function of a `World`: it makes what it needs, yields calls, and changes things between them.
world     the surroundings of one run of a scenario: what is compared after each call, what is put back at the end.
call      what a scenario yields: a function with its arguments. The value comes back from `yield`.
way       how the engine is asked: `value_and_grad`, `pullback`, …
picture   an immutable copy of anything, to the bit, in which it shows which objects are one and the same.

`compare(scenario, way)` runs the scenario three times, each in a world of its own: in plain Python, traced at each
call, and with the programs kept. Values, exceptions, output, warnings, arguments and the rest of the world must be
the same in all three after each call, and the gradients the same in the last two.
"""

from __future__ import annotations

import builtins
import collections
import contextlib
import copy
import functools
import inspect
import io
import itertools
import linecache
import logging
import math
import operator
import os
import random
import re
import struct
import sys
import textwrap
import traceback
import types
import warnings

import numpy as np
import numpy.ma  # which NumPy loads when it is first asked for: a change of the world that is none
import pytest

import wengert
from helpers import direction, is_ours, moved
from wengert import grad, jvp, pullback, value_and_grad
from wengert.tracer.intrinsic import Made

HAS_JIT = hasattr(wengert, "jit")
needs_jit = pytest.mark.skipif(not HAS_JIT, reason="programs are not kept yet")


def jit(on):
    return wengert.jit(on) if HAS_JIT else contextlib.nullcontext()


def clear_cache():
    if HAS_JIT:
        wengert.clear_cache()


# ------------------------------------------------------------------------------------------------ worlds


class World:
    """What belongs to one run of a scenario."""

    def __init__(self):
        self.watched = []
        self.warnings = "always"  # or "error"
        self.undo = contextlib.ExitStack()
        for items in (
            *map(vars, (builtins, math, np, np.linalg, operator)),
            os.environ,
            sys.modules,
        ):
            self.undo.callback(put_back, items, dict(items))

    def watch(self, *things):
        """Compare these after each call; a function without arguments is called for what to compare."""
        self.watched += things
        return things[0]

    def patch(self, owner, name, value):
        """Set an attribute (or, of a dict, an item) until the end of the run."""
        items = owner if isinstance(owner, dict) else vars(owner)
        put = owner.__setitem__ if isinstance(owner, dict) else functools.partial(setattr, owner)
        drop = owner.__delitem__ if isinstance(owner, dict) else functools.partial(delattr, owner)
        if name in items:
            self.undo.callback(put, name, items[name])
        else:
            self.undo.callback(lambda: name in items and drop(name))
        put(name, value)

    def use(self, manager):
        """Enter a context until the end of the run."""
        return self.undo.enter_context(manager)

    def module(self, source="", name="world"):
        """A module made of source text, all of whose variables are watched; `import name` finds it."""
        module = sys.modules[name] = types.ModuleType(name)  # dataclasses look for it there
        execute(module, source)
        self.watch(lambda: dict(contents(module)))
        return module


def put_back(items, before):
    for key in set(items) - set(before):
        imported = items is sys.modules and items[key].__spec__ is not None
        if not imported:  # an extension cannot be imported twice
            del items[key]
    items.update(before)


def execute(module, source):
    """Run source text in a module, as the cell of a notebook."""
    source = textwrap.dedent(source)
    filename = f"<world {hash(source) & 0xFFFFFFFF:x}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    exec(compile(source, filename, "exec"), vars(module))


def contents(module):
    """The variables of a module that belong to it."""
    for key, x in vars(module).items():
        ours = getattr(x, "__module__", None) == module.__name__
        if isinstance(x, type | types.FunctionType):
            if ours:
                yield key, x
        elif not key.startswith("__") and not isinstance(x, types.ModuleType):
            yield key, x


class Call:
    """A function with its arguments, named ones included."""

    def __init__(self, f, *args, **kwargs):
        self.f, self.args, self.kwargs = f, args, kwargs


def repeat(f, *args, n=4, t=0.01, **kwargs):
    """Calls with arguments that move a little each time."""
    steps = direction((args, kwargs), np.random.default_rng(0))
    values = []
    for k in range(n):
        new_args, new_kwargs = moved((args, kwargs), steps, k * t) if k else (args, kwargs)
        values.append((yield Call(f, *new_args, **new_kwargs)))
    return values


def each(f, *values, n=1):
    """One call for each of several first arguments, over and over."""
    for _ in range(n):
        for x in values:
            yield Call(f, x)


# ---------------------------------------------------------------------------------------------- pictures

ATOMS = str | bytes | int | range | type(None) | type(Ellipsis) | slice | type(NotImplemented)
SILENT = (  # what has no contents to compare
    types.BuiltinFunctionType,
    types.GeneratorType,
    types.ModuleType,
    np.ufunc,
    logging.Logger,
    re.Pattern,
)


class Pictures:
    """Takes the pictures of one run, and so knows which objects it has met before."""

    def __init__(self, numbered=True):
        self.numbered = numbered
        self.numbers = {}
        self.kept = []

    def number(self, x):
        if not self.numbered:
            return 0
        if id(x) not in self.numbers:
            self.numbers[id(x)] = len(self.numbers)
            self.kept.append(x)
        return self.numbers[id(x)]

    def take(self, x, seen=None):
        seen = set() if seen is None else seen
        kind = type(x)
        assert not is_ours(kind) or kind.__name__ in (
            "function",
            "Gradient",
            "Pullback",
            "Missing",
            "Program",
        ), f"{kind} is ours"
        if isinstance(x, np.generic):
            return name(kind), x.dtype.str, precise(np.asarray(x))
        if isinstance(x, float | complex):
            return name(kind), precise(np.asarray([complex(x).real, complex(x).imag]))
        if isinstance(x, ATOMS):
            return name(kind), repr(x)
        if isinstance(x, SILENT):
            return name(kind), getattr(x, "__name__", "")
        if kind is Made:
            return "a function of the engine's"
        if isinstance(x, tuple):
            return name(kind), *[self.take(item, seen) for item in x]
        if id(x) in seen:
            return "again", self.number(x)
        seen.add(id(x))
        return name(kind), self.number(x), *self.contents(x, kind, seen)

    def contents(self, x, kind, seen):
        def take(y):
            return self.take(y, seen)

        if isinstance(x, np.ndarray):
            yield from (self.owner(x), x.dtype.str, x.shape, x.flags.writeable)
            yield from map(take, x.ravel().tolist()) if x.dtype == object else [precise(x)]
        elif isinstance(x, np.random.Generator | np.random.RandomState):
            state = x.bit_generator.state if hasattr(x, "bit_generator") else x.get_state()
            yield str(state)
        elif isinstance(x, random.Random):
            yield x.getstate()
        elif isinstance(x, list | collections.deque):
            yield from map(take, x)
        elif isinstance(x, dict | types.MappingProxyType):
            yield from ((take(key), take(item)) for key, item in list(x.items()))
        elif isinstance(x, set | frozenset):
            yield frozenset(map(self.take, x))
        elif isinstance(x, types.FunctionType):
            yield from (x.__qualname__, x.__code__.co_code, take(x.__defaults__))
            yield from (take(x.__kwdefaults__), take(vars(x)))
        elif isinstance(x, types.MethodType):
            yield from (take(x.__self__), take(x.__func__))
        elif isinstance(x, functools.partial):
            yield from (take(x.func), take(x.args), take(x.keywords))
        elif isinstance(x, io.StringIO):
            yield x.getvalue()
        elif isinstance(x, type):
            if x.__module__ in ("world", "other") or "<locals>" in x.__qualname__:
                yield from ((key, take(v)) for key, v in vars(x).items() if plain_name(key))
        elif isinstance(x, itertools.count | itertools.cycle):
            yield repr(x) if isinstance(x, itertools.count) else ""
        else:
            if isinstance(x, BaseException):
                yield take(x.args)
            if isinstance(x, collections.UserDict | collections.ChainMap):
                yield take(dict(x))
            yield from ((key, take(item)) for key, item in held(x).items() if plain_name(key))

    def owner(self, x):
        """The array whose memory this one looks at, and where in it."""
        start = x.__array_interface__["data"][0]
        while isinstance(x.base, np.ndarray):
            x = x.base
        return self.number(x), start - x.__array_interface__["data"][0] if x.size else 0


def picture(x):
    """A picture of one thing on its own."""
    return Pictures(numbered=False).take(x)


def plain_name(key):
    return not (isinstance(key, str) and key.startswith("__") and key.endswith("__"))


def held(x):
    """The attributes of an object, slots included."""
    found = dict(getattr(x, "__dict__", {}))
    for cls in type(x).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            if slot not in ("__weakref__", "__dict__") and hasattr(x, slot):
                found[slot] = getattr(x, slot)
    return found


def name(cls):
    """Two runs of one class statement make two classes: they count as the same."""
    return f"{cls.__module__}.{cls.__qualname__}"


def precise(array):
    """Every bit, except that all NaNs are one."""
    if array.dtype.kind not in "fc":
        return array.tobytes() if array.dtype.kind != "O" else repr(array)
    if np.isnan(array).any():
        return repr(array.tolist()) if array.dtype.kind == "f" else repr(array.view().tolist())
    return array.tobytes()


def where_different(a, b, path="", close=False):
    """The first place at which two pictures differ, in words; ``close`` forgives the last bits of numbers."""
    if a == b:
        return None
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        kind = numbers_in(a)
        if close and kind and a[:-1] == b[:-1] and nearly(a[-1], b[-1], kind):
            return None
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            found = where_different(x, y, f"{path}.{i}", close)
            if found:
                return found
        return None
    return f"{path}: {readable(a)} is not {readable(b)}"


def numbers_in(picture):
    """The dtype of the numbers in the picture of a number or of an array."""
    if picture[0] in ("builtins.float", "builtins.complex"):
        return "f8"
    found = [x for x in picture if isinstance(x, str) and x[:1] in "<>|=" and x[1:2] in ("f", "c")]
    return found[0] if found else None


def nearly(a, b, dtype):
    """Equal but for rounding and for the sign of a zero: the algebra of a reverse sweep may choose its order."""
    x, y = (
        np.frombuffer(p, dtype)
        if isinstance(p, bytes)
        else np.array(eval(p, {"nan": np.nan, "inf": np.inf}))
        for p in (a, b)
    )
    limits = np.finfo(x.dtype)
    return x.shape == y.shape and np.allclose(
        x, y, rtol=ROUNDING * limits.eps, atol=ROUNDING * limits.tiny, equal_nan=True
    )


ROUNDING = 2**12


def readable(x):
    if isinstance(x, bytes) and len(x) % 8 == 0 and len(x) <= 64:
        return f"{struct.unpack(f'{len(x) // 8}d', x)}"
    return f"{x!r}"[:300]


# -------------------------------------------------------------------------------- ways to ask the engine


def differentiable(x):
    return direction(float(x) if type(x) is int else x, np.random.default_rng(0)) is not None


def has_leaves(x, ints=True):
    """An argument that `grad` accepts; `ints` says whether integers are numbers: not in the attributes of objects."""
    if type(x) is int:
        return ints
    if isinstance(x, dict):
        return any(has_leaves(item, ints) for item in x.values())
    if isinstance(x, list | tuple):
        return any(has_leaves(item, ints) for item in x)
    if hasattr(x, "__dict__") and not callable(x) and not isinstance(x, type | np.ndarray):
        return any(has_leaves(item, False) for item in vars(x).values())
    if isinstance(x, np.ndarray) and type(x) is not np.ndarray:
        return False
    return isinstance(x, float | complex | np.ndarray | np.inexact) and differentiable(x)


class Answer:
    """What the engine gave for one call."""

    def __init__(self, value, gradients, back=None):
        self.value, self.gradients, self.back = value, gradients, back


def by_value_and_grad(call, number):
    argnums = tuple(i for i, x in enumerate(call.args) if has_leaves(x))
    if not argnums:
        return by_pullback(call, number)
    value, gradients = value_and_grad(call.f, argnums)(*call.args, **call.kwargs)
    return Answer(value, gradients)


def by_pullback(call, number, **options):
    value, back = pullback(call.f, *call.args, **call.kwargs, **options)
    dy = direction(float(value) if type(value) is int else value, np.random.default_rng(number))
    return Answer(value, back(dy), functools.partial(back, dy))


def by_pullback_of_self(call, number):
    return by_pullback(call, number, wrt_self=True)


NOTHING = object()


def by_turns(call, number):
    """`grad`, `pullback` and `value_and_grad` of one function share what is kept for it."""
    argnums = [i for i, x in enumerate(call.args) if has_leaves(x)]
    if number % 3 == 0 and argnums:
        return Answer(NOTHING, grad(call.f, argnums[0])(*call.args, **call.kwargs))
    return (by_pullback, by_value_and_grad)[number % 2](call, number)


def by_second(call, number):
    """The gradient of a gradient."""
    argnums = [i for i, x in enumerate(call.args) if has_leaves(x)]
    if not argnums:
        return by_pullback(call, number)
    value, back = pullback(grad(call.f, argnums[0]), *call.args, **call.kwargs)
    dy = direction(value, np.random.default_rng(number))
    first = copy.deepcopy(value)
    return Answer(NOTHING, (value, back(dy)), lambda: (first, back(dy)))


def by_tangent(call, number):
    """The value and its derivative along a direction."""
    rng = np.random.default_rng(number)
    directions = []
    for i, x in enumerate(call.args):
        twice = hasattr(x, "__dict__") and any(x is y for y in call.args[:i])
        moves = has_leaves(x) and not twice  # an object that is given twice has one derivative
        directions.append(direction(float(x) if type(x) is int else x, rng) if moves else None)
    f = functools.partial(call.f, **call.kwargs) if call.kwargs else call.f
    return Answer(*jvp(f, call.args, directions))


WAYS = {
    "value_and_grad": by_value_and_grad,
    "pullback": by_pullback,
    "turns": by_turns,
    "self": by_pullback_of_self,
    "second": by_second,
    "tangent": by_tangent,
}


def plainly(call, number):
    return Answer(call.f(*call.args, **call.kwargs), None)


# ------------------------------------------------------------------------------------------- comparison


class Record:
    """What one call did."""

    def __init__(self, line):
        self.line = line
        self.value = self.error = self.answer = self.gradients = None
        self.hidden = False
        self.printed = self.logged = self.warned = self.world = None


class Played:
    """One run of a scenario."""

    def __init__(self, scenario, ask, on=False, hidden=()):
        self.world = World()
        self.pictures = Pictures()
        self.hidden = hidden
        self.calls = []
        self.records = []
        self.ask = ask
        clear_cache()
        state = random.getstate(), np.random.get_state(), np.geterr(), warnings.filters[:]
        random.seed(0), np.random.seed(0)
        steps = scenario(self.world)
        try:
            with jit(on):
                self.play(steps)
                self.again()
        finally:
            steps.close()
            self.world.undo.close()
            random.setstate(state[0]), np.random.set_state(state[1]), np.seterr(**state[2])
            warnings.filters[:] = state[3]

    def play(self, steps):
        sent = None
        while True:
            try:
                call = steps.send(sent)
            except StopIteration:
                return
            line = innermost(steps).f_lineno
            self.calls.append(call if isinstance(call, Call) else Call(*call))
            record = self.do(self.calls[-1], line)
            sent = record.answer and record.answer.value

    def do(self, call, line):
        record = Record(line)
        out, err, logged = io.StringIO(), io.StringIO(), Logged()
        logging.getLogger().addHandler(logged)
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            recorded_warnings(self.world.warnings) as warned,
        ):
            try:
                record.answer = self.ask(call, len(self.records))
            except wengert.CotangentError:  # not a number: no value is seen
                record.answer = Answer(NOTHING, None)
            except wengert.WengertError:
                raise
            except BaseException as error:
                record.error = self.describe(error)
                error.__traceback__ = None
        logging.getLogger().removeHandler(logged)
        record.printed, record.logged = (out.getvalue(), err.getvalue()), logged.messages
        record.warned = [(w.category, str(w.message), w.filename, w.lineno) for w in warned]
        answer = record.answer
        if answer is not None:
            record.gradients = picture(answer.gradients)
            spoil(answer.gradients)
        watched = [
            x() if inspect.isfunction(x) and not x.__code__.co_argcount else x
            for x in self.world.watched
        ]
        surroundings = (random.getstate(), str(np.random.get_state()), str(np.geterr()))
        record.hidden = answer is not None and answer.value is NOTHING
        record.hidden |= len(self.records) in self.hidden
        self.records.append(record)
        record.world = (self.pictures.take((call.args, call.kwargs, watched)), surroundings)
        if answer is not None and not record.hidden:
            record.value = self.pictures.take(answer.value)
            spoil(answer.value, clear=False)
        return record

    def describe(self, error, depth=0):
        if error is None or depth == 4:
            return None
        lines = [
            (frame.name, frame.lineno)
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename.startswith("<world") or "test_" in frame.filename
        ]
        parts = [self.describe(e, depth + 1) for e in getattr(error, "exceptions", ())]
        chain = [self.describe(e, depth + 1) for e in (error.__cause__, error.__context__)]
        return name(type(error)), str(error), self.pictures.take(error), lines, chain, parts

    def again(self):
        """A pullback answers for the moment of its call, however late it is asked."""
        for call in self.calls:
            spoil((call.args, call.kwargs), clear=False)
        for record in self.records:
            if record.answer is not None and record.answer.back is not None:
                found = where_different(picture(record.answer.back()), record.gradients)
                assert found is None, f"line {record.line}, asked again: {found}"


class Logged(logging.Handler):
    def __init__(self):
        super().__init__()
        self.messages = []

    def emit(self, record):
        self.messages.append((record.name, record.levelno, record.getMessage()))


@contextlib.contextmanager
def recorded_warnings(action):
    """What is warned of, by everybody but the engine itself."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter(action)
        yield found
    found[:] = [w for w in found if not is_ours(w.category)]


def innermost(generator):
    frame = generator.gi_frame
    while generator.gi_yieldfrom is not None and hasattr(generator.gi_yieldfrom, "gi_frame"):
        generator = generator.gi_yieldfrom
        if generator.gi_code.co_filename != __file__:
            frame = generator.gi_frame
    return frame


def spoil(x, clear=True):
    """A caller may do what it likes to a gradient or to a value: the next one must not show it."""
    if isinstance(x, np.ndarray):
        if x.flags.writeable and x.dtype.kind in "fci":
            x.fill(np.nan if x.dtype.kind != "i" and clear else 77)
        return
    items = ()
    if isinstance(x, tuple | list):
        items = list(x)
    elif isinstance(x, dict):
        items = list(x.values())
    elif hasattr(x, "__dict__") and not callable(x):
        items = list(vars(x).values())
    for item in items:
        spoil(item, clear)
    if isinstance(x, list):
        x.clear() if clear else x.append(77.0)
    elif isinstance(x, dict):
        x.clear() if clear else x.update(spoilt=77.0)


class Refused(Exception):
    """The tracer cannot follow the scenario at all."""


def compare(scenario, way="value_and_grad"):
    """Assert that the scenario goes the same in plain Python, traced at each call, and cached."""
    ask = WAYS[way]
    try:
        traced = Played(scenario, ask)
    except wengert.WengertError as error:
        raise Refused from error
    hidden = {i for i, record in enumerate(traced.records) if record.hidden}
    plain = Played(scenario, plainly, hidden=hidden)
    same(traced, plain, "traced, unlike plain Python", values=True)
    if HAS_JIT:
        cached = Played(scenario, ask, on=True)
        same(cached, plain, "cached, unlike plain Python", values=True)
        same(cached, traced, "cached, unlike traced", values=False)
    return plain


def same(mine, theirs, what, values):
    assert len(mine.records) == len(theirs.records)
    for number, (a, b) in enumerate(zip(mine.records, theirs.records, strict=True)):
        place = f"call {number} (line {b.line}), {what}: "
        assert (a.error is None) == (b.error is None), f"{place}raised {a.error} and not {b.error}"
        for part in ("error", "printed", "logged", "warned"):
            x, y = getattr(a, part), getattr(b, part)
            assert x == y, f"{place}{part} {x} and not {y}"
        if a.value != b.value:
            raise AssertionError(f"{place}value{where_different(a.value, b.value)}")
        if a.world != b.world:
            raise AssertionError(f"{place}the world{where_different(a.world, b.world)}")
        if not values:
            found = where_different(a.gradients, b.gradients, close=True)
            assert found is None, f"{place}gradient{found}"


def scenario(test=None, ways=tuple(WAYS)):
    """Make a test of a scenario, asked in each way."""
    if test is None:
        return functools.partial(scenario, ways=ways)

    @pytest.mark.parametrize("way", ways)
    def asked(way):
        compare(test, way)

    asked.__name__, asked.__doc__, asked.__module__ = test.__name__, test.__doc__, test.__module__
    return asked
