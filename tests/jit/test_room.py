"""Room for the frames of a traced run: see `transforms.room`."""

import sys

import pytest

from wengert import jit, value_and_grad
from wengert.transforms import room


def square(x: float) -> float:
    return x * x


@pytest.fixture(autouse=True)
def nothing_known() -> None:
    room.short.clear()


def test_what_is_traced_fast_gets_no_room_again(monkeypatch: pytest.MonkeyPatch) -> None:
    given = []
    monkeypatch.setattr(room, "roomy", lambda run, *args: given.append(run) or run(*args))
    monkeypatch.setattr(room, "SHORT", 1e9)
    with jit(False):
        assert [value_and_grad(square)(3.0) for _ in range(3)] == [(9.0, 6.0)] * 3
    assert len(given) == 1


def test_what_takes_long_gets_room_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    given = []
    monkeypatch.setattr(room, "roomy", lambda run, *args: given.append(run) or run(*args))
    monkeypatch.setattr(room, "SHORT", 0.0)
    with jit(False):
        for _ in range(3):
            value_and_grad(square)(3.0)
    assert len(given) == 3


def test_the_frame_is_larger_than_a_chunk() -> None:
    assert room.roomy.__code__.co_stacksize * 8 > 16 * 1024


def test_users_do_not_see_the_frame() -> None:
    def f(x: float) -> float:
        names.append(sys._getframe(1).f_code.co_name)
        return x

    names: list[str] = []
    with jit(False):
        value_and_grad(f)(1.0)
    f(1.0)
    assert names[0] == names[1]
