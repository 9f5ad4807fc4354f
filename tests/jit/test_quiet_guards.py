"""What a program looks at before it answers runs no code of the user's that would not have run there."""

import contextlib
import functools
import io
import types

import pytest

from wengert import TraceError, grad


def stands_in(name):
    if name.startswith("__"):
        raise AttributeError(name)
    print("asked for", name)
    return 3.0


class Plain:
    def __init__(self):
        self.k = 2.0


class StandsIn(Plain):
    def __getattr__(self, name):
        return stands_in(name)


class Slotted:
    __slots__ = ("k",)

    def __init__(self):
        self.k = 2.0


class SlottedStandsIn(Slotted):
    __slots__ = ()

    def __getattr__(self, name):
        return stands_in(name)


class Finds(StandsIn):
    def __getattribute__(self, name):
        if name == "k":
            print("finds it")
        return object.__getattribute__(self, name)


class Cached:
    @functools.cached_property
    def k(self):
        print("computed")
        return 3.0


class Lazy:
    def __get__(self, instance, owner=None):
        print("made")
        instance.__dict__["k"] = 5.0
        return 5.0


class WithLazy:
    k = Lazy()


class Meta(type):
    def __getattr__(cls, name):
        return stands_in(name)


class Base:
    pass


def inheriting_class():
    Base.k = 2.0
    return Meta("Made", (Base,), {})


def module():
    made = types.ModuleType("made")
    made.k, made.__getattr__ = 2.0, stands_in
    return made


def take_away(obj):
    """The attribute is there no more; or, where it never was, the object is as new."""
    try:
        del obj.k
    except AttributeError:
        if hasattr(Base, "k"):
            del Base.k


MAKERS = [
    *(Plain, StandsIn, Slotted, SlottedStandsIn, Finds, Cached, WithLazy),
    *(inheriting_class, lambda: Meta("Made", (), {"k": 2.0}), module),
]
obj = None


def by_name(x):
    print("begin")
    return x * obj.k


def with_a_fallback(x):
    print("begin")
    try:
        return x * obj.k
    except AttributeError:
        return x * 9.0


def asked_before(x):
    print("begin")
    return x * obj.k if hasattr(obj, "k") else x * 9.0


def calls(make, f, ask):
    """What is returned and printed, call by call."""
    global obj
    obj, seen = make(), []
    for step in range(10):
        if step in (4, 8):
            take_away(obj)
        if step == 6:
            obj = make()
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            try:
                found = ask(f, 1.5)
            except AttributeError as error:
                found = str(error)
        seen.append((found, printed.getvalue()))
    return seen


@pytest.mark.parametrize("f", [by_name, with_a_fallback, asked_before])
@pytest.mark.parametrize("make", MAKERS)
def test_an_attribute_comes_and_goes(make, f):
    assert calls(make, f, lambda f, x: x * grad(f)(x)) == calls(make, f, lambda f, x: f(x))


def of_an_argument(owner, x):
    print("begin")
    return x * owner.k


@pytest.mark.parametrize("make", MAKERS)
def test_an_attribute_of_an_argument_comes_and_goes(make):
    def f(x):
        return of_an_argument(obj, x)

    assert calls(make, f, lambda f, x: x * grad(f)(x)) == calls(make, f, lambda f, x: f(x))


# ----------------------------------------------------------------------- what takes the place of what was there


class Gives:
    """A descriptor that says so when it is asked."""

    def __init__(self, value):
        self.value = value

    def __get__(self, instance, owner=None):
        print("given")
        return self.value


class Watched:
    """A callable that says what it is asked for."""

    def __getattribute__(self, name):
        print("asked for", name)
        return object.__getattribute__(self, name)

    def __call__(self, *args):
        return 3.0 * args[-1]


class WatchedDict(dict):
    """A dict that says what it is asked for, and lies."""

    def __getitem__(self, key):
        print("item", key)
        return 9.0

    def __iter__(self):
        print("iterated")
        return dict.__iter__(self)

    def __len__(self):
        print("length")
        return dict.__len__(self)

    def __contains__(self, key):
        print("contains", key)
        return True


class EqualMeta(type):
    def __eq__(cls, other):
        print("classes compared")
        return True

    __hash__ = type.__hash__


class EqualText(str, metaclass=EqualMeta):
    def __eq__(self, other):
        print("texts compared")
        return str.__eq__(self, other)

    __hash__ = str.__hash__


class ModuleWithGetattr(types.ModuleType):
    def __getattr__(self, name):
        return stands_in(name)


class ModuleWithProperty(types.ModuleType):
    @property
    def a(self):
        print("property")
        return 3.0


def nine_times(*args, **kwargs):
    return 9.0 * args[-1]


def twice(x, k=2.0):
    return k * x


def by_keyword(x, *, k=2.0):
    return k * x


def fresh_class(meta=type):
    k = 2.0

    class Fresh(metaclass=meta):
        v = 2.0

        def m(self, x, k=2.0):
            return k * x

        def over(self, x):
            return k * x

    return Fresh


def objects():
    """Something that a function reads, anew for each story."""
    cls, of_meta = fresh_class(), fresh_class(type("Meta", (type,), {}))
    made = cls()
    made.g, made.bound, made.own = twice, cls().m, 2.0
    by_name = types.FunctionType(by_keyword.__code__, globals())
    by_name.__kwdefaults__ = {"k": 2.0}
    return types.SimpleNamespace(
        **{"cls": cls, "of_meta": of_meta, "made": made, "of": of_meta(), "table": {"g": twice}},
        **{"module": types.ModuleType("made"), "items": [twice, twice], "by_name": by_name},
        with_default=types.FunctionType(default_of.__code__, globals(), None, (twice,)),
        big={f"k{i}": 1.0 for i in range(20)},
    )


def default_of(x, f=None):
    return f(x)


def get_a(x, owner):
    return x * getattr(owner, "a", 2.0)


def has_a(x, owner):
    return x * 2.0 if hasattr(owner, "a") else x * 3.0


def another_key(o):
    del o.big["k19"]
    o.big[EqualText("k19")] = 1.0


REPLACED = {
    "method": (lambda x, o: o.made.m(x), lambda o: setattr(o.cls, "m", Gives(nine_times))),
    "closure": (lambda x, o: o.made.over(x), lambda o: setattr(o.cls, "over", Gives(nine_times))),
    "of the class": (lambda x, o: o.cls.m(o.made, x), lambda o: setattr(o.cls, "m", Gives(nine_times))),
    "of meta": (lambda x, o: o.of.m(x), lambda o: setattr(o.of_meta, "m", Gives(nine_times))),
    "value": (lambda x, o: o.cls.v * x, lambda o: setattr(o.cls, "v", Gives(3.0))),
    "value of an object": (lambda x, o: o.made.v * x, lambda o: setattr(o.cls, "v", Gives(3.0))),
    "get of a class": (lambda x, o: get_a(x, o.cls), lambda o: setattr(o.cls, "a", Gives(3.0))),
    "has of a class": (lambda x, o: has_a(x, o.cls), lambda o: setattr(o.cls, "a", Gives(3.0))),
    "get of an object": (lambda x, o: get_a(x, o.made), lambda o: setattr(o.cls, "a", Gives(3.0))),
    "metaclass": (lambda x, o: get_a(x, o.of_meta), lambda o: setattr(type(o.of_meta), "a", Gives(3.0))),
    "metaclass getattr": (
        lambda x, o: get_a(x, o.of_meta),
        lambda o: setattr(type(o.of_meta), "__getattr__", lambda cls, name: stands_in(name)),
    ),
    "module getattr": (lambda x, o: has_a(x, o.module), lambda o: setattr(o.module, "__getattr__", stands_in)),
    "module class": (lambda x, o: get_a(x, o.module), lambda o: setattr(o.module, "__class__", ModuleWithGetattr)),
    "module property": (lambda x, o: get_a(x, o.module), lambda o: setattr(o.module, "__class__", ModuleWithProperty)),
    "item": (lambda x, o: o.table["g"](x), lambda o: o.table.update(g=Watched())),
    "item of a list": (lambda x, o: o.items[0](x), lambda o: o.items.__setitem__(0, Watched())),
    "attribute": (lambda x, o: o.made.g(x), lambda o: setattr(o.made, "g", Watched())),
    "own method": (lambda x, o: o.made.m(x), lambda o: setattr(o.made, "m", Watched())),
    "method by an object": (lambda x, o: o.made.m(x), lambda o: setattr(o.cls, "m", Watched())),
    "bound method": (lambda x, o: o.made.bound(x), lambda o: setattr(o.made, "bound", Watched())),
    "default": (lambda x, o: o.with_default(x), lambda o: setattr(o.with_default, "__defaults__", (Watched(),))),
    "keyword defaults": (
        lambda x, o: o.by_name(x),
        lambda o: setattr(o.by_name, "__kwdefaults__", WatchedDict(k=3.0)),
    ),
    "own dict": (lambda x, o: has_a(x, o.made), lambda o: setattr(o.made, "__dict__", WatchedDict(g=3.0))),
    "keys": (lambda x, o: x * len(o.big), another_key),
}  # fmt: skip


@pytest.mark.parametrize("f, replace", REPLACED.values(), ids=REPLACED)
def test_what_was_replaced_is_asked_by_nobody_else(f, replace):
    def story(ask):
        o, seen = objects(), []
        for step in range(8):
            if step == 4:
                replace(o)
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                try:
                    found = ask(lambda x: f(x, o), 1.5)
                except (AttributeError, TypeError) as error:
                    found = str(error)
            seen.append((found, printed.getvalue()))
        return seen

    assert story(lambda f, x: x * grad(f)(x)) == story(lambda f, x: f(x))


class AskedForAll:
    """Its objects say what they are asked for."""

    def __init__(self):
        object.__getattribute__(self, "__dict__")["a"] = 2.0

    def __getattribute__(self, name):
        print("asked for", name)
        return object.__getattribute__(self, name)


class AskedWithSlots:
    __slots__ = ("a",)

    __getattribute__ = AskedForAll.__getattribute__


def of_vars(x):
    return x * vars(obj)["a"]


def of_vars_by_get(x):
    return x * vars(obj).get("a", 1.0)


def ask_vars(make, change, f, ask):
    """What is returned or raised, and printed, call by call."""
    global obj
    obj, seen = make(), []
    for step in range(8):
        if step == 4:
            change()
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            try:
                found = ask(f, 1.5)
            except TypeError as error:
                found = str(error)
        seen.append((found, printed.getvalue()))
    return seen


def with_plain_dict():
    made = fresh_class()()
    made.a = 2.0
    return made


def nothing():
    pass


def be_asked():
    type(obj).__getattribute__ = AskedForAll.__getattribute__


def other_value():
    object.__getattribute__(obj, "__dict__")["a"] = 3.0


VARS = [
    (AskedForAll, nothing),
    (AskedForAll, other_value),
    (AskedWithSlots, nothing),
    (with_plain_dict, be_asked),
    (with_plain_dict, other_value),
]


@pytest.mark.parametrize("f", [of_vars, of_vars_by_get])
@pytest.mark.parametrize("make, change", VARS)
def test_vars_asks_for_the_dict_as_python_does(make, change, f):
    plain = ask_vars(make, change, f, lambda f, x: f(x))
    assert ask_vars(make, change, f, lambda f, x: x * grad(f)(x)) == plain


class WithOwnGet(WatchedDict):
    def get(self, key, default=None):
        return 15.0


@pytest.mark.parametrize("f", [of_vars, of_vars_by_get])
def test_vars_that_are_a_dict_of_the_users_class_are_refused(f):
    global obj
    obj = with_plain_dict()
    h = grad(f)
    assert [h(1.5) for _ in range(4)] == [2.0] * 4
    obj.__dict__ = WithOwnGet(a=13.0)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        with pytest.raises(
            TraceError, match=rf"{f.__name__}: the __dict__ of a Fresh is a WithOwnGet"
        ):
            h(1.5)
    assert printed.getvalue() == ""
