"""Keys with a ``__hash__`` of the user's are asked for it as often as in plain Python, at every call."""

from collections import defaultdict

import pytest

import wengert


class Key:
    """A key that counts how often it is asked, and raises when it is armed."""

    asked = 0
    armed = False

    def __init__(self, name):
        self.name = name

    def __hash__(self):
        Key.asked += 1
        if Key.armed:
            raise RuntimeError("asked for a hash")
        return hash(self.name)

    def __eq__(self, other):
        Key.asked += 1000
        return type(other) is Key and other.name == self.name


class Table(dict):
    pass


class Owner:
    def __init__(self, held):
        self.held = held


A, B, C = Key("a"), Key("b"), Key("c")
GLOBAL = {A: 2.0, B: 3.0}
KEYS = {A, B}


def values():
    return {A: 2.0, B: 3.0}


def capturing():
    held = values()
    return lambda: held[A]


def returned(d, x):
    return {**d, "x": d[B] * x}


def written(d, x):
    d[A] = d[A] * x
    return d[A]


def removed(d, x):
    return d.setdefault(C, 2.0) * x * d.pop(C)


def total(d, x):
    return sum(d.values()) * x


def doubled(d):
    return sum({**d}.values()) * 2.0


# The function, and what makes its first arguments.
QUIET = {  # no key is hashed in plain Python
    "values": (lambda d, x: sum(d.values()) * x, values),
    "items": (lambda d, x: sum(v for _, v in d.items()) * x, values),
    "copy": (lambda d, x: sum(dict(d).values()) * x, values),
    "nested": (lambda t, x: sum(t[0][0].values()) * x, lambda: ([values()],)),
    "inner": (
        lambda d, x: sum(v for e in d.values() for v in e.values()) * x,
        lambda: {A: values(), B: values()},
    ),
    "pairs": (lambda d, x: sum(d.values()) * x, lambda: {(A, 1): 2.0, (B, 2): 3.0}),
    "own class": (lambda d, x: sum(d.values()) * x, lambda: Table(values())),
    "default": (lambda d, x: sum(d.values()) * x, lambda: defaultdict(float, values())),
    "attribute": (lambda o, x: sum(o.held.values()) * x, lambda: Owner(values())),
    "within": (lambda d, x: wengert.pullback(total, d, x)[0], values),
    "written within": (lambda d, x: wengert.grad(doubled)(d) and sum(d.values()) * x, values),
    "set": (lambda s, x: sum(1 for _ in s) * x, lambda: {A, B}),
    "global": (lambda x: sum(v for _, v in GLOBAL.items()) * x, None),
    "size": (lambda x: len(GLOBAL) * x, None),
    "global set": (lambda x: sum(1 for _ in KEYS) * x, None),
}
ASKING = {
    "item": (lambda d, x: d[A] * x, values),
    "in": (lambda d, x: x * 2 if A in d else x, values),
    "each": (lambda d, x: sum(d[k] for k in d) * x, values),
    "own class item": (lambda d, x: d[A] * x, lambda: Table(values())),
    "default item": (lambda d, x: d[A] * d[C] * x, lambda: defaultdict(lambda: 2.0, values())),
    "attribute item": (lambda o, x: o.held[A] * x, lambda: Owner(values())),
    "captured": (lambda f, x: f() * x, capturing),
    "in set": (lambda s, x: x * 2 if A in s else x, lambda: {A, B}),
    "in frozenset": (lambda s, x: x * 2 if A in s else x, lambda: frozenset((A, B))),
    "global item": (lambda x: GLOBAL[A] * x, None),
    "global get": (lambda x: GLOBAL.get(A) * x, None),
    "global in": (lambda x: x * 2 if A in GLOBAL else x, None),
    "written": (written, values),
    "removed": (removed, values),
    "result": (returned, values),
}
PROGRAMS = {**QUIET, **ASKING}


def asked(call):
    Key.asked = 0
    value = call()
    return value, Key.asked


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_hashes_are_counted_as_in_plain_python(name, jit):
    f, make = PROGRAMS[name]
    with wengert.jit(jit):
        for call in range(6):
            plain, own = ([] if make is None else [make()] for _ in range(2))
            x = 3.0 + call
            expected = asked(lambda plain=plain, x=x: f(*plain, x))
            assert asked(lambda own=own, x=x: wengert.pullback(f, *own, x)[0]) == expected


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("name", QUIET)
def test_a_hash_that_raises_is_not_asked(name, jit, monkeypatch):
    f, make = QUIET[name]
    given = [] if make is None else [make()]
    monkeypatch.setattr(Key, "armed", True)
    with wengert.jit(jit):
        for call in range(6):
            x = 3.0 + call
            value, back = wengert.pullback(f, *given, x)
            assert value == f(*given, x)
            assert back(1.0)[-1] == pytest.approx(f(*given, x + 1) - f(*given, x))


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("name", [x for x in QUIET if QUIET[x][1] and x != "set"])
def test_gradients_are_made_without_a_hash(name, jit):
    f, make = QUIET[name]
    given = make()
    with wengert.jit(jit):
        for _ in range(6):
            assert asked(lambda: wengert.grad(f, (0, 1))(given, 3.0))[1] == 0


@pytest.mark.parametrize("jit", [False, True])
def test_gradients_by_dicts_take_the_keys_over(jit):
    held = {Key(str(i)): float(i) for i in range(40)}
    held["plain"] = 40.0
    weights = [float(i * i) for i in range(41)]

    def f(d):
        return sum(v * w for v, w in zip(d.values(), weights, strict=True))

    with wengert.jit(jit):
        for _ in range(6):
            gradient, count = asked(lambda: wengert.grad(f)(held))
            assert count == 0
            assert all(a is b for a, b in zip(gradient, held, strict=True))
            assert list(gradient.values()) == weights
            assert all(gradient[key] == w for key, w in zip(held, weights, strict=True))


class Moving:
    """A key whose hash changes: a dict that holds it does not find it any more."""

    def __init__(self):
        self.state = 1

    def __hash__(self):
        return self.state


@pytest.mark.parametrize("jit", [False, True])
def test_keys_whose_hash_changes_are_lost_as_in_plain_python(jit):
    key, other = Moving(), Moving()
    held = {key: 2.0, other: 5.0}

    def find(d, x):
        return d.get(key, 7.0) * x + sum(d.values())

    with wengert.jit(jit):
        for call in range(8):
            key.state = 1 + call % 2 + (call > 5)
            assert wengert.value_and_grad(find, 1)(held, 3.0) == (
                find(held, 3.0),
                held.get(key, 7.0),
            )
            gradient = wengert.grad(find)(held, 3.0)
            found = held.get(key) is not None
            assert list(gradient.values()) == [1.0 + 3.0 * found, 1.0]
            assert (key in gradient) == found


@pytest.mark.parametrize("jit", [False, True])
def test_other_keys_at_the_same_positions_are_told_apart(jit):
    def f(d):
        return sum(v * i for i, v in enumerate(d.values(), 1))

    def g(d, x):
        return (d[A] - d[B]) * x

    def swapped(d):
        return dict(reversed(d.items()))

    with wengert.jit(jit):
        for call in range(8):
            held = values() if call % 3 else swapped(values())
            assert wengert.value_and_grad(f)(held)[0] == f(held)
            gradient = wengert.grad(g)(held, 3.0)
            assert gradient[A] == 3.0
            assert gradient[B] == -3.0
            assert [*gradient] == [*held]


class Silent:
    """A key of which nobody makes text."""

    def __repr__(self):
        raise AssertionError("somebody has made text of a key")


@pytest.mark.parametrize("jit", [False, True])
def test_no_text_is_made_of_keys(jit):
    key = Silent()
    held = {key: 2.0, (key, 1): [3.0, {key: 4.0}]}

    def f(d, x):
        return {**d}, d[key] * d[key, 1][0] * x

    with wengert.jit(jit):
        for call in range(6):
            (_, value), back = wengert.pullback(f, held, 2.0 + call)
            assert value == 6.0 * (2.0 + call)
            assert back((None, 1.0))[1] == 6.0
            assert back(({key: 1.0, (key, 1): None}, None))[0][key] == 1.0
    assert str(wengert.explain(f))
