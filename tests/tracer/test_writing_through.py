"""Containers outside hold at every moment what plain Python would have put there: code that is not traced sees it."""

import collections
import contextlib
import contextvars
import copy
import csv
import ctypes
import functools
import gc
import importlib
import io
import itertools
import json
import marshal
import os
import pickle
import signal
import sqlite3
import string
import sys
import tempfile
import types
import warnings
import weakref
from pathlib import Path

import numpy as np
import pytest

from wengert import TraceError, jit, pullback, value_and_grad

STORIES = {}


def story(make):
    """A function that makes a function of a number, and its world anew."""
    STORIES[make.__name__] = make
    return make


class Node:
    def __init__(self):
        self.items = [1.0]
        self.table = {"a": 1.0}


@story
def pickled_object():
    m = Node()

    def f(x):
        m.items.append(2.0)
        m.table["b"] = 3.0
        n = pickle.loads(pickle.dumps(m))
        return x * len(n.items) * len(n.table)

    return f


@story
def copied_object():
    m = Node()

    def f(x):
        m.items.append(2.0)
        return x * len(copy.deepcopy(m).items)

    return f


@story
def marshalled_list():
    inner = [1.0]
    outer = [inner, inner]

    def f(x):
        inner.append(2.0)
        return x * len(marshal.loads(marshal.dumps(outer))[1])

    return f


@story
def module_put_into_sys_modules():
    def f(x):
        made = types.ModuleType("wengert_made")
        made.k = 3.0
        sys.modules["wengert_made"] = made
        import wengert_made

        del sys.modules["wengert_made"]
        try:
            import wengert_made
        except ImportError:
            found = 1.0
        else:
            found = 5.0
        return x * wengert_made.k * found

    return f


@story
def module_found_by_sys_path():
    folder = tempfile.mkdtemp()
    Path(folder, "wengert_found.py").write_text("k = 4.0")

    def f(x):
        sys.path.insert(0, folder)
        sys.modules.pop("wengert_found", None)
        importlib.invalidate_caches()
        import wengert_found

        sys.path.remove(folder)
        return x * wengert_found.k

    return f


@story
def warnings_made_errors():
    def f(x):
        n = 0.0
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                warnings.warn("that", stacklevel=1)
            except UserWarning:
                n = 1.0
        return x * (n + 1)

    return f


@story
def list_that_grows_while_it_is_encoded():
    items = [object(), 1.0]

    def default(o):
        if len(items) < 4:
            items.append(2.0)
        return 7

    def f(x):
        text = json.dumps(items, default=default)
        del items[2:]
        return x * len(text)

    return f


@story
def callback_of_the_garbage_collector():
    calls = []

    def called(phase, info):
        calls.append(1.0)

    def f(x):
        gc.callbacks.append(called)
        gc.collect()
        gc.callbacks.remove(called)
        n = len(calls)
        calls.clear()
        return x * n

    return f


@story
def signal_handler():
    hits = []

    def f(x):
        before = signal.signal(signal.SIGINT, lambda number, frame: hits.append(1.0))
        signal.raise_signal(signal.SIGINT)
        signal.signal(signal.SIGINT, before)
        n = len(hits)
        hits.clear()
        return x * n

    return f


@story
def finalizer():
    hits = []

    class Thing:
        pass

    def f(x):
        thing = Thing()
        weakref.finalize(thing, hits.append, 1.0)
        del thing
        n = len(hits)
        hits.clear()
        return x * n

    return f


@story
def iterator_over_a_list_that_grows():
    items = [1.0, 2.0]

    def f(x):
        items[1] = 9.0
        iterator = iter(items)
        items.append(3.0)
        n = sum(list(zip(items, iterator, strict=False))[2])
        del items[2:]
        return x * n

    return f


@story
def iterator_kept_outside():
    items = [1.0, 2.0, 3.0]
    box = {}

    def f(x):
        box["it"] = iter(items)
        items[2] = 5.0
        found = list(box.pop("it"))
        items[2] = 3.0
        return x * sum(found)

    return f


@story
def partial_of_a_list():
    items = [3.0, 1.0, 2.0]
    smallest = functools.partial(sorted, items)

    def f(x):
        items.append(0.5)
        found = smallest()[0]
        items.pop()
        return x * found

    return f


@story
def bound_methods_of_a_list():
    items = [3.0, 1.0, 2.0]
    copied, index, contains, append = items.copy, items.index, items.__contains__, items.append

    def f(x):
        items.append(0.5)
        n = len(copied()) + index(0.5) + contains(0.5)
        append(2.0)
        list(map(append, [1.0, 2.0]))
        n += len(items)
        del items[3:]
        return x * n

    return f


@story
def object_written_in_c_that_is_shown():
    items = [1.0]
    held = types.SimpleNamespace(items=items)

    def f(x):
        items.append(2.0)
        texts = (repr(held), "{0.items}".format(held), "%s" % held, f"{held.items}")  # noqa: UP031, UP032
        items.pop()
        return x * sum(map(len, texts))

    return f


@story
def comparisons_of_what_holds_a_list():
    items = [1.0]
    p, q = {"k": items}, {"k": [1.0, 2.0]}
    v, w = types.SimpleNamespace(a=items), types.SimpleNamespace(a=[1.0, 2.0])

    def f(x):
        items.append(2.0)
        n = (p == q) + 2 * (v == w)
        items.pop()
        return x * n

    return f


@story
def context_variable():
    items = [1.0]
    variable = contextvars.ContextVar("variable")

    def f(x):
        variable.set(items)
        items.append(2.0)
        n = len(variable.get())
        variable.get().append(1.0)
        n += len(items)
        del items[1:]
        return x * n

    return f


@story
def list_in_an_array_of_objects():
    items = [1.0]
    array = np.empty(1, object)
    array[0] = items

    def f(x):
        items.append(2.0)
        n = len(array[0]) + len(str(array)) + len(array.tolist()[0])
        array[0].append(1.0)
        n += len(items)
        del items[1:]
        return x * n

    return f


@story
def written_rows():
    rows = [[1, 2], [3, 4]]
    out = io.StringIO()
    writer = csv.writer(out)
    table = {"rows": rows}

    def f(x):
        rows[0].append(5)
        out.seek(0)
        out.truncate()
        writer.writerows(table["rows"])
        rows[0].pop()
        return x * len(out.getvalue())

    return f


@story
def chained_lists():
    items = [1.0]

    def f(x):
        items.append(2.0)
        total = sum(itertools.chain.from_iterable([items, items]))
        items.pop()
        return x * total

    return f


@story
def views_of_a_dict():
    table = {"a": 1.0}
    proxy, values, keys = types.MappingProxyType(table), table.values(), table.keys()
    held = types.SimpleNamespace(proxy=proxy)

    def f(x):
        table["b"] = 2.0
        n = len(proxy) + len(held.proxy) + len(dict(proxy))
        n += len(values) + sum(values) + len(list(keys))
        del table["b"]
        return x * n

    return f


@story
def mappings_around_a_dict():
    table = {"a": 1.0}
    chained, user = collections.ChainMap(table), collections.UserDict()
    user.data = table

    def f(x):
        table["b"] = 2.0
        n = len(chained) + len(user) + chained["b"]
        table["b"] = "22"
        n += len(string.Template("$b $b").substitute(table))
        del table["b"]
        return x * n

    return f


@story
def environment():
    def f(x):
        os.environ["WENGERT_TOLD"] = "12"
        n = len(os.getenv("WENGERT_TOLD"))
        del os.environ["WENGERT_TOLD"]
        return x * n

    return f


@story
def list_extended_by_itself():
    items = [1.0, 2.0]
    held = types.SimpleNamespace(items=items)

    def f(x):
        items.extend(items)
        items[1:1] = items
        held.items += items
        n = len(repr(held))
        del items[2:]
        items[:] = [1.0, 2.0]
        return x * n

    return f


@story
def half_of_what_was_asked():
    items = [1.0]
    held = types.SimpleNamespace(items=items)

    def broken():
        yield 2.0
        raise ValueError

    def f(x):
        try:
            items.extend(broken())
        except ValueError:
            n = len(repr(held))
        items.append(3.0)
        n += len(repr(held))
        del items[1:]
        return x * n

    return f


@story
def deque_and_ordered_dict():
    queue = collections.deque([1.0, 2.0, 3.0], maxlen=4)
    order = collections.OrderedDict(a=1.0, b=2.0)
    held = types.SimpleNamespace(queue=queue, order=order)

    def f(x):
        queue.rotate(1)
        queue.appendleft(4.0)
        queue.append(5.0)
        order.move_to_end("a")
        order["c"] = 10.0
        n = len(repr(held)) + queue[0] + list(order.values())[0]
        order.popitem()
        return x * n

    return f


@story
def tuples_and_lists_between_looks():
    items, table, queue = [], {}, collections.deque()

    def f(x):
        nonlocal items
        shown = []
        items += [(x, 1)]
        table["a"] = (x, 1)
        queue.append([x])
        shown.append(f"{items} {table} {queue}")
        items.clear()
        table.clear()
        queue.clear()
        shown.append(len(repr([items, table, queue])))
        items += [(2.0, 3)]
        table["b"] = (2.0, 3)
        queue.append([3.0])
        return x * len(items) * len(table) * len(queue) * shown[1]

    return f


@story
def sorted_by_a_key():
    items = [3.0, 1.0, 2.0]
    held = types.SimpleNamespace(items=items)
    asked = []

    def key(v):
        asked.append(v)
        return -v

    def f(x):
        items.append(x)
        items.sort(key=key)
        n = sum(i * v for i, v in enumerate(held.items)) + len(asked)
        items.remove(x)
        return x * n

    return f


@pytest.mark.parametrize("kept", [False, True], ids=["traced", "kept"])
@pytest.mark.parametrize("name", STORIES)
def test_what_is_not_traced_sees_what_was_done(name, kept):
    points = [1.5 + i / 2 for i in range(5)]
    plain = STORIES[name]()
    wanted = [plain(x) for x in points]
    with jit(kept):
        traced = STORIES[name]()
        assert [value_and_grad(traced)(x)[0] for x in points] == wanted


# ------------------------------------------------------------------------------- what dies while the run goes on

LOG = []
LIVES = []


class Mortal:
    def __init__(self, value=None):
        self.value = value

    def __del__(self):
        LOG.append(1.0)


class Plain:
    def __init__(self, value=None):
        self.value = value


@LIVES.append
def deleted(x):
    LOG.clear()
    thing = Mortal(x)
    del thing
    return x * (1 + len(LOG))


@LIVES.append
def left_by_a_loop(x):
    n = 0
    for _ in range(3):
        LOG.clear()
        thing = Mortal()
        thing.other = x
        del thing
        n += len(LOG)
    return x * n


@LIVES.append
def left_by_a_function(x):
    def inner():
        thing = Mortal(x)
        return thing.value * 2

    LOG.clear()
    y = inner()
    return y * (1 + len(LOG))


@LIVES.append
def left_by_a_generator(x):
    def generate():
        thing = Mortal()
        yield x
        yield thing.value or x * 2

    LOG.clear()
    total = 0.0
    for v in generate():
        total += v
    return total * (1 + len(LOG))


@LIVES.append
def left_by_an_exception(x):
    LOG.clear()
    try:
        thing = Mortal(x)
        raise ValueError(thing)
    except ValueError:
        pass
    del thing
    return x * (1 + len(LOG))


@LIVES.append
def shown_and_looked_at(x):
    LOG.clear()
    thing = Mortal(x)
    thing.array = np.ones(3) * x
    total = thing.array.sum()
    thing.__dict__["more"] = len(vars(thing)) + hasattr(thing, "nothing") + len(repr(thing)) * 0
    assert isinstance(thing, Mortal)
    del thing
    return total * (1 + len(LOG))


@LIVES.append
def sorted_and_copied(x):
    LOG.clear()
    things = [Mortal(), x]
    others = things[:]
    ordered = sorted(things[:1], key=id)
    del things, others, ordered
    return x * (1 + len(LOG))


@LIVES.append
def told_by_a_weak_reference(x):
    thing = Plain(x)
    hits = []
    r = weakref.ref(thing, lambda _: hits.append(1))
    vars(thing)
    thing = None
    return x * (1 + len(hits) + (r() is None))


@LIVES.append
def told_by_a_finalizer(x):
    hits = []
    thing = Plain(x)
    weakref.finalize(thing, hits.append, 1.0)
    del thing
    return x * (1 + len(hits))


@LIVES.append
def forgotten_by_weak_containers(x):
    table, members = weakref.WeakValueDictionary(), weakref.WeakSet()
    thing = Plain(x)
    table["k"] = thing
    members.add(thing)
    n = len(table) + len(members)
    del thing
    return x * (1 + n + 10 * len(table) + 100 * len(members))


@pytest.mark.parametrize("kept", [False, True], ids=["traced", "kept"])
@pytest.mark.parametrize("f", LIVES, ids=lambda f: f.__name__)
def test_what_the_run_makes_dies_as_in_plain_python(f, kept):
    points = [1.5 + i / 2 for i in range(4)]
    wanted = [f(x) for x in points]
    with jit(kept):
        assert [value_and_grad(f)(x)[0] for x in points] == wanted


def by_signal(bump, ask):
    def handler(number, frame):
        bump()

    before = signal.signal(signal.SIGINT, handler)
    try:
        return ask(lambda: signal.raise_signal(signal.SIGINT))
    finally:
        signal.signal(signal.SIGINT, before)


def by_ctypes(bump, ask):
    return ask(ctypes.CFUNCTYPE(None)(bump))


def by_database(bump, ask):
    with contextlib.closing(sqlite3.connect(":memory:")) as base:
        base.create_function("bump", 0, bump)
        return ask(lambda: base.execute("select bump()").fetchall())


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("way", [by_signal, by_ctypes, by_database])
def test_variables_of_enclosing_functions_that_c_code_changes(on, way):
    def run(value_of):
        n, held, seen = 2.0, None, []

        def bump():
            nonlocal n, held
            seen.append(n)
            n += 1.0
            held = [n]

        def ask(call):
            def f(x):
                nonlocal n
                call()
                result = x * n
                n = n * 2.0
                call()
                result = result * held[0] + n
                n = n + x
                return result

            found = [value_of(f, 1.5 + i) for i in range(4)]
            return found, n, held, seen

        return way(bump, ask)

    with jit(on):
        assert run(lambda f, x: pullback(f, x)[0]) == run(lambda f, x: f(x))


@pytest.mark.parametrize("on", [True, False])
def test_a_traced_value_that_c_code_replaces_is_refused(on):
    n = 2.0

    def bump():
        nonlocal n
        n = n + 1.0

    call = ctypes.CFUNCTYPE(None)(bump)

    def f(x):
        nonlocal n
        n = x * x
        call()
        return n * x

    with jit(on):
        for _ in range(3):
            with pytest.raises(TraceError, match="changes a variable of an enclosing function"):
                pullback(f, 3.0)


@pytest.mark.parametrize("on", [True, False], ids=["jit", "traced"])
def test_what_a_finalizer_gives_to_a_method_of_a_list_is_followed(on):
    def f(x):
        hits = []
        thing = Plain(x)
        weakref.finalize(thing, hits.append, x * x)
        del thing
        return hits[0]

    with jit(on):
        for x in (1.5, 2.0, 3.0):
            assert value_and_grad(f)(x) == (x * x, 2 * x)


HOLDERS = {}


@pytest.mark.parametrize("on", [True, False], ids=["jit", "traced"])
def test_a_method_of_an_empty_list_in_an_object_that_goes_outside_is_that_of_the_list(on):
    def f(x):
        found, holder = [], Plain(x)
        holder.put = found.append
        HOLDERS["last"] = holder
        holder.put(x * x)
        return found[0]

    with jit(on):
        for x in (1.5, 2.0, 3.0):
            assert value_and_grad(f)(x) == (x * x, 2 * x)
            assert HOLDERS["last"].put.__self__ == [x * x]
