"""A container is looked at as it is at one moment, whatever another thread does to it in the next one."""

import sys
import threading
from collections import OrderedDict, deque

import pytest

from wengert.tracer.border import are_held
from wengert.tracer.frames import items_of

KINDS = {
    set: (set.add, set.clear),
    dict: (lambda x, i: x.__setitem__(i, i), dict.clear),
    OrderedDict: (lambda x, i: x.__setitem__(i, i), OrderedDict.clear),
    deque: (deque.append, deque.clear),
    list: (list.append, list.clear),
}


@pytest.mark.parametrize("look", ("items", "held"))
@pytest.mark.parametrize("kind", KINDS)
def test_another_thread_writes_to_it(kind, look):
    add, clear = KINDS[kind]
    container, failures, ended = kind(), [], threading.Event()
    items = [(i, i) for i in range(3)] if issubclass(kind, dict) else [0, 1, 2]

    def write():
        i = 0
        while not ended.is_set():
            add(container, i % 40)
            i += 1
            if i % 40 == 0:
                clear(container)

    def read():
        try:
            for _ in range(8000):
                items_of(container, kind) if look == "items" else are_held(container, items)
        except RuntimeError as error:
            failures.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        writer, readers = (
            threading.Thread(target=write),
            [threading.Thread(target=read) for _ in range(2)],
        )
        for thread in (writer, *readers):
            thread.start()
        for thread in readers:
            thread.join()
        ended.set()
        writer.join()
    finally:
        sys.setswitchinterval(before)
    assert not failures
