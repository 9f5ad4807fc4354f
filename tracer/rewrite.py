"""The rewriter: makes the instrumented twin of a code object.

A twin is the code object itself with hooks in the places where values are used: its name, file,
line numbers, signature, variables and handlers are those of the original, and CPython runs it.
Nested code objects (lambdas, inner functions, comprehensions, class bodies) are instrumented with
their parent.

How a hook is called
--------------------
``CALL n`` finds two slots below its arguments: the callable and either ``self`` or NULL. With a
hook in the lower slot and the user's callable in the upper one, the unchanged ``CALL n`` calls
``hook(callable, *args)``. So a call costs no further instruction, and an operator on the topmost
``n`` values is

    [x1, x2 .. xn]   LOAD_CONST hook   SWAP n+1   ->   [hook, x2 .. xn, x1]   CALL n-1

``hook(x2, .., xn, x1)``: for two operands this is ``hook(right, left)``.

The hooks
---------
``hooks`` is an object with these methods. Each is called once for an instruction, with its
``Site``, and returns the callable ``h`` that goes into the twin. ``->``: what ``h`` must return.

    call(site)                     h(fn, *args, **kwargs) -> result
    call_ex(site)                  h(fn, args[, kwargs]) -> result; ``args`` is any iterable
    binary(site, op)               h(right, left) -> result; operator.add .. iadd .. getitem
    unary(site, op)                h(x) -> result; operator.neg, pos, invert; not_ (3.11, 3.12)
    compare(site, op, decides)     h(right, left) -> result; operator.lt, le, eq, ne, gt, ge; True or False where
                                   it ``decides``
    contains(site, negate)         h(container, item) -> True or False
    is_(site, negate)              h(right, left) -> True or False
    truth(site)                    h(x) -> True or False
    getattr(site, name)            h(obj) -> value, which is called next if it is a method
    super_attr(site, name, given)  h(cls, obj, super) -> value of ``super().name``; ``given``: of ``super(cls, obj)``
    setattr(site, name)            h(obj, value)
    delattr(site, name)            h(obj)
    setitem(site)                  h(container, key, value)
    delitem(site)                  h(key, container)
    load_global(site, name)        h(value) -> value
    load_name(site, name)          h(value, namespace) -> value; in the body of a class
    load_variable(site, name)      h(value) -> value; in code that is run by ``exec`` or ``eval``
    store_variable(site, name)     h(value) -> value; there
    delete_variable(site)          h(name); there
    variables(site)                h(namespace): the next call may look at the variables of its caller, which are these
    global_attr(site, name, attr)  h(value) -> value.attr; LOAD_GLOBAL and the load after it in one
    global_append(site, name)      h(value) -> value.append, which is called at once
    store_global(site, name)       h(value) -> value
    delete_global(site)            h(name)
    importing(site, name)          h(names, level); a module is about to be imported
    import_name(site, name, last)  h(module) -> module; ``last`` is a list to keep it in
    import_source(site, name)      h(module) -> what the name is to be imported from in its place
    import_from(site, name, last)  h(value, source) -> value, an attribute of that; the module is in ``last``
    import_star(site)              h(module) -> module, all of whose names are about to be stored
    shown(site)                    h(value) -> value, which an interactive statement is about to display
    iter(site)                     h(obj) -> iterator; also for ``yield from``
    unpack(site)                   h(obj) -> iterable, for ``a, b = obj``
    unpack_rest(site)              h(iterable) -> iterable, of ``a, *list = …``
    spread(site)                   h(obj) -> iterable, for ``[*obj]``
    merge(site)                    h(obj) -> mapping, for ``{**obj}``
    merge_keywords(site)           h(obj, fn, given) -> ``given``, the keywords of a call of ``fn``, and those of obj
    make_set(site)                 h(items) -> set; the items are a tuple
    make_dict(site)                h(items) -> dict; key, value, key, value … in a tuple
    add(site)                      h(item, set); in a comprehension
    put(site)                      h(value, key, dict); in a comprehension
    context(site)                  h(manager) -> manager, of a ``with`` statement
    exception(site)                h(error) -> error, which is about to be raised, or its cause; a class is to be called
    match_class(site)              h(cls, names, count, subject) -> tuple or None
    match_keys(site)               h(keys, subject) -> tuple or None
    match_kind(site, name)         h(subject) -> True or False; MATCH_SEQUENCE, MATCH_MAPPING
    match_length(site)             h(subject) -> int
    format(site, to_ascii)         h(value) -> value, which an f-string converts, by ``!a`` if ``to_ascii``, and formats
    build_string(site, n)          h(x2, .., xn, x1) -> the string that the pieces of an f-string make
    loop(site, loop)               h(*values) -> values, as a tuple unless it is one; an iteration begins: the values of
                                   the variables that the loop carries, and then of those that it looks at; it gives
                                   the former back
    leave(site, loops)             h(None); these loops are left, if they were running
    caught(site)                   h(error); a handler begins that looks at this exception
    dealt_with(site)               h(None); an ``except`` begins, or a handler ends that lets nothing through
    shared(site)                   h(None); a variable of an enclosing function has been stored

Where ``hooks.folds`` is True, a recorder of regions listens (``joins`` has the words), to whom these are told as well:

    fork(site, fork)               h(None); a conditional jump of which the ways meet again is about to be decided
    join(site, forks, names, pushed)  h(*values) -> values, as a tuple unless it is one, None if there are none; ways of
                                   these forks meet, if they were gone: the value on top of the stack, if one is
                                   ``pushed``, and those of the variables ``names``, by number
    leave(site, loops, names, exit, pushed)  h(*values) -> values; these loops are left, if they were running, to the
                                   instruction ``exit``: the value on top of the stack, if one is ``pushed`` that is
                                   about to be returned, and the variables of ``loop.left[exit]`` of all of them
    caught_here(site, index, region, names)  h(error, *values) -> values; instead of ``caught``: the handler at this
                                   index has caught what the instructions ``region`` raise, and the values of the
                                   variables that are read from here on
    born(site)                     h(container) -> container; a list or dict has been made, a dict by ``make_dict``
                                   unless it is empty or its keys are constants
    extended(site)                 h(obj, list), which gets the items of obj, of ``[*obj]`` or of constants
    merged_keywords(site)          h(mapping, dict): the same of the keywords of a call, of which none is given twice
    starred(site)                  h(list) -> list, of ``a, *list = …``
    united(site)                   h(frozenset, set), which gets all that is in the former
    merged(site)                   h(mapping, dict), which gets all that is in the mapping
    list_append(site)              h(value, list), which appends it; in a comprehension, or after ``*`` in a list
    yielded(site)                  h(value, list) -> None, which appends it; a generator expression that is the first
                                   argument of a call gives a value: it runs at once and collects them all
    give(site)                     h(value) -> None, of ``yield``; where ``hooks.runs_generators`` is True, for then the
                                   twin of a generator function is a function that runs at once
    yields(site)                   h(value) -> value, which is about to be yielded; where ``hooks.sees_items`` is True
    give_all(site)                 h(obj) -> an iterator that gives nothing, of ``yield from``
    collected(site)                h(list) -> what stands for that generator expression in the call
    lazily(site)                   h(list) -> list, in which such a generator expression is about to collect for a call
                                   that may leave items
    text(site, how, has_spec)      h(x), or h(spec, x) -> text, in the place of what an f-string does
    converted(site, how)           h(x) -> text, of ``!s``, ``!r`` or ``!a``
    unsure(site)                   h(None); a loop or an exception has left behind a variable that may have no value,
                                   and so cannot be handed over
    cell(site)                     h(value) -> the object that a cell holds from now on: functions inside write the
                                   variable, whose value is ``joins.UNBOUND`` as long as it has none
    load_cell(site, name)          h(held) -> value, of a variable of such a cell or of an enclosing function
    store_cell(site)               h(held, value); the value of such a variable is stored

Where there is nothing to hand over, ``join`` and ``leave`` get None and what they return is dropped. A variable that
has no value yet is handed over as ``joins.UNBOUND``, to be given back as that; reading it raises UnboundLocalError.
At one instruction, loops are left first, then ways meet, then an iteration begins, then a fork is decided.

"True or False" is meant to the letter: CPython takes any other object in that place for either
without looking. ``is_`` is not called where an operand is the constant None or ``...``, and but for a
recorder of regions True or False, nor ``truth`` where the value comes from a comparison or from
``in``, ``is`` or ``not``.
Slices are built before the hook sees them: ``a[i:j]`` is getitem, setitem or delitem with a slice.

Left alone: zero-argument ``super()`` (it inspects the frame that calls it), the call that runs a
comprehension or a generator expression, the exit call of ``with``, closures, building lists and tuples,
exception matching, ``yield``, and names in class bodies.
"""

from __future__ import annotations

import builtins
import opcode
import operator
import sys
import weakref
from collections.abc import Callable, Iterator
from dis import opmap
from itertools import pairwise
from types import CodeType
from typing import Any, NamedTuple, NoReturn

from .assembly import Assembler, Instr, Position
from .cycles import ATTRIBUTE_LOADS, Loop, find_loops
from .errors import TraceError
from .joins import (
    MATCHING,
    UNBOUND,
    Fork,
    Joins,
    RenamedFlow,
    assigned,
    consumed_at_once,
    find_joins,
    names_of,
)
from .tape import Site, Target
from .versions import current


class UnsupportedCode(TraceError):
    """A code object that cannot be instrumented: asynchronous code."""


# Indexed by the argument of BINARY_OP.
BINARY = (
    operator.add, operator.and_, operator.floordiv, operator.lshift, operator.matmul,
    operator.mul, operator.mod, operator.or_, operator.pow, operator.rshift,
    operator.sub, operator.truediv, operator.xor,
    operator.iadd, operator.iand, operator.ifloordiv, operator.ilshift, operator.imatmul,
    operator.imul, operator.imod, operator.ior, operator.ipow, operator.irshift,
    operator.isub, operator.itruediv, operator.ixor,
    operator.getitem,
)  # fmt: skip
COMPARE = (operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge)
UNARY: dict[str, Callable[[Any], Any]] = {
    "UNARY_NEGATIVE": operator.neg,
    "UNARY_POSITIVE": operator.pos,
    "UNARY_INVERT": operator.invert,
    "UNARY_NOT": operator.not_,
}
CONVERSIONS = ("", "s", "r", "a")
# What replaces an instruction needs at most this many more stack slots.
EXTRA_STACK = 4

# Builtins that look at the variables of their caller: without arguments, or whatever they are given.
LOOK_AROUND = frozenset(("locals", "vars", "dir"))
RUN_AROUND = frozenset(("eval", "exec"))
AROUND = LOOK_AROUND | RUN_AROUND
# CPython 3.13.0 ends in ``locals()`` where a variable of an inlined comprehension is in a cell.
LOCALS_CRASH = sys.version_info[:3] == (3, 13, 0)

CO_OPTIMIZED, CO_GENERATOR = 0x1, 0x20
CO_ASYNCHRONOUS = 0x80 | 0x200  # coroutine, asynchronous generator

LOAD_CONST, LOAD_GLOBAL = opmap["LOAD_CONST"], opmap["LOAD_GLOBAL"]
COPY, POP_TOP, SWAP = opmap["COPY"], opmap["POP_TOP"], opmap["SWAP"]
PUSH_NULL, RESUME = opmap["PUSH_NULL"], opmap["RESUME"]
YIELD_VALUE = opmap["YIELD_VALUE"]
LOAD_FAST = opmap.get("LOAD_FAST_CHECK", opmap["LOAD_FAST"])
LOAD_DEREF, STORE_DEREF = opmap["LOAD_DEREF"], opmap["STORE_DEREF"]
NOP, STORE_FAST, UNPACK_SEQUENCE = opmap["NOP"], opmap["STORE_FAST"], opmap["UNPACK_SEQUENCE"]
CALL = [opmap[name] for name in current.CALL]

CLASS_CALLS = {"CALL", "CALL_KW", "CALL_FUNCTION_EX"}
ALWAYS_BOOL = {
    "CONTAINS_OP", "IS_OP", "UNARY_NOT", "CHECK_EXC_MATCH", "MATCH_MAPPING", "MATCH_SEQUENCE",
}  # fmt: skip
ONE_VALUE = {
    "LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW", "LOAD_DEREF",
    "LOAD_GLOBAL", "LOAD_NAME", "LOAD_CONST",
}  # fmt: skip
# With what a handler shows of which statement it is.
DECIDING = {*MATCHING, "RERAISE", "POP_EXCEPT", "WITH_EXCEPT_START", "PUSH_EXC_INFO"}
SINGLETONS = (None, True, False, ...)
COMMON = getattr(opcode, "_common_constants", ())
NO_BOOLS = (None, ...)  # for a recorder of regions a bool may be a value of the run

# Code objects compare by value, and a twin without any hook equals its original, so they are told apart by identity.
# A twin is made once and lives as long as its original: nothing here keeps a function's code alive.
MOST_KEPT = 4096  # the oldest goes first
Kept = tuple[CodeType, weakref.ref[CodeType], Any]
# By original, hooks, and whether it is executed: the twin, the original, the hooks.
_kept: dict[tuple[int, int, bool], Kept] = {}
_twins: dict[int, Twin] = {}
# What bytecode is written with: wrong answers of a function in its place could crash the interpreter.
NEEDED = {
    x: getattr(builtins, x)
    for x in "len range isinstance max min type enumerate zip tuple list dict int getattr".split()
}
# What programs are written with as well: a slope that `abs` or `sum` has a part in would be another.
WRITING = {
    x: getattr(builtins, x)
    for x in (
        "abs all any bool callable complex divmod filter float frozenset hasattr hash id issubclass iter map next pow "
        "repr reversed round set slice sorted str sum vars"
    ).split()
}


def replaced(own: dict[str, Any]) -> str | None:
    """The name of one of these builtins in the place of which there is something else now, if there is one."""
    return next((x for x, fn in own.items() if getattr(builtins, x, None) is not fn), None)


class Twin(NamedTuple):
    """A twin, its original, and the names of the globals that it asks for, its inner functions included.

    ``loose`` are the variables of enclosing functions that these may change once the function is made.
    """

    code: weakref.ref[CodeType]
    original: weakref.ref[CodeType]
    globals: frozenset[str]
    loose: frozenset[str]


def twin_entry(code: CodeType) -> Twin | None:
    """What is known of a twin; None for any other code object.

    An entry may outlive its code object, where a callback of a weak reference finds no stack to run on.
    """
    entry = _twins.get(id(code))
    return entry if entry is not None and entry.code() is code else None


def is_generator(code: CodeType) -> bool:
    """Whether a function gives a generator when it is called; a generator expression runs where it is made."""
    return bool(code.co_flags & CO_GENERATOR) and code.co_name != "<genexpr>"


def is_twin(code: CodeType) -> bool:
    """Whether ``code`` came out of ``instrument``."""
    entry = _twins.get(
        id(code)
    )  # as in ``twin_entry``, of which each call of a local function asks
    return entry is not None and entry[0]() is code


def tuples_in_code() -> Iterator[tuple[Any, ...]]:
    """The tuples that are constants of traced code, the same at each call, as none is that a call has made."""
    codes = [code for entry in [*_twins.values()] if (code := entry.code()) is not None]
    todo = [x for code in codes for x in code.co_consts if type(x) is tuple]
    while todo:
        yield (constant := todo.pop())
        todo += [x for x in constant if type(x) is tuple]


def original(code: CodeType) -> CodeType:
    """The code object that the twin ``code`` was made from; any other code object itself."""
    entry = twin_entry(code)
    return code if entry is None else entry.original() or code


def catches(code: CodeType) -> bool:
    """Whether a function has an ``except`` or a ``finally``: what it does may go by whether an operation fails."""
    ops = original(code).co_code[::2]
    begin, leave = opmap["PUSH_EXC_INFO"], opmap["WITH_EXCEPT_START"]
    return begin in ops and any(a == begin and b != leave for a, b in pairwise(ops))


def global_names(code: CodeType) -> frozenset[str]:
    """The names of the globals that a twin asks for, its inner functions included."""
    entry = twin_entry(code)
    return frozenset() if entry is None else entry.globals


def loose_names(code: CodeType) -> frozenset[str]:
    """The variables of enclosing functions that these may change once a function with the twin ``code`` is made."""
    entry = twin_entry(code)
    return frozenset() if entry is None else entry.loose


def instrument(
    code: CodeType,
    hooks: Any,
    executed: bool = False,
    collects: bool = False,
    loose: frozenset[str] = frozenset(),
    lazily: bool = False,
) -> CodeType:
    """The twin of ``code`` in which the callables made by ``hooks`` see every use of a value.

    ``executed`` tells that ``exec`` or ``eval`` will run it, so that it has the variables that these were given, and
    ``collects`` that it is a generator expression of which the twin is a function that runs at once, ``lazily`` for one
    that may leave items. A twin is returned as it is. Raises ``UnsupportedCode`` for asynchronous code.
    """
    if is_twin(code):
        return code
    executed = executed and not code.co_flags & CO_OPTIMIZED
    key = id(code), id(hooks), executed
    kept = _kept.get(key)
    if kept is not None and kept[1]() is code:
        return kept[0]
    if (one := replaced(NEEDED)) is not None:
        raise UnsupportedCode(f"builtins.{one} is replaced, so that no bytecode can be written")
    rewriter = Rewriter(code, hooks, executed, collects, lazily)
    rewriter.loose = loose & {*code.co_freevars}
    twin = rewriter.rewrite()
    name = id(twin)

    def forget(_: Any, twins: dict[int, Twin] = _twins) -> None:
        twins.pop(name, None)

    def drop(_: Any, kept: dict[Any, Any] = _kept) -> None:
        kept.pop(key, None)

    _twins[name] = Twin(
        weakref.ref(twin, forget),
        weakref.ref(code),
        frozenset(rewriter.globals),
        loose & {*code.co_freevars},
    )
    while len(_kept) >= MOST_KEPT:
        _kept.pop(next(iter([*_kept])), None)  # other threads add to it
    _kept[key] = (twin, weakref.ref(code, drop), hooks)
    return twin


class Rewriter:
    """One walk over the instructions of a code object: ``source`` in, ``out`` out.

    The methods that the tables in ``versions`` name take an instruction and write what replaces it.
    """

    def __init__(
        self,
        code: CodeType,
        hooks: Any,
        executed: bool = False,
        collects: bool = False,
        lazily: bool = False,
    ) -> None:
        self.folds = builtins.getattr(hooks, "folds", False) is True
        runs = builtins.getattr(hooks, "runs_generators", False) is True and not collects
        runs &= is_generator(code)
        if collects or runs:
            code = code.replace(co_flags=code.co_flags & ~CO_GENERATOR)
        self.code = code
        self.lazily = lazily
        self.at_once = COLLECTED if collects else GIVING if runs else {}
        self.sees = not self.at_once and builtins.getattr(hooks, "sees_items", False) is True
        self.hooks = hooks
        self.executed = executed
        self.out = Assembler(code)
        self.source = self.out.source
        self.index = 0
        self.position = Position(code.co_firstlineno, None, None, None)
        self.last_site = Site(code.co_filename, code.co_firstlineno, code.co_name)
        self.class_position: Position | None = None  # of the latest class statement
        self.globals: set[str] = set()  # that are asked for, by nested code as well
        # Where calls begin that may look at the variables: the names of what is called
        self.around: dict[tuple[int | None, int | None], str] = {}
        self.decided = -1  # the latest comparison of which the truth is all that is wanted
        self.joins = Joins({}, {}, {})
        self.shared: list[
            int
        ] = []  # the variables that are in cells before each instruction, as bits
        self.loose: frozenset[str] = frozenset()  # see `Twin`
        self.depths: dict[int, int] = {}  # of the stack, before each instruction
        self.objects: frozenset[int] = frozenset()  # those whose cells hold an object (see `joins`)

    def rewrite(self) -> CodeType:
        if self.code.co_flags & CO_ASYNCHRONOUS:
            self.refuse("an async function")
        out = self.out
        source = self.source
        if self.at_once:
            self.run_through()
        heads: dict[int, Loop] = {}
        exits: dict[int, list[Loop]] = {}
        flow = RenamedFlow(self.code, source, out.regions) if self.folds else None
        at_once: dict[int, bool] = {}
        if flow is not None:
            self.shared, self.objects = flow.shared, flow.objects
            self.loose |= {names_of(self.code)[i] for i in flow.numbers(flow.loose)}
            self.depths = flow.depths
            at_once = consumed_at_once(self.code, source, flow.depths)
        for i, value in enumerate(out.consts):
            if isinstance(value, CodeType):
                out.consts[i] = self.nested(value, i in at_once, at_once.get(i, False))
        loops = find_loops(self.code, source, out.regions, flow)
        if self.folds:  # a handler may jump back to what follows it: that is no loop, as it is entered elsewhere
            loops = [loop for loop in loops if 0 not in loop.body]
        for loop in loops:
            heads[loop.head] = loop
            for i in loop.exits:
                exits.setdefault(i, []).insert(0, loop)
        if flow is not None:
            self.joins = find_joins(flow, source, out.regions, loops)
        forks, joins = self.joins.forks, self.joins.joins
        count = len(source)
        while self.index < count:
            instr = source[self.index]
            self.position = instr.position
            out.mark()
            if self.index in exits:
                self.leave(exits[self.index])
            if self.index in joins:
                self.join(joins[self.index])
            if self.index in heads:
                self.begin(heads[self.index])
            if self.index in forks:
                self.notify(self.hooks.fork(self.site(), forks[self.index]))
            handler = HANDLERS[instr.op]
            if instr.op in self.at_once:
                self.at_once[instr.op](self, instr)
            elif self.sees and instr.op == YIELD_VALUE:
                self.see(instr)
            elif self.folds and instr.op in FOLDED:
                FOLDED[instr.op](self, instr)
            elif handler is None:
                out.instrs.append((instr.op, instr.arg, instr.position, instr.jump))
                if instr.op == STORE_DEREF and self.is_free(instr.arg):
                    self.notify(self.hooks.shared(self.site()))
            else:
                handler(self, instr)
            if flow is not None:
                self.unbound(flow, instr)
                if instr.op == RESUME:
                    self.fill_cells()
            self.index += 1
        # Hooks take the place of NULLs, so the stack depths in the exception table stay right.
        most = max([len(loop.carried) + len(loop.looked) + 1 for loop in heads.values()], default=0)
        if self.folds:
            most = max(
                most, self.joins.most + 2, *[len(self.left(x, i)) + 3 for i, x in exits.items()], 0
            )
        return out.assemble(max(EXTRA_STACK, most))

    def nested(self, code: CodeType, collects: bool, lazily: bool) -> CodeType:
        try:
            twin = instrument(code, self.hooks, collects=collects, lazily=lazily, loose=self.loose)
            self.globals |= global_names(twin)
            return twin
        except UnsupportedCode:
            return code  # An async function may be defined here; it is refused when it is called.

    # Writing. Everything gets the position of what it replaces, so that tracebacks stay the same.

    def keep(self, instr: Instr) -> None:
        self.out.instrs.append((instr.op, instr.arg, instr.position, instr.jump))

    def emit(self, op: int, arg: int = 0, jump: int | None = None) -> None:
        self.out.instrs.append((op, arg, self.position, jump))

    def load(self, value: Any) -> None:
        self.emit(LOAD_CONST, self.out.const(value))

    def call(self, count: int) -> None:
        for op in CALL:
            self.emit(op, count)

    def apply(self, hook: Callable[..., Any], count: int) -> None:
        """Replace the topmost ``count`` values by the result of the hook on them."""
        self.load(hook)
        self.emit(SWAP, count + 1)
        self.call(count - 1)

    def site(self) -> Site:
        line = self.position.lineno
        if line is not None and line != self.last_site.lineno:
            self.last_site = Site(self.code.co_filename, line, self.code.co_name)
        return self.last_site

    # Names of results

    def result(self, fn: Any) -> Site:
        """The site of an operator, which says where its result is stored."""
        return self.storing(self.index, fn)

    def result_of_call(self) -> Site:
        """The site of the call of what is on top, which begins where that does."""
        begin = beginning(self.position)
        for i in range(self.index + 1, len(self.source) if begin[1] is not None else 0):
            instr = self.source[i]
            if instr.name in CLASS_CALLS and beginning(instr.position) == begin:
                return self.storing(i, None)
        return self.site()

    def storing(self, index: int, fn: Any) -> Site:
        """The present site, with the variable in which the instruction at an index leaves its result, if it does."""
        stored = self.source[index + 1] if index + 1 < len(self.source) else None
        name = None
        if stored is not None and stored.name.startswith("STORE_FAST"):
            shift = 0 if stored.name == "STORE_FAST" else 4  # two instructions in one
            name = self.code.co_varnames[stored.arg >> shift]
        elif stored is not None and stored.name in ("STORE_GLOBAL", "STORE_NAME"):
            name = self.name(stored.arg)
        elif stored is not None and stored.op == STORE_DEREF:
            code = self.code
            cells = [x for x in code.co_cellvars if x not in code.co_varnames]
            name = (*code.co_varnames, *cells, *code.co_freevars)[stored.arg]
        return self.site() if name is None else Target.of(self.site(), name, fn)

    # Looking around

    def previous(self, distance: int = 1) -> Instr | None:
        """The instruction so many places before this one, if no jump leads in between."""
        index = self.index - distance
        if index < 0 or any(instr.target for instr in self.source[index + 1 : self.index + 1]):
            return None
        return self.source[index]

    def following(self) -> Instr:
        """The next instruction; there is one, as code ends with a return, a raise or a jump."""
        return self.source[self.index + 1]

    def follows_bool(self) -> bool:
        """Whether the value to be tested is True or False for certain, since a hook or CPython has seen to it."""
        previous = self.previous()
        if previous is not None and previous.op == COPY and previous.arg == 1:
            previous = self.previous(2)
        elif previous is not None and self.decided == self.index - 1:
            return True
        if previous is None or (self.folds and previous.name == "UNARY_NOT"):
            return False
        return previous.name in ALWAYS_BOOL

    def name(self, index: int) -> str:
        return self.code.co_names[index]

    def is_free(self, variable: int) -> bool:
        """Whether a shared variable belongs to an enclosing function."""
        code = self.code
        own = len({*code.co_varnames, *code.co_cellvars})
        return variable >= own

    # Loops

    def begin(self, loop: Loop) -> None:
        """Hand the variables that a loop carries to its hook and take them back, at every iteration."""
        self.load(self.hooks.loop(self.site(), loop))
        self.hand((*loop.carried, *loop.looked))
        self.take(loop.carried)
        if self.folds and loop.unsure.get(loop.head):
            self.notify(self.hooks.unsure(self.site()))

    def hand(self, variables: tuple[int, ...], given: int = 0) -> None:
        """Call the hook below the topmost ``given`` values with these and the values of variables."""
        for variable in variables:
            self.emit(LOAD_DEREF if self.in_cell(variable) else LOAD_FAST, variable)
        count = given + len(variables)
        if count == 0:
            self.load(None)
        self.call(max(count, 1) - 1)

    def take(self, variables: tuple[int, ...], pushed: int = 0) -> None:
        """Store what a hook gives back, a value for each variable; the first of all stays, if one is ``pushed``."""
        count = pushed + len(variables)
        if count == 0:
            self.emit(POP_TOP)
        elif count > 1:
            self.emit(UNPACK_SEQUENCE, count)
        if pushed and variables:  # the first lies on top: it and the last change places
            self.emit(SWAP, count)
            variables = (variables[-1], *variables[:-1])
        for variable in variables:
            self.put_back(variable)

    def put_back(self, variable: int) -> None:
        self.emit(STORE_DEREF if self.in_cell(variable) else STORE_FAST, variable)

    def in_cell(self, variable: int) -> bool:
        return self.folds and bool(self.shared[self.index] >> variable & 1)

    def leave(self, loops: list[Loop]) -> None:
        if not self.folds:
            self.notify(self.hooks.leave(self.site(), tuple(loops)))
            return
        names, depths = self.left(loops, self.index), self.depths
        around = max([depths.get(loop.head, 0) for loop in loops])
        deeper = depths.get(self.index, 0) > around
        pushed = int(deeper and self.source[self.index].name != "RERAISE")
        self.load(self.hooks.leave(self.site(), tuple(loops), names, self.index, pushed))
        if pushed:
            self.emit(SWAP, 2)
        self.hand(names, pushed)
        self.take(names, pushed)
        if any(loop.unsure[self.index] for loop in loops):
            self.notify(self.hooks.unsure(self.site()))

    @staticmethod
    def left(loops: list[Loop], index: int) -> tuple[int, ...]:
        """The variables that loops hand over where they are left."""
        return tuple(sorted({i for loop in loops for i in loop.left[index]}))

    def unbound(self, flow: RenamedFlow, instr: Instr) -> None:
        """Let variables that may have no value have one at first, and nobody read it."""
        if instr.op == RESUME and flow.first:
            for variable in flow.numbers(flow.first):
                self.load(UNBOUND)
                self.put_back(variable)
        elif self.index in flow.checked:
            self.apply(assigned(flow.name(instr.arg)), 1)

    def join(self, forks: list[Fork]) -> None:
        """Hand what the ways of forks may have stored or pushed to a hook, and take it back."""
        names = tuple(sorted({i for fork in forks for i in fork.stored}))
        pushed = max(fork.pushed for fork in forks)
        self.load(self.hooks.join(self.site(), tuple(forks), names, pushed))
        if pushed:
            self.emit(SWAP, 2)
        self.hand(names, pushed)
        self.take(names, pushed)

    def notify(self, hook: Callable[..., Any]) -> None:
        """Call a hook that is shown nothing."""
        self.load(hook)
        self.load(None)
        self.call(0)
        self.emit(POP_TOP)

    # Calls

    def push_null(self, instr: Instr) -> None:
        self.call_hook(on_top_of_callable=not current.NULL_BELOW)

    def call_hook(self, on_top_of_callable: bool) -> None:
        self.load(self.hooks.call(self.result_of_call()))
        if on_top_of_callable:
            self.emit(SWAP, 2)

    def call_unpacked(self, keywords: bool) -> None:
        """[call hook, callable, args(, kwargs)]: put another hook in the place of the first."""
        self.hand_variables(self.position)
        self.load(self.hooks.call_ex(self.site()))
        self.emit(SWAP, 5 if keywords else 4)
        self.emit(POP_TOP)
        self.call(2 if keywords else 1)

    def call_instruction(self, instr: Instr) -> None:
        """Calls need no change, but for decorators: [decorator, function], CALL 0, without NULL."""
        if instr.arg != 0 or not self.decorates():
            previous = self.previous()
            if previous is None or previous.name != "KW_NAMES":
                self.hand_variables(instr.position, instr.arg or 0)
            self.keep(instr)
            return
        self.skip(len(CALL) - 1)
        self.load(self.hooks.call(self.site()))
        self.emit(SWAP, 3)
        self.emit(SWAP, 2)
        self.call(1)

    def call_with_names(self, instr: Instr) -> None:
        """KW_NAMES belongs to the CALL after it, CALL_KW is one itself."""
        call = self.following() if instr.name == "KW_NAMES" else instr
        self.hand_variables(call.position)
        self.keep(instr)

    def skip(self, count: int) -> None:
        """Leave out the next instructions, which the present one has dealt with."""
        for _ in range(count):
            self.index += 1
            self.out.mark()

    def decorates(self) -> bool:
        """Whether this CALL 0 follows the making of a function or class, or another decorator.

        ``(lambda: 0)()`` looks the same but for the name of the code object.
        """
        source, index, inner = self.source, self.index - 1, 0
        while source[index].op in CALL and source[index].arg == 0:
            index -= len(CALL)
            inner += 1
        while source[index].name == "SET_FUNCTION_ATTRIBUTE":
            index -= 1
        if source[index].name == "MAKE_FUNCTION":
            name = self.code.co_consts[source[index - 1].arg].co_name
            # A generic function or class (3.12) comes out of a call of a function of its own.
            return inner > 0 if name.startswith("<generic parameters") else not name.startswith("<")
        # A class comes out of a call at the position of its statement, and is stored there at last.
        if source[index].name not in CLASS_CALLS or source[index].position != self.class_position:
            return False
        index = self.index
        while source[index].op in CALL and source[index].arg == 0:
            index += 1
        return (
            source[index].name.startswith("STORE_")
            and source[index].position == self.class_position
        )

    def load_build_class(self, instr: Instr) -> None:
        self.class_position = instr.position
        self.keep(instr)

    # Names

    def load_global(self, instr: Instr) -> None:
        callee, name = instr.arg & 1, self.name(instr.arg >> 1)
        following = self.following()
        if name == "super" and (not callee or (following.op in CALL and following.arg == 0)):
            self.keep(instr)
            return
        if callee:  # or, before 3.13, the first global in the expression that gives the callee: table["f"](x)
            self.call_hook(on_top_of_callable=False)
        self.notice(name)
        self.globals.add(name)
        attribute = following
        if attribute.name not in ATTRIBUTE_LOADS or attribute.target:
            self.load(self.hooks.load_global(self.site(), name))
            self.emit(LOAD_GLOBAL, instr.arg & ~1)
            self.call(0)
            return
        # Through one hook, together with the attribute load that follows.
        self.skip(1)
        position, self.position = self.position, attribute.position
        attr, method = current.attribute(attribute)
        self.notice(self.name(attr))
        if method:
            self.call_hook(on_top_of_callable=False)
        if method and self.name(attr) == "append":
            self.load(self.hooks.global_append(self.site(), name))
        else:
            self.load(self.hooks.global_attr(self.site(), name, self.name(attr)))
        self.out.instrs.append((LOAD_GLOBAL, instr.arg & ~1, position, None))
        self.call(0)

    def load_name(self, instr: Instr) -> None:
        name = self.name(instr.arg)
        self.notice(name)
        if self.executed:
            self.load(self.hooks.load_variable(self.site(), name))
            self.keep(instr)
            self.call(0)
        else:  # a class body: the name is its own, or a global
            self.globals.add(name)
            self.load(self.hooks.load_name(self.site(), name))
            self.keep(instr)
            self.namespace()
            self.call(1)

    def notice(self, name: str) -> None:
        """A call that begins here may look at the variables of this code, if its callee has this name."""
        if name in AROUND:
            self.around[beginning(self.position)] = name

    def hand_variables(self, position: Position, given: int = 0) -> None:
        """Hand over the variables of this code, if the call that comes next may look at them.

        With something given, only ``eval`` and ``exec`` do; with two things given they hardly need them.
        """
        begin = beginning(position)
        if begin not in self.around:
            return
        if begin[1] is not None:  # else nobody knows which of the calls in this line it is
            name = self.around.pop(begin)
            if given and name in LOOK_AROUND:
                return
            if given > 1 and LOCALS_CRASH and self.hides_cells():
                return
        self.load(self.hooks.variables(self.site()))
        self.namespace()
        self.call(0)
        self.emit(POP_TOP)

    def hides_cells(self) -> bool:
        """Whether variables of inlined comprehensions may be in cells."""
        inlined = any(x.name == "LOAD_FAST_AND_CLEAR" for x in self.source)
        return inlined and bool(self.code.co_cellvars)

    def namespace(self) -> None:
        """Push the variables of the running code, as ``locals()`` gives them."""
        if current.NULL_BELOW:
            self.emit(PUSH_NULL)
        self.load(locals)
        if not current.NULL_BELOW:
            self.emit(PUSH_NULL)
        self.call(0)

    def store_global(self, instr: Instr) -> None:
        self.apply(self.hooks.store_global(self.site(), self.name(instr.arg)), 1)
        self.keep(instr)

    def delete_global(self, instr: Instr) -> None:
        self.delete(instr, self.hooks.delete_global(self.site()))

    def delete(self, instr: Instr, hook: Callable[..., Any]) -> None:
        self.load(self.name(instr.arg))
        self.apply(hook, 1)
        self.emit(POP_TOP)
        self.keep(instr)

    def import_name(self, instr: Instr) -> None:
        """[level, names]"""
        name = self.name(instr.arg >> current.IMPORT_SHIFT)
        self.emit(COPY, 2)
        self.emit(COPY, 2)
        self.apply(self.hooks.importing(self.site(), name), 2)
        self.emit(POP_TOP)
        self.keep(instr)
        self.imported: list[Any] = []
        self.apply(self.hooks.import_name(self.site(), name, self.imported), 1)

    def import_from(self, instr: Instr) -> None:
        name = self.name(instr.arg)
        self.emit(COPY, 1)
        self.apply(self.hooks.import_source(self.site(), name), 1)
        self.keep(instr)
        self.apply(self.hooks.import_from(self.site(), name, self.imported), 2)

    def import_star(self, instr: Instr) -> None:
        self.apply(self.hooks.import_star(self.site()), 1)
        self.keep(instr)

    def store_name(self, instr: Instr) -> None:
        if self.executed:
            self.apply(self.hooks.store_variable(self.site(), self.name(instr.arg)), 1)
        self.keep(instr)

    def delete_name(self, instr: Instr) -> None:
        if self.executed:
            self.delete(instr, self.hooks.delete_variable(self.site()))
        else:
            self.keep(instr)

    def show(self, instr: Instr) -> None:
        self.apply(self.hooks.shown(self.site()), 1)
        self.keep(instr)

    # Operators

    def binary_op(self, instr: Instr) -> None:
        op = BINARY[instr.arg]
        self.apply(self.hooks.binary(self.result(op), op), 2)

    def binary_subscr(self, instr: Instr) -> None:
        self.apply(self.hooks.binary(self.result(operator.getitem), operator.getitem), 2)

    def unary_op(self, instr: Instr) -> None:
        self.unary(UNARY[instr.name])

    def unary(self, op: Callable[[Any], Any]) -> None:
        self.apply(self.hooks.unary(self.result(op), op), 1)

    def compare(self, op: int, decides: bool) -> None:
        decides &= not self.inverted()
        if decides:
            self.decided = self.index
        self.apply(self.hooks.compare(self.site(), COMPARE[op], decides), 2)

    def contains_op(self, instr: Instr) -> None:
        self.apply(self.hooks.contains(self.site(), bool(instr.arg)), 2)

    def is_op(self, instr: Instr) -> None:
        if self.follows_singleton():
            self.keep(instr)
        else:
            self.apply(self.hooks.is_(self.site(), bool(instr.arg)), 2)

    def follows_singleton(self) -> bool:
        right, left = self.previous(1), self.previous(2)
        if right is None:
            return False
        if self.is_singleton(right):
            return True
        return left is not None and self.is_singleton(left) and right.name in ONE_VALUE

    def is_singleton(self, instr: Instr) -> bool:
        if instr.op == LOAD_CONST:
            known = SINGLETONS if not self.folds else NO_BOOLS
            return any(self.code.co_consts[instr.arg] is value for value in known)
        if instr.name != "LOAD_COMMON_CONSTANT":
            return False
        return not self.folds or type(COMMON[instr.arg]) is not bool

    def jump_on_truth(self, instr: Instr) -> None:
        if not self.follows_bool():
            self.apply(self.hooks.truth(self.site()), 1)
        self.keep(instr)

    def inverted(self) -> bool:
        """Whether what is given goes into ``not``, whose hook asks for the truth of it."""
        following = self.following()
        return self.folds and following.name == "UNARY_NOT" and not following.target

    def invert(self, instr: Instr) -> None:
        """``not x`` for a recorder of regions, to whom it is a value as well."""
        self.unary(operator.not_)

    def to_bool(self, instr: Instr) -> None:
        if self.follows_bool() or self.inverted():
            self.emit(NOP) if self.inverted() else self.keep(instr)
        else:
            self.apply(self.hooks.truth(self.site()), 1)

    # Attributes and items

    def load_attr(self, instr: Instr) -> None:
        name, method = current.attribute(instr)
        self.notice(self.name(name))
        self.apply(self.hooks.getattr(self.site(), self.name(name)), 1)
        if method:
            self.call_hook(on_top_of_callable=True)

    def super_attr(self, name: int, given: bool) -> None:
        self.apply(self.hooks.super_attr(self.site(), self.name(name), given), 3)

    def store_attr(self, instr: Instr) -> None:
        self.apply(self.hooks.setattr(self.site(), self.name(instr.arg)), 2)
        self.emit(POP_TOP)

    def delete_attr(self, instr: Instr) -> None:
        self.apply(self.hooks.delattr(self.site(), self.name(instr.arg)), 1)
        self.emit(POP_TOP)

    def store_subscr(self, instr: Instr) -> None:
        self.apply(self.hooks.setitem(self.site()), 3)
        self.emit(POP_TOP)

    def delete_subscr(self, instr: Instr) -> None:
        self.apply(self.hooks.delitem(self.site()), 2)
        self.emit(POP_TOP)

    # Statements

    def get_iter(self, instr: Instr) -> None:
        self.apply(self.hooks.iter(self.site()), 1)

    def unpack(self, instr: Instr) -> None:
        self.apply(self.hooks.unpack(self.site()), 1)
        self.keep(instr)

    def unpack_rest(self, instr: Instr) -> None:
        self.apply(self.hooks.unpack_rest(self.site()), 1)
        self.keep(instr)

    def spread(self, instr: Instr) -> None:
        if not self.follows_const():
            self.apply(self.hooks.spread(self.site()), 1)
        self.keep(instr)

    def merge(self, instr: Instr) -> None:
        self.apply(self.hooks.merge(self.site()), 1)
        self.keep(instr)

    def merge_keywords(self, instr: Instr) -> None:
        """[callable, args, keywords, mapping]"""
        self.emit(COPY, 3 + instr.arg)
        self.apply(self.hooks.merge_keywords(self.site()), 3)

    def build_set(self, instr: Instr) -> None:
        self.build(instr, self.hooks.make_set(self.site()), instr.arg)

    def build_map(self, instr: Instr) -> None:
        self.build(instr, self.hooks.make_dict(self.site()), 2 * instr.arg)

    def build(self, instr: Instr, hook: Callable[..., Any], count: int) -> None:
        if count == 0:
            self.keep(instr)
        else:
            self.emit(opmap["BUILD_TUPLE"], count)
            self.apply(hook, 1)

    def set_add(self, instr: Instr) -> None:
        self.collect(self.hooks.add(self.site()), 1, instr.arg)

    def map_add(self, instr: Instr) -> None:
        self.collect(self.hooks.put(self.site()), 2, instr.arg)

    def collect(self, hook: Callable[..., Any], count: int, depth: int) -> None:
        """Hand the topmost ``count`` values, last ones first, to a hook with the container ``depth`` places below."""
        self.load(hook)
        self.emit(SWAP, count + 1)
        self.emit(COPY, depth + count + 1)
        self.call(count)
        self.emit(POP_TOP)

    def follows_const(self) -> bool:
        previous = self.previous()
        return previous is not None and previous.op == LOAD_CONST

    def before_with(self, instr: Instr) -> None:
        self.apply(self.hooks.context(self.site()), 1)
        self.keep(instr)

    def raise_varargs(self, instr: Instr) -> None:
        """The exception, and then its cause, which lies above it; without one, what is handled is raised again."""
        for _ in range(instr.arg or 0):
            if instr.arg == 2:
                self.emit(SWAP, 2)
            self.apply(self.hooks.exception(self.site()), 1)
        self.keep(instr)

    def begin_handler(self, instr: Instr) -> None:
        """After PUSH_EXC_INFO, whose own handler finds what lies below it in place."""
        self.keep(instr)
        if not self.folds:
            self.load(self.hooks.caught(self.site()))
            self.emit(COPY, 2)
            self.call(0)
            self.emit(POP_TOP)
            if self.is_except():
                self.notify(self.hooks.dealt_with(self.site()))
            return
        region, names, unsure = self.joins.handlers[self.index]
        self.load(self.hooks.caught_here(self.site(), self.index, region, names))
        self.emit(COPY, 2)
        self.hand(names, 1)
        self.take(names)
        if unsure:
            self.notify(self.hooks.unsure(self.site()))

    def is_except(self) -> bool:
        """Whether a handler that begins is that of an ``except``, and of no ``finally`` or ``with``."""
        names = [instr.name for instr in self.source[self.index + 1 :]]
        return names[0] == "POP_TOP" or next((x for x in names if x in DECIDING), "") in MATCHING

    def end_handler(self, instr: Instr) -> None:
        """Of an ``except``, but also where a ``with`` or a ``finally`` lets nothing through."""
        self.keep(instr)
        if not self.folds and self.following().name != "RERAISE":
            self.notify(self.hooks.dealt_with(self.site()))

    def match_class(self, instr: Instr) -> None:
        self.load(instr.arg)
        self.apply(self.hooks.match_class(self.site()), 4)

    def match_keys(self, instr: Instr) -> None:
        self.emit(COPY, 2)
        self.emit(COPY, 2)
        self.apply(self.hooks.match_keys(self.site()), 2)

    def match_kind(self, instr: Instr) -> None:
        self.emit(COPY, 1)
        self.apply(self.hooks.match_kind(self.site(), instr.name), 1)

    def get_len(self, instr: Instr) -> None:
        self.emit(COPY, 1)
        self.apply(self.hooks.match_length(self.site()), 1)

    def formatted(self, spec: bool, to_ascii: bool = False) -> None:
        """Show the value to the hook; where there is a specification, it lies above the value."""
        if spec:
            self.emit(SWAP, 2)
        self.apply(self.hooks.format(self.site(), to_ascii), 1)
        if spec:
            self.emit(SWAP, 2)

    def build_string(self, instr: Instr) -> None:
        if instr.arg == 0:
            self.keep(instr)
        else:
            self.apply(self.hooks.build_string(self.site(), instr.arg), instr.arg)

    # What only a recorder of regions asks for

    def dict_merge(self, instr: Instr) -> None:
        self.collect(self.hooks.merged_keywords(self.site()), 1, instr.arg)

    def make_empty_set(self, instr: Instr) -> None:
        self.build_set(instr)
        if instr.arg == 0:
            self.apply(self.hooks.born(self.site()), 1)

    def set_update(self, instr: Instr) -> None:
        self.collect(self.hooks.united(self.site()), 1, instr.arg)

    def unpack_starred(self, instr: Instr) -> None:
        self.unpack(instr)
        below = (instr.arg & 0xFF) + 1
        if below > 1:
            self.emit(SWAP, below)
        self.apply(self.hooks.starred(self.site()), 1)
        if below > 1:
            self.emit(SWAP, below)

    def shown(self, instr: Instr) -> None:
        how, spec = "", instr.name == "FORMAT_WITH_SPEC"
        if instr.name == "FORMAT_VALUE":
            how, spec = CONVERSIONS[instr.arg & 3], bool(instr.arg & 4)
        self.apply(self.hooks.text(self.site(), how, spec), 1 + spec)

    def converted(self, instr: Instr) -> None:
        self.apply(self.hooks.converted(self.site(), CONVERSIONS[instr.arg & 3]), 1)

    def joined(self, instr: Instr) -> None:
        self.apply(self.hooks.build_string(self.site(), instr.arg), instr.arg)

    def list_or_dict(self, instr: Instr) -> None:
        if instr.name == "BUILD_MAP":
            self.build_map(instr)
        else:
            self.keep(instr)
        self.apply(self.hooks.born(self.site()), 1)

    def list_extend(self, instr: Instr) -> None:
        self.collect(self.hooks.extended(self.site()), 1, instr.arg)

    def unpack_exactly(self, instr: Instr) -> None:
        self.apply(self.hooks.unpack(self.site(), instr.arg), 1)
        self.keep(instr)

    def list_append(self, instr: Instr) -> None:
        self.collect(self.hooks.list_append(self.site()), 1, instr.arg)

    def dict_update(self, instr: Instr) -> None:
        self.collect(self.hooks.merged(self.site()), 1, instr.arg)

    def fill_cells(self) -> None:
        """The function begins: its keywords are a dict, and cells that functions inside write get their objects."""
        code = self.code
        given = code.co_argcount + code.co_kwonlyargcount
        given += bool(code.co_flags & 0x04)
        if code.co_flags & 0x08:
            self.emit(LOAD_DEREF if self.in_cell(given) else LOAD_FAST, given)
            self.apply(self.hooks.born(self.site()), 1)
            self.put_back(given)
            given += 1
        for variable in sorted(self.objects):
            if variable < given:
                self.emit(LOAD_DEREF, variable)
            else:
                self.load(UNBOUND)
            self.apply(self.hooks.cell(self.site()), 1)
            self.emit(STORE_DEREF, variable)

    def holds_object(self, variable: int) -> bool:
        """Whether the cell of a variable may hold an object, with the value."""
        return self.is_free(variable) or variable in self.objects

    def load_deref(self, instr: Instr) -> None:
        self.keep(instr)
        if self.holds_object(instr.arg):
            self.apply(self.hooks.load_cell(self.site(), names_of(self.code)[instr.arg]), 1)

    def store_deref(self, instr: Instr) -> None:
        if not self.holds_object(instr.arg):
            self.keep(instr)
            return
        self.emit(LOAD_DEREF, instr.arg)
        self.apply(self.hooks.store_cell(self.site()), 2)
        self.emit(POP_TOP)

    def delete_deref(self, instr: Instr) -> None:
        if self.holds_object(instr.arg):
            self.notify(self.hooks.shared(self.site()))
        self.keep(instr)

    # Generators that run at once; for a generator expression the list lies where the iterator was

    def run_through(self) -> None:
        """Leave out what makes a generator."""
        resumed = False
        for i, instr in enumerate(self.source):
            if instr.name == "RETURN_GENERATOR":
                instr.become(NOP)
                self.source[i + 1].become(NOP)
            elif instr.op == RESUME:
                instr.become(NOP if resumed else RESUME)
                instr.arg, resumed = 0, True

    def load_iterator(self, instr: Instr) -> None:
        self.keep(instr)
        if instr.arg == 0:
            self.emit(opmap["BUILD_LIST"], 0)
            self.apply(self.hooks.born(self.site()), 1)
            if self.lazily:
                self.apply(self.hooks.lazily(self.site()), 1)
            self.emit(STORE_FAST, 0)

    def yield_value(self, instr: Instr) -> None:
        self.load(self.hooks.yielded(self.site()))
        self.emit(SWAP, 2)
        self.emit(opmap["LOAD_FAST"], 0)
        self.call(1)

    def give(self, instr: Instr) -> None:
        self.apply(self.hooks.give(self.site()), 1)

    def see(self, instr: Instr) -> None:
        self.apply(self.hooks.yields(self.site()), 1)
        self.keep(instr)

    def give_all(self, instr: Instr) -> None:
        self.apply(self.hooks.give_all(self.site()), 1)

    def return_collected(self, instr: Instr) -> None:
        if instr.name == "RETURN_VALUE":
            self.emit(POP_TOP)
        self.load(self.hooks.collected(self.site()))
        self.emit(opmap["LOAD_FAST"], 0)
        self.call(0)
        self.emit(opmap["RETURN_VALUE"])

    def refused(self, instr: Instr) -> None:
        self.refuse(instr.name)

    def refuse(self, what: str) -> NoReturn:
        site = self.site()
        raise UnsupportedCode(
            f"{self.code.co_qualname} ({site.place}) is asynchronous code "
            f"({what}), which Wengert cannot follow: move the computation into an ordinary function"
        )


def beginning(position: Position) -> tuple[int | None, int | None]:
    """The line and the column in which something begins."""
    return position.lineno, position.col_offset


def _handlers() -> list[Callable[[Rewriter, Instr], None] | None]:
    """The handler of each opcode, None for those that are copied."""
    table: list[Callable[[Rewriter, Instr], None] | None] = [None] * 512
    for name, handler in current.HANDLED.items():
        table[opmap[name]] = getattr(Rewriter, handler) if isinstance(handler, str) else handler
    for name in current.REFUSED:
        table[opmap[name]] = Rewriter.refused
    return table


HANDLERS = _handlers()
FOLDED: dict[int, Callable[[Rewriter, Instr], None]] = {
    opmap[name]: handler
    for name, handler in {
        "BUILD_LIST": Rewriter.list_or_dict,
        "BUILD_MAP": Rewriter.list_or_dict,
        "BUILD_CONST_KEY_MAP": Rewriter.list_or_dict,
        "LIST_EXTEND": Rewriter.list_extend,
        "LIST_APPEND": Rewriter.list_append,
        "UNPACK_SEQUENCE": Rewriter.unpack_exactly,
        "DICT_UPDATE": Rewriter.dict_update,
        "DICT_MERGE": Rewriter.dict_merge,
        "BUILD_SET": Rewriter.make_empty_set,
        "SET_UPDATE": Rewriter.set_update,
        "UNPACK_EX": Rewriter.unpack_starred,
        "FORMAT_VALUE": Rewriter.shown,
        "FORMAT_SIMPLE": Rewriter.shown,
        "FORMAT_WITH_SPEC": Rewriter.shown,
        "CONVERT_VALUE": Rewriter.converted,
        "BUILD_STRING": Rewriter.joined,
        "UNARY_NOT": Rewriter.invert,
        "STORE_DEREF": Rewriter.store_deref,
        "LOAD_DEREF": Rewriter.load_deref,
        "DELETE_DEREF": Rewriter.delete_deref,
    }.items()
    if name in opmap
}
COLLECTED: dict[int, Callable[[Rewriter, Instr], None]] = {
    opmap[name]: handler
    for name, handler in {
        "LOAD_FAST": Rewriter.load_iterator,
        "YIELD_VALUE": Rewriter.yield_value,
        "RETURN_VALUE": Rewriter.return_collected,
        "RETURN_CONST": Rewriter.return_collected,
    }.items()
    if name in opmap
}
GIVING: dict[int, Callable[[Rewriter, Instr], None]] = {
    opmap[name]: handler
    for name, handler in {
        "YIELD_VALUE": Rewriter.give,
        "GET_YIELD_FROM_ITER": Rewriter.give_all,
    }.items()
    if name in opmap
}
