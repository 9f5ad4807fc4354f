"""The source of a tape runs when pasted and does what the function does, or is refused with what to do."""

import collections
import copy
import dataclasses
import math
import pickle
import random
from types import SimpleNamespace

import numpy as np
import pytest

from wengert import GuardError, custom_rule, forward, grad, pullback, reverse, save, trace
from wengert.tracer.errors import TraceError

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


REFUSED = [
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
