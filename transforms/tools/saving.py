"""Saving: what a call computes, as a file that is imported like any other (see ``pages``)."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from ...rules.broadcasting import broadcast_like
from ...tracer.entrances import entrance
from ...tracer.frames import laid_out
from ...tracer.kinds import attribute, is_one_of, isinstance
from ...tracer.loops import handed_on
from ...tracer.outline import Mirrored, Outline
from ...tracer.reads import Reads
from ...tracer.run import Run, run
from ...tracer.structure import Leaf, mapped, sources
from ...tracer.tape import NOWHERE, Input, Op, Tape, append, substitute
from ..api import arranged
from ..cotangents import alike, refuse_sealed, shaped
from ..dispatch import SHORTEST, Caller, roll_loops
from ..gradients import Gradient, check_argument, one
from ..reverse import Mirror, decisions, led_by_values, sweep
from ..shapes import may_stop
from ..simplify import pruned, simplified
from .inline import Unwritable
from .pages import source_of
from .signature import parameters_of


@entrance
def save(f: Callable[..., Any], path: str | os.PathLike[str], /, *args: Any, **kwargs: Any) -> None:
    """Write what ``f(*args, **kwargs)`` computes to the file ``path``, as a function that needs NumPy alone.

    ``f`` is any function, or one that Wengert has made: ``save(grad(f), "slope.py", 2.0)`` writes the gradient, and
    ``from slope import grad_f`` is how it is used. What is computed is what was computed for these arguments: the file
    checks that the types, shapes and structures of its arguments are the same and that each decision falls the same
    way, and raises ValueError with the line of the program where one does not. Numbers from outside of the function
    are written as they are.

    Raises `TraceError` for what cannot be written down: an object that is changed outside, a rule that is not pure.

    >>> import tempfile, pathlib
    >>> from wengert import grad
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "slope.py")
    ...     save(grad(lambda x: x * x * x), path, 2.0)
    ...     names = {}
    ...     exec(path.read_text(), names)
    >>> names["grad_lambda"](3.0)
    27.0
    """
    tape = tape_of(f, args, kwargs)
    text = source_of(tape, strict=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def tape_of(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tape:
    """The tape of a call, without what its result does not need."""
    state = attribute(f, "__self__")
    if type(state) is Gradient and state.primitives is None:
        return gradient(state, args, kwargs)
    done = recorded(f, args, kwargs)
    tape = pruned(done.tape, keep_guards=True, stay=[*filter(may_stop, done.tape.ops)])
    tape.parameters = parameters_of(f, done, args, kwargs)
    if isinstance(state, Caller):  # we have made it of another function
        tape.name = plain_name(f)
    return tape


def plain_name(f: Any) -> str:
    return str(f.__name__).replace("<", "").replace(">", "")


def recorded(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Run:
    """A run that a file can stand for; raises where it has changed what a file cannot."""
    reads = Reads()
    done = run(f, args, kwargs, reads=reads, marks=True, outline=Outline, full=True)
    assert done.outcome is not None
    roll_loops(done, {}, SHORTEST)
    without_marks(done)
    written = [str(place) for place, _ in (*done.outcome.arrays, *done.outcome.cells)]
    reads.close()
    if written:
        name = done.tape.name
        raise Unwritable(
            f"{name} cannot be written down in a file: it writes to {written[0]}\n"
            "return what is new, and leave what is outside as it is"
        )
    return done


def without_marks(done: Run) -> None:
    """Let the result be what is carried out of loops, and not the marks of that."""

    def leaf(x: Leaf) -> Leaf:
        return Leaf(None if x.op is None else handed_on(x.op), x.value)

    done.result = mapped(done.result, leaf, handed_on)
    done.tape.result = substitute(done.tape.result, handed_on)


def gradient(state: Gradient, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tape:
    """The tape of a gradient: the forward run, and the reverse sweep, which is simplified."""
    keys = state.chosen(args, kwargs)
    done = recorded(state.f, args, kwargs)
    tree = state.differentiated(done)
    for key in keys:
        check_argument(
            state.f, key, done.argument(key), args[key] if isinstance(key, int) else kwargs[key]
        )
    seed = one(state.f, tree, None)  # raises where the value is not a number
    assert isinstance(tree, Leaf)
    tape = derived(done, tree, 1.0 if isinstance(tree.value, float) else seed, keys)
    found = tape.result
    chosen: Any = tuple([found[k] if isinstance(k, int) else found[-1][k] for k in keys])
    chosen = chosen if type(state.argnums) is tuple else chosen[0]
    value = done.tape.result
    if state.with_value:
        chosen = value, chosen
    elif state.has_aux:
        chosen = chosen, value[1]
    tape.result = chosen
    stay = [*filter(may_stop, done.tape.ops)]
    out = pruned(simplified(tape, keep=done.tape.ops), keep_guards=True, stay=stay)
    out.name = plain_name(state)
    out.parameters = parameters_of(state.f, done, args, kwargs)
    out.forward = frozenset(done.tape.ops)
    return out


def derived(done: Run, leaf: Leaf, seed: Any, keys: list[int | str]) -> Tape:
    """A run with the reverse sweep behind it; the result are the gradients, in the form of the arguments."""
    tape = done.tape
    out = Tape(tape.name, tape.site)
    out.ops = list(tape.ops)
    trees = [done.argument(key) for key in keys]
    wrt = [op for tree in trees for op in sources(tree)]
    seeds = [] if leaf.op is None else [(leaf.op, seed)]
    machine = Mirror(out, NOWHERE, Mirrored(out, tape.outline))
    found: dict[Any, Any] = dict(zip(wrt, sweep(tape.ops, wrt, seeds, machine), strict=True))
    refuse_sealed(tape, trees, lambda op: found.get(op) is not None)
    out.result = arranged(done, lambda leaf: given(out, leaf, found.get(leaf.op)), laid_out)
    out.ops += decisions(machine.looked, out)
    out.hold_as(tape, led_by_values(machine.decided))
    return out


def given(tape: Tape, leaf: Leaf, d: Any) -> Any:
    """The gradient of a leaf, of its type, dtype and shape, on the tape; an array is its own."""
    value = 0.0 if isinstance(leaf.value, (int, np.integer)) else leaf.value
    if not isinstance(d, Op):
        plain = shaped(Leaf(None, value), d)
        if not isinstance(plain, np.ndarray):
            return plain
        if d is None:
            return append(tape, np.zeros, (plain.shape, plain.dtype.name), {}, plain, NOWHERE)
        d = append(tape, np.full, (plain.shape, d, plain.dtype.name), {}, plain, NOWHERE)
    if is_one_of(type(value), (float, complex)) and is_number(d.value, value):
        return (
            d
            if alike(d.value, value)
            else append(tape, type(value), (d,), {}, type(value)(d.value), NOWHERE)
        )
    if not alike(d.value, value):
        like = leaf.op if leaf.value is value else value
        found = broadcast_like(d.value, value)
        d = append(tape, broadcast_like, (d, like), {}, found, NOWHERE)
        if is_one_of(type(value), (float, complex)) and type(found) is not type(value):
            d = append(tape, type(value), (d,), {}, type(value)(found), NOWHERE)
    if isinstance(value, np.ndarray) and (isinstance(d, Input) or d.tape is not tape):
        d = append(tape, np.array, (d,), {}, d.value, NOWHERE)
    return d


def is_number(d: Any, value: Any) -> bool:
    """Whether a gradient is a number that Python's own kind of number can be made of."""
    return np.shape(d) == () and (isinstance(value, complex) or not np.iscomplexobj(d))
