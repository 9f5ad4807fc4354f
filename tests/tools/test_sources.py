"""The source of a tape runs when pasted and does what the function does, or is refused with what to do."""

import collections
import copy
import dataclasses
import itertools
import math
import pickle
import random
from types import SimpleNamespace

import numpy as np
import pytest

from wengert import (
    GuardError,
    custom_rule,
    forward,
    grad,
    numeric_rule,
    pullback,
    reverse,
    save,
    trace,
)
from wengert.tracer.errors import TraceError
from wengert.transforms.numeric import NumericRuleWarning

V = np.array([0.5, -1.2, 2.0])
LOG: list = []
TABLE: dict = {}
SEEN: set = set()
TALLY = collections.Counter()
QUEUE = collections.deque()
HOLDER = SimpleNamespace(last=0.0)
COUNT = 0
STREAM, OTHER = np.random.default_rng(3), random.Random(5)


def seeded():
    random.seed(4)
    np.random.seed(4)


def gives_what(f, tmp_path, *args):
    """Each source of ``f`` gives what plain Python gives, with the generators in the same state."""
    seeded()
    tape = trace(f, *copy.deepcopy(args))
    sources = [(tape.source("f"), lambda r: r), (reverse(tape).source("f"), lambda r: r[0])]
    save(f, tmp_path / "f.py", *copy.deepcopy(args))
    sources.append(
        ((tmp_path / "f.py").read_text().replace(f"def {f.__name__}(", "def f("), lambda r: r)
    )
    seeded()
    plain = f(*copy.deepcopy(args))
    for text, value in sources:
        assert "wengert" not in text
        names = {}
        exec(compile(text, "source", "exec"), names)
        seeded()
        assert value(names["f"](*copy.deepcopy(args))) == plain


def uniform(x):
    return x * random.random() + random.uniform(1.0, 2.0)


def normal(x):
    return x * np.random.normal() + np.random.rand(3).sum()


def looped(x):
    for _ in range(50):
        x = x + 0.1 * random.random() * np.random.normal(1.0, 2.0)
    return x


def permuted(v):
    return (v[np.random.permutation(3)] * np.arange(3.0)).sum()


def decided(x):
    return x * x if random.random() < 2.0 else x


def given(x, rng):
    return x * rng.normal() + rng.random(3).sum()


def given_state(x, rng):
    return x * rng.normal() + rng.rand(3).sum()


def given_by_python(x, rng):
    return x * rng.random() + rng.uniform(1.0, 2.0)


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (uniform, (1.5,)), (normal, (1.5,)), (looped, (1.5,)), (permuted, (V,)), (decided, (1.5,)),
        (given, (1.5, np.random.default_rng(2))), (given_state, (1.5, np.random.RandomState(2))),
        (given_by_python, (1.5, random.Random(2))),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)  # fmt: skip
def test_random_numbers_are_drawn_by_the_functions_that_drew_them(tmp_path, f, args):
    gives_what(f, tmp_path, *args)


def test_a_tape_draws_from_the_generator_that_it_is_given():
    for make, f in ((np.random.default_rng, given), (random.Random, given_by_python)):
        tape = trace(f, 1.5, make(2))
        assert tape(2.5, make(7)) == f(2.5, make(7))


def test_what_is_changed_among_the_arguments_is_changed_by_the_text(tmp_path):
    def f(x, log, table, holder):
        log.append(x * 2.0)
        table["x"] = x
        holder.last = x + 1.0
        return x * x

    def arguments():
        return [1.0], {"y": 2.0}, SimpleNamespace(last=0.0)

    save(f, tmp_path / "f.py", 1.5, *arguments())
    for text in (trace(f, 1.5, *arguments()).source("f"), (tmp_path / "f.py").read_text()):
        names, (log, table, holder) = {}, arguments()
        exec(text, names)
        assert names["f"](2.5, log, table, holder) == 6.25
        assert (log, table, holder.last) == ([1.0, 5.0], {"y": 2.0, "x": 2.5}, 3.5)


def appends(x):
    LOG.append(x)
    return x * len(LOG)


def stores(x):
    TABLE["x"] = x
    return x * x


def adds(x):
    SEEN.add(3)
    return x * x


def counts(x):
    TALLY["calls"] += 1
    return x * TALLY["calls"]


def queues(x):
    QUEUE.append(x)
    return x * x


def sets_attribute(x):
    HOLDER.last = x
    return x * x


def sets_global(x):
    global COUNT
    COUNT += 1
    return x * COUNT


def counter():
    n = 0

    def sets_closure(x):
        nonlocal n
        n += 1
        return x * n

    return sets_closure


def from_outside(x):
    return x * STREAM.normal()


def from_outside_in_python(x):
    return x * OTHER.random()


def gauss(x):
    return x * random.gauss(0.0, 1.0)


def own_generator(x):
    return x * np.random.default_rng(0).normal()


def chosen(x):
    return x * random.choice([1.0, 2.0])


def shuffled(x):
    xs = [x, 2.0 * x]
    random.shuffle(xs)
    return xs[0] - xs[1]


def by_parameters(x):
    return x * np.random.normal(x, 2.0)


ITEMS = iter(np.arange(1.0, 99.0).tolist())
NUMBERED = itertools.count(1)


def endless():
    while True:
        yield 2.0


ENDLESS = endless()


def next_of_an_iterator(x):
    return x * next(ITEMS)


def next_of_a_count(x):
    return x * next(NUMBERED)


def next_of_a_generator(x):
    for y in ENDLESS:
        return x * y


REFUSED = [
    (next_of_an_iterator, "ITEMS is a list_iterator from outside", "make a list of it"),
    (next_of_a_count, "NUMBERED is a count from outside", "make a list of it"),
    (next_of_a_generator, "ENDLESS is a generator from outside", "make a list of it"),
    (appends, "LOG is changed", "take what is changed as an argument"),
    (stores, "TABLE is changed", "take what is changed as an argument"),
    (adds, "SEEN is changed", "take what is changed as an argument"),
    (queues, "QUEUE is changed", "take what is changed as an argument"),
    (counts, "a Counter from outside is changed", "as an argument"),
    (sets_attribute, "last of a SimpleNamespace is set", "take what is changed as an argument"),
    (sets_global, "a global variable is changed", "return what is new"),
    (counter(), "enclosing function is set|writes to the closure", "return what is new"),
    (from_outside, "a Generator cannot be written", "take the generator as an argument"),
    (from_outside_in_python, "a Random cannot be written", "take the generator as an argument"),
    (gauss, "gauss_next of a Random is set", "normalvariate"),
    (
        own_generator,
        "a Generator cannot be written|default_rng gives a Generator",
        "as an argument",
    ),
    (chosen, "getrandbits gives the whole number", "as an argument"),
    (shuffled, "getrandbits gives the whole number", "as an argument"),
    (by_parameters, "a draw from normal whose parameters", r"loc \+ scale"),
]


@pytest.mark.parametrize(
    ("f", "why", "cure"), REFUSED, ids=lambda x: x.__name__ if callable(x) else ""
)
def test_what_a_text_cannot_do_is_refused(tmp_path, f, why, cure):
    path = tmp_path / "f.py"
    for asked in (
        lambda: trace(f, 1.5).source(),
        lambda: reverse(trace(f, 1.5)).source(),
        lambda: save(f, path, 1.5),
        lambda: save(grad(f), path, 1.5),
    ):
        with pytest.raises(TraceError, match=why) as error:
            asked()
        error.match(cure)
        assert 2 <= len(str(error.value).splitlines()) <= 6
    assert not path.exists()


def test_a_pullback_that_is_kept_or_pickled_tells_it_too():
    for _ in range(4):
        back = pullback(chosen, 2.0)[1]
        for one in (back, pickle.loads(pickle.dumps(back))):
            with pytest.raises(TraceError, match="getrandbits gives the whole number"):
                one.source()


def test_a_seed_is_no_line_of_a_tape(tmp_path):
    def f(x):
        np.random.seed(0)
        return x * np.random.rand()

    with pytest.raises(TraceError, match="seed sets the state of a generator"):
        trace(f, 1.5).source()
    save(f, tmp_path / "f.py", 1.5)  # which notes more than a tape does
    names = {}
    exec((tmp_path / "f.py").read_text(), names)
    np.random.seed(9)
    assert names["f"](1.5) == f(1.5)


TOTAL = 0


def test_a_helper_that_sets_a_variable_outside_of_it_is_refused():
    total = 0

    @custom_rule(pure=True)
    def by_closure(x):
        nonlocal total
        total += 1
        return x * x, lambda dy: (2 * x * dy,)

    @custom_rule(pure=True)
    def by_global(x):
        global TOTAL
        TOTAL += 1
        return x * x, lambda dy: (2 * x * dy,)

    @custom_rule(pure=True)
    def inside(x):
        n = 0

        def count():
            nonlocal n
            n += 1
            return n

        count()
        return x * x * count(), lambda dy: (4 * x * dy,)

    for rule, name in ((by_closure, "total"), (by_global, "TOTAL")):
        with pytest.raises(
            TraceError, match=f"{rule.__name__} sets {name}, which lies outside of it"
        ):
            trace(lambda x: rule(x) + x, 1.5).source()
    names = {}
    exec(trace(lambda x: inside(x) + x, 1.5).source("f"), names)
    assert names["f"](3.0) == 21.0


@dataclasses.dataclass
class Pair:
    a: float
    b: float


class Items(list):
    pass


def test_an_object_as_result_is_the_dict_of_its_attributes():
    """Whatever its class: a tape that is run, its source and its reverse look into it."""
    for make, seen in (
        (Pair, {"a": 4.0, "b": 6.0}),
        (lambda a, b: SimpleNamespace(a=a, b=b), {"a": 4.0, "b": 6.0}),
        (lambda a, b: collections.deque([a, b]), [4.0, 6.0]),
        (lambda a, b: Items([a, b]), [4.0, 6.0]),
        (lambda a, b: collections.OrderedDict(a=a, b=[b]), {"a": 4.0, "b": [6.0]}),
    ):

        def f(x, make=make):
            return make(x * x, 3.0 * x)

        tape = trace(f, 1.5)
        names = {}
        exec(tape.source("f"), names)
        assert tape(2.0) == names["f"](2.0) == seen
        assert reverse(tape)(2.0, 1.0, 10.0) == (seen, (34.0,))
        exec(pullback(f, 2.0)[1].source(), names)
        assert names["back"](2.0, 1.0, 10.0) == (34.0,)


def read(text, name):
    names = {}
    exec(compile(text, "source", "exec"), names)
    return names[name]


def test_parameters_with_the_names_of_builtins_and_modules(tmp_path):
    """The text needs `range`, `ValueError` and `np` itself, and is called as the function is."""

    def f(range, ValueError, *, np, list):
        x = ValueError
        for _ in (1, 2, 3):
            if x > 0:
                x = x * range + np * list[0]
        return x

    given = {"np": 4.0, "list": [1.0, 2.0]}
    tape = trace(f, 2.0, 3.0, **given)
    save(grad(f), tmp_path / "f.py", 2.0, 3.0, **given)
    other = {"np": 3.0, "list": [1.5, 2.0]}
    assert read(tape.source("g"), "g")(1.5, ValueError=2.5, **other) == f(1.5, 2.5, **other)
    value, slopes = read(reverse(tape).source("g"), "g")(1.5, 2.5, **other)
    assert value == f(1.5, 2.5, **other)
    slope = read((tmp_path / "f.py").read_text(), "grad_f")
    assert slope(1.5, 2.5, **other) == slopes[0] == grad(f)(1.5, 2.5, **other)
    with pytest.raises(ValueError, match="^range must be a float"):
        slope(2, 3.0, **given)
    with pytest.raises(ValueError, match="^list must be a list"):
        slope(2.0, 3.0, np=4.0, list=(1.0, 2.0))
    with pytest.raises(ValueError, match="was True in the traced run"):
        slope(2.0, -3.0, **given)


def test_a_function_with_the_name_of_a_builtin():
    def sum(x):
        for _ in (1, 2, 3, 4, 5):
            x = x * x
        return x

    tape = trace(sum, 1.1)
    assert read(tape.source(), "sum_")(1.2) == sum(1.2)
    with pytest.raises(TraceError, match="range is what the source calls itself"):
        tape.source("range")


def emptied(xs):
    s = 0.0
    while xs:
        s = s * 0.5 + xs.pop()
    return s


def taken_out(d, x):
    xs = d.pop("a")
    return x * xs[0] * xs[1] * xs[2] * xs[3] * xs[4]


def put_in_turn(a, b, x):
    for i in range(8):
        (a, b)[i % 2].append(x * i)
    return x * x


def drawn_in_turn(a, b, x):
    for i in range(8):
        x = x + (a, b)[i % 2].normal()
    return x * x


def set_in_turn(a, b, x):
    for i in range(8):
        (a, b)[i % 2].last = x * i
    return x * x


def streams():
    return np.random.default_rng(1), np.random.default_rng(2)


@pytest.mark.parametrize(("f", "arguments"), [
    (emptied, lambda: ([1.0, 2.0, 3.0],)),
    (emptied, lambda: ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0],)),
    (taken_out, lambda: ({"a": [1.0, 2.0, 3.0, 4.0, 5.0]}, 2.0)),
    (put_in_turn, lambda: ([], [], 2.0)),
    (drawn_in_turn, lambda: (*streams(), 2.0)),
    (set_in_turn, lambda: (SimpleNamespace(), SimpleNamespace(), 2.0)),
])  # fmt: skip
def test_what_loops_do_to_arguments_the_text_does_to_them(tmp_path, f, arguments):
    tape = trace(f, *arguments())
    save(f, tmp_path / "f.py", *arguments())
    plain = arguments()
    value = f(*plain)
    for text in (tape.source("f"), (tmp_path / "f.py").read_text()):
        given = arguments()
        assert read(text, "f" if "def f(" in text else f.__name__)(*given) == value
        assert [*map(repr, given)] == [*map(repr, plain)] or f is drawn_in_turn
    back = reverse(tape)
    assert read(back.source("f"), "f")(*arguments()) == back(*arguments())


def test_a_numeric_rule_is_written_out_with_its_differences(tmp_path):
    @numeric_rule
    def black(x, k):
        return np.sort(x) * math.sin(k)

    def f(x, k):
        return (black(x, k=k) * x).sum()

    v, w = np.array([3.0, 1.0, 2.0]), np.array([1.0, -2.0, 0.5])
    with pytest.warns(NumericRuleWarning):
        back = reverse(trace(f, v, 2.0))
    save(grad(f), tmp_path / "f.py", v, 2.0)
    for text in (back.source("f"), (tmp_path / "f.py").read_text()):
        assert "wengert" not in text
    _, (dx, dk) = read(back.source("f"), "f")(w, 1.5)
    h = 1e-6
    numeric = [(f(w + h * e, 1.5) - f(w - h * e, 1.5)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(dx, numeric, rtol=1e-8)
    assert dk == pytest.approx(math.cos(1.5) * (np.sort(w) * w).sum(), rel=1e-9)
    np.testing.assert_allclose(read((tmp_path / "f.py").read_text(), "grad_f")(w, 1.5), dx)


def test_arrays_of_another_shape_are_no_arguments_of_a_text():
    """The gradient of `v[::-1][:3]` for four numbers would be taken for that of five."""
    tape = trace(lambda v: (v[[0, 2, 2]] * v[::-1][:3]).sum(), np.arange(4.0))
    for text in (tape.source("f"), reverse(tape).source("f"), pullback(np.sum, V)[1].source()):
        f = read(text, "f" if "def f(" in text else "back")
        for other in (np.arange(5.0), np.arange(4), np.arange(4.0, dtype="f4")):
            with pytest.raises(ValueError, match=r"must be a float64\[\d\], as in the traced run"):
                f(other) if "def f(" in text else f(other, 1.0)


def test_other_functions_are_no_arguments_of_a_text():
    def twice(x):
        return x * 2.0

    def thrice(x):
        return x * 3.0

    text = trace(lambda f, x: f(x) * x, twice, 2.0).source("f")
    assert read(text, "f")(twice, 3.0) == 18.0
    with pytest.raises(ValueError, match="was twice in the traced run"):
        read(text, "f")(thrice, 3.0)


def test_a_text_goes_by_the_shapes_of_arrays():
    """Lengths that were asked for are constants in it."""
    mean = lambda x: x.sum() / x.size  # noqa: E731
    for text, name, rest in (
        (trace(mean, np.ones(4)).source("f"), "f", ()),
        (pullback(mean, np.ones(4))[1].source(), "back", (1.0,)),
    ):
        names = {}
        exec(text, names)
        names[name](np.ones(4), *rest)
        with pytest.raises(ValueError, match=r"x must be a float64\[4\], as in the traced run"):
            names[name](np.ones(5), *rest)


def caught(x):
    try:
        return math.log(x)
    except ValueError:
        return 2 * x


def dropped(x):
    math.sqrt(x)
    return x * x


@pytest.mark.parametrize(("f", "at"), [
    (lambda x: math.log(x), -1.0),
    (caught, -1.0),
    (dropped, -1.0),
    (lambda x: 3 * x + math.exp(x), 1e4),
    (lambda x: 1 / x, 0.0),
    (lambda x: 2 * x + math.gamma(math.floor(x)), -2.0),
])  # fmt: skip
def test_what_raises_raises_where_the_value_is_not_asked_for(f, at, tmp_path):
    """A function that raises has no derivative there, and one that catches it has another one."""
    tape, back = trace(f, 2.0), pullback(f, 2.0)[1]
    save(grad(f), tmp_path / "f.py", 2.0)
    answers = [reverse(tape, value=False), lambda x: forward(tape)(x, 1.0)]
    answers.append(lambda x: back.tape(x, *[1.0] * (len(back.tape.inputs) - 1)))
    texts = reverse(tape, value=False).source("g"), (tmp_path / "f.py").read_text()
    for text in texts:
        names = {}
        exec(text, names)
        answers.append(next(x for key, x in names.items() if key.startswith("g")))
    for answer in answers:
        answer(3.0)
        with pytest.raises((ValueError, ZeroDivisionError, OverflowError)):
            answer(at)


def until(x):
    total = 0.0
    for i, v in enumerate(x):
        total += v
        if total > 2.0:
            break
    return total * i


def by_fives(x):
    held = [0.0] * 5
    for i, v in enumerate(x):
        held[i % 5] += v * v
    return max(held) * held[0]


@pytest.mark.parametrize("f", [until, by_fives])
def test_the_tape_of_each_pullback_of_a_loop_says_where_it_does_not_hold(f):
    """Also that of the call for which the iterations of the loop were marked."""
    x = [0.001 * i for i in range(60)]
    other = [0.1 * (60 - i) for i in range(60)]
    for _ in range(6):
        back = pullback(f, x)[1]
        np.testing.assert_allclose(back.tape(x, 1.0), np.array(back(1.0)[0]))
        names = {}
        exec(back.source(), names)
        np.testing.assert_allclose(names["back"](x, 1.0), np.array(back(1.0)[0]))
        for answer in (back.tape, names["back"]):
            try:
                found = answer(other, 1.0)
            except (GuardError, ValueError) as error:
                assert f is until and "in the traced run" in str(error)
            else:
                np.testing.assert_allclose(found, grad(f)(other))
