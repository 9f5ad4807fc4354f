"""What a run puts outside is plain there, while the run goes on to know its traced values."""

import copy
import os

import numpy as np
import pytest

import wengert

KEPT = []


class Kept:
    pass


class Bad(Exception):
    def __init__(self, value):
        super().__init__("bad")
        self.value = value


def judged(f, shown, refused=False):
    """Against plain Python and differences, over several calls, with what is left outside; or each is refused."""

    def plain(x):
        KEPT.clear()
        return f(x)

    for on in (False, True):
        with wengert.jit(on):
            for x in (1.3, 1.3, 1.3, 2.1, 0.7):
                expected, left = plain(x), [shown(one) for one in KEPT]
                KEPT.clear()
                if refused:
                    with pytest.raises(wengert.WengertError, match=os.path.basename(__file__)):
                        wengert.value_and_grad(f)(x)
                    continue
                value, slope = wengert.value_and_grad(f)(x)
                assert value == expected
                assert [shown(one) for one in KEPT] == left
                assert slope == pytest.approx((plain(x + 1e-6) - plain(x - 1e-6)) / 2e-6, rel=1e-6)


def raised(x):
    try:
        raise ValueError(x * 2)
    except ValueError as e:
        KEPT.append(e)
        return e.args[0] * x


def with_a_cause(x):
    try:
        try:
            raise KeyError(x * 3)
        except KeyError as e:
            raise ValueError(x * 2) from e
    except ValueError as e:
        KEPT.append(e)
        return e.__cause__.args[0] * e.args[0]


def raised_again(x):
    e = ValueError(x * 2)
    KEPT.append(e)
    try:
        raise e
    except ValueError as again:
        return again.args[0] * x


def of_a_class(x):
    Kept.error = KeyError(x * 2)
    KEPT.append(Kept.error)
    return Kept.error.args[0] * x


def value_of_stop_iteration(x):
    e = StopIteration(x * 2)
    KEPT.append(e)
    return e.value * x


def code_of_exit(x):
    e = SystemExit(x * 2)
    KEPT.append(e)
    return e.code * x


def object_of_an_attribute_error(x):
    e = AttributeError("n", name="n", obj=[x * 2])
    KEPT.append(e)
    return e.obj[0] * x


def group(x):
    e = ExceptionGroup("several", [ValueError(x * 2), KeyError(x)])
    KEPT.append(e)
    one, other = e.split(ValueError)
    return one.exceptions[0].args[0] * other.exceptions[0].args[0]


def attribute(x):
    e = Bad(x * 2)
    KEPT.append(e)
    return e.value * x


def list_in_args(x):
    e = ValueError([x * 2, 1.0])
    KEPT.append(e)
    return e.args[0][0] * x


def array_in_args(x):
    e = ValueError(np.array([x, 2 * x]))
    KEPT.append(e)
    return e.args[0].sum() * x


def new_args(x):
    e = ValueError(x * 2)
    KEPT.append(e)
    e.args = (x * 3,)
    return e.args[0] * x


def text(x):
    e = ValueError(x * 2)
    KEPT.append(e)
    return float(str(e)) * x


def reduced(x):
    e = ValueError(x * 2)
    KEPT.append(e)
    return e.__reduce__()[1][0] * x


def copied(x):
    e = ValueError(x * 2)
    KEPT.append(e)
    return copy.copy(e).args[0] * x


REFUSED = {text, reduced, copied}


@pytest.mark.parametrize(
    "f",
    [raised, with_a_cause, raised_again, of_a_class, value_of_stop_iteration, code_of_exit, group]
    + [
        object_of_an_attribute_error,
        attribute,
        list_in_args,
        array_in_args,
        new_args,
        text,
        reduced,
        copied,
    ],
)
def test_exceptions(f):
    judged(f, lambda e: (repr(e), repr(vars(e)), repr(e.__cause__)), f in REFUSED)
