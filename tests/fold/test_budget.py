"""What recording may cost where it does not lead to a program."""

import pytest

import wengert.transforms.cache as cache
from helpers import assert_same
from wengert import jit, value_and_grad
from wengert.tracer.fold.run import Known
from wengert.transforms.budget import Budget


@pytest.fixture
def recorded(monkeypatch):
    """A list that grows with each call that is recorded."""
    cache.clear_cache()
    monkeypatch.setattr(cache, "VARIED", 0)
    monkeypatch.setattr(cache, "SHORT", 0)
    seen, run = [], Known.run
    monkeypatch.setattr(Known, "run", lambda *args: seen.append(args) or run(*args))
    return seen


def stopped(x, n):
    total = 0.0
    try:
        for i in range(n):
            total = total * x + i / (i - 70.0)
    finally:
        if n < 2:
            raise KeyError(n)
    return total


def test_calls_that_end_in_an_exception_are_not_recorded_for_ever(recorded, monkeypatch):
    monkeypatch.setattr(Budget, "limited", True)
    both = value_and_grad(stopped)
    for _ in range(60):
        with pytest.raises(KeyError):
            both(0.5, 1)
    assert len(recorded) < 20


def weighed(pair, options):
    (x, n), total = pair, 0.0
    for i in range(n + options["more"]):
        total = total + x * i if i % options["step"] else total * options["rate"]
    return total if options["name"] == "sum" else total * 2.0


def test_integers_and_texts_in_tuples_and_dicts_may_be_others(recorded, monkeypatch):
    monkeypatch.setattr(Budget, "limited", False)
    both = value_and_grad(weighed, (0, 1))
    for k in range(2, 20):
        options = {
            "more": k % 4,
            "step": 1 + k % 3,
            "rate": 0.1 * k,
            "name": "sum mean".split()[k % 2],
        }
        args = (0.3 * k, k), options
        found = both(*args)
        assert_same(found[0], weighed(*args))
        with jit(False):
            assert_same(found, both(*args))
    (entry,) = cache.entries.values()
    assert entry.folding.why is None
    assert entry.folding.programs


def test_no_argument_is_kept(recorded, monkeypatch):
    monkeypatch.setattr(Budget, "limited", False)

    def mean(rows):
        total, count = 0.0, 0
        for row in rows[0]:
            total, count = total + row * row, count + 1
        return total / count

    both = value_and_grad(mean)
    for k in range(1, 9):
        inner = [0.5 * k] * k
        assert_same(both((inner,))[0], mean((inner,)))
    (entry,) = cache.entries.values()
    assert entry.folding.programs
    for known in entry.folding.known.values():
        places = [*known.outside.reads.all()]
        assert not any(place.value for place in places if type(place.value) in (list, tuple, dict))
