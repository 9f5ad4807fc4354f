"""What the function behind a tape takes, and which of its inputs each argument holds.

Words
-----
parameter  an argument of the traced call: its name, its tree, and what it held that has no derivative.
path, trait  see ``traits``; ``text_of`` writes a path as in Python: ``d['w'][0]``.
rest       inputs that no parameter holds, such as the cotangent ``dy`` of a reverse tape: one argument each.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from ...rules.words import with_article
from ...tracer import frames
from ...tracer.errors import GuardError, TraceError
from ...tracer.kinds import attribute, is_one_of, isinstance
from ...tracer.run import Run, argument_names
from ...tracer.structure import Branch, Fixed, Leaf, Sealed, Tree, attributes, mapped
from ...tracer.tape import External, FloatOp, Input, Op, Tape, free, type_name
from ...tracer.ties import Where
from ...tracer.traits import (
    CAPTURING,
    Path,
    Trait,
    Unknown,
    at,
    has_option,
    has_trait,
    is_attribute,
    is_captured,
    walk,
    whole,
)


class Parameter(NamedTuple):
    """An argument of the traced call.

    ``fixed`` are the paths to texts, bools, functions and the like, with their traits; ``others`` those to inputs of
    the tape that have no derivative, such as arrays of integers; ``used`` those to the objects that ops are done to or
    with: a list that is appended to, a generator of random numbers.
    """

    name: str
    tree: Tree
    fixed: tuple[tuple[Path, Trait], ...] = ()
    others: tuple[tuple[Path, Input], ...] = ()
    keyword: bool = False
    used: tuple[tuple[Path, Any], ...] = ()

    def key(self, parameters: list[Parameter]) -> int | str:
        """Its position among these, or its name if it is given by that."""
        return self.name if self.keyword else parameters.index(self)

    def inputs(self) -> Iterator[tuple[Path, Input]]:
        """The inputs of the tape that the argument holds, and where."""
        for path, part in walk(self.tree):
            if isinstance(part, Leaf) and isinstance(part.op, Input):
                yield path, part.op
        yield from self.others


def parameters_of(
    f: Any, done: Run, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[Parameter]:
    """The parameters of a run."""
    names = argument_names(f, len(args))
    given = [*zip(names, done.args, args, strict=True)]
    given += [(name, tree, kwargs[name]) for name, tree in done.kwargs.items()]
    objects = {id(x) for op in done.tape.ops if type(op) is not FloatOp for x in objects_of(op)}
    found = []
    assert done.fixed is not None
    for i, (name, tree, x) in enumerate(given):
        tree = whole(tree, x)
        others = tuple(inputs_without(done.tape, name, tree))
        fixed = without(done.fixed[i], others)
        inner = containers(tree, x, objects)
        used = tuple([(path, y) for path, y in (*done.holders[i], *inner) if id(y) in objects])
        found.append(Parameter(name, tree, fixed, others, i >= len(args), used))
    return found


def objects_of(op: Op) -> Iterator[Any]:
    """What an op is done to or with, of that which is no number: containers that it changes, and objects."""
    owner = attribute(op.fn, "__self__")
    for x in op.args if owner is None else (owner, *op.args):
        if op.kind == "effect":
            yield from handed_over(x)
        elif type(x) is External:
            yield x.value
        elif not isinstance(x, Op) and frames.native(type(x)) is None:
            yield x
    if op.kind == "effect":
        yield from handed_over(op.kwargs)


def handed_over(x: Any) -> Iterator[Any]:
    """What an effect is done to, and what it puts there."""
    if is_one_of(type(x), (list, tuple, dict)):
        for part in x.values() if type(x) is dict else x:
            yield from handed_over(part)
    yield x.value if type(x) is External else x


def parameters_of_run(done: Run, tape: Tape) -> list[Parameter] | None:
    """The parameters of a tape that was made of a run whose arguments are no longer there."""
    if done.self_tree is not None:
        return None  # they are no arguments
    names = done.names or [f"x{i}" for i in range(len(done.args))]
    given = [*zip(names, done.args, strict=True), *done.kwargs.items()]
    found = []
    for i, (name, tree) in enumerate(given):
        others = tuple(inputs_without(done.tape, name, tree))
        unknown = done.fixed is None  # as of one that was pickled
        fixed = [] if done.fixed is None else [*done.fixed[i]]
        tree = next((whole(tree, trait.value) for path, trait in fixed if not path), tree)
        fixed += [
            (path, Unknown())
            for path, part in walk(tree)
            if unknown and (has_trait(part) or has_option(part))
        ]
        found.append(Parameter(name, tree, without(fixed, others), others, i >= len(done.args)))
    now: dict[Op, Op] = dict(zip(done.tape.inputs, tape.inputs, strict=False))
    return moved(found, now)


def without(
    fixed: list[tuple[Path, Trait]], others: tuple[tuple[Path, Input], ...]
) -> tuple[tuple[Path, Trait], ...]:
    """The traits of what is no input."""
    inputs = [path for path, _ in others]
    return tuple([(path, trait) for path, trait in fixed if path not in inputs])


def inputs_without(tape: Tape, name: str, tree: Tree) -> Iterator[tuple[Path, Input]]:
    """The inputs that an argument holds at positions without a derivative; they are found by their names."""
    named = {op.name: op for op in tape.inputs if op.role == "argument"}
    for path, part in walk(tree):
        if isinstance(part, Fixed) and (op := named.get(text_of(name, path))) is not None:
            yield path, op


def containers(tree: Tree, value: Any, wanted: set[int]) -> Iterator[tuple[Path, Any]]:
    """The lists, dicts and objects that a function among the arguments has captured and that are wanted, by id."""
    for path, part in walk(tree) if wanted else ():
        if isinstance(part, Branch) and is_captured(path):
            try:
                found = at(value, path)
            except (LookupError, AttributeError, TypeError):
                continue  # the function has taken it out
            if id(found) in wanted:
                yield path, found


def text_of(name: str, path: Path) -> str:
    """A path in Python. What is read of a function is taken for a variable of its closure."""
    for kind, key in path:
        if kind is functools.partial and key != "func":
            name += f".args[{key}]" if type(key) is int else f".keywords[{key!r}]"
        elif kind is FunctionType:
            name = f"inspect.getclosurevars({name}).nonlocals[{key!r}]"
        else:
            name += f".{str(key).lstrip('.')}" if is_attribute(kind, key) else f"[{key!r}]"
    return name


def moved(parameters: list[Parameter] | None, now: dict[Op, Op]) -> list[Parameter] | None:
    """The same parameters of a tape with other inputs."""
    if parameters is None:
        return None

    def leaf(x: Leaf) -> Leaf:
        return Leaf(None if x.op is None else now.get(x.op, x.op), x.value)

    def renewed(p: Parameter) -> Parameter:
        others: Any = tuple([(path, now.get(op, op)) for path, op in p.others])
        return p._replace(tree=mapped(p.tree, leaf, lambda op: now.get(op, op)), others=others)

    return [renewed(p) for p in parameters]


def with_tangents(tape: Tape, tangents: dict[Op, Input]) -> list[Parameter] | None:
    """The parameters of a tape, and behind them a tangent for each that has one: of the same structure."""
    if tape.parameters is None:
        return None

    def leaf(x: Leaf) -> Leaf:
        t = None if x.op is None else tangents.get(x.op)
        return Leaf(t, x.value if t is None else t.value)

    known: list[Parameter] = tape.parameters
    given = [p for p in known if not p.keyword]
    given += [Parameter(op.name, Leaf(op, op.value)) for op in rest_of(tape)]
    keywords = [p for p in known if p.keyword]
    moving = [p for p in (*given, *keywords) if any(op in tangents for _, op in p.inputs())]
    taken = tape.named()
    found = [
        Parameter(free(f"d{p.name}", taken), mapped(p.tree, leaf, tangents.get)) for p in moving
    ]
    return [*given, *found, *keywords]


def rest_of(tape: Tape) -> list[Input]:
    """The inputs that no parameter holds."""
    taken = {op for p in tape.parameters or [] for _, op in p.inputs()}
    return [op for op in tape.inputs if op.role == "argument" and op not in taken]


def bound(
    tape: Tape, args: tuple[Any, ...], kwargs: dict[str, Any], strict: bool = True
) -> dict[Op, Any]:
    """The values of the inputs for a call; with ``strict`` they must be of the traced types and shapes."""
    parameters: list[Parameter] = tape.parameters or []
    given: dict[Op, Any] = {}
    positional = [p for p in parameters if not p.keyword]
    places: list[Parameter | Input] = [*positional, *rest_of(tape)]
    names = [p.name for p in places]
    by_name = {p.name: p for p in parameters} | {op.name: op for op in rest_of(tape)}
    pairs: list[tuple[Any, Any]] = list(zip(places, args, strict=False))
    told = {p.name for p, _ in pairs}
    pairs += [(by_name[key], x) for key, x in kwargs.items() if key in by_name and key not in told]
    if (
        len(args) > len(places)
        or len(pairs) != len(args) + len(kwargs)
        or len(pairs) != len(by_name)
    ):
        keywords = [f"{p.name}=" for p in parameters if p.keyword]
        raise TypeError(
            f"this tape of {tape.name} takes ({', '.join([*names, *keywords])})\n"
            "a tape is called as the traced function was; trace the function for other arguments"
        )
    for place, x in pairs:
        if isinstance(place, Input):
            given[place] = checked(place, place.name, x, strict)
        else:
            given.update(matched(tape, place, x, strict))
    must_be_tied(tape, {p.key(parameters): x for p, x in pairs if isinstance(p, Parameter)})
    return given


def must_be_tied(tape: Tape, given: dict[int | str, Any]) -> None:
    """Raise where arguments lie to one another, or in memory, in a way that the tape does not hold for."""
    for ask, places, was, why in () if tape.ties is None else tape.ties.asked():
        if ask([at(given[key], path) for key, path in places]) != was:
            named = {p.key(tape.parameters): p.name for p in tape.parameters or []}
            raise GuardError(
                f"{why}: this tape of {tape.name} does not hold for {listed(named, places)}\n"
                "trace the function for them"
            )


def listed(named: Mapping[int | str, str], places: list[Where]) -> str:
    """The first of the places in arguments, in words."""
    texts = [text_of(named[key], path) for key, path in places[:MENTIONED]]
    return ", ".join(texts) + (" …" if len(places) > MENTIONED else "")


MENTIONED = 4


def given_for(tape: Tape, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[int, Any]:
    """What stands in a call for each object that the traced run did something to or with, by the id of that."""
    parameters: list[Parameter] = tape.parameters or []
    positional = [p for p in parameters if not p.keyword]
    pairs = [*zip(positional, args, strict=False)]
    pairs += [(p, kwargs[p.name]) for p in parameters if p.name in kwargs]
    return {id(was): at(x, path) for p, x in pairs for path, was in p.used}


def matched(tape: Tape, parameter: Parameter, x: Any, strict: bool) -> Iterator[tuple[Op, Any]]:
    """The inputs that an argument holds, with their values."""
    name = parameter.name
    for path, part in walk(parameter.tree):
        text = text_of(name, path)
        if isinstance(part, Sealed) and (part.ops or part.leaf):
            raise TraceError(f"{text} is {part.name}, which a tape cannot take\n{part.advice}")
        try:
            value = at(x, path)
        except (LookupError, AttributeError, TypeError):
            raise TraceError(
                f"{text} is missing\nthis tape of {tape.name} needs it: pass what the traced function was given"
            ) from None
        if isinstance(part, Branch):
            must_be_alike(part, value, text, is_captured(path))
            kind = frames.native(part.kind)
            items = [key for key in part.parts if not is_attribute(part.kind, key)]
            if kind is not None and (not isinstance(value, kind) or len(value) != len(items)):
                raise TraceError(
                    f"{text} must be {with_article(part.kind.__name__)} with {len(items)} items, as in the traced run\n"
                    "trace the function for structures of another length"
                )
            mapping = kind is not None and issubclass(kind, dict)
            if mapping and value.keys() == {*items} and [*value] != items:
                raise GuardError(
                    f"{text} has its keys in another order than in the traced run, where it was {items}\n"
                    "pass them in that order, or trace the function again"
                )
    for path, op in parameter.inputs():
        yield op, checked(op, text_of(name, path), at(x, path), strict)
    for path, was in parameter.fixed:
        value = at(x, path)
        if not was.fits(value):
            raise GuardError(
                f"{text_of(name, path)} is {value!r}, but was {was.shown()} in the run that this tape of {tape.name} "
                "is of\ntrace the function again"
            )


def must_be_alike(part: Branch, value: Any, text: str, captured: bool) -> None:
    """Raise where a structure is of another class than in the traced run, or has other attributes."""
    if issubclass(part.kind, CAPTURING):
        return  # which has a trait
    if type(value) is not part.kind:
        raise TraceError(
            f"{text} is {with_article(type(value).__name__)}, but was {with_article(part.kind.__name__)} in the traced "
            "run\n"
            "a tape holds for the classes that it was traced with; trace the function for these"
        )
    own = [str(key).lstrip(".") for key in part.parts if is_attribute(part.kind, key)]
    if not captured and frames.native(part.kind) is None and own != [*attributes(value)]:
        raise TraceError(
            f"{text} has the attributes {[*attributes(value)]}, but had {own} in the traced run\n"
            "trace the function for these"
        )


def checked(op: Op, name: str, value: Any, strict: bool) -> Any:
    """A value that fits an input."""
    if strict:
        was = op.value
        if type(was) is float and type(value) is int:
            return float(value)
        if np.shape(value) != np.shape(was) or kind_of(value) != kind_of(was):
            raise TraceError(
                f"{name} is {with_article(type_name(value))}, but was {with_article(type_name(was))} in the "
                "traced run\n"
                "a tape holds for the types and shapes that it was traced with; trace the function for these"
            )
    return value


def kind_of(value: Any) -> Any:
    """The class of a number, or the dtype of an array; NumPy's own double is a float."""
    if isinstance(value, np.ndarray):
        return np.ndarray, value.dtype
    return next((kind for kind in (float, complex) if isinstance(value, kind)), type(value))
