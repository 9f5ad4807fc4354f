"""An exception looks as in plain Python: message, frames, lines, variables, causes and contexts, notes and members."""

import contextlib
import functools
import io
import logging
import re
import sys
import traceback

import numpy as np
import pytest

import wengert
from helpers import assert_plain
from wengert import (
    CotangentError,
    WengertError,
    custom_rule,
    grad,
    jit,
    jvp,
    pullback,
    value_and_grad,
)

V = np.array([1.5, 2.5])


def formatted(error, name):
    """All that Python can show of an exception, from the frame of the function on that has this name."""
    found = traceback.TracebackException.from_exception(error, capture_locals=True)
    assert all(frame.filename == __file__ for frame in found.stack[:1])
    while found.stack and found.stack[0].name != name:
        assert found.stack[0].filename == __file__
        del found.stack[0]
    return re.sub(r"0x[0-9a-f]+", "0x…", "".join(found.format()))


def raised(f, *args, name=None):
    try:
        f(*args)
    except BaseException as error:
        return error, formatted(error, name or f.__name__)
    raise AssertionError("nothing was raised")


def frames_of(error):
    while error is not None:
        step = error.__traceback__
        while step is not None:
            yield step.tb_frame
            step = step.tb_next
        error = error.__cause__ or error.__context__


WAYS = {
    "grad": lambda f: grad(f),
    "value_and_grad": lambda f: value_and_grad(f),
    "pullback": lambda f: functools.partial(pullback, f),
    "jvp": lambda f: lambda *args: jvp(f, args, args),
    "second": lambda f: grad(grad(f)),
    "inner": lambda f: lambda *args: grad(functools.partial(value_of, f))(*args),
}


def value_of(f, x):
    return value_and_grad(f)(x)[0]


# ------------------------------------------------------------------------------------------- functions


class Ordered:
    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        held = [self.value, other.value]
        raise ValueError(f"{held} {self.value!r} < {other.value}")

    def __repr__(self):
        return f"Ordered({self.value!r})"

    def __add__(self, other):
        return self.value / (other - other)

    def __getitem__(self, key):
        return {key: self.value}[self.value]

    def __iter__(self):
        yield self.value
        raise LookupError(self.value)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        raise TypeError(self.value) from error[1]

    def __bool__(self):
        return self.value.nothing

    def __call__(self, x):
        return [x][self.value]


class Silent:
    def __getattr__(self, name):
        raise AttributeError(f"no {name}")


class Property:
    def __init__(self, x):
        self.x = x

    @property
    def broken(self):
        return self.x.missing

    def __getattr__(self, name):
        return self.__dict__[name]


def by_key(x):
    table = {"a": x, "b": [x, {"c": x}]}
    return table["missing"]


def by_traced_key(x):
    return {1.0: 2.0}[x]


def by_message(x):
    raise ValueError(f"{x} {x!r} {x:.3f} {[x, (x,)]}", x, [x * 2], {"k": x})


def by_assertion(x):
    y = x * 2
    assert y > 100, (x, y, f"{x}")


def by_operation(x):
    y = x - x
    return x / y


def by_types(x):
    return x + "a"


def by_types_reflected(x):
    return [] + x


def by_comparison(x):
    return x < "a"


def by_call(x):
    return x(1)


def by_attribute(x):
    return x.nothing


def by_item(x):
    return x[0]


def by_item_store(x):
    x[0] = 1


def by_item_delete(x):
    del x[0]


def by_index(x):
    return [1, 2, 3][x]


def by_range(x):
    return range(x)


def by_iteration(x):
    for _ in x:
        pass


def by_unpacking(x):
    a, b = x
    return a + b


def by_unpacking_more(x):
    a, b = [x]
    return a + b


def by_star(x):
    return max(*x)


def by_stars(x):
    return dict(**x)


def by_duplicate(x):
    return by_key(**{"x": x}, **{"x": x})


def by_wrong_keyword(x):
    return by_key(**{1: x})


def by_star_of_int(x):
    return by_key(*5) * x


def by_dict(x):
    return {**x}


def by_set(x):
    return {*x}


def by_stars_of_object(x):
    return by_keyword(**Ordered(x))


def by_base(x):
    class C(x):
        pass


def by_list(x):
    return [*x]


def by_length(x):
    return len(x)


def by_membership(x):
    return 1 in x


def by_context(x):
    with x:
        pass


def by_raise(x):
    raise x


def by_cause(x):
    raise ValueError(x) from x


def by_hash(x):
    return {[x]: 1}


def by_format(x):
    return f"{x:nonsense}"


def by_percent(x):
    return "%s %s" % x


def by_join(x):
    return ", ".join([x])


def by_conversion(x):
    return int("a") * x


def by_sort(x):
    return sorted([Ordered(x), Ordered(x * 2)])


def by_max(x):
    return max(Ordered(x), Ordered(x * 2))


def by_sort_key(x):
    return sorted([x, x * 2], key=lambda y: y.nothing)


def by_map(x):
    return list(map(lambda y: 1 / (y - y), [x]))


def by_reduce(x):
    return functools.reduce(lambda a, b: a + b / 0, [x, x])


def by_special_method(x):
    return Ordered(x) + x


def by_special_item(x):
    return Ordered(x)[1]


def by_special_iteration(x):
    return sum(Ordered(x))


def by_special_call(x):
    return Ordered(x)(x)


def by_special_context(x):
    with Ordered(x) as held:
        raise KeyError(held.value)


def by_truth(x):
    return 1 if Ordered(x) else 2


def by_getattr(x):
    return Silent().nothing * x


def by_property(x):
    return Property(x).broken


def generator(x):
    held = [x]
    yield x
    raise KeyError(held)


def by_generator(x):
    return sum(generator(x))


def by_yield_from(x):
    def outer():
        yield from generator(x)

    return [*outer()]


def by_next(x):
    return next(iter([y for y in [x] if y > 100]))


def by_stop(x):
    def g():
        yield x
        return x * 2

    steps = g()
    next(steps)
    next(steps)


def by_thrown(x):
    steps = generator(x)
    next(steps)
    steps.throw(ValueError(x))


def by_comprehension(x):
    return [i / (x - x) for i in range(3)]


def by_lambda(x):
    return (lambda y: y.nothing)(x)


def by_chain(x):
    try:
        return by_key(x)
    except KeyError as error:
        raise RuntimeError("chained", x) from error


def by_context_of(x):
    try:
        return by_operation(x)
    except ZeroDivisionError:
        return by_key(x)


def by_suppressed(x):
    try:
        return by_operation(x)
    except ZeroDivisionError:
        raise RuntimeError(x) from None


def by_finally(x):
    y = x * 2
    try:
        return by_key(x)
    finally:
        y = by_attribute(y)


def by_reraise(x):
    try:
        return by_key(x)
    except KeyError as error:
        error.add_note(f"with {x}")
        raise


def by_raising_again(x):
    try:
        return by_key(x)
    except KeyError as error:
        kept = error
    raise kept


def by_group(x):
    held = []
    for f in (by_key, by_operation):
        try:
            f(x)
        except Exception as error:
            held.append(error)
    raise ExceptionGroup("both", [*held, ExceptionGroup("inner", [ValueError(x)])])


def by_split_group(x):
    try:
        raise ExceptionGroup("g", [ValueError(x), KeyError(x), TypeError(x)])
    except* ValueError:
        pass
    except* KeyError as group:
        raise RuntimeError(x) from group


def by_attributes(x):
    class Own(Exception):
        def __init__(self, x):
            super().__init__("own")
            self.x, self.held = x, {"x": [x]}

    raise Own(x)


def by_name(x):
    return nothing * x  # noqa: F821


def by_unbound(x):
    if x > 100:
        y = x
    return y


def by_import(x):
    from math import nothing

    return nothing(x)


def by_arguments(x):
    return by_key(x, x)


def by_keyword(x):
    return by_key(y=x)


def by_library(x):
    return np.linalg.inv(np.array([[x, x], [x, x]]))


def by_numpy(x):
    return np.array([x, 1.0]) @ np.array([x, 1.0, 2.0])


def by_numpy_index(x):
    return np.array([x, 1.0])[5]


def by_numpy_reshape(x):
    return np.array([x, 1.0]).reshape(3)


def by_json(x):
    import json

    return json.loads("{" + "a" * len([x]))


def by_exec(x):
    exec("def g(a):\n    raise ValueError(a)\ng(x)")


def by_exit(x):
    sys.exit(x)


def by_open(x):
    with open("/nonexistent/file"):
        return x


def by_class_body(x):
    class C:
        y = x * 2
        z = y.nothing


def by_descriptor(x):
    class D:
        def __get__(self, obj, cls):
            raise ValueError(x)

    class C:
        d = D()

    return C().d


def by_metaclass(x):
    class M(type):
        def __new__(mcs, name, bases, space):
            raise ValueError(x)

    class C(metaclass=M):
        pass


def by_match(x):
    match [x, x]:
        case [a, b] if a / 0 > b:
            return a


def by_cells(x):
    y = x * 2

    def inner():
        nonlocal y
        y = y * x
        return [z.nothing for z in [y] if (lambda: z)()]

    return inner()


def by_containers(x):
    a, b, c, d = [x], {x: x}, {x}, ((x,),)
    e = Property(x)
    e.held = [e, a]
    return a, b, c, d, e, 1 / 0


def by_deep_recursion(x):
    def down(n):
        return down(n - 1) if n else by_key(x)

    return down(20)


def by_interrupt(x):
    raise KeyboardInterrupt(x)


def by_cached(x):
    @functools.lru_cache
    def g(n):
        return by_key(x * n)

    return g(2)


def by_partial(x):
    return functools.partial(by_key, x)()


def by_singledispatch(x):
    @functools.singledispatch
    def g(a):
        raise ValueError(a)

    return g(x)


def by_context_manager(x):
    @contextlib.contextmanager
    def managed():
        try:
            yield x
        except ValueError as error:
            raise RuntimeError(x) from error

    with managed() as y:
        raise ValueError(y)


def by_exit_stack(x):
    with contextlib.ExitStack() as stack:
        stack.callback(by_key, x)
        return by_operation(x)


FUNCTIONS = [f for name, f in list(globals().items()) if name.startswith("by_")]


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_shown_as_in_plain_python(f):
    plain, text = raised(f, 1.5)
    for on in (False, True):
        with jit(on):
            mine, mine_text = raised(grad(f), 1.5, name=f.__name__)
            assert mine_text == text
            assert type(mine).__qualname__ == type(plain).__qualname__
            assert_plain(mine)
            for frame in frames_of(mine):
                if frame.f_code.co_name != "raised":
                    assert_plain({k: v for k, v in frame.f_locals.items() if k != "self"})


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "f", [by_message, by_sort, by_generator, by_chain, by_group, by_cells, by_library, by_exec]
)
def test_whoever_asks(f, way):
    text = raised(f, 1.5)[1]
    g = WAYS[way](f)
    for on in (False, True):
        with jit(on):
            for _ in range(3):
                assert raised(g, 1.5, name=f.__name__)[1] == text


def late(x, n):
    y = [x * i for i in range(n)]
    z = {"y": y[-1]}
    if x > 2:
        raise ValueError(f"{x}, {z}")
    return z["y"] / (x - 1.0) if x > 1 else y[n]


@pytest.mark.parametrize("way", WAYS)
def test_kept_programs(way):
    expected = {x: raised(late, x, 3)[1] for x in (3.0, 0.5)}
    g = WAYS[way](lambda x: late(x, 3))
    with jit(True):
        for x in (1.5, 1.6, 1.7, 3.0, 1.5, 0.5, 3.0, 1.8, 0.5):
            if x in expected:
                assert raised(g, x, name="late")[1] == expected[x]
            else:
                g(x)


# --------------------------------------------------------------------------------------- in the function


def told(x):
    """Everything that a program can say of an exception that it has caught."""
    said = []
    for f in (by_key, by_sort, by_generator, by_map, by_chain, by_group, by_property, by_library):
        try:
            f(x)
        except Exception as error:
            said.append(traceback.format_exc())
            said.append("".join(traceback.format_exception(error)))
            out = io.StringIO()
            traceback.print_exc(file=out)
            said.append(out.getvalue())
            kind, value, steps = sys.exc_info()
            said.append("".join(traceback.format_exception(kind, value, steps)))
            said.append([(s.name, s.lineno) for s in traceback.extract_tb(error.__traceback__)])
            steps, names = error.__traceback__, []
            while steps is not None:
                names.append((steps.tb_frame.f_code.co_name, steps.tb_lineno, steps.tb_lasti > 0))
                steps = steps.tb_next
            said.append(names)
            log = logging.getLogger("told")
            handler = logging.StreamHandler(out := io.StringIO())
            log.addHandler(handler)
            log.propagate = False
            log.exception("it went wrong: %s", error)
            log.removeHandler(handler)
            said.append(out.getvalue())
    return said


def test_what_a_program_says_of_exceptions():
    expected = re.sub("0x[0-9a-f]+", "0x…", repr(told(1.5)))
    for on in (False, True):
        with jit(on):
            for _ in range(3):
                value, _ = value_and_grad(lambda x: (x, told(x)), has_aux=True)(1.5)
                assert re.sub("0x[0-9a-f]+", "0x…", repr(value[1])) == expected


shown = {"times": 0}


class Weighed(Exception):
    """Says in its text what its number is, and counts how often it is asked."""

    def __init__(self, x):
        super().__init__(x)
        self.x = x

    def __str__(self):
        shown["times"] += 1
        shown["weight"] = shown["weight"] * self.x
        return f"{self.x} is a {type(self.x).__name__}, {isinstance(self.x, float)}"


def logged(tell):
    log = logging.Logger("weighed")
    log.addHandler(logging.StreamHandler(out := io.StringIO()))
    tell(log)
    return out.getvalue()


def printed(error, out):
    traceback.print_exc(file=out)
    return out.getvalue()


TELLING = {
    "format_exc": lambda e: traceback.format_exc(),
    "print_exc": lambda e: printed(e, io.StringIO()),
    "format_exception": lambda e: "".join(traceback.format_exception(e)),
    "format_exception_only": lambda e: "".join(traceback.format_exception_only(e)),
    "TracebackException": lambda e: str(traceback.TracebackException.from_exception(e)),
    "exception": lambda e: logged(lambda log: log.exception("failed")),
    "exc_info": lambda e: logged(lambda log: log.error("failed", exc_info=True)),
    "exc_info of it": lambda e: logged(lambda log: log.error("failed", exc_info=e)),
    "the message": lambda e: logged(lambda log: log.error(e)),
    "an argument": lambda e: logged(lambda log: log.error("failed: %s", e)),
}


@pytest.mark.parametrize("on", [False, True])
@pytest.mark.parametrize("name", TELLING)
def test_the_text_of_an_exception_that_is_told_of_is_followed(name, on):
    texts = []

    def f(x, chained):
        shown["weight"], shown["times"] = x, 0
        try:
            try:
                raise Weighed(x)
            except Weighed as error:
                if not chained:
                    raise
                raise KeyError("another") from error
        except (Weighed, KeyError) as error:
            texts.append(TELLING[name](error))
        return shown["weight"] * (1 + shown["times"])

    with jit(on):
        for x, chained in ((1.5, False), (2.5, True), (0.5, False), (3.5, True)):
            expected, times = f(x, chained), shown["times"]
            assert value_and_grad(f)(x, chained)[0] == expected
            assert texts[-1] == texts[-2]
            slope = (times + 1) ** 2 * x**times
            assert value_and_grad(f)(x, chained)[1] == pytest.approx(slope)


class Watching:
    def __init__(self, seen):
        self.seen = seen

    def __enter__(self):
        return self

    def __exit__(self, kind, error, steps):
        while steps is not None:
            self.seen.append((steps.tb_frame.f_code.co_name, steps.tb_lineno))
            steps = steps.tb_next
        return True


def watched(x, seen):
    with Watching(seen):
        by_sort(x)
    with contextlib.suppress(KeyError):
        by_key(x)
    return x


def test_what_a_context_manager_sees():
    plain, mine = [], []
    watched(1.5, plain)
    grad(watched)(1.5, mine)
    assert mine == plain


def test_exceptions_that_stay_behind():
    def f(x, kept):
        held = [x]
        try:
            by_chain(x)
        except RuntimeError as error:
            kept.append(error)
        return held[0] * x

    plain, mine = [], []
    f(1.5, plain)
    assert grad(f)(1.5, mine) == 3.0
    assert formatted(mine[0], "f") == formatted(plain[0], "f")
    for frame in frames_of(mine[0]):
        assert_plain(dict(frame.f_locals))


# ------------------------------------------------------------------------------------------ of our own


@custom_rule
def own_rule(x):
    def pullback(dy):
        raise ValueError("in the reverse sweep")

    return x * x, pullback


def names_in(error):
    return [(s.filename, s.name) for s in traceback.extract_tb(error.__traceback__)]


def files(error):
    return {frame.f_code.co_filename for frame in frames_of(error)}


def test_errors_of_rules_show_the_rule():
    def f(x):
        return own_rule(x) * 2

    for ask in (grad(own_rule), grad(f), lambda x: pullback(f, x)[1](1.0)):
        for _ in range(3):
            with pytest.raises(Exception, match="in the reverse sweep") as error:
                ask(1.5)
            assert files(error.value) == {__file__}
            names = [frame.f_code.co_name for frame in frames_of(error.value)]
            assert names[-1] == "pullback"


def refused(x):
    held = [x]
    return memoryview(np.array(held))


def test_refusals_show_the_line_of_the_user():
    for ask in (grad(refused), functools.partial(pullback, refused)):
        with pytest.raises(WengertError) as error:
            ask(1.5)
        assert [n for _, n in names_in(error.value)][-1] == "refused"
        assert files(error.value) == {__file__}


@pytest.mark.parametrize(
    "ask",
    [
        lambda: grad(3),
        lambda: grad(lambda x: x)("a"),
        lambda: grad(lambda x: x, argnums=0.5),
        lambda: grad(lambda x: x, argnums="a")(1.0),
        lambda: grad(lambda x: [x])(1.0),
        lambda: pullback(lambda x: x * 2, 1.0)[1](V),
        lambda: pullback(lambda x: V * x, 1.0)[1]("a"),
        lambda: jvp(lambda x: x, (1.0,), ("a",)),
        lambda: wengert.linearize(lambda x: x, 1.0)[1](1.0, 2.0),
        lambda: wengert.hessian(3),
        lambda: wengert.jacobian(lambda x: x, mode="sideways"),
        lambda: wengert.check_grads(lambda x: [x, 1 / 0], (1.0,)),
        lambda: wengert.explain(3),
        lambda: wengert.reverse(wengert.trace(lambda x: x * x, 1.0), wrt="y"),
        lambda: wengert.checkpoint(lambda x: x.nothing)(1.0),
    ],
)
def test_errors_of_our_own_show_who_has_called(ask):
    with pytest.raises(Exception) as error:
        ask()
    assert {f for f, _ in names_in(error.value)} == {__file__}


def test_cotangents_that_do_not_fit():
    def f(x):
        return x * V

    for _ in range(3):
        value, back = pullback(f, 2.0)
        with pytest.raises(CotangentError) as error:
            back(np.ones(3))
        assert len(names_in(error.value)) == 1


def test_everything_is_shown_on_demand(monkeypatch):
    monkeypatch.setenv("WENGERT_TRACEBACK", "full")
    with pytest.raises(KeyError) as error:
        grad(by_key)(1.5)
    assert any("transforms" in f for f, _ in names_in(error.value))
    monkeypatch.delenv("WENGERT_TRACEBACK")
    with pytest.raises(KeyError) as error:
        grad(by_key)(1.5)
    assert {f for f, _ in names_in(error.value)} == {__file__}


def deeper_and_raised_again(n):
    try:
        return deeper_and_raised_again(n + 1)
    except RecursionError:
        raise


def deeper_and_another(n):
    try:
        return deeper_and_another(n + 1)
    except RecursionError:
        raise ValueError("too deep") from None


def deeper_and_done(n):
    try:
        return deeper_and_done(n + 1)
    finally:
        n -= 1


@pytest.mark.parametrize("f", [deeper_and_raised_again, deeper_and_another, deeper_and_done])
def test_an_instruction_without_a_line_in_a_traceback(f):
    def outcome(ask):
        try:
            ask()
        except Exception as error:
            return type(error)

    for on in (False, True):
        with jit(on):
            for _ in range(3):
                assert outcome(lambda: pullback(f, 0.5)) is outcome(lambda: f(0.5))
