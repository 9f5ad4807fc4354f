"""``pullback``: the value of a function, and the way back from it.

Words
-----
residual   a value of the forward run that the reverse sweep needs; copied where somebody outside could write to it.
skeleton   a traced run without its values, common to all pullbacks that come out of a program.
revived    the run behind a pullback, made again from the skeleton and the values of the inputs.
"""

# The first overload that fits is the most exact one.
# mypy: disable-error-code="overload-overlap"

from __future__ import annotations

import cmath
from collections.abc import Callable, Collection
from typing import Any, Literal, overload

import numpy as np

from ..rules import equivalents
from ..tracer.active import active
from ..tracer.box import BOXES
from ..tracer.intrinsic import intrinsic
from ..tracer.kinds import MISSING, is_one_of, isinstance
from ..tracer.outline import Iterations
from ..tracer.reads import Reads
from ..tracer.run import Run, run
from ..tracer.tape import Input, Op, Tape, primal
from ..tracer.tracebacks import fold
from .api import Pullback, checked_seeds, decided_by, inner_pullback
from .argnums import leave_aux, options_text
from .cache import Entry
from .direct import Direct, found, state_of
from .dispatch import traced_run, written
from .fold.multiplied import PULLBACK
from .loops import Miss
from .programs import Builder, Program
from .silence import ignoring, restore
from .skeleton import copied, own_copy
from .typed import Aux, P, R


@overload
def pullback(
    f: Callable[..., tuple[R, Aux]],
    *args: Any,
    has_aux: Literal[True],
    wrt_self: bool = False,
    debug: bool = False,
    primitives: Collection[Any] | Callable[..., bool] | None = None,
    **kwargs: Any,
) -> tuple[R, Pullback, Aux]: ...
@overload
def pullback(
    f: Callable[..., R],
    *args: Any,
    wrt_self: bool,
    has_aux: Literal[False] = False,
    debug: bool = False,
    primitives: Collection[Any] | Callable[..., bool] | None = None,
    **kwargs: Any,
) -> tuple[R, Pullback]: ...
@overload
def pullback(
    f: Callable[..., R],
    *args: Any,
    debug: bool,
    has_aux: Literal[False] = False,
    primitives: Collection[Any] | Callable[..., bool] | None = None,
    **kwargs: Any,
) -> tuple[R, Pullback]: ...
@overload
def pullback(
    f: Callable[..., R],
    *args: Any,
    primitives: Collection[Any] | Callable[..., bool] | None,
    has_aux: Literal[False] = False,
    **kwargs: Any,
) -> tuple[R, Pullback]: ...
@overload
def pullback(f: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> tuple[R, Pullback]: ...
@intrinsic  # type: ignore[misc]
def pullback(
    f: Callable[..., Any],
    *args: Any,
    wrt_self: bool = False,
    has_aux: bool = False,
    debug: bool = False,
    primitives: Collection[Any] | Callable[..., bool] | None = None,
    **kwargs: Any,
) -> Any:
    """The value of ``f(*args, **kwargs)`` and the function that carries cotangents back to the arguments.

    Returns ``(value, back)``. The value is what ``f`` returns, to the bit. ``back(dy)`` takes a cotangent with the
    structure, shapes and kind of the value (``None`` stands for zero) and returns a tuple of gradients, one for
    each positional argument and of its structure, followed by a dict if keyword arguments were given. It may be
    called any number of times. With ``wrt_self=True`` the gradients of the callable's own attributes, or of the
    variables in its closure, come first, as a dict. With ``has_aux`` the function returns the pair ``(value, aux)``, of
    which the value alone has cotangents, and what comes back is ``(value, back, aux)``. With ``debug`` the call and
    ``back`` raise `NonFiniteError` at the line where a NaN or an infinity is born. With ``primitives`` (see `trace`)
    what they name is differentiated by its rule, and all else is looked into.

    Strings, bools, None and integer arrays have the gradient None; an argument without influence gets zeros. A
    number or an array that stands at several positions gets the derivative by each position at that position; an
    object that does is one object still, and its whole gradient is shown at each of them.

    Raises `TraceError` for what cannot be traced, `NoRuleError` (from ``back``) where a callable without a rule is
    in the way, `CotangentError` for a ``dy`` that does not fit, and whatever ``f`` itself raises.

    >>> value, back = pullback(lambda x, y: x * y, 2.0, 3.0)
    >>> value, back(1.0)
    (6.0, (3.0, 2.0))
    """
    try:
        if debug and active.tracer is None:
            return debugged(f, args, kwargs, wrt_self, has_aux, decided_by(primitives))
        program = None
        if not kwargs and not wrt_self and not has_aux and primitives is None:
            program = found(Forward.table, f)
        if program is None:
            return asked(f, args, kwargs, wrt_self, has_aux, decided_by(primitives))
        state = state_of(Forward, f)
        answer: tuple[Any, Pullback] = program.alone(state, *args)
        if state.hits:
            program.hits += 1
        return answer
    except BaseException as error:
        fold(error)
        raise


vjp = pullback


def debugged(
    f: Any,
    args: Any,
    kwargs: Any,
    wrt_self: bool,
    has_aux: bool,
    primitives: Callable[..., bool] | None,
) -> Any:
    """Answer a call by a run in which, and in whose sweep, a NaN or an infinity is an error."""
    from .tools.nans import CheckedPullback, checked_run

    done, callers = checked_run(
        f, args, kwargs, wrt_self=wrt_self, primitives=primitives, protect=True, outline=Iterations
    )
    if has_aux:
        leave_aux(f, done)
    value, back = done.value, CheckedPullback(done.close(), callers)
    return (value[0], back, value[1]) if has_aux else (value, back)


def asked(
    f: Any,
    args: Any,
    kwargs: Any,
    wrt_self: bool,
    has_aux: bool = False,
    primitives: Callable[..., bool] | None = None,
) -> Any:
    """Answer a call by any program, or by tracing."""
    if active.tracer is not None:
        value, back = inner_pullback(active.tracer, f, args, kwargs, wrt_self, primitives)
        if has_aux:
            leave_aux(f, back.done)
    elif wrt_self or primitives is not None:
        done = run(
            f,
            args,
            kwargs,
            wrt_self=wrt_self,
            primitives=primitives,
            protect=True,
            outline=Iterations,
        )
        if has_aux:
            leave_aux(f, done)
        value, back = done.value, Pullback(done.close())
    else:
        kind = ForwardAux if has_aux else Forward
        value, back = kind(f, ()).dispatch(args, kwargs, [], None)
    return (value[0], back, value[1]) if has_aux else (value, back)


@intrinsic
def traced_pullback(f: Callable[..., Any], *args: Any) -> tuple[Any, Any]:
    """`pullback` for rules, of which no program is kept."""
    if active.tracer is not None:
        return inner_pullback(active.tracer, f, args, {}, False)
    done = run(f, args, {}, rehearsal=True)
    return done.value, Pullback(done)


equivalents.pullback = traced_pullback


class Forward(Direct):
    """Answers calls of `pullback`."""

    __slots__ = ()
    has_aux = False

    def title(self) -> str:
        return written("pullback", self.f, options_text(has_aux=self.has_aux))

    def traced(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], reads: Reads | None, drawn: list[Any]
    ) -> tuple[Any, Run]:
        done = traced_run(
            self.f, args, kwargs, protect=True, outline=Iterations, reads=reads, drawn=drawn
        )
        if self.has_aux:
            leave_aux(self.f, done)
        own = own_copy(done, reads)
        value = done.value
        own.close()
        return (value, Pullback(own)), done

    def build(self, done: Run) -> Program:
        name = getattr(self.f, "__name__", "f")
        return Builder(done, name, self.entry().names).build_pullback(Kept)

    def folded(
        self, entry: Entry, args: tuple[Any, ...], kwargs: dict[str, Any], drawn: list[Any]
    ) -> Any:
        if kwargs:
            return MISSING
        keys = range(len(args))
        return self.by_region(entry, self.f, args, keys, PULLBACK, drawn, self.has_aux)

    def inside(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return asked(self.f, args, kwargs, False)


class ForwardAux(Forward):
    """The same of functions that return an aux beside their value."""

    __slots__ = ()
    has_aux = True


class Kept(Pullback):
    """A pullback whose reverse sweep is a program.

    That leaves out what comes to nothing for a finite cotangent: what an infinity or a NaN comes to, the tape says.
    """

    run: Run | None = None

    def __init__(
        self,
        program: Program,
        inputs: tuple[Any, ...],
        residuals: tuple[Any, ...],
        drawn: Any,
    ) -> None:
        self.program = program
        self.inputs = inputs
        self.residuals = residuals
        self.drawn = drawn

    @property
    def done(self) -> Run:  # type: ignore[override]
        if self.run is None:
            self.run = revived(self.program, self.inputs, self.drawn)
        return self.run

    @property
    def traced(self) -> Tape:
        skeleton = self.program.skeleton
        return self.done.tape if skeleton is None else skeleton.tape

    def __call__(self, dy: Any) -> tuple[Any, ...]:
        program = self.program
        if type(dy) is float and program.leaf is not None:
            if dy - dy != 0.0:
                return super().__call__(dy)
            if program.leaf is float and program.quiet:
                try:
                    return program.back(self.inputs, self.residuals, dy)  # type: ignore[misc, no-any-return]
                except Exception:  # once more, with all that is needed then
                    return self.pulled(dy, dy)
            return self.pulled(dy, program.leaf(dy))
        assert program.skeleton is not None
        try:
            seeds = checked_seeds(program.skeleton, dy)
        except BaseException as error:
            fold(error)
            raise
        if any(is_one_of(type(d), BOXES) for _, d in seeds) or len(seeds) != program.seeds:
            return super().__call__(dy)
        if not all(is_finite(d) for _, d in seeds):
            return super().__call__(dy)
        return self.pulled(dy, *[d for _, d in seeds])

    def pulled(self, dy: Any, *seeds: Any) -> tuple[Any, ...]:
        """The gradients for ``dy``, whose leaves fit and are the ``seeds``."""
        program = self.program
        assert program.back is not None
        before = None if program.quiet else ignoring()
        try:
            return program.back(self.inputs, self.residuals, *seeds)
        except Miss:  # a value of another type than in the traced run
            pass
        except BaseException as error:
            fold(error)
            raise
        finally:
            if before is not None:
                restore(before)
        return super().__call__(dy)


Kept.__call__.__qualname__ = "back"
intrinsic(Kept.__call__)


SMALL = 1000  # elements, of which a product is cheaper than a look at each


def is_finite(seed: Any) -> bool:
    """Whether a cotangent is finite, or a small array of them so far from infinity that its square is."""
    if not isinstance(seed, np.ndarray):
        return cmath.isfinite(seed)
    return (
        cmath.isfinite(np.vdot(seed, seed)) if seed.size < SMALL else bool(np.isfinite(seed).all())
    )


def revived(program: Program, inputs: tuple[Any, ...], drawn: Any) -> Run:
    """The run that a program stands for, with the values that it had for these inputs."""
    assert program.skeleton is not None
    given, results = iter(inputs), iter(drawn)

    def value(old: Op, new: Op) -> Any:
        if isinstance(old, Input):
            return next(given)
        if old.kind != "call":
            return old.value
        if old in program.impure:
            return next(results)[1]
        return new.fn(*primal(new.args), **primal(new.kwargs))

    with np.errstate(all="ignore"):
        return copied(program.skeleton, value)[0]
