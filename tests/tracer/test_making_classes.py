"""Classes that a traced function makes: what Python code runs for that is part of the function."""

import abc
import dataclasses
import enum
import typing

import pytest

from wengert import jit, value_and_grad


def keyword_kept():
    class Base:
        def __init_subclass__(cls, weight, **kwargs):
            super().__init_subclass__(**kwargs)
            cls.weight = weight * 2.0

    def f(x):
        class Made(Base, weight=x):
            extra = x * 3

        return Made.weight * x + Made.extra

    return f, {}


def registered():
    registry = {"Made": 1.0}

    class Base:
        def __init_subclass__(cls, **kwargs):
            registry[cls.__name__] = kwargs.get("weight", 2.0) * 2

    def f(x):
        before = registry["Made"]

        class Made(Base, weight=x):
            pass

        return x * registry["Made"] + before

    return f, registry


def named():
    registry = {}

    class Named:
        def __init__(self, value):
            self.value = value

        def __set_name__(self, owner, name):
            owner.twice = self.value * 2.0
            registry[name] = registry.get(name, 0) + 1

    def f(x):
        class Made:
            a = Named(x)
            b = Named(x * x)

        return Made.twice * x * registry["a"]

    return f, registry


def by_type():
    registry = {}

    class Base:
        def __init_subclass__(cls, **kwargs):
            registry["made"] = registry.get("made", 0.0) + 1.0

    def f(x):
        type("Made", (Base,), {})
        return x * registry["made"]

    return f, registry


def by_a_metaclass():
    registry = {"count": 0.0}

    class Meta(type):
        @classmethod
        def __prepare__(cls, name, bases, **kwargs):
            registry["count"] = registry["count"] + kwargs.get("by", 0)
            return {"given": 2.0}

        def __new__(cls, name, bases, namespace, **kwargs):
            return super().__new__(cls, name, bases, namespace)

        def __init__(cls, name, bases, namespace, **kwargs):
            super().__init__(name, bases, namespace)
            registry["count"] = registry["count"] + 1

    class Base(metaclass=Meta):
        pass

    def f(x):
        class Made(Base, by=3):
            taken = given * 3  # noqa: F821

        return x * Made.taken * registry["count"]

    return f, registry


def with_a_mapping_for_a_body():
    registry = {"count": 1.0}

    class Body(dict):
        def __setitem__(self, name, value):
            registry["count"] = registry["count"] * 1.5
            registry["last"] = len(name)
            super().__setitem__(name, value * 2 if name == "a" else value)

        def __missing__(self, name):
            registry[name] = registry["count"]
            if name == "total":
                return registry["count"]
            raise KeyError(name)

    class Meta(type):
        @classmethod
        def __prepare__(cls, name, bases):
            registry["prepared"] = 1.0
            return Body()

        def __new__(cls, name, bases, namespace):
            assert type(namespace) is Body
            return super().__new__(cls, name, bases, dict(namespace))

    def f(x):
        registry["count"] = x

        class Made(metaclass=Meta):
            a = x * x
            b = a + total  # noqa: F821
            c = len(locals())
            del c

            def cls(self):
                return __class__

        return Made.a * Made.b * registry["count"] * (Made().cls() is Made)

    return f, registry


def with_a_dict_of_the_outside_for_a_body():
    registry = {}

    class Meta(type):
        @classmethod
        def __prepare__(cls, name, bases):
            return registry

        def __new__(cls, name, bases, namespace):
            made = super().__new__(cls, name, bases, dict(namespace))
            for name in [*registry]:
                if name.startswith("__"):
                    del registry[name]
            return made

    def f(x):
        class Made(metaclass=Meta):
            a = x * x
            b = a + len(registry)

        return registry["a"] * Made.b

    return f, registry


def by_a_function():
    registry = {}

    def meta(name, bases, namespace):
        registry[name] = namespace["a"]
        return type(name, bases, namespace)

    def f(x):
        class Made(metaclass=meta):
            a = x * 2

        return Made.a * registry["Made"]

    return f, {}


def of_the_library():
    def f(x):
        class Shape(abc.ABC):
            @abc.abstractmethod
            def area(self): ...

        class Square(Shape):
            def area(self):
                return x * x

        class Kind(enum.Enum):
            ONE = 1

        class Pair(typing.NamedTuple):
            a: float
            b: int = 2

        @dataclasses.dataclass
        class Data:
            a: float

        return Square().area() * Kind.ONE.value + Pair(x).a * Pair(x).b + Data(x).a

    return f, {}


def its_own_cell():
    def f(x):
        class Made:
            def cls(self):
                return __class__

            def text(self):
                return super().__repr__()

        return x * (Made().cls() is Made) * (Made().text() != "")

    return f, {}


@pytest.mark.parametrize("on", [True, False], ids=["kept", "traced"])
@pytest.mark.parametrize(
    "make",
    [
        keyword_kept,
        registered,
        named,
        by_type,
        by_a_metaclass,
        with_a_mapping_for_a_body,
        with_a_dict_of_the_outside_for_a_body,
        by_a_function,
        of_the_library,
        its_own_cell,
    ],
    ids=lambda make: make.__name__,
)
def test_what_runs_when_a_class_is_made_is_followed(make, on):
    f, held = make()
    plain, plainly = make()
    up, above = make()
    down, below = make()
    h = 1e-6
    for k in range(4):
        x = 1.5 + k / 4
        with jit(on):
            value, slope = value_and_grad(f)(x)
        assert value == plain(x)
        assert set(held) == set(plainly)
        assert {key: float(held[key]) for key in held} == plainly
        right, left = up(x + h), down(x - h)
        assert slope == pytest.approx((right - left) / (2 * h), rel=1e-6)
        for other in (above, below):
            other.update(plainly)


def test_metaclasses_in_conflict_raise_what_plain_python_raises():
    class One(type):
        pass

    class Two(type):
        pass

    class A(metaclass=One):
        pass

    class B(metaclass=Two):
        pass

    def f(x):
        class Made(A, B):
            pass

        return x

    with pytest.raises(TypeError) as plain:
        f(1.0)
    with pytest.raises(TypeError) as traced:
        value_and_grad(f)(1.0)
    assert str(traced.value) == str(plain.value)


class Once:
    """A class that had another way of making its objects for a while: CPython remembers that."""

    def __init__(self, value=None):
        self.value = value


Once.__new__ = lambda cls, value: object.__new__(cls)
del Once.__new__


class Heir(Once):
    pass


def for_a_while(x):
    class Local:
        def __init__(self, value=None):
            self.value = value

    Local.__new__ = lambda cls, value: object.__new__(cls)
    first = Local(x).value
    del Local.__new__
    try:
        return Local(x).value * first
    except TypeError as error:
        return x * len(str(error))


def given(cls):
    def f(x):
        try:
            return cls(x).value * x
        except TypeError as error:
            made = cls()
            made.value = x * len(str(error))
            return made.value

    return f


@pytest.mark.parametrize("f", [for_a_while, given(Once), given(Heir)])
@pytest.mark.parametrize("on", [True, False])
def test_a_class_that_had_another_new_takes_no_arguments(f, on):
    for x in (2.0, 3.0, 4.0, 5.0):
        with jit(on):
            assert value_and_grad(f)(x) == (f(x), f(1.0))


class Holder:
    def __init__(self, value):
        self.value = value


KEPT_IN_A_CLASS = {
    "object": (lambda x: Holder(x), lambda kept: kept.value),
    "object in an object": (lambda x: Holder(Holder(x)), lambda kept: kept.value.value),
    "class": (lambda x: type("Inner", (), {"value": Holder(x)}), lambda kept: kept.value.value),
    "slice": (lambda x: slice(x), lambda kept: kept.stop),
    "method": (lambda x: Holder(x).__init__, lambda kept: kept.__self__.value),
    "type": (lambda x: typing.Annotated[float, x], lambda kept: kept.__metadata__[0]),
}


@pytest.mark.parametrize("name", KEPT_IN_A_CLASS)
def test_a_class_that_is_left_behind_holds_plain_values(name):
    make, read = KEPT_IN_A_CLASS[name]
    classes = []

    def f(x):
        class Made:
            kept = make(x)

        classes.append(Made)
        return x

    assert value_and_grad(f)(2.0) == (2.0, 1.0)
    assert type(read(vars(classes[0])["kept"])) is float


def later_kind():
    """Classes that get methods at the fifth call, which CPython asks when a class is made or subscripted."""

    class Plugin:
        pass

    class Column:
        pass

    class Base:
        gain = 3.0

    alias = Column()

    def made(x):
        class Local(Plugin):
            gain = 2.0

        return x * Local.gain

    def named(x):
        class Row:
            price = alias

        return x * getattr(Row, "factor", 1.0)

    def of_bases(x):
        try:

            class Local(alias):
                pass

            return x * Local.gain
        except TypeError:
            return x * x

    def subscripted(x):
        try:
            return x * Base[3]
        except TypeError:
            return x * x

    def in_c(x):
        return x * type("Local", (Plugin,), {"gain": 2.0}).gain

    def change():
        Plugin.__init_subclass__ = classmethod(lambda cls: setattr(cls, "gain", 6.0))
        Column.__set_name__ = lambda self, owner, name: setattr(owner, "factor", 5.0)
        Column.__mro_entries__ = lambda self, bases: (Base,)
        Base.__class_getitem__ = classmethod(lambda cls, n: float(n))

    return {
        "made": made,
        "named": named,
        "of_bases": of_bases,
        "subscripted": subscripted,
        "in_c": in_c,
    }, change


@pytest.mark.parametrize("name", ["made", "named", "of_bases", "subscripted", "in_c"])
def test_what_the_making_of_a_class_asks_may_come_later(name):
    functions, change = later_kind()
    f = functions[name]
    both = value_and_grad(f)
    for k in range(8):
        if k == 5:
            change()
        assert both(1.0 + k)[0] == f(1.0 + k)
    assert f(2.0) != later_kind()[0][name](2.0)
