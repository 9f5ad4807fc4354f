"""Progress bars go over traced values, and pass them on as they are."""

import io

import numpy as np
import pytest

from wengert import jit, value_and_grad

tqdm = pytest.importorskip("tqdm")
auto = pytest.importorskip("tqdm.auto")
kept = []


def bar(items, kind=tqdm.tqdm):
    return kind(items, file=io.StringIO())


def over_a_list(w):
    return sum(x * x for x in bar([w, w * w]))


def over_a_list_by_the_best_bar(w):
    return sum(x * x for x in bar([w, w * w], auto.tqdm))


def over_an_array(w):
    loss = 0.0
    for x in bar(w * np.arange(3.0)):
        loss += x * x
    return loss


def over_rows_that_are_written(w):
    table = w * np.ones((3, 2))
    for row in bar(table):
        row *= w
    return table.sum()


def over_an_array_that_is_written_meanwhile(w):
    table, total = w * np.ones(3), 0.0
    for x in bar(table):
        total += x
        table[2] = w * w
    return total


def over_a_list_that_grows(w):
    items, total = [w, w * w], 0.0
    for x in bar(items):
        total += x
        if len(items) < 5:
            items.append(x * w)
    return total


def over_items_of_a_dict(w):
    return sum(len(name) * x for name, x in bar({"a": w, "bb": w * w}.items()))


def beside_others(w):
    both = zip(bar([w, w * w]), bar([2.0, 3.0]), strict=True)
    return sum(x * y * i for i, (x, y) in enumerate(both))


def known_length(w):
    one = bar([w, w * w])
    return w * len(one) * one.total * sum(one)


def backwards(w):
    return sum(i * x for i, x in enumerate(reversed(bar([w, w * w]))))


def broken_off(w):
    for x in bar([w, w * w, w**3]):
        if x > 3.0:
            break
    return x


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize(
    "f",
    [over_a_list, over_a_list_by_the_best_bar, over_an_array, over_rows_that_are_written]
    + [over_an_array_that_is_written_meanwhile, over_a_list_that_grows, over_items_of_a_dict]
    + [beside_others, known_length, backwards, broken_off],
    ids=lambda f: f.__name__,
)
def test_traced_values_pass_a_bar(f, on):
    with jit(on):
        for w in (2.0, 2.5, 3.5, 2.5, 2.5):
            value, slope = value_and_grad(f)(w)
            assert value == f(w)
            assert slope == pytest.approx((f(w + 1e-6) - f(w - 1e-6)) / 2e-6, rel=1e-6)


def test_a_bar_that_outlives_the_run_holds_plain_numbers():
    def f(w):
        kept[:] = [bar([w, w * w]), bar(np.array([w, w * w])), bar((w, w * w), auto.tqdm)]
        return sum(map(sum, kept))

    assert value_and_grad(f)(2.0) == (18.0, 15.0)
    for one in kept:
        assert [*one.iterable] == [2.0, 4.0]
        assert all(type(x) in (float, np.float64) for x in one.iterable)
