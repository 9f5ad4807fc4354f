"""The first refusal of a run is remembered: whatever the program catches, the run ends in it."""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import gc
import inspect
import math
import multiprocessing
import warnings

import numpy as np
import pytest

from wengert import (
    NoRuleError,
    TraceError,
    WengertError,
    grad,
    jit,
    pullback,
    stop_gradient,
    value_and_grad,
)


def lost(x):
    """What cannot be followed: the number's memory is handed out."""
    return memoryview(np.array([x]))[0] * 2


def by_except(x):
    try:
        return lost(x)
    except Exception:
        return -1.0


def by_bare_except(x):
    try:
        return lost(x)
    except:  # noqa: E722
        return -x


def by_suppress(x):
    result = -x
    with contextlib.suppress(Exception):
        result = lost(x)
    return result


with warnings.catch_warnings():
    warnings.simplefilter("ignore", SyntaxWarning)  # CPython 3.14 warns of it
    exec(
        "def by_finally(x):\n    try:\n        return lost(x)\n    finally:\n        return x * x",
        globals(),
    )
by_finally = globals()["by_finally"]


def by_another_exception(x):
    try:
        return lost(x)
    except Exception as error:
        raise ValueError("no memory") from error


def by_name(x):
    try:
        return lost(x)
    except WengertError:
        return 3.0 * x


def by_exit(x):
    class Quiet:
        def __enter__(self):
            return self

        def __exit__(self, *error):
            return True

    with Quiet():
        return lost(x)
    return x


def by_a_generator(x):
    def numbers():
        try:
            yield lost(x)
        except Exception:
            yield -x

    return sum(numbers())


def by_system_exit(x):
    try:
        return lost(x)
    except Exception:
        raise SystemExit(3) from None


def by_c_code(x):
    class Row:
        def __len__(self):
            return 1

        def __getitem__(self, i):
            if i:
                raise IndexError
            return lost(x)

    try:
        return float(np.array(Row()).sum())
    except TypeError:
        return 0.0


def late(x):
    for k in range(3):
        try:
            y = lost(x) if k == 1 else math.sin(x)
        except Exception:
            y = x
    return y


CAUGHT = [
    by_except, by_bare_except, by_suppress, by_finally, by_another_exception, by_name, by_exit,
    by_a_generator, by_system_exit, by_c_code, late,
]  # fmt: skip


@pytest.mark.parametrize("f", CAUGHT, ids=lambda f: f.__name__)
@pytest.mark.parametrize("on", [True, False])
def test_a_refusal_that_the_program_catches_ends_the_run(f, on):
    made = value_and_grad(f)
    with jit(on):
        for _ in range(3):
            with pytest.raises(WengertError, match="in lost"):
                made(3.0)
            with pytest.raises(WengertError, match="in lost"):
                pullback(f, 3.0)


def test_the_first_refusal_is_told():
    def f(x):
        with contextlib.suppress(Exception):
            lost(x)
        return x.as_integer_ratio()[0] * 1.0

    with pytest.raises(WengertError, match="memoryview"):
        grad(f)(3.0)


def test_effects_before_a_refusal_have_happened_once():
    log = []

    def f(x):
        log.append("begun")
        with contextlib.suppress(Exception):
            lost(x)
        return x

    with pytest.raises(WengertError):
        grad(f)(3.0)
    assert log == ["begun"]


def test_an_interruption_goes_through():
    def f(x):
        try:
            return lost(x)
        finally:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        grad(f)(3.0)


def test_the_next_run_begins_anew():
    def f(x, bad):
        if bad:
            with contextlib.suppress(Exception):
                lost(x)
        return x * x

    for _ in range(3):
        with pytest.raises(WengertError):
            grad(f)(3.0, True)
        assert grad(f)(3.0, False) == 6.0


def test_an_inner_gradient_may_be_refused_as_in_plain_python():
    """What the program does about that is what it does where it is not traced itself."""

    def f(x):
        try:
            return grad(lambda y: lost(y) * y)(x)
        except WengertError:
            return x * x

    assert f(3.0) == 9.0
    for on in (True, False):
        with jit(on):
            for _ in range(3):
                assert value_and_grad(f)(3.0) == (9.0, 6.0)


def test_what_a_handler_inside_an_inner_gradient_catches_is_not_forgiven():
    def inner(y):
        try:
            return lost(y)
        except Exception:
            return y

    with pytest.raises(WengertError, match="in lost"):
        grad(inner)(3.0)
    with pytest.raises(WengertError, match="in lost"):
        grad(lambda x: grad(inner)(x) * x)(3.0)


REPLACED = {
    "len": (lambda x: 42, lambda x: x * len([1, 2])),
    "max": (lambda *x: 42.0, lambda x: x * max(x, 2.0)),
    "range": (lambda *x: [1, 2, 3], lambda x: x * sum([i for i in range(2)])),
}


@pytest.mark.parametrize("name", REPLACED)
@pytest.mark.parametrize("on", [False, True])
def test_a_replaced_builtin_that_bytecode_is_written_with_is_refused_by_name(name, on, monkeypatch):
    other, f = REPLACED[name]
    with jit(on):
        asked = value_and_grad(f)
        for _ in range(3):
            assert asked(1.5)[0] == f(1.5)
            with (
                monkeypatch.context() as patch,
                pytest.raises(TraceError, match=f"builtins.{name}"),
            ):
                patch.setattr(builtins, name, other)
                asked(1.5)
        assert asked(1.5)[0] == f(1.5)


@pytest.mark.parametrize("on", [True, False])
def test_an_int_of_a_large_float_takes_it_apart(on):
    """As libraries of numbers of any precision do: they would give the gradient zero."""

    def precise(x):
        mantissa, exponent = math.frexp(x)
        return math.ldexp(int(mantissa * 2**53), exponent - 53)

    with jit(on):
        for x in (1.5, 2.5, 0.3):
            with pytest.raises(WengertError, match="takes a traced number apart"):
                grad(precise)(x)
            assert grad(lambda x: x * int(x * 1e3))(x) == int(x * 1e3)
            assert grad(lambda x: x * precise(stop_gradient(x)))(x) == x
            assert grad(lambda x: x * int(1e17))(x) == 1e17


@pytest.mark.parametrize("fn", [gc.get_objects, gc.get_referrers])
@pytest.mark.parametrize("on", [True, False])
def test_what_gives_all_objects_of_the_process_is_refused_by_name(fn, on):
    """Those of the tracer would be among them, which changes while somebody looks at them."""

    def f(x, held):
        return x * len(fn(*held))

    with jit(on):
        for _ in range(3):
            with pytest.raises(TraceError, match=f"gc.{fn.__name__}"):
                grad(f)(1.5, [[]] if fn is gc.get_referrers else [])
            assert grad(lambda x: x * len(gc.get_referents([1.0, 2.0])))(1.5) == 2.0


class Kept:
    pass


def with_default(a=2.0):
    return a


def default_that_is_shown(x):
    with_default.__defaults__ = (x,)
    return x * inspect.signature(with_default).parameters["a"].default


def member_that_is_shown(x):
    Kept.held.a = x
    return x * dict(inspect.getmembers(Kept.held))["a"]


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("f", [default_that_is_shown, member_that_is_shown])
def test_inspect_is_not_shown_what_is_plain_outside_and_traced_inside(f, on):
    Kept.held = Kept()
    try:
        with jit(on):
            for _ in range(3):
                with pytest.raises(TraceError, match="would take for a constant what"):
                    value_and_grad(f)(1.5)
    finally:
        with_default.__defaults__ = (2.0,)


@pytest.mark.parametrize("on", [False, True])
def test_a_number_that_is_taken_apart_for_a_copy_is_refused(on):
    def f(x):
        made, given = x.__reduce_ex__(2)[:2]
        return made(*given) * x

    with jit(on), pytest.raises(TraceError, match="__reduce_ex__ takes a traced number apart"):
        grad(f)(1.5)


class Pointing(ctypes.Structure):
    _fields_ = [("p", ctypes.POINTER(ctypes.c_double))]


def into_shared_memory(x):
    return multiprocessing.Value("d", x, lock=False).value * x


def into_a_shared_array(x):
    return multiprocessing.Array("d", [x], lock=False)[0] * x


def into_borrowed_memory(x):
    memory = bytearray(8)
    number = ctypes.c_double.from_buffer(memory)
    number.__init__(x)
    return np.frombuffer(memory)[0] * x


def by_a_pointer_in_a_structure(x):
    number = ctypes.c_double(2.0)
    Pointing(ctypes.pointer(number)).p.contents.__init__(x)
    return number.value * x


@pytest.mark.parametrize("on", [grad, jit])
@pytest.mark.parametrize(
    "f",
    [into_shared_memory, into_a_shared_array, into_borrowed_memory, by_a_pointer_in_a_structure],
)
def test_what_memory_outside_keeps_is_refused_by_the_name_of_its_class(f, on):
    assert f(2.0) == 4.0
    with pytest.raises(TraceError, match=r"c_double\w*\.__init__ keeps a traced value") as error:
        on(f)(2.0)
    assert "keep it in a list or an object" in str(error.value)


def until_it_works(x):
    while True:
        try:
            return lost(x)
        except Exception:
            x += 1.0


def until_it_is_mended(x):
    try:
        return lost(x)
    except ArithmeticError as error:
        return len(error.args)
    except (ValueError, Exception):
        while True:
            x += 1.0


def until_nothing_is_raised(x):
    while True:
        with contextlib.suppress(Exception):
            return lost(x)


def until_it_returns(x):
    while True:
        try:
            return lost(x)
        except ValueError:
            break
        except:  # noqa: E722
            continue


@pytest.mark.parametrize("on", [False, True])
@pytest.mark.parametrize(
    "f", [until_it_works, until_it_is_mended, until_nothing_is_raised, until_it_returns]
)
def test_a_refusal_ends_the_run_where_the_program_has_dealt_with_it(f, on):
    """Plain Python raises nothing there, so that such a loop may have no end."""
    assert f(2.0) == 4.0
    with jit(on), pytest.raises(NoRuleError, match="into which no gradient can be followed"):
        grad(f)(2.0)


libm = ctypes.CDLL("libm.so.6")
libm.sincos.argtypes = [ctypes.c_double, ctypes.c_void_p, ctypes.c_void_p]
libm.sincos.restype = None
KEPT = np.zeros(2)


def to_addresses(x):
    s, c = ctypes.c_double(), ctypes.c_double()
    libm.sincos(x, ctypes.addressof(s), ctypes.addressof(c))
    return s.value * 2


def to_a_pointer_to_anything(x):
    s, c = ctypes.c_double(), ctypes.c_double()
    libm.sincos(x, ctypes.c_void_p(ctypes.addressof(s)), ctypes.byref(c))
    return s.value * 2


def to_the_address_of_an_array(x):
    libm.sincos(x, KEPT.ctypes.data, KEPT.ctypes.data + 8)
    return KEPT[0] * 2


def of_an_address(x):
    return ctypes.cast(id(x), ctypes.py_object).value * 3


def in_an_address(x):
    pair = (x, 1)
    return ctypes.cast(id(pair), ctypes.py_object).value[0] * 3


@pytest.mark.parametrize("on", [False, True])
@pytest.mark.parametrize(
    "f",
    [
        to_addresses,
        to_a_pointer_to_anything,
        to_the_address_of_an_array,
        of_an_address,
        in_an_address,
    ],
)
def test_addresses_are_refused(f, on):
    """Where nobody can see what C code writes, or reads, as the slope would be 0."""
    assert f(1.0) != 0.0
    with jit(on), pytest.raises(WengertError, match=r"address|sincos"):
        grad(f)(1.0)


BITS = {
    "plain": lambda x: x.view(np.int64).view(float),
    "xor": lambda x: (x.view(np.int64) ^ 0).view(float),
    "mask": lambda x: (x.view(np.int64) & 0x7FFFFFFFFFFFFFFF).view(float),
    "sorted": lambda x: np.sort(x.view(np.int64)).view(float),
    "bits": lambda x: np.packbits(np.unpackbits(x.view(np.uint8))).view(float),
    "buffer": lambda x: np.frombuffer(x.view(np.int64) + 0),
    "number": lambda x: np.array([np.int64(y.view(np.int64)).view(float) for y in x]),
    "text": lambda x: x.view("S8").view(float),
    "dates": lambda x: x.view(dtype="M8[ns]").view(np.int64).view(float),
}


@pytest.mark.parametrize("on", [False, True])
@pytest.mark.parametrize("f", BITS.values(), ids=BITS)
def test_bits_of_a_traced_number_are_refused(f, on):
    answer = grad(lambda x: (f(x) * x).sum())
    with jit(on):
        for k in range(6):
            x = np.array([1.5 + k, 2.0 + k])
            assert f(x).tolist() == x.tolist()
            with pytest.raises(TraceError, match="view takes a traced array of float64 apart"):
                answer(x)
    constant = value_and_grad(lambda x: x * f(np.array([1.5, 2.0]))[0])
    assert [constant(1.0 + k) for k in range(5)] == [(1.5 * (1.0 + k), 1.5) for k in range(5)]


def test_views_that_keep_numbers_are_followed():
    f = lambda x: (np.sin(x + 0j).view(float)[::2] * x.view(np.ndarray)).sum()
    for k in range(5):
        x = np.array([0.5 + k, 2.0])
        np.testing.assert_allclose(grad(f)(x), np.cos(x) * x + np.sin(x))


def whole_part(x):
    return int(x) * x


def whole_parts(x, n=3):
    s = 0.0
    for i in range(n):
        s += int(x + i) * x
    return s


@pytest.mark.parametrize("f", [whole_part, whole_parts, lambda x: whole_parts(x, 1 + int(x) % 3)])
def test_a_program_leaves_whole_parts_of_large_numbers_alone(f):
    """Where a float is so large that nothing is rounded, its whole part has the slope one."""
    answer = value_and_grad(f)
    for k in range(9):
        assert answer(1.5 + k) == (f(1.5 + k), f(1.5 + k) / (1.5 + k))
    for x in (2.0**52, -1e17, 1e300):
        with pytest.raises(TraceError, match="int takes a traced number apart, which is so large"):
            answer(x)


class Name(str):
    def __hash__(self):
        return str.__hash__(self)

    def __eq__(self, other):
        return str.__eq__(self, other)


class Alike(str):
    def title(self):
        return self


class Holder:
    rate = 2.0


@pytest.mark.parametrize("on", [False, True])
def test_a_string_that_is_compared_in_its_own_way_names_no_attribute(on):
    ways = {
        "getattr": lambda x, kind: getattr(Holder(), kind("rate")) * x,
        "default": lambda x, kind: getattr(Holder(), kind("rate"), 2.0) * x,
        "hasattr": lambda x, kind: hasattr(Holder(), kind("rate")) * 2.0 * x,
        "setattr": lambda x, kind: setattr(Holder(), kind("rate"), x) or 2.0 * x,
        "delattr": lambda x, kind: delattr(Holder(), kind("other")) or x,
    }
    with jit(on):
        for name, f in ways.items():
            with pytest.raises(TraceError, match=r"class Name, .*\nname it by the plain string"):
                value_and_grad(lambda x, f=f: f(x, Name))(3.0)
            if name != "delattr":
                assert value_and_grad(lambda x, f=f: f(x, Alike))(3.0) == (6.0, 2.0)
