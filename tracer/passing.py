"""What a progress bar is given to go over: it passes traced values on, and looks at none of them.

Only the tracer itself knows what is passed on, so that nothing that looks for traced values finds them in the bar:
what it gives does not depend on them.
"""

from __future__ import annotations

from typing import Any

from .border import STAND_INS
from .box import ArrayBox
from .intrinsic import intrinsic
from .record import has_box
from .session import Tracer
from .structure import is_container
from .unboxing import lower


def is_bar(root: str, name: str) -> bool:
    """Whether a function of a package makes a progress bar."""
    return root == "tqdm" and name in ("__new__", "__init__")


def passed_on(tracer: Tracer, value: Any) -> Any:
    """What a progress bar gets in the place of one of its arguments."""
    items = type(value) is ArrayBox or is_container(value)
    return PassedOn(tracer, value) if items and has_box(value) else value


class Known:
    """Stands for ``held``, which the tracer knows; for ``plain`` when the run has ended."""

    __slots__ = ("plain", "tracer")

    def __init__(self, tracer: Tracer, held: Any) -> None:
        self.tracer: Tracer | None = tracer
        tracer.passed[id(self)] = self, held

    def held(self) -> Any:
        return self.plain if self.tracer is None else self.tracer.passed[id(self)][1]

    def end(self, plain: Any) -> None:
        self.tracer, self.plain = None, plain


class PassedOn(Known):
    """Items that are passed on."""

    __slots__ = ()

    @intrinsic
    def __len__(self) -> int:
        return len(self.held())

    @intrinsic
    def __iter__(self) -> Any:
        steps = iter(self.held())
        return steps if self.tracer is None else Steps(self.tracer, steps)

    @intrinsic
    def __reversed__(self) -> Any:
        steps = reversed(self.held())
        return steps if self.tracer is None else Steps(self.tracer, steps)


class Steps(Known):
    """An iterator over them."""

    __slots__ = ()

    @intrinsic
    def __iter__(self) -> Steps:
        return self

    @intrinsic
    def __next__(self) -> Any:
        return next(self.held())

    def end(self, plain: Any) -> None:
        super().end(iter(()))


for _kind in (PassedOn, Steps):
    STAND_INS[_kind] = lambda value: value  # it is seen as it is


def end(tracer: Tracer, memo: dict[int, Any]) -> None:
    """What progress bars hold that outlive the run becomes plain."""
    for one, held in [*tracer.passed.values()]:
        one.end(lower(tracer, held, memo, True) if type(one) is PassedOn else None)
