"""What a primitive that is written in Python sees beside its arguments.

Words
-----
primitive   here: a Python function with a rule, which is not looked into.
hidden      a traced value that such a function can reach other than as an argument: by its closure, by an attribute
            of an object, by a global. Its rule has no cotangent for it, so the derivative would be lost.

Of a rule that is recorded it is known what its value was computed from, and only that counts: it may reach whatever it
has counted or collected in earlier calls.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Iterable, Iterator
from typing import Any

from ..rules.linear import variable
from ..rules.registry import NONDIFF, lookup
from . import frames
from .border import seen_attribute
from .box import BOXES
from .errors import TraceError
from .kinds import attribute, has_dict, is_one_of, isinstance
from .places import OURS, blame
from .session import Tracer
from .structure import is_container
from .tape import Input, Op, Site, ops_in


def must_be_closed(
    tracer: Tracer, site: Site, fn: types.FunctionType, args: Any, kwargs: Any
) -> None:
    """Raise where the primitive ``fn`` can reach traced values that it was not given."""
    if fn.__code__.co_filename.startswith(OURS) and not fn.__closure__:
        return
    if tracer.reads is not None:
        tracer.reads.pin(fn)  # another closure with the same code is another primitive
    name = attribute(fn, "__name__", "the function")
    for path, value in reached(tracer, behind_call(fn, name, unseen(args, kwargs))):
        if is_hidden(value):
            raise TraceError(
                f"{blame(site)}: {name} has a rule, and is not looked into, but it can read the traced value {path}, "
                f"whose derivative would be lost\nmake it an argument of {name}, with a cotangent in the rule"
            )


def must_come_from(
    tracer: Tracer,
    site: Site,
    fn: Any,
    args: Any,
    kwargs: Any,
    given: set[Op],
    own: set[Op],
    sources: Any,
) -> None:
    """Raise where a rule has computed its value from a traced value that it was not given.

    ``given`` are the operands, ``own`` what its body has computed, ``sources`` the value.
    """
    todo = list(ops_in(sources))
    seen = set(todo)
    while todo:
        op = todo.pop()
        if op in given:
            continue
        if op in own and op.kind == "call":
            new = [x for x in op.operands() if x not in seen]
            seen.update(new)
            todo += new
        elif depends_on_arguments(op):
            name = attribute(fn, "__name__", "the function")
            paths = [
                path
                for path, x in reached(tracer, behind_call(fn, name, unseen(args, kwargs)))
                if is_one_of(type(x), BOXES) and (x.op is op or x.value is op.value)
            ]
            what = paths[0] if paths else f"{op.type} of {op.site}"
            raise TraceError(
                f"{blame(site)}: {name} has a rule, which computes the value from the traced value {what}, "
                f"whose derivative would be lost\nmake it an argument of {name}, with a cotangent in the rule"
            )


def depends_on_arguments(op: Op) -> bool:
    """Whether a derivative may be asked by something that an op was computed from."""
    todo, seen = [op], {op}
    while todo:
        op = todo.pop()
        if op.fn is variable or (isinstance(op, Input) and op.role == "argument"):
            return True
        rule = lookup(op.fn)
        if rule is None or rule.kind != NONDIFF:
            new = [x for x in op.operands() if x not in seen]
            seen.update(new)
            todo += new
    return False


def is_hidden(value: Any) -> bool:
    """Whether a value depends on what the run computes; what it only read from outside is what ``fn`` reads too."""
    return is_one_of(type(value), BOXES) and not (
        isinstance(value.op, Input) and value.op.role == "outside"
    )


def behind_call(
    fn: types.FunctionType, name: str, values: Iterable[Any]
) -> Iterator[tuple[str, Any]]:
    """A function and what it is called with, with names."""
    return iter([(name, fn), *[(type(x).__name__, x) for x in values]])


def reached(
    tracer: Tracer, start: Iterable[tuple[str, Any]], seen: dict[int, Any] | None = None
) -> Iterator[tuple[str, Any]]:
    """What lies behind functions (in closures and globals), containers and objects, and these, with names.

    ``seen`` are those that were reached before, by their ids.
    """
    todo = [*start]
    seen = {} if seen is None else seen
    while todo:
        path, value = todo.pop()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        yield path, value
        if isinstance(value, (type, types.ModuleType, *BOXES)):
            continue
        if isinstance(value, types.FunctionType):
            todo += variables(tracer, value)
        elif isinstance(value, types.MethodType):
            todo += [(path, value.__func__), (path, value.__self__)]
        elif isinstance(value, functools.partial):
            todo += [(path, value.func), (path, value.args), (path, value.keywords)]
        else:
            todo += parts(tracer, path, value)


def parts(tracer: Tracer, path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The items of a container and the attributes of an object, as the run has them, with names."""
    if frames.native(type(value)) is None:
        found = frames.attributes(value)
    else:
        found = {}
        for key, x in frames.parts_of(value).items():
            if type(key) is frames.Own:
                found[key.name] = x
            else:
                yield f"{path}[{frames.shown(key)}]", x
    for name, x in found.items():
        yield f"{path}.{name}", seen_attribute(tracer, value, name, x)


def unseen(args: Any, kwargs: Any) -> list[Any]:
    """The arguments of which the tape does not see all."""
    return [x for x in (*args, *kwargs.values()) if not is_given(x)]


def is_given(value: Any) -> bool:
    """Whether the tape sees all of an argument: numbers, arrays and containers of them."""
    if is_container(value):
        return all(map(is_given, value.values() if isinstance(value, dict) else value))
    return is_one_of(type(value), BOXES) or not has_dict(value)


def variables(tracer: Tracer, fn: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """The variables of a function's closure, and those globals that the run itself has bound."""
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
        known = tracer.cells.get(id(cell))
        try:
            yield name, (cell if known is None else known[1]).cell_contents
        except ValueError:  # an empty cell
            pass
    for name in fn.__code__.co_names:
        entry = tracer.overlay.get((id(fn.__globals__), name))
        if entry is not None:
            yield name, entry[2]
