"""What plain Python does in the corners of its protocols: the same value, the same error, the same order of things."""

import copy
import functools
import itertools
import math
import operator
import pickle
import pprint
import typing
from collections import OrderedDict
from contextlib import contextmanager

import numpy as np
import pytest

from helpers import check
from wengert import jit, pullback, value_and_grad

log = []


def outcome(f):
    """What a function gives, or the error that it raises."""
    try:
        return f()
    except Exception as error:
        return type(error), str(error)


def check_like_python(f):
    """Traced, and by a program, as plainly."""
    plain = outcome(f)
    with jit(False):
        assert outcome(lambda: pullback(f)[0]) == plain
    for _ in range(3):
        assert outcome(lambda: pullback(f)[0]) == plain


# ------------------------------------------------------------------------------------- wrong arguments

CALLS = [
    lambda: max(), lambda: min(), lambda: sum(), lambda: sum([1], start=2, stop=3), lambda: sum([1], 2, 3),
    lambda: isinstance(1), lambda: isinstance(obj=1, cls=int), lambda: issubclass(1, 2), lambda: issubclass(int),
    lambda: getattr(1), lambda: getattr(object=1, name="real"), lambda: setattr(1, "a"), lambda: hasattr(1),
    lambda: delattr(1), lambda: hasattr(1, 2), lambda: getattr(1, 2), lambda: callable(), lambda: callable(obj=1),
    lambda: id(), lambda: id(obj=1), lambda: type(), lambda: type(1, 2), lambda: type(object=1), lambda: bool(x=1),
    lambda: bool(1, 2), lambda: int(x=1), lambda: float(x=1), lambda: list(sequence=()), lambda: tuple(sequence=()),
    lambda: set(iterable=()), lambda: super(a=1), lambda: super(1, 2, 3), lambda: vars(1), lambda: vars(1, 2),
    lambda: dir(1, 2), lambda: iter(), lambda: iter(object=[]), lambda: next(), lambda: next(iterator=iter([1])),
    lambda: reversed(), lambda: len(), lambda: len(1, 2), lambda: abs(), lambda: round(), lambda: pow(1),
    lambda: hash(obj=1), lambda: repr(), lambda: format(), lambda: print(foo=1), lambda: print(sep=1),
    lambda: operator.getitem([1]), lambda: operator.setitem([1], 0), lambda: operator.contains([1]),
    lambda: operator.delitem([1]), lambda: operator.not_(), lambda: operator.truth(1, 2), lambda: operator.add(1),
    lambda: object.__setattr__(1), lambda: object.__str__(), lambda: object.__format__(1), lambda: math.sin(),
    lambda: [].append(), lambda: {}.pop(), lambda: [].sort(1), lambda: set().add(), lambda: "".join(),
    lambda: max([], 1, key=1), lambda: max([], default=2, key=None), lambda: min(1), lambda: locals(1),
    lambda: globals(a=1),
]  # fmt: skip


@pytest.mark.parametrize("i", range(len(CALLS)))
def test_arguments_that_cpython_refuses(i):
    check_like_python(CALLS[i])


def test_wrong_arguments_are_an_error_that_the_program_can_catch():
    def f(x):
        for call in CALLS[:4]:
            try:
                call()
            except TypeError:
                x = x * 2.0
        return x

    check(f, 1.5)


@pytest.mark.parametrize(
    "answer", [3, 0.0, "no", True, [1], object()], ids=lambda x: type(x).__name__
)
def test_init_returns_something(answer):
    def f():
        class Made:
            def __init__(self):
                log.append(1)
                return answer

        class Derived(Made):
            pass

        try:
            Derived()
        except TypeError as error:
            return str(error)

    check_like_python(f)


# ---------------------------------------------------------------------------------------------- sets


class Key:
    def __init__(self, h=5):
        self.h, self.asked = h, 0

    def __hash__(self):
        self.asked += 1
        return self.h


def test_sets_of_sets():
    def f():
        s, key = frozenset("abc"), Key()
        table = {key: 1}
        one = set(table)
        two = frozenset(one)
        dict(table)
        return frozenset(s) is s, s.copy() is s, key.asked, len(one | two)

    check_like_python(f)


@pytest.mark.parametrize("n", [3, 9, 40, 200])
def test_the_order_of_a_copied_set(n):
    words = [f"word{i * 7919}" for i in range(n)]

    def f():
        s = set(words)
        for word in words[::3]:
            s.discard(word)
        other = set(s)
        return list(s), list(other), str(frozenset(s)), other.pop(), list(set(dict.fromkeys(words)))

    check_like_python(f)


# ----------------------------------------------------------------------------------------- iterators


class Delegate:
    def __iter__(self):
        return self

    def __next__(self):
        return 42

    def send(self, value):
        return ("sent", value)

    def throw(self, *error):
        return ("thrown", error[0])

    def close(self):
        log.append("closed")


def test_yield_from_calls_the_iterator():
    def f():
        def g():
            yield from Delegate()

        log.clear()
        a = g()
        found = [next(a), a.send(3), a.throw(ValueError), next(a)]
        a.close()
        return found, list(log)

    check_like_python(f)


@pytest.mark.parametrize("how", ["send", "throw", "close"])
def test_yield_from_an_iterator_without_these(how):
    class Plain:
        def __iter__(self):
            return self

        def __next__(self):
            return 1.0

    def f():
        def g():
            yield from Plain()

        a = g()
        next(a)
        return {"send": lambda: a.send(2), "throw": lambda: a.throw(KeyError), "close": a.close}[
            how
        ]()

    check_like_python(f)


def test_values_sent_through_yield_from_have_gradients():
    class Doubles:
        def __init__(self, z):
            self.z = z

        def __iter__(self):
            return self

        def __next__(self):
            return self.z

        def send(self, value):
            return value * self.z

    def f(x, y):
        def g():
            yield from Doubles(x)

        a = g()
        return next(a) + a.send(y)

    check(f, 1.5, 2.5)


def test_an_iterator_that_loses_its_next():
    def f():
        class Bad:
            def __iter__(self):
                return self

            def __next__(self):
                del Bad.__next__
                return 1

        return [i for i in Bad()]

    check_like_python(f)


# ----------------------------------------------------------------------------------------- functions


def test_attributes_of_functions_made_inside():
    def f():
        def attributed(**named):
            def decorate(function):
                for key, value in named.items():
                    setattr(function, key, value)
                return function

            return decorate

        @contextmanager
        @attributed(foo="bar")
        def made():
            yield

        def inner(x: int): ...

        inner.__annotations__["y"] = int
        inner.__dict__["own"] = 3

        @functools.wraps(inner)
        def outer(): ...

        typing.no_type_check(outer)
        return (
            made.foo, vars(made)["foo"], inner.own, outer.own, sorted(typing.get_type_hints(inner)),
            outer.__no_type_check__, outer.__wrapped__ is inner, inner.__dict__ is inner.__dict__,
            outer.__annotations__ is inner.__annotations__, sorted(outer.__dict__),
        )  # fmt: skip

    check_like_python(f)


def test_numbers_in_attributes_of_functions():
    def f(x):
        def inner(y):
            return y * inner.scale

        inner.scale = x

        @functools.wraps(inner)
        def outer(y):
            return inner(y) * outer.scale

        inner.__dict__["more"] = x * x
        return outer(3.0) + inner.more

    check(f, 1.5)


# ----------------------------------------------------------------------------------------- attributes


class Slotted:
    __slots__ = ("a",)


def test_vars_without_a_dict():
    check_like_python(lambda: vars(Slotted()))


class Base:
    def __init__(self, z):
        self.z = z

    @property
    def double(self):
        return self.z * 2

    def triple(self):
        return self.z * 3


class Through(Base):
    def __getattribute__(self, name):
        return object.__getattribute__(self, name)


class Above(Base):
    def __getattribute__(self, name):
        return super().__getattribute__(name)


class Both(Base):
    def __getattribute__(self, name):
        if name == "extra":
            raise AttributeError(name)
        return object.__getattribute__(self, name)

    def __getattr__(self, name):
        return self.z * 5


@pytest.mark.parametrize("kind", [Through, Above, Both])
def test_object_getattribute_is_followed(kind):
    held = kind(1.0)

    def f(it, x):
        held.z = held.z + x
        extra = it.extra if kind is Both else 0.0
        return it.double * x + it.triple() + held.double + held.triple() + extra

    own = 7.0 + 5.0 * (kind is Both)
    for on in (False, True, True, True, True):
        held.z = 1.0
        with jit(on):
            value, back = pullback(f, kind(3.0), 2.0)
        assert vars(held) == {"z": 3.0}
        assert value == 36.0 + 15.0 * (kind is Both)
        assert back(1.0) == ({"z": own}, 11.0)


def test_an_attribute_that_is_asked_for_once():
    class Missing:
        def __get__(self, instance, owner):
            log.append("get")
            raise AttributeError("no")

    class Asked:
        missing = Missing()

        def __getattr__(self, name):
            log.append(name)
            raise AttributeError(name)

    asked = Asked()

    def f():
        log.clear()
        return (
            getattr(asked, "missing", 1),
            getattr(asked, "other", 2),
            hasattr(asked, "third"),
            list(log),
        )

    check_like_python(f)


def test_a_class_whose_own_mro_runs():
    def f():
        log = []

        class Meta(type):
            flag = 0

            def mro(cls):
                log.append((cls.__mro__, cls.__name__, cls.flag))
                return super().mro()

        class Made(metaclass=Meta):
            pass

        return Made.__mro__[-1], list(log)

    check_like_python(f)


# ---------------------------------------------------------------------------------------- containers


def test_attributes_of_ordered_dicts():
    def f():
        od = OrderedDict(a=1)
        od.x = ["hi"]
        return copy.copy(od).x, copy.deepcopy(od).x, od.__dict__

    check_like_python(f)


def test_ordered_dicts_that_pickle_makes_keep_their_attributes():
    def f():
        od = OrderedDict(a=1)
        od.x = ["hi"]
        return pickle.loads(pickle.dumps(od)).x

    check_like_python(f)


def test_containers_that_hold_themselves():
    def f():
        a, b = [], {}
        a.append(a)
        b["b"] = b
        b[1] = a
        return pprint.isrecursive(a), pprint.isrecursive(b), repr(a), repr(b), pprint.isreadable(a)

    check_like_python(f)


def test_printing_that_fails_prints_once(capsys):
    def f(x):
        try:
            print(x, sep=1)
        except TypeError:
            print("failed")
        return x * x

    for _ in range(4):
        assert value_and_grad(f)(3.0) == (9.0, 6.0)
    assert capsys.readouterr().out == "failed\n" * 4


OUTS = [
    (np.add, (3,), (), {}),
    (np.add, (3,), (2,), {}),
    (np.multiply, (2, 3), (3,), {}),
    (np.add, (3,), (2, 3), {}),
    (np.sin, (), (), {"dtype": int}),
    (np.exp, (3,), (3,), {"dtype": int}),
]


@pytest.mark.parametrize("fn, shape, into, options", OUTS)
def test_arrays_that_cannot_take_the_result(fn, shape, into, options):
    x, out = np.full(shape, 0.5), np.zeros(into, **options)

    def f():
        out[...] = 2
        given = (x, x) if fn.nin == 2 else (x,)
        return np.shape(fn(*given, out=out)), out.tolist()

    check_like_python(f)


def test_items_of_the_dict_of_an_object_are_no_attributes():
    class Model:
        def __delattr__(self, name):
            log.append(name)

        @functools.cached_property
        def ratio(self):
            log.append("made")
            return 1.0

    model = Model()

    def f():
        log.clear()
        model.__dict__.pop("ratio", None)
        return model.ratio, list(log), list(model.__dict__)

    check_like_python(f)


class Whole(int):
    """An integer whose ``__index__`` CPython never asks."""

    def __index__(self):
        return 1


@pytest.mark.parametrize(
    "f",
    [
        lambda: [10, 20, 30][Whole(2)],
        lambda: "abcd"[Whole(2) :],
        lambda: np.arange(5.0)[Whole(2)],
        lambda: [0] * Whole(2),
        lambda: list(range(Whole(2))),
        lambda: math.factorial(Whole(3)),
        lambda: chr(Whole(65)),
        lambda: round(1.2345, Whole(2)),
        lambda: [1, 2, 3].pop(Whole(2)),
        lambda: operator.index(Whole(2)),
        lambda: hex(Whole(2)),
    ],
)
def test_an_integer_of_a_derived_class_is_its_own_index(f):
    check_like_python(f)


class Ordered(dict):
    """A dict whose keys come in their order, by methods in Python."""

    def __iter__(self):
        return iter(sorted(dict.keys(self)))

    def update(self, *args, **kwargs):
        dict.update(self, *args, **kwargs)


class Grown(list):
    def __iter__(self):
        return iter([*list.__iter__(self), 10.0])

    def extend(self, items):
        list.extend(self, items)


def test_what_an_unbound_method_works_on_is_not_iterated_over():
    def f(x):
        d, l = Ordered(), Grown([x])
        d.update({"b": x, "a": 2.0}, c=x)
        d.update(Ordered(e=x))
        l.extend([2.0, x])
        l.extend(Grown([x]))
        s = {1.0}
        set.update(s, [2.0], d)
        return (
            [*d],
            dict.__getitem__(d, "b"),
            sum(l),
            list.__len__(l),
            len(s),
            sorted(dict.values(d)),
        )

    for on in (False, True):
        with jit(on):
            for _ in range(3):
                assert pullback(f, 1.5)[0] == f(1.5)


def test_a_class_that_holds_itself_in_a_container_may_be_stored():
    class Node:
        pass

    Node.family = (Node, [Node], {"me": Node})
    held, table = [], {}

    def f(x):
        held.append(Node)
        table["k"] = (Node, x)
        return x * len(Node.family) * len(held)

    for on in (False, True):
        with jit(on):
            held.clear()
            assert [value_and_grad(f)(1.5) for _ in range(3)] == [
                (4.5, 3.0),
                (9.0, 6.0),
                (13.5, 9.0),
            ]
            assert table == {"k": (Node, 1.5)} and held == [Node] * 3


ASKED = {
    "__bool__": lambda h: 1.0 if h else 2.0,
    "not": lambda h: 1.0 if not h else 2.0,
    "bool": lambda h: bool(h),
    "__len__": lambda h: 1.0 if h else 2.0,
    "len": lambda h: len(h),
    "__repr__": lambda h: repr(h),
    "__str__": lambda h: str(h),
    "__format__": lambda h: f"{h:3}",
    "__float__": lambda h: float(h),
    "__index__": lambda h: [1][h],
}


@pytest.mark.parametrize("name", ASKED)
def test_special_methods_that_are_none(name):
    method = {"not": "__bool__", "bool": "__bool__", "len": "__len__"}.get(name, name)
    h = type("H", (), {method: None})()

    def f(x):
        try:
            ASKED[name](h)
        except TypeError as error:
            said.append(str(error))
            return x * 3
        return x * 5

    said = []
    assert f(2.0) == 6.0
    for _ in range(4):
        assert value_and_grad(f)(2.0) == (6.0, 3.0)
    assert said == said[:1] * 5


class Counted:
    def __len__(self):
        log.append("len")
        return -1


class Numbered:
    def __getitem__(self, i):
        return i


@pytest.mark.parametrize("cls", [Counted, Numbered, type("Both", (Counted, Numbered), {})])
def test_what_cannot_be_reversed_is_asked_as_by_cpython(cls):
    def f():
        log.clear()
        raised = outcome(lambda: [*reversed(cls())])
        return raised, log[:]

    check_like_python(f)


class Modular:
    def __init__(self, v):
        self.v = v

    def __pow__(self, other, modulus=None):
        return self.v**other if modulus is None else self.v * modulus


@pytest.mark.parametrize("on", [True, False])
def test_pow_with_a_modulus_asks_the_object(on):
    with jit(on):
        for _ in range(3):
            assert value_and_grad(lambda x: pow(Modular(x), 2, 5) + pow(Modular(x), 2))(3.0) == (
                24.0,
                11.0,
            )


class Row(list):
    def __getitem__(self, i):
        return list.__getitem__(self, i)


@pytest.mark.parametrize(
    "ask",
    [
        lambda x, k: Row(x)[k],
        lambda x, k: tuple.__getitem__(tuple(x), k),
        lambda x, k: list.__delitem__(Row(x), k),
        lambda x, k: x.__getitem__(k),
    ],
)
def test_an_index_that_is_a_float_is_called_one(ask):
    with pytest.raises(TypeError) as expected:
        ask([1.0, 2.0], 1.0)
    for on in (True, False):
        with jit(on), pytest.raises(TypeError) as error:
            value_and_grad(ask)([1.0, 2.0], 1.0)
        assert str(error.value) == str(expected.value)


# ------------------------------------------------------------------------------------- names of classes


class Plain:
    pass


class Items:
    def __init__(self, given):
        self.given = given

    def __iter__(self):
        return self.given

    def __len__(self):
        return 1


class Keys:
    def keys(self):
        return "ab"


NAMED = [
    lambda x: {**Plain(), "x": x},
    lambda x: {**{"x": x}, **Plain()},
    lambda x: {**Keys()},
    lambda x: dict(Keys()),
    lambda x: {**Items(iter([x]))},
    lambda x: list(map(Items(iter([x])), [x])),
    lambda x: list(filter(Items(iter([x])), [x])),
    lambda x: functools.reduce(Items(iter([x])), [x, x]),
    lambda x: list(itertools.starmap(Items(iter([x])), [(x,)])),
    lambda x: ",".join(Items(x)),
    lambda x: ",".join(Items(Plain())),
    lambda x: str.join(",", Items(3)),
    lambda x: b"".join(Items(Plain())),
    lambda x: ",".join(Items(iter([Plain()]))),
]


@pytest.mark.parametrize("on", [False, True])
@pytest.mark.parametrize("number", range(len(NAMED)))
def test_a_message_names_the_class_of_the_program(number, on):
    f = NAMED[number]
    with jit(on):
        for x in (2.0, 3.0, 4.0):
            assert outcome(lambda: value_and_grad(f)(x)) == outcome(lambda: f(x))  # noqa: B023
