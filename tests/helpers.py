"""What the tests share: comparison to the bit, derivatives by finite differences, the search for boxes.

`check(f, *args)` is what most tests call: it runs `f` once in plain Python and once under the engine and
asserts the same value, the same changes to the arguments, no box anywhere, a gradient with the structure of
the arguments, and that gradient equal to finite differences of plain Python.
"""

import copy
import dataclasses
import functools
import struct
import sys
import threading
import traceback
import types
from collections import deque

import numpy as np
import pytest

from wengert import jit, jvp, pullback, value_and_grad
from wengert.tracer.errors import WengertError

# ------------------------------------------------------------------------------------- equal to the bit


def same_value(a, b):
    """Equal in types, structure and every bit (any NaN equals any NaN)."""
    return difference(a, b) is None


def assert_same(a, b):
    found = difference(a, b)
    assert found is None, found


def difference(a, b, path="value", seen=None):
    """In words, where `a` and `b` first differ; None where they do not."""
    seen = set() if seen is None else seen
    if (id(a), id(b)) in seen:  # objects may contain themselves
        return None
    seen.add((id(a), id(b)))
    if not same_class(type(a), type(b)):
        return f"{path}: {type(a).__qualname__} {a!r} is not {type(b).__qualname__} {b!r}"
    if isinstance(a, float | complex) and not isinstance(a, np.generic):
        return None if bits(a) == bits(b) else f"{path}: {a!r} is not {b!r}"
    if isinstance(a, np.ndarray | np.generic):
        return array_difference(a, b, path, seen)
    if isinstance(a, list | tuple | deque):
        if len(a) != len(b):
            return f"{path}: length {len(a)} is not {len(b)}"
        pairs = zip(range(len(a)), a, b, strict=True)
    elif isinstance(a, dict):
        if list(a) != list(b):
            return f"{path}: keys {list(a)} are not {list(b)}"
        pairs = [(repr(key), a[key], b[key]) for key in a]
    elif isinstance(a, set | frozenset | str | bytes | int | range | type(None)):
        return None if a == b else f"{path}: {a!r} is not {b!r}"
    elif isinstance(a, types.FunctionType):
        return None if a.__code__.co_code == b.__code__.co_code else f"{path}: {a} is not {b}"
    elif isinstance(a, type | types.ModuleType | types.BuiltinFunctionType):
        return None if a is b or same_class(a, b) else f"{path}: {a} is not {b}"
    else:
        x, y = state(a), state(b)
        if list(x) != list(y):
            return f"{path}: attributes {list(x)} are not {list(y)}"
        pairs = [(f".{name}", x[name], y[name]) for name in x]
    for step, x, y in pairs:
        found = difference(x, y, f"{path}[{step}]", seen)
        if found:
            return found
    return None


def same_class(a, b):
    """The same class, or the same class statement inside a function executed twice."""
    if a is b:
        return True
    names = [(c.__module__, c.__qualname__) for c in (a, b) if isinstance(c, type)]
    return len(names) == 2 and names[0] == names[1] and "<locals>" in names[0][1]


def bits(x):
    return tuple("nan" if p != p else struct.pack("d", p) for p in (x.real, x.imag))


def array_difference(a, b, path, seen):
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return f"{path}: {a.dtype}{a.shape} is not {b.dtype}{b.shape}"
    if a.dtype == object:
        return difference(a.tolist(), b.tolist(), path, seen)
    x, y = np.atleast_1d(a), np.atleast_1d(b)
    numeric = a.dtype.kind in "fc"
    equal = (x == y) | (x != x) & (y != y)
    if numeric:
        equal &= (np.signbit(x.real) == np.signbit(y.real)) | (x != x)
        equal &= (np.signbit(x.imag) == np.signbit(y.imag)) | (x != x)
    return None if equal.all() else f"{path}: {a!r} is not {b!r}"


def state(x):
    """What an object holds: its attributes, its slots and, of an exception, its arguments."""
    held = dict(getattr(x, "__dict__", {}))
    for cls in type(x).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(x, name) and name != "__weakref__":
                held[name] = getattr(x, name)
    if isinstance(x, BaseException):
        held["args"] = x.args
    if isinstance(x, set | frozenset):
        held["items"] = list(x)
    return held


# ------------------------------------------------------------------------------ nobody ever sees a box


def is_ours(cls):
    """Whether a class is Wengert's own; text calls itself ``str`` or ``bytes``."""
    disguised = cls.__module__ == "builtins" and issubclass(cls, str | bytes)
    return cls.__module__.partition(".")[0] == "wengert" or (disguised and cls not in (str, bytes))


def assert_plain(*roots):
    """Nothing that can be reached from `roots` is a box."""
    stack = [(root, f"[{i}]") for i, root in enumerate(roots)]
    seen = {}
    while stack:
        x, path = stack.pop()
        if id(x) in seen:
            continue
        seen[id(x)] = x
        assert not is_ours(type(x)), f"{path} is a {type(x).__qualname__}"
        stack += [(item, f"{path}{step}") for step, item in inside(x)]


def inside(x):
    if isinstance(x, types.ModuleType | str | bytes | type(None) | bool | int | float | complex):
        return
    if isinstance(x, type):
        if x.__module__.startswith(("test_", "tests.")):
            yield from ((f".{k}", v) for k, v in list(vars(x).items()))
        return
    if isinstance(x, dict | types.MappingProxyType):
        for key, item in list(x.items()):
            yield "{key}", key
            yield f"[{key!r}]", item
    elif isinstance(x, list | tuple | deque | set | frozenset):
        yield from ((f"[{i}]", item) for i, item in enumerate(x))
    elif isinstance(x, np.ndarray):
        if x.dtype == object:
            yield ".tolist()", x.tolist()
    elif isinstance(x, types.FunctionType):
        if not x.__module__ or x.__module__.startswith("wengert"):
            return
        for name, cell in zip(x.__code__.co_freevars, x.__closure__ or (), strict=True):
            try:
                yield f".{name}", cell.cell_contents
            except ValueError:
                pass  # an empty cell
        yield ".defaults", (x.__defaults__, x.__kwdefaults__)
    elif isinstance(x, types.MethodType):
        yield ".self", x.__self__
        yield ".func", x.__func__
    elif isinstance(x, functools.partial):
        yield ".partial", (x.func, x.args, x.keywords)
    elif isinstance(x, property):
        yield ".property", (x.fget, x.fset)
    elif isinstance(x, staticmethod | classmethod):
        yield ".func", x.__func__
    elif isinstance(x, types.GeneratorType):
        if x.gi_frame is not None:
            yield ".locals", dict(x.gi_frame.f_locals)
    if isinstance(x, BaseException):
        yield ".cause", (x.__cause__, x.__context__)
    if not isinstance(x, types.FunctionType | np.ndarray):
        yield from ((f".{name}", item) for name, item in state(x).items())


# ------------------------------------------------------------------------------------------ derivatives


def derivative(g, h=2**-7, rows=9):
    """g'(0) by central differences at h, h/2, h/4 … extrapolated to h = 0 (Richardson, Ridders)."""
    best, error, table = 0.0, np.inf, []
    for _ in range(rows):
        row = [(g(h) - g(-h)) / (2 * h)]
        for order, before in enumerate(table, 1):
            row.append(row[-1] + (row[-1] - before) / (4**order - 1))
            change = max(abs(row[-1] - row[-2]), abs(row[-1] - before))
            if change <= error:
                best, error = row[-1], change
        table, h = row, h / 2
    return best


def numeric_grad(f, *args, argnum=0, h=2**-7):
    """The gradient of a scalar function of floats and arrays, one component at a time."""
    x = args[argnum]

    def along(step):
        def g(t):
            moved = copy.deepcopy(list(args))
            moved[argnum] = x + t * step
            return float(f(*moved))

        return derivative(g, h)

    if np.ndim(x) == 0:
        return along(1.0)
    result = np.zeros_like(x, dtype=float)
    for index in np.ndindex(x.shape):
        unit = np.zeros(x.shape)
        unit[index] = 1.0
        result[index] = along(unit)
    return result


def complex_step(f, x, h=1e-30):
    """f'(x) of an analytic NumPy function: exact to rounding, for there is no difference to take."""
    return np.imag(f(x + 1j * h)) / h


def inner(c, x):
    """The real part of sum(c * x) over all leaves, where `c` is a gradient or a cotangent of `x`."""
    if c is None or x is None:
        return 0.0
    if isinstance(x, dict):
        return sum(inner(c[key], x[key]) for key in x)
    if isinstance(x, list | tuple | deque):
        return sum(map(inner, c, x))
    if isinstance(x, int | float | complex | np.ndarray | np.generic):
        return float(np.real(np.sum(np.asarray(c) * np.asarray(x))))
    if not isinstance(c, dict):
        c = state(c)
    return sum(inner(item, getattr(x, name)) for name, item in c.items())


NOTHING = (  # what never has a gradient
    type(None),
    str,
    bytes,
    range,
    set,
    frozenset,
    type,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.ModuleType,
    functools.partial,
)


def direction(x, rng):
    """A random step with the structure of a gradient of `x`; None where there is nothing to move."""
    if isinstance(x, bool | int | np.bool_ | np.integer):  # ints count and index: they stay
        return None
    if isinstance(x, float | complex | np.floating | np.complexfloating | np.ndarray):
        array = np.asarray(x)
        if array.dtype.kind not in "fc":
            return None
        step = rng.uniform(0.5, 1.5, array.shape) * rng.choice([-1.0, 1.0], array.shape)
        if array.dtype.kind == "c":
            step = step + 1j * rng.uniform(0.5, 1.5, array.shape)
        step = step.astype(array.dtype)
        return step if isinstance(x, np.ndarray) else type(x)(step)
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*(direction(item, rng) for item in x))
    if isinstance(x, list | tuple | deque):
        return type(x)([direction(item, rng) for item in x])
    if isinstance(x, dict):
        return {key: direction(item, rng) for key, item in x.items()}
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        return with_fields(x, {k: direction(v, rng) for k, v in state(x).items()})
    if isinstance(x, NOTHING):
        return None
    return {name: direction(item, rng) for name, item in state(x).items()}


def with_fields(x, held):
    """A copy of a dataclass instance with other contents, whatever its `__init__` does."""
    new = copy.copy(x)
    for name, item in held.items():
        object.__setattr__(new, name, item)
    return new


def moved(x, step, t):
    """x + t * step, in the structure of x."""
    if step is None:
        return copy.deepcopy(x)
    if isinstance(x, float | complex | np.generic | np.ndarray):
        return type(x)(x + t * step) if not isinstance(x, np.ndarray) else x + t * step
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*(moved(a, b, t) for a, b in zip(x, step, strict=True)))
    if isinstance(x, list | tuple | deque):
        return type(x)([moved(a, b, t) for a, b in zip(x, step, strict=True)])
    if isinstance(x, dict):
        new = copy.copy(x)
        new.update({key: moved(item, step[key], t) for key, item in x.items()})
        return new
    steps = step if isinstance(step, dict) else state(step)
    new = copy.copy(x)
    for name, item in state(x).items():
        object.__setattr__(new, name, moved(item, steps.get(name), t))
    return new


def assert_structure(g, x, path="gradient", ints=True):
    """`g` has the structure that the gradient of `x` must have, with the types and dtypes of the leaves.

    `ints` says whether integers are numbers: not in the attributes of objects.
    """
    if x is None or isinstance(x, bool | str | bytes) or (type(x) is int and not ints):
        assert g is None, f"{path} of {x!r} is {g!r}"
    elif type(x) in (float, int, complex):
        wanted = complex if isinstance(x, complex) else float
        assert type(g) is wanted, f"{path} of {x!r} is {type(g).__name__} {g!r}"
    elif isinstance(x, np.ndarray | np.generic):
        if x.dtype.kind not in "fc":
            assert g is None, f"{path} of {x!r} is {g!r}"
        else:
            assert isinstance(g, np.ndarray | np.generic), f"{path} is {g!r}"
            assert isinstance(g, np.ndarray) or not isinstance(x, np.ndarray), f"{path} is {g!r}"
            assert (g.dtype, g.shape) == (x.dtype, x.shape), f"{path}: {g.dtype}{g.shape}"
    elif isinstance(x, list | tuple):
        assert type(g) is type(x), f"{path} is {g!r}"
        assert len(g) == len(x), f"{path} is {g!r}"
        for i, item in enumerate(x):
            assert_structure(g[i], item, f"{path}[{i}]", ints)
    elif isinstance(x, dict):
        assert isinstance(g, dict), f"{path} is {g!r}"
        assert list(g) == list(x), f"{path} is {g!r}"
        for key, item in x.items():
            assert_structure(g[key], item, f"{path}[{key!r}]", ints)
    elif dataclasses.is_dataclass(x) and not isinstance(x, type):
        assert type(g) is type(x), f"{path} is {g!r}"
        for field in dataclasses.fields(x):
            name = field.name
            assert_structure(getattr(g, name), getattr(x, name), f"{path}.{name}", False)
    elif not isinstance(x, (*NOTHING, deque)) and state(x):
        if g is None:
            g = {}
        assert isinstance(g, dict), f"{path} is {g!r}"
        for name, item in g.items():
            assert_structure(item, getattr(x, name), f"{path}.{name}", False)


# -------------------------------------------------------------------------------------------- the check


def check(f, *args, tol=1e-7, seed=0, h=2**-7, **kwargs):
    """`f` under the engine does what plain Python does, and its gradient is right. Returns the gradients."""
    rng = np.random.default_rng(seed)
    plain_args, plain_kwargs = copy.deepcopy((args, kwargs))
    expected = f(*plain_args, **plain_kwargs)

    my_args, my_kwargs = copy.deepcopy((args, kwargs))
    value, back = pullback(f, *my_args, **my_kwargs)
    assert_same(value, expected)
    assert_same((my_args, my_kwargs), (plain_args, plain_kwargs))
    assert_plain(value, my_args, my_kwargs, f)

    dy = direction(float(value) if type(value) is int else value, rng)
    gradients = back(dy)
    assert_same(back(dy), gradients)
    assert type(gradients) is tuple
    whole = (*args, kwargs) if kwargs else args
    assert_structure(gradients, whole)

    steps = direction(whole, rng)
    mine = inner(steps, gradients)

    def along(t):
        new = moved(whole, steps, t)
        new_args, new_kwargs = (new[:-1], new[-1]) if kwargs else (new, {})
        return inner(dy, f(*new_args, **new_kwargs))

    theirs = derivative(along, h)
    assert mine == pytest.approx(theirs, rel=tol, abs=tol), f"gradients {gradients}"
    return gradients


def user_frames(error, filename):
    """The lines of `filename` in the traceback of an exception, innermost last."""
    frames = traceback.extract_tb(error.__traceback__)
    return [(frame.name, frame.lineno) for frame in frames if frame.filename == filename]


def check_raises(f, *args, **kwargs):
    """`f` raises under the engine what it raises in plain Python: type, arguments and lines."""
    plain, mine = copy.deepcopy((args, kwargs)), copy.deepcopy((args, kwargs))
    with pytest.raises(BaseException) as expected:
        f(*plain[0], **plain[1])
    with pytest.raises(BaseException) as found:
        pullback(f, *mine[0], **mine[1])
    assert type(found.value) is type(expected.value)
    assert_same(found.value.args, expected.value.args)
    assert str(found.value) == str(expected.value)
    assert_same(mine, plain)
    assert_plain(found.value, mine, f)
    filename = f.__code__.co_filename
    lines = user_frames(expected.value, filename)
    assert user_frames(found.value, filename) == lines
    return found.value


def assert_close(a, b, tol=1e-12, path="value"):
    """The same types and structure, and floats equal up to rounding."""
    if isinstance(b, float | complex | np.ndarray | np.generic):
        assert type(a) is type(b), f"{path}: {a!r} is not {b!r}"
        assert (np.shape(a), np.asarray(a).dtype) == (np.shape(b), np.asarray(b).dtype), path
        np.testing.assert_allclose(a, b, rtol=tol, atol=tol, err_msg=path)
    elif isinstance(b, list | tuple | dict):
        assert type(a) is type(b), f"{path}: {a!r} is not {b!r}"
        keys = list(b) if isinstance(b, dict) else range(len(b))
        assert list(keys) == (list(a) if isinstance(a, dict) else list(range(len(a)))), path
        for key in keys:
            assert_close(a[key], b[key], tol, f"{path}[{key!r}]")
    else:
        assert_same(a, b)


def calls(tape):
    """The functions that a tape calls, in order."""
    return [op.fn for op in tape.ops if op.kind == "call"]


def names(tape):
    return [fn.__name__ for fn in calls(tape)]


def in_threads(*works):
    """Run functions at the same moment; the exceptions that they raised."""
    errors = []

    def guarded(work):
        try:
            work()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    return errors


class Cases(list):
    """A list of parameters for a test, filled by decorating functions with their arguments."""

    def __call__(self, *args, **options):
        def register(f):
            self.append(pytest.param(f, args, options, id=f.__name__))
            return f

        return register

    def each(self, test):
        return pytest.mark.parametrize("f, args, options", self)(test)


# --------------------------------------------------------------------------- followed, or refused by name


class Verdicts(list):
    """Programs that are followed, or refused by name; filled by calls, for a test of all of them.

    Each is checked with the JIT off and on, at several points in turn: the value and what becomes of the arguments
    against plain Python, the derivatives against finite differences.
    """

    def __init__(self, filename, points):
        super().__init__()
        self.filename, self.points = filename, points

    def numbers(self, name, f, points=None, **expected):
        """A scalar function of floats."""
        self.add(name, functools.partial(self.of_numbers, f), points, expected)

    def argument(self, name, make, f, points=None, **expected):
        """A scalar function of what is made of some floats, which are all of its leaves."""
        self.add(name, functools.partial(self.of_argument, make, f), points, expected)

    def result(self, name, f, points=None, **expected):
        """A structure made of one float."""
        self.add(name, functools.partial(self.of_result, f), points, expected)

    def add(self, name, run, points, expected):
        size = expected.get("size")
        points = [x[:size] for x in points or self.points]
        self.append(pytest.param(run, points, expected.get("refused", False), id=name))

    def each(self, test):
        return pytest.mark.parametrize(("run", "points", "refused"), self)(test)

    def check(self, run, points, refused):
        for mode in (False, True):
            for point in points:
                with jit(mode):
                    self.judge(run, point, refused)

    def judge(self, run, point, refused):
        if not refused:
            return run(point)
        with pytest.raises(WengertError) as found:
            run(point)
        assert found.value.args
        assert self.filename in str(found.value), found.value

    def of_numbers(self, f, point):
        expected = f(*point)
        value, gradient = value_and_grad(f, argnums=tuple(range(len(point))))(*point)
        assert_same(value, expected)
        self.agree(gradient, lambda *xs: [f(*xs)], point)

    def of_argument(self, make, f, point):
        plain, mine = make(*point), make(*point)
        expected = f(plain)
        value, gradient = value_and_grad(f)(mine)
        assert_same((value, mine), (expected, plain))
        assert_plain(value, mine)
        self.agree(leaves_in(gradient), lambda *xs: [f(make(*xs))], point)

    def of_result(self, f, point):
        (x,) = point
        expected = f(x)
        value, tangent = jvp(f, (x,), (1.0,))
        assert_same(value, expected)
        assert_plain(value)
        slopes = leaves_in(tangent)
        wanted = [derivative(lambda t: leaves_in(f(x + t))[i]) for i in range(len(slopes))]
        assert len(slopes) == len(leaves_in(expected)), tangent
        np.testing.assert_allclose(slopes, wanted, rtol=1e-6, atol=1e-6)
        again, back = pullback(f, x)
        assert_same(again, expected)
        assert back(tangent)[0] == pytest.approx(sum(t * t for t in slopes))

    def agree(self, gradient, f, point):
        def along(i):
            return lambda t: f(*[x + t * (i == j) for j, x in enumerate(point)])[0]

        wanted = [derivative(along(i)) for i in range(len(point))]
        assert len(gradient) == len(wanted), gradient
        np.testing.assert_allclose(gradient, wanted, rtol=1e-6, atol=1e-6)


def leaves_in(x):
    """The numbers in a structure, or in the gradient of one, in order; those of a set by size."""
    if x is None or isinstance(x, str | int | types.FunctionType):
        return []
    if isinstance(x, float):
        return [float(x)]
    if isinstance(x, np.ndarray):
        return [float(y) for y in x.ravel()]
    if isinstance(x, set | frozenset):
        return sorted(x)
    held = list(state(x).values()) if not isinstance(x, types.MappingProxyType) else []
    if isinstance(x, dict | types.MappingProxyType):
        keys = sorted(x) if all(isinstance(key, float) for key in x) else x
        inside = [x[key] for key in keys]
        held = held if getattr(x, "__dict__", None) is not x else []
    else:
        inside = list(x) if isinstance(x, list | tuple | deque) else []
    return [y for part in (*inside, *held) for y in leaves_in(part)]
