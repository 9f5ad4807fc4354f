"""Iterators from outside that go on in Python code: what that code changes, the run sees changed."""

import collections
import heapq
import itertools

import pytest

from wengert import NoRuleError, TraceError, jit, value_and_grad


class Thing:
    pass


def appending():
    """A list, and a generator that appends to it whenever it is resumed."""
    items = [1.0, 2.0]

    def generator():
        while True:
            items.append(3.0)
            yield float(len(items))

    return items, generator()


def by_next():
    items, steps = appending()

    def f(x):
        items.pop(0)
        return x * next(steps) + sum(items)

    return f, items


def by_send():
    items, steps = appending()

    def f(x):
        items.append(0.5)
        steps.send(None)
        return x * sum(items)

    return f, items


def by_loop():
    items, steps = appending()

    def f(x):
        items.pop(0)
        for n in steps:
            x = x * 0.5 + sum(items)
            if n > 4.0:
                break
        return x

    return f, items


def by_zip():
    items, steps = appending()

    def f(x):
        held = items
        items.pop(0)
        pairs = list(zip(steps, (1.0, 2.0), strict=False))
        a, b = itertools.islice(steps, 2)
        return x * sum(held) + sum(p * q for p, q in pairs) + a * b

    return f, items


def by_yield_from():
    items, steps = appending()

    def f(x):
        def inner():
            yield from steps

        items.append(0.5)
        return x * sum(itertools.islice(inner(), 2)) + len(items)

    return f, items


def by_map():
    items = []
    squares = map(lambda n: items.append(n) or n * n, itertools.count(1.0))

    def f(x):
        items.append(0.5)
        return x * next(squares) + sum(items)

    return f, items


def by_callbacks():
    """A queue of events, as simulations have it: a process outside is resumed by a method of an object."""
    world = Thing()
    world.queue, world.now = [(0.0, 0)], 0.0

    def process():
        while True:
            heapq.heappush(world.queue, (world.now + 1.5, len(world.queue)))
            yield

    class Process:
        def __init__(self, steps):
            self.steps = steps

        def resume(self):
            return self.steps.send(None)

    callbacks = [Process(process()).resume, Process(process()).resume]

    def f(x):
        world.now, n = heapq.heappop(world.queue)
        for callback in callbacks:
            callback()
        return x * world.queue[0][0] + world.now + n

    return f, world.__dict__


def by_attributes():
    world = Thing()
    world.names, world.seen, world.last = {"a": 1.0}, {1.0}, collections.deque([1.0])

    def generator():
        while True:
            world.names["a"] += 1.0
            world.names["b"] = 2.0
            world.seen.add(len(world.seen))
            world.last.appendleft(3.0)
            yield

    steps = generator()

    def f(x):
        world.names["a"] *= 2.0
        world.seen.add(0.25)
        world.last.append(7.0)
        next(steps)
        return x * sum(world.names.values()) + sum(world.seen) + world.last[0] * len(world.last)

    return f, world.__dict__


def by_cells():
    count, items = 0.0, []

    def generator():
        nonlocal count, items
        while True:
            count += 1.0
            items = [*items, count]
            yield

    steps = generator()

    def f(x):
        nonlocal count
        count += 10.0
        next(steps)
        y = count * x
        steps.send(None)
        return y + len(items) * count

    return f, items


def by_failing():
    items, state = [1.0], {}

    def generator():
        items.append(2.0)
        yield
        items.append(3.0)
        raise ValueError(len(items))

    state["steps"] = generator()

    def f(x):
        items.append(0.5)
        try:
            next(state["steps"])
        except ValueError as error:
            x = x * error.args[0]
        except StopIteration:
            x = -x
        return x * sum(items)

    return f, items


CASES = (
    by_next,
    by_send,
    by_loop,
    by_zip,
    by_yield_from,
    by_map,
    by_callbacks,
    by_attributes,
    by_cells,
    by_failing,
)


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("made", CASES)
def test_what_a_resumed_iterator_changes_is_seen(made, on):
    plain, expected = made()
    f, found = made()
    up, _ = made()
    down, _ = made()
    traced = value_and_grad(f)
    with jit(on):
        for x in (1.0, 2.0, 2.5, 1.0, 3.0):
            try:
                value = plain(x)
            except StopIteration:  # of a generator that is over
                with pytest.raises(StopIteration):
                    traced(x)
                continue
            slope = (up(x + 1e-3) - down(x - 1e-3)) / 2e-3
            assert traced(x) == (value, pytest.approx(slope))
            assert found == expected


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize(
    "drawn",
    [next, lambda steps: steps.send(None), lambda steps: [*itertools.islice(steps, 1)][0]],
)
def test_what_comes_back_of_a_list_that_was_only_appended_to_is_refused(drawn, on):
    items = []

    def generator():
        while True:
            yield items[-1] * 2.0

    steps = generator()

    def f(x):
        items.append(x)
        return drawn(steps)

    with jit(on), pytest.raises(NoRuleError, match="a generator gives depends on traced values"):
        value_and_grad(f)(2.0)


LOG = []


class Hashed:
    def __hash__(self):
        LOG.append("hash")
        return 3

    def __bool__(self):
        LOG.append("bool")
        return True


def logging(start=0):
    """The items of an iterator that logs in code that is not traced."""
    return map(lambda n: LOG.append("untraced") or n, itertools.count(start))


def forgetting():
    return map(lambda n: LOG.pop(0), itertools.count())


def several():
    for n in range(3):
        LOG.append(n)
        yield Hashed()


def in_between(x, steps):
    LOG.append(x)
    next(steps)
    LOG.append(x * x)
    next(steps)
    return sum([x * len(LOG) if a == "untraced" else a for a in LOG])


def waiting(x, steps):
    LOG.append(lambda: x)  # which cannot be made plain before the run has ended
    next(steps)
    LOG.append("last")
    return x * LOG.count("untraced")


def by_keys(x, steps):
    dict.fromkeys(several())
    return x * LOG.count("hash")


def by_truth(x, steps):
    return x * all(several()) * LOG.count("bool")


def removed(x, steps):
    LOG.append("first")
    LOG.append("second")
    next(steps)
    return x * len(LOG) * LOG.count("second")


def never_looked_at(x, steps):
    LOG.append(x)
    next(steps)
    LOG.append(lambda: x)
    next(steps)
    LOG.append("last")
    return x * x


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("start", [(), ("untraced", 2.0)])
@pytest.mark.parametrize(
    ("f", "made"),
    [
        (in_between, logging), (waiting, logging), (by_keys, logging), (by_truth, logging), (removed, forgetting),
        (never_looked_at, logging),
    ],
)  # fmt: skip
def test_a_list_that_others_append_to_in_between(f, made, start, on):
    at = value_and_grad(f)

    def plainly(x):
        LOG[:] = start
        return f(x, made()), [type(a) if callable(a) else a for a in LOG]

    def traced(x):
        LOG[:] = start
        steps = made()
        found = at(x, steps)
        return *found, [type(a) if callable(a) else a for a in LOG]

    with jit(on):
        for x in (1.5, 2.5, 3.5):
            slope = (plainly(x + 1e-6)[0] - plainly(x - 1e-6)[0]) / 2e-6
            value, log = plainly(x)
            assert traced(x) == (value, pytest.approx(slope, rel=1e-6), log)


def test_a_list_that_others_remove_traced_values_from():
    def f(x, steps):
        LOG.append(x)
        LOG.append(x * x)
        next(steps)
        return sum(LOG)

    LOG.clear()
    steps = forgetting()
    with pytest.raises(TraceError, match="removes or moves elements of LOG"):
        value_and_grad(lambda x: f(x, steps))(1.5)


COUNTS = {}


def count():
    COUNTS["steps"] = COUNTS.get("steps", 0) + 1


class Counted:
    def __hash__(self):
        count()
        return 3

    def __eq__(self, other):
        return self is other

    def __bool__(self):
        count()
        return True

    def __len__(self):
        count()
        return 2

    def __iter__(self):
        count()
        return iter((1.0, 2.0))


def counted():
    for _ in range(3):
        count()
        yield Counted()


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize(
    "take",
    [
        all, any, set, frozenset, dict.fromkeys, lambda items: set().update(items), lambda items: {1}.union(items),
        lambda items: list(itertools.starmap(max, items)), lambda items: dict(zip(items, "abc", strict=False)),
        lambda items: collections.Counter(items), lambda items: [*itertools.chain.from_iterable(items)],
    ],
)  # fmt: skip
def test_what_a_generator_and_the_methods_of_its_items_change_by_turns(take, on):
    def f(x):
        COUNTS.clear()
        take(counted())
        return x * COUNTS["steps"]

    plain, counts = f(1.5), {**COUNTS}
    at = value_and_grad(f)
    with jit(on):
        for _ in range(4):
            assert (at(1.5), COUNTS) == ((plain, counts["steps"]), counts)
