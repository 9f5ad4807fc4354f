"""Loops without a call that wait for another thread, or a handler of signals, to change what lies outside."""

from __future__ import annotations

import signal
import threading

import pytest

from wengert import clear_cache, jit, value_and_grad


@pytest.fixture(params=[False, True], ids=["off", "on"], autouse=True)
def switched(request):
    clear_cache()
    with jit(request.param):
        yield


def of_a_dict(x, world):
    y = x
    while not world["dict"]["now"]:
        y = 0.5 * y + x
    return 0.0 * y + x


def of_a_list(x, world):
    y = x
    while world["list"][0] == 0:
        y = 0.5 * y + x
    return 0.0 * y + x


def of_a_set(x, world):
    y = x
    while not world["set"]:
        y = 0.5 * y + x
    return 0.0 * y + x


def left_by_break(x, world):
    for _ in range(10**9):
        if world["dict"]["now"]:
            break
    return x * 1.0


def by_a_timer(change):
    threading.Timer(0.02, change).start()


def by_a_signal(change):
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals come to the main thread")
    signal.signal(signal.SIGALRM, lambda *_: change())
    signal.setitimer(signal.ITIMER_REAL, 0.02)


@pytest.mark.parametrize("how", [by_a_timer, by_a_signal])
@pytest.mark.parametrize("f", [of_a_dict, of_a_list, of_a_set, left_by_break])
def test_a_loop_ends_when_what_it_waits_for_has_come(f, how):
    before = signal.getsignal(signal.SIGALRM)
    try:
        for i in range(5):
            world = {"dict": {"now": False}, "list": [0], "set": set()}

            def change(world=world):
                world["dict"]["now"] = True
                world["list"][0] = 1
                world["set"].add(1)

            how(change)
            assert value_and_grad(f)(2.0 + i, world) == (2.0 + i, 1.0)
    finally:
        signal.signal(signal.SIGALRM, before)
