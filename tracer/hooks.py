"""Hooks: what the instrumented bytecode calls in the place of its own operations.

Each factory takes the ``site`` of one instruction and returns the function that stands for it. The hooks on
numbers decide by the types of their operands alone; the others ask for the active tracer, and do what plain
Python does where there is none (a function made inside a traced one may live on when the run has ended).
"""

from __future__ import annotations

import builtins
import operator
import sys
import weakref
from collections.abc import Callable, Iterable
from dis import opmap
from types import BuiltinFunctionType, GeneratorType, MethodType, ModuleType
from typing import Any

import numpy as np

from . import (
    attributes,
    calls,
    dying,
    operators,
    patterns,
    protocols,
    renewal,
    sights,
    stand_ins,
    tracebacks,
    unannounced,
)
from .active import active
from .border import ATOMS, siblings
from .box import BOXES, ArrayBox, Box
from .boxing import enter
from .cycles import Loop
from .depth import depth
from .effects import effect
from .escape import met, watched
from .frames import MUTABLE
from .kinds import are_one_of, has, has_own, is_one_of, isinstance, own_dict
from .origins import joined
from .plain_calls import plain_call, show_plain_names
from .reads import MISSING, Place, Reads
from .record import GUARDED, failed_by_value, raised
from .rehearsal import remember
from .scopes import Variables
from .session import Tracer
from .slots import double, is_object, is_users_exception, kind_of, plain_of, special
from .tails import tail_of
from .tape import External, FloatOp, Op, Signature, Site
from .text import PRIVATE, STRINGS, TEXTS, wrapped
from .through import write_cells
from .ties import note_identity
from .unboxing import lower
from .writers import write_container

Hook = Callable[..., Any]
UNORDERED = frozenset((dict, set, frozenset))
CONTAINERS = UNORDERED | {list, tuple}
BOUND = frozenset((MethodType, *operators.BOUND))
LOOKED_INTO = CONTAINERS | BOUND | {slice}  # where they are compared
PLAIN = ATOMS | {float, complex, list, tuple, dict, set, frozenset}
DISGUISES = frozenset((int, str, bytes))  # atoms that may stand for what is traced
ENDS = frozenset((int, type(None)))  # of slices, which are taken as they are
CONSTANT = ATOMS - {*BOUND, GeneratorType} - DISGUISES
UNFORMATTED = ATOMS | PRIVATE | {float, complex}  # what C code formats as the traced function would


def binary(site: Site, op: Any) -> Hook:
    if op is operator.getitem:
        return subscript(site)

    functional = operators.INPLACE.get(op, op)
    makes_text = functional is operator.mod
    two = Signature.of(functional, Op, Op)
    by_float, by_int = Signature.of(functional, Op, float), Signature.of(functional, Op, int)
    float_by, int_by = Signature.of(functional, float, Op), Signature.of(functional, int, Op)

    def hook(right: Any, left: Any) -> Any:
        kind = type(left)
        other = type(right)
        if kind is Box:
            a = left.value
            source = left.op
            if other is Box:
                b = right.value
                args = (source, right.op)
                signature = two
                plain = type(b) is float is type(a)
            elif other is float or other is int:
                b = right
                args = (source, right)
                signature = by_float if other is float else by_int
                plain = type(a) is float
            else:
                return slow(left, right)
        elif other is Box and (kind is float or kind is int):
            a = left
            b = right.value
            source = right.op
            args = (left, source)
            signature = float_by if kind is float else int_by
            plain = type(b) is float
        elif (
            (type(kind) is type is type(other))
            and kind in PLAIN
            and other in PLAIN
            and not (makes_text and kind in STRINGS)
        ):
            if kind in MUTABLE and op is not functional:
                return write_container(active.tracer, site, op, left, (right,), {})
            return (
                op(left, right) if kind not in UNORDERED else watched(op, (left, right), {}, site)
            )
        else:
            return slow(left, right)
        tape = source.home()  # the run goes on, and has its tape
        perform = tape.perform  # type: ignore[union-attr]
        try:
            value = op(a, b) if perform is None else perform(functional, (a, b), {}, site, op)
        except Exception as error:
            failed_by_value(active.tracer, site, functional, error)
            raise
        if plain and type(value) is float:
            made: Op = FloatOp(functional, args, value, site, source, signature)
        else:
            made = Op(functional, args, value, site, source)
        tape.ops.append(made)  # type: ignore[union-attr]
        return Box(value, made)

    def slow(left: Any, right: Any) -> Any:
        tracer = active.tracer
        if tracer is None:
            return op(left, right)
        return operators.operate(tracer, site, op, left, right)

    return hook


def subscript(site: Site) -> Hook:
    def hook(key: Any, container: Any) -> Any:
        kind = type(container)
        tracer = active.tracer
        if tracer is None:
            return container[key]
        sort = type(key)
        native = kind is list or kind is tuple or (kind is dict and not tracer.comparing)
        if native and type(sort) is type and sort in ATOMS:
            if sort is not slice or are_one_of((key.start, key.stop, key.step), ENDS):
                return container[key]
        if kind is list or kind is tuple:
            key = protocols.indices(tracer, site, key)
            if type(key) is Box:
                return protocols.pick_item(tracer, site, container, key)
            return container[protocols.drawn_slice(key)]
        return protocols.get_item(tracer, site, container, key)

    return hook


def compare(site: Site, op: Any, decides: bool = False) -> Hook:
    """``decides`` says that the truth of the result is all that is wanted."""

    def hook(right: Any, left: Any) -> Any:
        kind = type(left)
        other = type(right)
        if (
            type(kind) is type is type(other)
            and kind in PLAIN
            and other in PLAIN
            and (kind is not other or kind not in LOOKED_INTO)
        ):
            return op(left, right)
        tracer = active.tracer
        if tracer is None:
            result = op(left, right)
            return bool(result) if decides else result
        result = operators.operate(tracer, site, op, left, right)
        if not decides or result is True or result is False:
            return result
        return protocols.truth(tracer, site, result)

    return hook


def unary(site: Site, op: Any) -> Hook:
    def hook(x: Any) -> Any:
        tracer = active.tracer
        if tracer is None or is_one_of(type(x), PLAIN):
            return op(x)
        if op is operator.not_:
            return not protocols.truth(tracer, site, x)
        return operators.apply(tracer, site, op, (x,), {})

    return hook


def contains(site: Site, negate: bool) -> Hook:
    def hook(container: Any, item: Any) -> bool:
        tracer = active.tracer
        if tracer is None:
            return (item in container) is not negate
        return protocols.contains(tracer, site, container, item) is not negate

    return hook


def is_(site: Site, negate: bool) -> Hook:
    def hook(right: Any, left: Any) -> bool:
        tracer = active.tracer
        if is_one_of(type(left), BOXES) or is_one_of(type(right), BOXES):
            a, b = protocols.plain_of(left), protocols.plain_of(right)
            if tracer is not None:
                note_identity(tracer.tape, a, b)
                if tracer.reads is not None:
                    tracer.reads.problem("`is` compares traced values", site)
            return (a is b) is not negate
        if type(left) is tuple is type(right) and tracer is not None and tracer.loops is not None:
            if tracer.loops.are_same(left, right, site):
                return not negate
        if tracer is None:
            return (left is right) is not negate
        # A tuple of constants is itself here, and has a shadow where it was read from outside.
        own = [tracer.originals.get(id(x), (None, x))[1] for x in (left, right)]
        note_identity(tracer.tape, *own)
        if tracer.reads is not None:
            for x in own:
                tracer.reads.pin(x)
        same = left is right or own[0] is own[1]
        if not same and is_one_of(type(left), CONTAINERS) and is_one_of(type(right), CONTAINERS):
            same = builtins.any(x is right for x in siblings(tracer, left))
        return same is not negate

    return hook


def truth(site: Site) -> Hook:
    def hook(x: Any) -> bool:
        tracer = active.tracer
        if tracer is None or x is True or x is False:
            return bool(x)
        return protocols.truth(tracer, site, x)

    return hook


def call(site: Site) -> Hook:
    def hook(fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        tracer = active.tracer
        if tracer is None:
            return plain_call(fn, args, kwargs)
        try:
            return calls.call(tracer, site, fn, args, kwargs)
        except Exception as error:
            show_plain_names(tracer, error, (args, kwargs))
            raise

    return hook


def call_ex(site: Site) -> Hook:
    def hook(fn: Any, args: Any, kwargs: Any = None) -> Any:
        tracer = active.tracer
        if tracer is None:
            return fn(*args, **(kwargs or {}))
        if not protocols.can_be_iterated(args):
            fn(*plain_of(args))  # raises what plain Python raises
        args = tuple(protocols.item_by_item(tracer, site, args))
        try:
            return calls.call(tracer, site, fn, args, dict(kwargs) if kwargs else {})
        except Exception as error:
            show_plain_names(tracer, error, (args, kwargs))
            raise

    return hook


def getattr(site: Site, name: str) -> Hook:
    get = operator.attrgetter(name)

    def hook(obj: Any) -> Any:
        tracer = active.tracer
        if tracer is None:
            return get(obj)
        return attributes.load(tracer, site, obj, name)

    return hook


def super_attr(site: Site, name: str, given: bool) -> Hook:
    def hook(cls: Any, obj: Any, maker: Any) -> Any:
        tracer = active.tracer
        if tracer is not None and maker is super and is_one_of(type(obj), BOXES):
            return calls.call(tracer, site, maker, (cls, obj), {})  # which refuses
        bound = maker(cls, obj) if given or maker is super else maker()
        if tracer is None:
            return builtins.getattr(bound, name)
        if tracer.reads is not None:
            global_place(tracer.reads, sys._getframe(1).f_globals, "super", maker)
        return attributes.load(tracer, site, bound, name)

    return hook


def setattr(site: Site, name: str) -> Hook:
    def hook(obj: Any, value: Any) -> None:
        tracer = active.tracer
        if tracer is None:
            builtins.setattr(obj, name, value)
        else:
            if tracer.loops is not None:
                tracer.loops.write()
            try:
                attributes.store(tracer, site, obj, name, value)
            except Exception as error:
                show_plain_names(tracer, error, (obj, value))
                raise

    return hook


def delattr(site: Site, name: str) -> Hook:
    def hook(obj: Any) -> None:
        tracer = active.tracer
        if tracer is None:
            builtins.delattr(obj, name)
        else:
            if tracer.loops is not None:
                tracer.loops.write()
            attributes.delete(tracer, site, obj, name)

    return hook


def setitem(site: Site) -> Hook:
    def hook(container: Any, key: Any, value: Any) -> None:
        tracer = active.tracer
        if tracer is not None and tracer.loops is not None and type(container) is not ArrayBox:
            tracer.loops.store(container) if type(container) is list else tracer.loops.write()
        if tracer is None or (
            type(container) is list
            and type(key) is int
            and id(container) not in tracer.originals
            and id(container) not in tracer.joined
        ):
            container[key] = value
        else:
            protocols.set_item(tracer, site, container, key, value)

    return hook


def delitem(site: Site) -> Hook:
    def hook(key: Any, container: Any) -> None:
        tracer = active.tracer
        if tracer is None:
            del container[key]
            return
        if tracer.loops is not None:
            tracer.loops.write()
        protocols.delete_item(tracer, site, container, key)

    return hook


def load_global(site: Site, name: str, depth: int = 1) -> Hook:
    def hook(value: Any) -> Any:
        tracer = active.tracer
        if tracer is None:
            return value
        reads = tracer.reads
        kind = type(value)
        atom = type(kind) is type and (
            kind in CONSTANT or (kind in DISGUISES and not tracer.rebound) or kind is type
        )
        if kind is BuiltinFunctionType:
            atom = type(value.__self__) is ModuleType  # others may work on a container
        if atom and reads is None:
            return value
        scope = sys._getframe(depth).f_globals
        key = id(scope), name
        if atom and reads.noted.get(key, MISSING) is value and not reads.written:
            return value
        if tracer.scopes and (own := tracer.scopes.get(id(scope))) is not None:
            return own.load(tracer, site, name, value)
        entry = tracer.overlay.get(key)
        if entry is not None and entry[1] is value:
            return entry[2]
        place = None if reads is None else global_place(reads, scope, name, value)
        moved = entry is not None or attributes.is_moved(tracer, value)
        traced = enter(tracer, value, name, place)
        if moved:
            traced = attributes.left_by_others(tracer, name, traced)
        if traced is value and atom:
            if reads is not None:
                reads.noted[key] = value
        else:
            tracer.overlay[key] = (scope, value, traced)
        return traced

    return hook


def global_place(reads: Reads, scope: dict[str, Any], name: str, value: Any) -> Place:
    """The place of a global, or of a builtin that no global hides."""
    place = reads.constant(scope)
    if name in scope:
        return reads.note(place, "global", name, value)
    reads.note(place, "global", name, MISSING)
    return reads.note(reads.constant(space_of(scope)), "global", name, value)


def space_of(scope: dict[str, Any]) -> dict[str, Any]:
    """The builtins of a module."""
    inner = scope.get("__builtins__", builtins)
    return inner if isinstance(inner, dict) else vars(inner)


def note_missing(reads: Reads, scope: dict[str, Any], names: Iterable[str]) -> None:
    """Note which of the globals that a function may ask for are not there: it may catch the NameError."""
    space = space_of(scope)
    for name in names:
        if name not in scope and name not in space:
            global_place(reads, scope, name, MISSING)


def load_name(site: Site, name: str) -> Hook:
    load = load_global(site, name, depth=2)

    def hook(value: Any, namespace: Any) -> Any:
        if type(namespace) is Variables:
            return value if namespace.found == name else load(value)
        return value if name in namespace else load(value)

    return hook


def load_variable(site: Site, name: str) -> Hook:
    load = load_global(site, name, depth=2)

    def hook(value: Any) -> Any:
        tracer = active.tracer
        if tracer is None or tracer.executing[-1].has_own(name):
            return value
        return load(value)

    return hook


def store_variable(site: Site, name: str) -> Hook:
    def hook(value: Any) -> Any:
        tracer = active.tracer
        if tracer is None:
            return value
        running = tracer.executing[-1]
        if running.locals is running.globals:
            return put_global(tracer, site, running.globals, name, value)
        if tracer.loops is not None:
            tracer.loops.write()
        return value

    return hook


def delete_variable(site: Site) -> Hook:
    def hook(name: str) -> None:
        tracer = active.tracer
        if tracer is None:
            return
        running = tracer.executing[-1]
        if running.locals is running.globals:
            remove_global(tracer, site, running.globals, name)
        elif tracer.loops is not None:
            tracer.loops.write()

    return hook


def variables(site: Site) -> Hook:
    def hook(namespace: Any) -> None:
        tracer = active.tracer
        if tracer is not None:
            tracer.variables = (site, namespace)
            if tracer.loops is not None:
                tracer.loops.look()

    return hook


def global_attr(site: Site, name: str, attr: str) -> Hook:
    load, get = load_global(site, name, depth=2), getattr(site, attr)

    def hook(value: Any) -> Any:
        return get(load(value))

    return hook


def global_append(site: Site, name: str) -> Hook:
    """``name.append``, to be called at once."""
    load, get = load_global(site, name, depth=2), getattr(site, "append")

    def hook(value: Any) -> Any:
        tracer = active.tracer
        if tracer is not None and type(value) is list:
            scope = sys._getframe(1).f_globals
            known = (id(scope), name) in tracer.overlay or id(scope) in tracer.scopes
            if not known and scope.get(name) is value:
                tail = tail_of(tracer, name, value)
                if tail is not None and tail.shadow is None:
                    if tracer.reads is not None:
                        global_place(tracer.reads, scope, name, value)
                    return tail.append
        return get(load(value))

    return hook


def store_global(site: Site, name: str) -> Hook:
    def hook(value: Any) -> Any:
        tracer = active.tracer
        if tracer is None:
            return value
        return put_global(tracer, site, sys._getframe(1).f_globals, name, value)

    return hook


def put_global(tracer: Tracer, site: Site, scope: dict[str, Any], name: str, value: Any) -> Any:
    """Set a global: what the globals themselves are to hold."""
    own = tracer.scopes.get(id(scope))
    if own is not None:
        return own.store(tracer, site, name, value)
    if isinstance(value, ModuleType):  # a module is imported once, whoever asks
        return value
    plain = lower(tracer, value)
    dying.let_go(tracer, site, (scope.get(name),), f"the global {name}")
    remember(tracer, scope, name)
    tracer.overlay[id(scope), name] = (scope, plain, value)
    attributes.show(tracer, id(scope), name, value)
    tracer.rebound = True
    if tracer.reads is not None:
        tracer.reads.constant(scope)
        tracer.reads.wrote(id(scope), name)
    effect(tracer, site, operator.setitem, (External("globals", scope), name, value), {})
    return plain


def delete_global(site: Site) -> Hook:
    def hook(name: str) -> None:
        tracer = active.tracer
        if tracer is not None:
            remove_global(tracer, site, sys._getframe(1).f_globals, name)

    return hook


def remove_global(tracer: Tracer, site: Site, scope: dict[str, Any], name: str) -> None:
    """A global is about to be deleted."""
    own = tracer.scopes.get(id(scope))
    if own is not None:
        own.delete(tracer, site, name)
        return
    dying.let_go(tracer, site, (scope.get(name),), f"the global {name}")
    remember(tracer, scope, name)
    attributes.show(tracer, id(scope), name, MISSING)
    if tracer.reads is not None:
        tracer.reads.problem(f"the global {name} is deleted", site)


def importing(site: Site, name: str) -> Hook:
    def hook(names: Any, level: int) -> None:
        tracer = active.tracer
        if tracer is None:
            return
        if tracer.reads is not None:
            tracer.reads.importing += 1
        if imports_quietly(sys._getframe(1).f_globals, name, names, level):
            return
        if tracer.reads is not None:
            tracer.reads.problem(f"the import of {name} may run code of the user's", site)
        tracer.importing = {id(x) for x in [*sys.modules.values()]}
        unannounced.may_write(tracer, site, __import__, sights.put_outside(tracer))
        if tracer.cells_known:
            write_cells(tracer)

    return hook


def imports_quietly(scope: dict[str, Any], name: str, names: Any, level: int) -> bool:
    """Whether an import finds what it is for without running any code, or is one of a library known to be harmless."""
    if type(space_of(scope)["__import__"]) is not BuiltinFunctionType:
        return False
    if level:
        own = str(scope.get("__name__"))
        package = scope.get("__package__") or (
            own if "__path__" in scope else own.rpartition(".")[0]
        )
        parts = package.split(".")
        name = ".".join([*parts[: len(parts) - level + 1], *([name] if name else [])])
    if sights.is_library(name):
        return True
    module = sys.modules.get(name)
    if type(module) is not ModuleType:
        return False
    if not names:
        return True
    if builtins.any(attributes.asks_users(module, x) for x in ("__path__", *names)):
        return False
    is_package = has_own(module, "__path__")  # whose modules are imported for their names
    return not is_package or builtins.all(
        has_own(module, x) or f"{name}.{x}" in sys.modules for x in names
    )


def has_imported(tracer: Tracer) -> None:
    """An import has run code of the user's: what that has changed, or made of what the run has changed, is met anew."""
    before, tracer.importing = tracer.importing, None
    assert before is not None
    renewal.renew(tracer)
    if not sights.put_outside(tracer):
        return
    for module in [*sys.modules.values()]:
        if id(module) not in before and type(module) is ModuleType:
            held = own_dict(module)
            for name, x in [*held.items()]:
                if isinstance(x, LEFT) and not isinstance(x, bool):
                    tracer.overlay[id(held), name] = (module, MISSING, None)  # as moved by others


# What the body of a module may have computed.
LEFT = (int, float, complex, np.generic, np.ndarray, list, tuple, dict)


class Made:
    """Holds the name that the ``__getattr__`` of a module has made, to be imported from here."""


def import_source(site: Site, name: str) -> Hook:
    def hook(module: Any) -> Any:
        tracer = active.tracer
        source = module
        if tracer is not None and attributes.asks_users(module, name):
            source = made_by(tracer, site, module, name)
        if tracer is not None and tracer.reads is not None:
            tracer.reads.importing += 1
        return source

    return hook


def made_by(tracer: Tracer, site: Site, module: ModuleType, name: str) -> Any:
    """What holds the name that a module makes; where it makes none, a module of its name that asks nobody."""
    try:
        made = Made()
        vars(made)[name] = attributes.load(tracer, site, module, name)
        return made
    except AttributeError:
        pass
    own = own_dict(module)
    bare = ModuleType(module.__name__)
    vars(bare).update({x: own[x] for x in ("__spec__", "__file__", "__path__") if x in own})
    return bare


def import_name(site: Site, name: str, last: list[Any]) -> Hook:
    def hook(module: Any) -> Any:
        tracer = active.tracer
        if tracer is not None and tracer.importing is not None:
            has_imported(tracer)
        if tracer is not None and tracer.reads is not None:
            last[:] = [module]
            reads = tracer.reads
            reads.importing -= 1
            space = space_of(sys._getframe(1).f_globals)
            reads.note(reads.constant(space), "global", "__import__", space["__import__"])
            if type(space["__import__"]) is not BuiltinFunctionType:
                reads.problem(f"the module {name} is imported by a function of the user's", site)
            known = (name, name.partition(".")[0], builtins.getattr(module, "__name__", ""))
            keys = [k for k in dict.fromkeys(known) if k in sys.modules]
            if not any(sys.modules[k] is module for k in keys):
                reads.problem(f"the module {name} is imported in a way of its own", site)
            for key in keys:
                reads.note(reads.constant(sys.modules), "global", key, sys.modules[key])
        return module

    return hook


def import_from(site: Site, name: str, last: list[Any]) -> Hook:
    def hook(value: Any, source: Any) -> Any:
        tracer = active.tracer
        if tracer is not None and tracer.reads is not None:
            tracer.reads.importing -= 1
        if tracer is None or type(source) is Made:
            return value
        if isinstance(value, ModuleType):
            if tracer.reads is not None and last:
                note_submodule(tracer, site, last, name, value)
            return value
        if not has_own(source, name):  # its ``__getattr__`` has run, and need not run again
            if tracer.reads is not None:
                why = f"{name} is imported, which a module makes when it is asked"
                tracer.reads.problem(why, site)
            return value
        return attributes.load(tracer, site, source, name)

    return hook


def note_submodule(
    tracer: Tracer, site: Site, last: list[Any], name: str, module: ModuleType
) -> None:
    """Note where a module was taken from: the one imported last or, of ``import a.b.c as d``, what that has given."""
    assert tracer.reads is not None
    owners = [x for x in last if (own_dict(x) or {}).get(name) is module]
    for owner in owners:
        attributes.noted(tracer, owner, name, module)
    if not owners:
        tracer.reads.problem(f"the module {name} is imported in a way of its own", site)
    last[1:] = [module]


def import_star(site: Site) -> Hook:
    def hook(module: Any) -> Any:
        tracer = active.tracer
        if tracer is not None and tracer.reads is not None:
            tracer.reads.problem("all names of a module are imported", site)
        return module

    return hook


def shown(site: Site) -> Hook:
    def hook(value: Any) -> Any:
        tracer = active.tracer
        if tracer is None:
            return value
        if tracer.reads is not None:
            tracer.reads.problem("a value is displayed as in an interactive session", site)
        return lower(tracer, value)

    return hook


def iter(site: Site) -> Hook:
    def hook(obj: Any) -> Any:
        tracer = active.tracer
        if tracer is None:
            return builtins.iter(obj)
        iterator = builtins.iter(protocols.iterate_object(tracer, site, obj))
        if type(iterator) is GeneratorType:
            depth.check()
            tracer.generators[id(iterator)] = weakref.ref(iterator)
        return iterator if tracer.loops is None else tracer.loops.iterate(obj, iterator)

    return hook


def loop(site: Site, loop: Loop) -> Hook:
    count = len(loop.carried)

    def hook(*values: Any) -> Any:
        tracer = active.tracer
        if tracer is not None and tracer.outline is not None:
            tracer.outline.mark(loop, id(sys._getframe(1)))
        if tracer is not None and tracer.originals:
            tracer.heads += 1
            if not tracer.heads % renewal.HEADS:
                renewal.renew(tracer)
        if tracer is None or tracer.loops is None:
            values = values[:count]
        else:
            values = tracer.loops.head(loop, sys._getframe(1), values)
        return values[0] if count == 1 else values

    return hook


def leave(site: Site, loops: tuple[Loop, ...]) -> Hook:
    def hook(_: Any) -> None:
        tracer = active.tracer
        if tracer is not None and tracer.outline is not None:
            tracer.outline.mark(loops, id(sys._getframe(1)))
        if tracer is not None and tracer.loops is not None:
            tracer.loops.leave(loops, sys._getframe(1))

    return hook


def shared(site: Site) -> Hook:
    def hook(_: Any) -> None:
        tracer = active.tracer
        if tracer is not None and tracer.loops is not None:
            tracer.loops.write()
        if tracer is not None and tracer.cells:
            dying.let_go_of_variables(tracer, site)

    return hook


def caught(site: Site) -> Hook:
    def hook(error: BaseException) -> None:
        tracer = active.tracer
        if tracer is not None and tracer.importing is not None:  # the import has failed
            has_imported(tracer)
        if tracer is not None and tracer.loops is not None:
            tracer.loops.caught(error)
        tracebacks.fold_caught(error)
        if tracer is not None and tracer.reads is not None:
            tracer.reads.derives(type(error))
            guarded = isinstance(error, GUARDED)
            if isinstance(error, NameError) and tracer.scopes:  # of names of which nothing is noted
                guarded = False
            if not guarded and not is_raised(error):
                raised(tracer, site, error)

    return hook


def exception(site: Site) -> Hook:
    """What is about to be raised: a class of the user's is called here, for CPython would do so unseen."""

    def hook(error: Any) -> Any:
        tracer = active.tracer
        if tracer is None or not is_users_exception(error):
            return error
        return calls.make_exception(tracer, site, error, ())

    return hook


def dealt_with(site: Site) -> Hook:
    """Where what a handler has caught is a refusal of ours, plain Python would not be there."""

    def hook(_: Any) -> None:
        if active.tracer is not None and active.tracer.refusal is not None:
            raise active.tracer.refusal

    return hook


def is_raised(error: BaseException) -> bool:
    """Whether an exception comes from a ``raise`` of the program's own, which says why it is there."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or not calls.rewrite.is_twin(trace.tb_frame.f_code):
        return False
    return trace.tb_frame.f_code.co_code[trace.tb_lasti] == opmap["RAISE_VARARGS"]


def context(site: Site) -> Hook:
    def hook(manager: Any) -> Any:
        tracer = active.tracer
        if tracer is None or not is_object(manager):
            return plain_of(manager)
        if tracer.expanding and tracer.reads is not None and type(manager) is not np.errstate:
            tracer.reads.problem("what fails may be caught", site)
        if any(special(manager, name) is MISSING for name in ("__enter__", "__exit__")):
            return manager
        return stand_ins.Context(tracer, site, manager)

    return hook


def match_class(site: Site) -> Hook:
    def hook(cls: Any, names: Any, count: int, subject: Any) -> Any:
        return patterns.match_class(active.tracer, site, subject, cls, count, names)

    return hook


def match_keys(site: Site) -> Hook:
    def hook(keys: Any, subject: Any) -> Any:
        return patterns.match_keys(active.tracer, site, subject, keys)

    return hook


def match_kind(site: Site, name: str) -> Hook:
    flag = patterns.SEQUENCE if name == "MATCH_SEQUENCE" else patterns.MAPPING

    def hook(subject: Any) -> bool:
        return patterns.is_a(active.tracer, site, subject, flag)

    return hook


def match_length(site: Site) -> Hook:
    def hook(subject: Any) -> Any:
        return patterns.length(active.tracer, site, subject)

    return hook


sees_items = True  # of generators, for C code may ask something of them


def yields(site: Site) -> Hook:
    return met


def unpack(site: Site) -> Hook:
    return taken_apart(site, protocols.iterate_object)


TAKEN_APART = {
    stand_ins.ObjectIterator: stand_ins.TakenApart,
    stand_ins.MeasuredIterator: stand_ins.MeasuredTakenApart,
}


def unpack_rest(site: Site) -> Hook:
    whole = unpack(site)

    def hook(x: Any) -> Any:
        items = whole(x)
        kind = TAKEN_APART.get(type(items))
        return items if kind is None else kind(items.tracer, site, items.value)

    return hook


def spread(site: Site) -> Hook:
    return taken_apart(site, protocols.item_by_item)


def taken_apart(site: Site, iterate: Callable[[Tracer, Site, Any], Any]) -> Hook:
    """What CPython is given to iterate over: ``iterate`` follows what is no list or tuple."""

    def hook(x: Any) -> Any:
        kind = type(x)
        tracer = active.tracer
        if kind is tuple or kind is list or tracer is None:
            return x
        if kind is Box:
            return x.value
        return iterate(tracer, site, x)

    return hook


def merge_keywords(site: Site) -> Hook:
    """CPython would blame the hook of the call for what is wrong with the mapping: the function is to be blamed."""

    def hook(x: Any, fn: Any, given: dict[str, Any]) -> dict[str, Any]:
        tracer = active.tracer
        mapping = x
        if type(x) is not dict and tracer is not None:
            if not is_object(x) and not has(type(plain_of(x)), "keys"):
                fn(**plain_of(x))  # raises what plain Python raises
            mapping = stand_ins.mapping(tracer, site, x)
        if isinstance(mapping, dict) and given.keys().isdisjoint(dict.keys(mapping)):
            given.update(mapping)
            return given
        try:
            for key in mapping.keys():
                if key in given:
                    fn(**given, **{key: None})  # raises what plain Python raises
                given[key] = mapping[key]
            return given
        except AttributeError:
            pass
        return fn(**double(kind_of(x), {}))  # raises what plain Python raises

    return hook


def merge(site: Site) -> Hook:
    def hook(x: Any) -> Any:
        tracer = active.tracer
        return x if type(x) is dict or tracer is None else stand_ins.mapping(tracer, site, x)

    return hook


def make_set(site: Site) -> Hook:
    return lambda items: hashed(site, items, set, items)


def hashed(site: Site, keys: tuple[Any, ...], fn: Any, *args: Any) -> Any:
    """Call what puts keys into a container."""
    if active.tracer is not None:
        protocols.compared(active.tracer, *keys)
    return watched(fn, args, {}, site)


def make_dict(site: Site) -> Hook:
    def hook(items: Any) -> Any:
        keys = items[::2]
        made = list(zip(keys, items[1::2], strict=True))
        if builtins.all(is_one_of(type(key), ATOMS) for key in keys):
            return dict(made)
        return hashed(site, keys, dict, made)

    return hook


def add(site: Site) -> Hook:
    return lambda item, container: hashed(site, (item,), set.add, container, item)


def put(site: Site) -> Hook:
    def hook(value: Any, key: Any, container: Any) -> None:
        if is_one_of(type(key), ATOMS):
            container[key] = value
        else:
            hashed(site, (key,), operator.setitem, container, key, value)

    return hook


def format(site: Site, to_ascii: bool) -> Hook:
    def hook(value: Any) -> Any:
        tracer = active.tracer
        if tracer is None or (
            is_one_of(type(value), UNFORMATTED) and not (to_ascii and is_one_of(type(value), TEXTS))
        ):
            if type(value) is int and tracer is not None:
                protocols.note_digits(tracer, site, value)
            return value
        return stand_ins.Formatted(tracer, site, value, ascii if to_ascii else repr)

    return hook


def build_string(site: Site, count: int) -> Hook:
    def hook(*parts: Any) -> Any:
        parts = (parts[-1], *parts[:-1])
        whole = "".join(parts)
        if active.tracer is None or not any(is_one_of(type(x), TEXTS) for x in parts):
            return whole
        return wrapped(whole, joined([x.origin for x in parts if is_one_of(type(x), TEXTS)]))

    def of_two(right: Any, left: Any) -> Any:
        if is_one_of(type(left), TEXTS) or is_one_of(type(right), TEXTS):
            return hook(right, left)
        return left + right

    return of_two if count == 2 else hook
