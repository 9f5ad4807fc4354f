"""Classes whose own class compares and hashes them: the engine looks at classes without asking that."""

import copy
import ctypes
import dataclasses
import math

import pytest

import wengert

calls = []


class Counting(type):
    def __hash__(cls):
        calls.append("hash")
        return 7

    def __eq__(cls, other):
        calls.append("eq")
        return cls is other


class Unhashable(type):
    def __eq__(cls, other):
        calls.append("eq")
        return cls is other


class Raising(type):
    ready = False  # until all classes are made, for the standard library may look at them

    def __hash__(cls):
        if Raising.ready:
            raise ZeroDivisionError
        return 7

    def __eq__(cls, other):
        if Raising.ready:
            raise ZeroDivisionError
        return cls is other


class World:
    """The classes of one metaclass, and objects of them outside."""

    def __init__(self, meta):
        class Point(metaclass=meta):
            factor = 2.0

            def __init__(self, a, b=1.0):
                self.a = a
                self.b = b

            def __add__(self, other):
                return Point(self.a + other.a, self.b)

            def __mul__(self, other):
                return Point(self.a * other, self.b)

            def __neg__(self):
                return Point(-self.a)

            def __eq__(self, other):
                return isinstance(other, Point) and self.a == other.a

            def __lt__(self, other):
                return self.a < other.a

            def __getitem__(self, i):
                return self.a * i

            def __call__(self, x):
                return self.a * x

            def __len__(self):
                return 2

            def __iter__(self):
                yield self.a
                yield self.b

            def __contains__(self, x):
                return x == self.a

            def __enter__(self):
                return self

            def __exit__(self, *args):
                return False

            def __str__(self):
                return "point"

            @property
            def square(self):
                return self.a * self.a

            @classmethod
            def make(cls, x):
                return cls(x)

            def line(self, x):
                return self.a * x + self.b

        @dataclasses.dataclass
        class Data(metaclass=meta):
            x: float
            point: object = None

        class List(list, metaclass=meta):
            pass

        class Dict(dict, metaclass=meta):
            pass

        class Tuple(tuple, metaclass=meta):
            pass

        class Float(float, metaclass=meta):
            pass

        class Error(Exception, metaclass=meta):
            pass

        self.Point, self.Data, self.List, self.Dict = Point, Data, List, Dict
        self.Tuple, self.Float, self.Error = Tuple, Float, Error
        self.point, self.points, self.named = Point(3.0), [Point(2.0)], {"p": Point(2.5)}
        self.kept = []


def attributes(w, x):
    p = w.Point(x)
    p.a *= 2.0
    p.c = x
    result = p.a + p.c + p.line(x) + p.square + w.Point.make(x).a + p.factor
    del p.c
    return result + (1.0 if hasattr(p, "c") else 2.0) + getattr(p, "b")


def operators(w, x):
    p = -((w.Point(x) + w.Point(2.0)) * x)
    p += w.Point(1.0)
    a, b = p
    return p.a * 1.5 + p[3.0] + p(x) + len(p) + (2.0 if p else 1.0) + a + b + sum([*p]) + max(p)


def comparisons(w, x):
    p, q = w.Point(x), w.Point(2.0)
    x = x * (1.0 if p == q else 2.0) * (2.0 if p is q else 3.0) * (3.0 if p < q else 4.0)
    return x * (2.0 if x in p else 5.0) + (1.0 if p != q else 0.0) + [p, q].index(q)


def kinds(w, x):
    p = w.Point(x)
    x = (
        x
        * (2.0 if isinstance(p, w.Point) else 1.0)
        * (2.0 if isinstance(p, (int, w.Point)) else 1.0)
    )
    x = x * (3.0 if type(p) is w.Point else 1.0) * (2.0 if issubclass(w.Point, object) else 1.0)
    return x * (2.0 if callable(p) else 3.0) + type(p)(x).a * type(p).factor


def outside(w, x):
    w.kept.append(w.Point(2.0))
    w.kept[-1].z = 1.0
    result = w.kept[-1].a * x
    w.kept.clear()
    return result + w.point.a * x + w.points[0].a * x + w.named["p"].line(x) + w.point.square


def containers(w, x):
    points = [w.Point(x), w.Point(2 * x)]
    named = {"a": points[0], "b": points[1]}
    points.append(w.Point(x))
    points = sorted(points, key=lambda p: 2.0)
    total = sum(p.a for p in points) + named.pop("a").a + (points[0], named)[1]["b"].a
    return total + sum(map(lambda p: p.a, points)) + next(iter(points)).a + named.get("b").a


def derived(w, x):
    items, named, pair = w.List([x, x * x]), w.Dict(a=x), w.Tuple((x, 2.0))
    items.append(x)
    named["b"] = x * 3
    total = items[0] * items[1] + named["a"] * named["b"] + pair[0] + len(items)
    return total + sum(items) + sum(named.values()) + sum(pair)


def numbers(w, x):
    f = w.Float(2.0)
    return x * f + f * x + math.sin(f) * x + abs(f) + float(f) + f**2


def data(w, x):
    d = w.Data(x, w.Point(x))
    return d.x * d.x + dataclasses.replace(d, x=x * 2).x + d.point.a + len(repr(w.Data(2.0)))


def texts(w, x):
    p = w.Point(2.0)
    return x * len(f"{p}") * len(str(p)) * len("%s" % p)  # noqa: UP031


def statements(w, x):
    try:
        raise w.Error("a")
    except w.Error:
        result = x * 2.0
    with w.Point(x) as p:
        result = result + p.a
    match p:
        case w.Point(a=a):
            result = result + a
    return result


def copies(w, x):
    return copy.copy(w.Point(x)).a * 2.0


def functions(w, x):
    p = w.Point(x)

    def inside(q=p):
        return q.a * p.a

    class Other(w.Point):
        def line(self, z):
            return super().line(z) * 2.0

    return inside() + Other(x).line(x) + (lambda *a, **k: a[0].a + k["q"].a)(p, q=p)


INSIDE = [
    attributes, operators, comparisons, kinds, outside, containers, derived, numbers, data, texts, statements, copies,
    functions,
]  # fmt: skip
GIVEN = {
    "object": (lambda p, x: p.a * x + p.line(x), lambda w, x: (w.Point(x), x)),
    "list": (lambda p, x: p[0].a * x + p[1].line(x), lambda w, x: ([w.Point(x), w.Point(2.0)], x)),
    "dict": (lambda p, x: p["a"].a * x, lambda w, x: ({"a": w.Point(x)}, x)),
    "tuple": (lambda p, x: p[0].a * x, lambda w, x: ((w.Point(x), w.point), x)),
    "own list": (lambda p, x: p[0] * x + sum(p), lambda w, x: (w.List([x]), x)),
    "own tuple": (lambda p, x: p[0] * x + sum(p), lambda w, x: (w.Tuple([x]), x)),
    "own dict": (lambda p, x: p["a"] * x, lambda w, x: (w.Dict(a=x), x)),
    "dataclass": (lambda p, x: p.x * x + p.point.a, lambda w, x: (w.Data(x, w.Point(x)), x)),
    "method": (lambda p, x: p(x) * x, lambda w, x: (w.Point(x).line, x)),
    "class": (lambda x, p: p(x).a * x, lambda w, x: (x, w.Point)),
    "float": (lambda x, p: p * x, lambda w, x: (x, w.Float(2.0))),
}


def history(meta, f, args):
    """What six calls give, or raise, and how often they ask the classes."""
    Raising.ready = False
    world = World(meta)
    Raising.ready = True
    given = [args(world, 0.7 + 0.1 * i) for i in range(6)]
    found = []
    for each in given:
        calls.clear()
        try:
            found.append((f(*each), calls.copy()))
        except Exception as error:
            found.append((type(error), str(error)))
    return found


@pytest.mark.parametrize("jit", [True, False])
@pytest.mark.parametrize("meta", [Counting, Unhashable, Raising])
@pytest.mark.parametrize("case", [*INSIDE, *GIVEN], ids=lambda x: getattr(x, "__name__", x))
def test_nothing_of_a_metaclass_runs_that_plain_python_does_not_run(case, meta, jit):
    if isinstance(case, str):
        f, args = GIVEN[case]
    else:
        f, args = (lambda x, w: case(w, x)), (lambda w, x: (x, w))
    both = isinstance(case, str) and case not in ("class", "float")
    differentiated = wengert.value_and_grad(f, (0, 1) if both else 0)
    with wengert.jit(jit):
        got = history(meta, lambda *xs: differentiated(*xs)[0], args)
    assert got == history(meta, f, args)


def test_the_gradient_is_that_of_the_program():
    world = World(Unhashable)
    for i in range(6):
        x = 0.5 + i
        assert wengert.grad(lambda x: world.Point(x).line(x) * world.point.a)(x) == 6.0 * x


@pytest.mark.parametrize("meta", [Counting, Unhashable])
def test_results(meta):
    w = World(meta)

    def f(x):
        return w.Point(x), [w.List([x])], {"a": w.Data(x, w.Tuple([x]))}, w.Float(1.0)

    for i in range(6):
        calls.clear()
        (p, items, named, _), back = wengert.pullback(f, 1.0 + i)
        assert calls == []
        assert p.a == items[0][0] == named["a"].x == named["a"].point[0] == 1.0 + i


class Answering(type):
    def __getattribute__(cls, name):
        return 5.0 if name == "constant" else type.__getattribute__(cls, name)


class Slot(metaclass=Answering):
    """A descriptor whose class answers for its attributes in Python, as those of the library ``param`` do."""

    def __set_name__(self, owner, name):
        self.name = f"_{name}"

    def __get__(self, obj, owner=None):
        return self if obj is None else getattr(obj, self.name)

    def __set__(self, obj, value):
        obj.__dict__[self.name] = value


class Slotted:
    a = Slot()

    def __init__(self, x):
        self.a = x


@pytest.mark.parametrize("jit", [True, False])
def test_a_class_that_answers_for_its_attributes_is_asked_by_the_program_alone(jit):
    def f(x):
        o = Slotted(x)
        o.a = o.a * x
        return o.a * Slot.constant + x * (Slot() == Slot()) + x * isinstance(Slotted.a, Slot)

    with wengert.jit(jit):
        for x in (1.5, 2.0, 0.5):
            assert wengert.value_and_grad(f)(x) == (f(x), 10 * x + 1)


class NativeSlot(ctypes.Structure):
    _fields_ = (("slot", ctypes.c_int), ("function", ctypes.c_void_p))


class NativeSpec(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        *((name, ctypes.c_int) for name in ("basicsize", "itemsize")),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(NativeSlot)),
    )


def make(cls, args, kwargs):
    if kwargs is not None:  # as GMP's numbers do
        raise TypeError("there are keywords, if an empty dict of them")
    made = object.__new__(cls)
    (made.size,) = args
    return made


TP_CALL, HEAP, BASE = 50, 1 << 9, 1 << 10
MAKE = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.py_object, ctypes.c_void_p)(
    make
)
SLOTS = (NativeSlot * 2)(
    NativeSlot(TP_CALL, ctypes.cast(MAKE, ctypes.c_void_p)), NativeSlot(0, None)
)
SPEC = NativeSpec(b"made.Native", 0, 0, HEAP | BASE, SLOTS)


def native_metaclass():
    """A metaclass in C that makes objects in a way of its own; ``type.__call__`` makes none of its classes."""
    from_spec = ctypes.pythonapi.PyType_FromSpecWithBases
    from_spec.restype, from_spec.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.py_object)
    return from_spec(ctypes.addressof(SPEC), (type,))


@pytest.mark.parametrize("on", [False, True])
def test_a_metaclass_in_c_makes_its_objects(on):
    class Sized(metaclass=native_metaclass()):
        pass

    def f(x):
        return x * x * Sized(3.0).size

    with wengert.jit(on):
        assert [wengert.value_and_grad(f)(x) for x in (1.0, 2.0, 3.0)] == [
            (3.0, 6.0),
            (12.0, 12.0),
            (27.0, 18.0),
        ]
    with pytest.raises(wengert.NoRuleError, match="Sized"):
        wengert.grad(lambda x: Sized(x).size)(2.0)


@pytest.mark.parametrize("on", [False, True])
def test_what_new_gives_is_begun_by_its_own_class_whatever_the_class_of_that(on):
    class Meta(type):
        pass

    class Number(metaclass=Meta):
        def __new__(cls, value):
            made = object.__new__(One if value == 1 else cls)
            made.value = value
            return made

    class One(Number):
        pass

    class Told(Number):
        def __new__(cls, value):
            return object.__new__(Heard)

    class Heard(Told):
        def __init__(self, value):
            self.value = 2 * value

    def f(x):
        return x * Number(1).value + x * Told(x).value

    with wengert.jit(on):
        assert [wengert.value_and_grad(f)(x) for x in (1.0, 2.0, 3.0)] == [
            (3.0, 5.0),
            (10.0, 9.0),
            (21.0, 13.0),
        ]
