"""The ``__dict__`` of objects, classes and modules: one with what it belongs to, whoever writes."""

import copy
import functools
import json
import types

import pytest

import wengert
from wengert import TraceError, grad, jit, jvp, pullback, value_and_grad


class Model:
    def __init__(self, z):
        self.z = z


class Squared:
    """A descriptor that has a say about stores."""

    def __get__(self, instance, owner=None):
        return 0.0 if instance is None else instance.__dict__["z"] ** 2

    def __set__(self, instance, value):
        instance.__dict__["z"] = value * 2.0


class Described:
    z = Squared()


model = Model(0.5)
kept = None


@pytest.fixture(params=[True, False], autouse=True)
def modes(request):
    with jit(request.param):
        yield


def slopes(f, x, *args):
    """The derivatives of three calls, in reverse and forward."""
    found = []
    for _ in range(3):
        value, back = pullback(f, x, *args)
        found.append((value, back(1.0)[0]))
        found.append(jvp(lambda x: f(x, *args), (x,), (1.0,)))
    return found


def test_the_dict_sees_what_is_stored_in_the_object():
    def f(x):
        seen = model.__dict__
        model.z = x * x
        return seen["z"] * 2.0

    assert slopes(f, 3.0) == [(18.0, 12.0)] * 6
    assert model.z == 9.0


def test_the_object_sees_what_is_stored_in_the_dict():
    def f(x):
        vars(model)["z"] = x * x
        vars(model).update(y=x)
        return model.z * 2.0 + model.y + vars(model).pop("y")

    assert slopes(f, 3.0) == [(24.0, 14.0)] * 6
    assert vars(model) == {"z": 9.0}


def test_the_dict_is_always_the_same():
    def f(x):
        return x if model.__dict__ is vars(model) and globals() is globals() else 0.0

    assert slopes(f, 3.0) == [(3.0, 1.0)] * 6


def test_a_class_and_its_dict():
    class Base:
        pass

    def f(x):
        seen = Base.__dict__
        Base.z = x * x
        return seen["z"] * 2.0

    assert slopes(f, 3.0) == [(18.0, 12.0)] * 6


def test_globals_and_their_dict():
    def f(x):
        global kept
        seen = globals()
        kept = x * x
        return seen["kept"] * 2.0

    assert slopes(f, 3.0) == [(18.0, 12.0)] * 6
    assert kept == 9.0


def test_stores_in_the_dict_pass_descriptors_by():
    def f(x, it):
        it.__dict__["z"] = x
        first = it.z
        it.z = x
        second = it.__dict__["z"]
        object.__setattr__(it, "z", x * 2.0)
        return first + second + it.__dict__["z"]

    it = Described()
    assert slopes(f, 3.0, it) == [(27.0, 12.0)] * 6
    assert vars(it) == {"z": 12.0}


def test_a_result():
    def f(x):
        model.z = x * x
        return model.__dict__

    for _ in range(3):
        value, back = pullback(f, 3.0)
        assert value is vars(model) and value == {"z": 9.0}
        assert back({"z": 1.0}) == (6.0,)
        assert jvp(f, (3.0,), (1.0,)) == ({"z": 9.0}, {"z": 6.0})


def test_a_derivative_inside():
    def f(x):
        model.z = x
        seen = model.__dict__
        slope = grad(lambda it: seen["z"] ** 3)(model)["z"]
        return slope + seen["z"]

    assert slopes(f, 2.0) == [(14.0, 13.0)] * 6


def test_the_dict_of_an_object_that_goes_out_is_refused():
    def f(x):
        global kept
        made = Model(x)
        seen = made.__dict__
        kept = made
        return seen["z"] * 2.0

    with pytest.raises(
        TraceError, match="handed to the outside while a variable holds its __dict__"
    ):
        pullback(f, 3.0)


def test_the_dict_of_an_object_that_goes_out_without_traced_values():
    class Empty:
        pass

    def f(x):
        global kept
        made = Empty()
        seen = made.__dict__
        kept = made
        seen["z"] = x * x
        return made.z * 2.0

    assert slopes(f, 3.0) == [(18.0, 12.0)] * 6
    assert type(kept.z) is float and kept.z == 9.0


def test_another_dict_for_an_object_outside():
    it = Model(1.0)

    def f(x):
        given = {"z": x, "y": 2.0}
        it.__dict__ = given
        given["z"] *= x
        it.y *= x
        return it.z * it.__dict__["y"] * (vars(it) is given)

    assert slopes(f, 3.0) == [(54.0, 54.0)] * 6
    assert vars(it) == {"z": 9.0, "y": 6.0}


def test_the_dict_of_another_object_is_refused():
    def f(x):
        model.__dict__ = Described.shared.__dict__
        return x

    Described.shared = Described()
    with pytest.raises(TraceError, match="clear and update the one that it has"):
        pullback(f, 3.0)


def test_deletions_that_fail_leave_things_alone():
    class Fixed:
        def __init__(self):
            self.__dict__["z"] = 1.0

        z = property(lambda self: self.__dict__["z"])

    it = Fixed()

    def f(x):
        it.__dict__["z"] = x * x
        try:
            del it.z
        except AttributeError:
            pass
        return it.z

    assert slopes(f, 3.0) == [(9.0, 6.0)] * 6


def test_nothing_is_left_behind():
    before = vars(model).copy()
    assert wengert.value_and_grad(lambda x: x * len(vars(model)))(3.0) == (3.0, 1.0)
    assert vars(model) == before


def test_an_argument_and_its_dict_in_a_variable_of_its_own():
    it = Model(2.0)
    apart = vars(it)

    def f(it):
        it.z = it.z**2
        return apart["z"] * it.z

    for _ in range(3):
        it.z = 2.0
        value, back = pullback(f, it)
        assert (value, back(1.0)) == (16.0, ({"z": 32.0},))


def test_two_arguments_that_are_an_object_and_its_dict_are_refused():
    it = Model(2.0)

    with pytest.raises(TraceError, match="a Model and its __dict__ come in on their own"):
        pullback(lambda it, own: it.z * own["z"], it, vars(it))


@functools.singledispatch
def kind(z):
    return 0.5


kind.register(dict)(lambda z: 2.0 * len(z))


def refused_by(action, *args):
    try:
        return action(*args)
    except (AttributeError, TypeError) as error:
        return str(error)


def test_the_dict_looks_like_any_other():
    def look(x):
        seen = model.__dict__
        weak = functools.singledispatch(lambda z: 1.0)
        return [
            (type(seen), seen.__class__, weak(seen), kind(seen), type(copy.copy(seen))),
            [
                hasattr(seen, name)
                for name in ("owner", "tracer", "refresh", "__dict__", "__module__")
            ],
            refused_by(setattr, seen, "z", 1.0),
            refused_by(delattr, seen, "z"),
            refused_by(hash, seen),
            refused_by(lambda: seen + 1),
            json.dumps(seen),
            json.dumps([seen]),
        ]

    model.z = 1.0
    expected = look(1.0)
    for _ in range(3):
        found = []
        assert pullback(lambda x: (found.append(look(x)), x)[1], 1.0)[0] == 1.0
        assert found == [expected]


@pytest.mark.parametrize("wrap", [lambda d: d, lambda d: [d], lambda d: {"p": (d,)}])
def test_numbers_read_from_the_text_of_the_dict_are_refused(wrap):
    def f(x):
        model.z = x * x
        found = json.loads(json.dumps(wrap(model.__dict__)))
        while isinstance(found, (list, dict)):
            found = found[0] if isinstance(found, list) else next(iter(found.values()))
        return found

    for _ in range(3):
        with pytest.raises(TraceError, match="text that was drawn from a traced value"):
            grad(f)(3.0)


class Slow(types.SimpleNamespace):
    pass


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize(
    "made",
    [lambda: types.SimpleNamespace(v=1.0), lambda: Slow(v=1.0), lambda: types.ModuleType("m")],
)
def test_a_dict_that_cannot_be_another_is_not_set(made, on):
    held = made()

    def joined(x):
        held.__dict__ |= {"q": x}
        return held.q * 2.0

    def itself(x):
        own = held.__dict__
        held.__dict__ = own
        return x

    with jit(on):
        for f in (joined, itself):
            for k in range(4):
                with pytest.raises(AttributeError, match="readonly attribute"):
                    value_and_grad(f)(1.0 + k)


def test_the_class_is_told_when_the_dict_is_joined():
    class Told:
        def __setattr__(self, name, value):
            told.append(name)
            object.__setattr__(self, name, value)

    def f(x):
        held.__dict__ |= {"q": x}
        return held.q * 2.0

    told, held = [], Told()
    for k in range(5):
        assert value_and_grad(f)(1.0 + k) == (2.0 + 2.0 * k, 2.0)
        assert told == ["__dict__"] * (k + 1)


class Quarter(types.ModuleType):
    def __getattr__(self, name):
        return 0.25


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("kind", [types.ModuleType, Quarter])
def test_what_a_module_is_asked_for_is_followed(kind, on):
    """Its own function comes before that of its class, which is asked where the former has nothing."""

    def made(name):
        asked.append(name)
        if name == "nothing":
            raise AttributeError(name)
        return held["w"] * 2.0

    def f(x):
        held["w"] = x * x
        before = len(asked)
        y = module.bias * (len(asked) - before)
        return y + x * hasattr(module, "nothing") + getattr(module, "nothing", 3.0)

    module, held, asked = kind("lazy"), {"w": 1.0}, []
    module.__getattr__ = made
    with jit(on):
        for k in range(8):
            x = 1.0 + k
            if k == 6:
                module.bias = 7.0
            bias, slope = (2.0 * x * x, 4.0 * x) if k < 6 else (0.0, 0.0)
            rest, more = (x + 0.25, 1.0) if kind is Quarter else (3.0, 0.0)
            assert value_and_grad(f)(x) == (bias + rest, slope + more)
    assert asked == ["bias", "nothing", "nothing"] * 6 + ["nothing"] * 4
