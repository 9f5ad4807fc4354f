"""The end of a run: what was done to shadows is carried over to the originals, and what the run gives is laid out."""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from ..rules.words import with_article
from . import frames, memos, passing, seals
from .arrays import is_followed
from .border import (
    COLLECTIONS,
    STAND_INS,
    boxes_behind,
    current_op,
    is_iterator,
    is_structure,
    items_of,
    seen_attribute,
    siblings,
)
from .box import BOXES, Box
from .boxing import note_access
from .depth import room
from .errors import TraceError
from .frames import Own
from .kinds import is_one_of, isinstance, mro_of, own_dict
from .origins import Origin
from .places import quoted
from .record import decide, has_box
from .session import Tracer
from .structure import (
    FIXED,
    OPEN,
    Branch,
    Leaf,
    Sealed,
    Tree,
    attributes,
    is_differentiable,
    sources,
)
from .tails import Tail, settle_tails
from .tape import AS_ARGUMENT, External
from .text import PRIVATE, TEXTS
from .unboxing import HOLDING, empty_of_boxes, is_made, lower, lower_object, sync


@room
def settle(tracer: Tracer) -> None:
    """Carry what the run did to shadows over to their originals."""
    memo: dict[int, Any] = {}
    effects = {
        id(op.args[0].value)
        for op in tracer.tape.ops
        if op.kind == "effect" and op.args and type(op.args[0]) is External
    }
    settle_tails(tracer)
    memos.remember(tracer)
    for shadow, original in list(tracer.originals.values()):
        if isinstance(original, (tuple, frozenset)) or original is shadow:
            continue
        memo[id(shadow)] = (shadow, original)
        if sync(tracer, original, shadow, memo, True):
            for sibling in siblings(tracer, shadow):
                if sync(tracer, original, sibling, memo, True):
                    raise TraceError(
                        f"{tracer.tape.name} ({tracer.tape.site}): the same {type(original).__name__} came in by two "
                        "ways and was changed through one of them by a C function\npass a copy in one place"
                    )
    if tracer.reads is not None:
        for changed in tracer.changed - effects:
            if (place := tracer.reads.places.get(changed)) is not None:
                tracer.reads.problem(f"C code changes {place}")
    for held in tracer.loose:
        lower_object(tracer, held, memo, True)
    for held in list(tracer.outside.values()):
        if isinstance(held, COLLECTIONS) and empty_of_boxes(tracer, held, memo):
            if tracer.reads is not None:
                tracer.reads.problem(f"{with_article(type(held).__name__)} is changed")
    for cell, shadow in list(tracer.cells.values()):
        try:
            held = shadow.cell_contents
        except ValueError:
            continue
        plain = lower(tracer, held, memo, True)
        if tracer.cells_held.get(id(cell), cell) is held:
            continue  # what is in it has been carried over
        if type(plain) is Tail:  # the cell holds its list still
            continue
        try:
            changed = cell.cell_contents is not plain
        except ValueError:
            changed = True
        if changed:
            tracer.tape.untold = (
                "a variable of an enclosing function is set (nonlocal)",
                AS_ARGUMENT,
            )
            cell.cell_contents = plain
    for escaped in tracer.pending:
        lower(tracer, escaped, memo, True)
    passing.end(tracer, memo)
    for scope in [*tracer.scopes.values()]:
        scope.settle(tracer, memo)


CONSTANTS = (str, bytes, bool, type, range, types.ModuleType, np.dtype, np.generic, np.ndarray)


class Lost:
    """Stands in the result of a tape for what the tape cannot give again: a function or an object of the run."""

    def __init__(self, value: Any) -> None:
        self.kind = type(value).__name__

    def __repr__(self) -> str:
        return f"<{self.kind}>"


def result_of(tracer: Tracer, value: Any, made: Any = None) -> Any:
    """The result of a tape: ops for what was traced, constants as they are; ``made`` is what its tree tells of it."""
    kind = type(value)
    if is_one_of(kind, BOXES):
        return current_op(value)
    if kind is list or kind is tuple or (issubclass(kind, tuple) and hasattr(kind, "_make")):
        parts = made if type(made) is kind and len(made) == len(value) else [None] * len(value)
        found = [result_of(tracer, x, part) for x, part in zip(value, parts, strict=True)]
        return kind(found) if kind is list or kind is tuple else kind._make(found)
    if kind is dict and not any(is_one_of(type(key), (*BOXES, *PRIVATE)) for key in value):
        parts = made if type(made) is dict else {}
        return {key: result_of(tracer, x, parts.get(key)) for key, x in value.items()}
    if made is not None or value is None:
        return made
    if is_one_of(kind, TEXTS):
        return value.value if is_settled(tracer, value.origin) else Lost(value.value)
    if kind in frames.SETS and not any(map(has_box, value)):
        return value
    return value if isinstance(value, CONSTANTS) else Lost(value)


def is_settled(tracer: Tracer, origin: Origin) -> bool:
    """Whether the tape holds only where the numbers are the same that a text was drawn from."""
    guarded = {op.args[0] for op in tracer.tape.ops if op.kind == "guard"}
    rest, seen = [origin], {id(origin)}
    for one in rest:
        if one.parts is None and one.op not in guarded:
            return False
        rest += [x for x in one.parts or () if id(x) not in seen]
        seen.update(map(id, one.parts or ()))
    return True


def result_tree(tracer: Tracer, value: Any, memo: set[int] | None = None) -> Tree:
    """The tree of a result, read off its boxes before they are taken out."""
    kind = type(value)
    memo = set() if memo is None else memo
    if is_one_of(kind, BOXES):
        if id(value) in tracer.flats:
            raise TraceError(
                f"{tracer.tape.name} ({tracer.tape.site}) returns the flat iterator of a traced array\nreturn the "
                "array, or its ravel()"
            )
        number = is_differentiable(value.value) or isinstance(value.value, np.integer)
        if not number and isinstance(value.value, (float, complex)):
            name = f"the result, {with_article(type(value.value).__name__)}"
            return Sealed(name, "return it as a float", [current_op(value)])
        return Leaf(current_op(value), value.value) if number else FIXED
    if is_one_of(kind, TEXTS):
        return FIXED
    if kind is types.GeneratorType or is_iterator(value):
        raise TraceError(
            f"{tracer.tape.name} ({tracer.tape.site.place}) returns {with_article(kind.__name__)}, whose values do "
            f"not exist yet\n{quoted(tracer.tape.site)}"
            "return a list or an array of them"
        )
    if is_followed(value) or is_one_of(kind, seals.NUMBERS) or kind is int:
        return Leaf(None, value) if is_differentiable(value) else FIXED
    if kind is types.MappingProxyType:
        value = seals.underlying(value)
    elif is_one_of(kind, STAND_INS) and isinstance(
        value, dict
    ):  # the attributes of an object outside
        shown: Any = value
        shown.refresh()
        value, kind = dict(shown), dict
    base = frames.native(type(value))
    note_access(tracer, type(value))
    if base in frames.SETS:
        held = [x for _, x in items_of(value) if has_box(x)]
        tree: Tree = Branch(kind, {lower(tracer, x): result_tree(tracer, x, memo) for x in held})
        return tree if held else FIXED
    if tracer.classes and (shown := shown_by_class(tracer, value)):
        return seal_of_result(tracer, value, memo, *shown)
    if not is_structure(value) or (base is not None and not frames.is_read_by_key(type(value))):
        return seal_of_result(tracer, value, memo)
    if base is not None and id(value) in memo:
        raise TraceError(
            f"{tracer.tape.name} ({tracer.tape.site}) returns {with_article(kind.__name__)} that contains itself\n"
            "return what it is made of, or hold it in an object of a class of your own"
        )
    if id(value) in memo:
        return FIXED
    memo.add(id(value))
    parts = frames.parts_of(value)
    trees: list[Tree] = []
    for key, x in parts.items():
        if base is None or type(key) is Own:
            x = seen_attribute(tracer, value, key.name if type(key) is Own else key, x)
        trees.append(FIXED if key is frames.NAMESPACE else result_tree(tracer, x, memo))
    if base is not None:
        memo.discard(id(value))
        if any(is_one_of(type(key), PRIVATE) for key in parts):
            parts = {key.value if is_one_of(type(key), PRIVATE) else key: 0 for key in parts}
    if base is None and id(value) in tracer.outside and id(value) not in tracer.trees:
        trees = [x if sources(x) else OPEN for x in trees]
        if all(x is OPEN for x in trees):
            return OPEN
    return Branch(kind, frames.valued(parts, trees))


def shown_by_class(tracer: Tracer, value: Any) -> list[Any]:
    """What an object shows of classes that were made inside, and which hold traced values."""
    made = [cls for cls in mro_of(type(value)) if is_made(tracer, cls)]
    own = attributes(value) if made else {}
    held = {
        key: x
        for cls in reversed(made)
        for key, x in list(own_dict(cls).items())
        if key not in own
        and (is_one_of(type(x), BOXES) or (key not in MAKING and is_one_of(type(x), HOLDING)))
    }
    return [x for x in held.values() if any(True for _ in boxes_behind(tracer, x, {id(value)}))]


# What has run when the object was made; and what tells of types.
MAKING = frozenset("__init__ __new__ __post_init__ __annotate__ __annotate_func__".split())


def seal_of_result(tracer: Tracer, value: Any, memo: set[int], *others: Any) -> Tree:
    """The tree of what is no structure: sealed, where it, or something else that it shows, holds traced values."""
    seen = set(memo)
    boxes = [box for x in (value, *others) for box in boxes_behind(tracer, x, seen)]
    ops = list(dict.fromkeys(map(current_op, boxes)))
    if not ops:
        return FIXED
    kind = type(value).__name__
    return Sealed(
        f"the result, {with_article(kind)}", "return the values in a list, a dict or an object", ops
    )


def draw_all(tracer: Tracer, boxes: list[Any]) -> None:
    """Guard the values of numbers that went into something that is not a number."""
    for box in boxes:
        if type(box) is Box:
            decide(tracer, box.op, box.value)
