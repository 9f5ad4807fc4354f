"""Exceptions from outside that the traced function raises: what is left in them is what plain Python leaves there."""

import threading

import pytest

from wengert import explain, grad, jit, value_and_grad

ERROR = LookupError("kept")


class Attributes:
    @property
    def none(self):
        raise ERROR


@pytest.fixture(params=[True, False], ids=["jit", "trace"])
def mode(request):
    with jit(request.param):
        yield


@pytest.fixture
def error(monkeypatch):
    monkeypatch.setitem(globals(), "ERROR", LookupError("kept"))
    return ERROR


def while_handling(x):
    try:
        try:
            raise KeyError(x * 1.0)
        except KeyError:
            raise ERROR  # noqa: B904
    except LookupError:
        return x * x


def of_a_cause(x):
    try:
        raise ERROR from KeyError(x * 1.0)
    except LookupError:
        return x * x


class Leaving:
    def __enter__(self):
        pass

    def __exit__(self, *_):
        raise ERROR


def leaving_a_with(x):
    try:
        with Leaving():
            raise KeyError(x * 1.0)
    except LookupError:
        return x * x


def in_a_generator(x):
    def steps():
        try:
            yield x
        finally:
            raise ERROR

    items = steps()
    next(items)
    try:
        items.throw(KeyError(x * 1.0))
    except LookupError:
        return x * x


@pytest.mark.parametrize("f", [while_handling, of_a_cause, leaving_a_with, in_a_generator])
def test_what_was_handled_holds_plain_values(f, error, mode):
    df = value_and_grad(f)
    for x in (1.5, 2.5, 3.5, 4.5, 5.5, 6.5):
        error.__context__ = error.__cause__ = error.__traceback__ = None
        f(x)
        plain = length(error)
        error.__context__ = error.__cause__ = error.__traceback__ = None
        assert df(x) == (x * x, 2 * x)
        before = error.__cause__ or error.__context__
        assert type(before.args[0]) is float
        assert before.args[0] == x
        assert length(error) == plain


def length(error):
    count, trace = 0, error.__traceback__
    while trace is not None:
        count, trace = count + 1, trace.tb_next
    return count


def test_the_frames_hold_plain_values(error, mode):
    def f(x):
        held = [x * 1.0]
        try:
            raise ERROR
        except LookupError:
            return held[0] * x

    assert grad(f)(3.0) == 6.0
    held = error.__traceback__.tb_frame.f_locals
    assert [type(held["x"]), type(held["held"][0])] == [float, float]


def test_what_looks_an_attribute_up_swallows_it(monkeypatch, mode):
    monkeypatch.setitem(globals(), "ERROR", AttributeError("kept"))

    def f(x):
        return x * x if hasattr(Attributes(), "none") else x * 3.0

    assert grad(f)(3.0) == 3.0
    assert length(ERROR) == 1


def test_a_run_in_another_thread_takes_nothing_from_this_one(error):
    def other(x):
        try:
            raise ERROR
        except LookupError:
            return x * x

    raised, ended = threading.Event(), threading.Event()

    def f(x):
        held = [x * 1.0]
        try:
            raise ERROR
        except LookupError:
            raised.set()
            ended.wait(60.0)
            return held[0] * x

    found = []
    thread = threading.Thread(target=lambda: found.append(grad(f)(3.0)))
    thread.start()
    assert raised.wait(60.0)
    with jit(False):
        assert grad(other)(2.0) == 4.0
    ended.set()
    thread.join()
    assert found == [6.0]


def test_no_program_does_the_same(error):
    df = grad(while_handling)
    for x in (1.5, 2.5, 3.5, 4.5, 5.5):
        df(x)
    assert "a LookupError from outside is raised" in str(explain(df, 1.5))


def in_a_list(x):
    try:
        raise ERRORS[0]
    except LookupError as e:
        return x * length(e)


ERRORS = [LookupError("kept")]


def test_the_traceback_grows_at_each_call(mode):
    ERRORS[:] = [LookupError("kept")]
    df = value_and_grad(in_a_list)
    assert [df(1.5) for _ in range(8)] == [(1.5 * i, i) for i in range(1, 9)]


def test_it_may_be_an_argument(mode):
    def f(x, error):
        try:
            try:
                raise KeyError(x)
            except KeyError:
                raise error  # noqa: B904
        except LookupError:
            return x * x

    error, df = LookupError("given"), grad(f)
    for x in (1.5, 2.5, 3.5, 4.5, 5.5, 6.5):
        assert df(x, error) == 2 * x
        assert type(error.__context__.args[0]) is float
        assert error.__context__.args == (x,)
