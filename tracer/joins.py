"""Forks and joins in bytecode: where ways part, where they meet again, and what is handed over there.

Only the recorder of regions asks for this. It follows one way at a time, and has to know where the others come back to
it: what a way has stored is then taken for a value of the join, whatever way was gone.

Words
-----
fork       a conditional jump of which the ways meet again.
join       where they do: the nearest instruction that every way from the jump to a return passes, the *immediate
           post-dominator*. Exceptions do not count as ways: they end in a handler or leave the function.
region     the instructions after the jump and before the join.

The immediate post-dominators are found as in Cooper, Harvey and Kennedy, *A Simple, Fast Dominance Algorithm* (2001).
"""

from __future__ import annotations

import dis
from collections.abc import Callable
from types import CodeType
from typing import Any, NamedTuple

from .assembly import HAS_ARGUMENT, Assembler, Instr, Region
from .cycles import AFTER_ITERATION, ALWAYS_JUMP, ENDS, Flow, Loop, bits

RETURNS = {"RETURN_VALUE", "RETURN_CONST"}
LEAVING = ENDS | ALWAYS_JUMP
CO_OPTIMIZED, CO_GENERATOR = 0x1, 0x20
LOAD_FAST = dis.opmap.get(
    "LOAD_FAST_CHECK", dis.opmap["LOAD_FAST"]
)  # of a variable that may have no value

# What stands between a decision and its jump, and the decisions themselves.
TESTS = {"TO_BOOL", "UNARY_NOT"}
DECIDING = {
    "COMPARE_OP", "CONTAINS_OP", "IS_OP", "MATCH_CLASS", "MATCH_KEYS", "MATCH_MAPPING", "MATCH_SEQUENCE",
}  # fmt: skip
# The interpreter compares exceptions itself: the way is known before.
MATCHING = {"CHECK_EXC_MATCH", "CHECK_EG_MATCH"}

# What runs no Python code that could read what inner functions share; of `for`, as long as no generator is run by it.
READS_NO_CELL = {
    "NOP", "RESUME", "NOT_TAKEN", "CACHE", "MAKE_CELL", "COPY_FREE_VARS", "PUSH_NULL", "KW_NAMES", "PRECALL", "COPY",
    "SWAP", "POP_TOP", "END_FOR", "POP_ITER", "LOAD_CONST", "LOAD_SMALL_INT", "LOAD_COMMON_CONSTANT", "LOAD_GLOBAL",
    "LOAD_DEREF", "LOAD_CLOSURE", "STORE_DEREF", "DELETE_DEREF", "BUILD_TUPLE", "BUILD_LIST", "MAKE_FUNCTION",
    "SET_FUNCTION_ATTRIBUTE", "UNPACK_SEQUENCE", "JUMP_FORWARD", "JUMP_BACKWARD", "LIST_APPEND",
}  # fmt: skip
LOADS_SHARED = {"LOAD_DEREF", "LOAD_CLOSURE"}
SHARED = {*LOADS_SHARED, "STORE_DEREF", "DELETE_DEREF"}
STORES_SHARED = {dis.opmap["STORE_DEREF"], dis.opmap["DELETE_DEREF"]}
AT_ONCE = {"<listcomp>", "<setcomp>", "<dictcomp>"}  # functions that run where they are made
LAZY = {"any", "all", "next"}  # builtins that may leave items of a generator
BEFORE_CODE = {"LOAD_CLOSURE", "BUILD_TUPLE", "PUSH_NULL", "NOP"}
PLAIN_ARGUMENTS = {
    "LOAD_CONST", "LOAD_SMALL_INT", "LOAD_COMMON_CONSTANT", "LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW",
    "LOAD_DEREF",
}  # fmt: skip

# What takes nothing off the stack, and what takes values and gives none.
TAKES_NOTHING = {
    "NOP", "RESUME", "NOT_TAKEN", "EXTENDED_ARG", "CACHE", "KW_NAMES", "MAKE_CELL", "COPY_FREE_VARS",
    "PUSH_NULL", "COPY", "FOR_ITER", "GET_LEN", "MATCH_MAPPING", "MATCH_SEQUENCE", "MATCH_KEYS", "SETUP_ANNOTATIONS",
    "JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "WITH_EXCEPT_START",
}  # fmt: skip
PLAIN_LOADS = ("LOAD_FAST", "LOAD_CONST", "LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLOSURE", "LOAD_SMALL_INT",
               "LOAD_COMMON_CONSTANT", "LOAD_BUILD_CLASS", "LOAD_ASSERTION_ERROR", "LOAD_LOCALS")  # fmt: skip
GIVES_NOTHING = ("STORE_", "DELETE_", "POP_", "JUMP_IF_", "END_", "RETURN_", "RAISE_", "RERAISE", "LIST_", "SET_",
                 "MAP_", "DICT_", "PRINT_EXPR", "IMPORT_STAR")  # fmt: skip


class Unbound:
    """What a variable holds for a recorder of regions as long as it has no value."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNBOUND"


UNBOUND = Unbound()


def assigned(name: str) -> Callable[[Any], Any]:
    """What checks that a variable has a value, as CPython would, and gives it back."""

    def check(value: Any) -> Any:
        if value is UNBOUND:
            raise UnboundLocalError(
                f"cannot access local variable {name!r} where it is not associated with a value"
            )
        return value

    return check


def assigned_outside(name: str) -> Callable[[Any], Any]:
    """The same for a variable of an enclosing function."""

    def check(value: Any) -> Any:
        if value is UNBOUND:
            raise NameError(
                f"cannot access free variable {name!r} where it is not associated with a value in enclosing scope"
            )
        return value

    return check


def names_of(code: CodeType) -> tuple[str, ...]:
    """The variables of a code object by number, those of enclosing functions last."""
    cells = [x for x in code.co_cellvars if x not in code.co_varnames]
    return (*code.co_varnames, *cells, *code.co_freevars)


def written_inside(code: CodeType) -> frozenset[int]:
    """The variables of a function, by number, that functions inside it store or delete: they are *shared* there."""
    if code.co_flags & CO_GENERATOR or not code.co_cellvars:
        return frozenset()
    found = {
        name
        for inner in code.co_consts
        if isinstance(inner, CodeType)
        for name in written_outside(inner)
    }
    found &= {*code.co_cellvars}
    if not found:
        return frozenset()
    # A comprehension may have a cell of its own with the name of one of the function's.
    put_away = {x.arg for x in dis.get_instructions(code) if x.opname == "LOAD_FAST_AND_CLEAR"}
    return frozenset(i for i, x in enumerate(names_of(code)) if x in found and i not in put_away)


def written_outside(code: CodeType) -> set[str]:
    """The variables of enclosing functions that a function, or one inside it, stores or deletes."""
    if not code.co_freevars:
        return set()
    found = set()
    if not STORES_SHARED.isdisjoint(code.co_code[::2]):
        found = {x.argval for x in dis.get_instructions(code) if x.opcode in STORES_SHARED}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found |= written_outside(inner)
    return found & {*code.co_freevars}


class RenamedFlow(Flow):
    """The flow of a code object in which every inlined comprehension has variables of its own.

    CPython (3.12) puts away the variables of the enclosing function that are named like those of a comprehension,
    LOAD_FAST_AND_CLEAR, and stores them again after it, with or without a value. Here the former do not change by that,
    and the latter are further variables, numbered on from all others. What ``del`` leaves has no value.

    The function's own variables that inner functions share, its *cells*, are variables like others. Once an inner
    function has captured one, whatever may run Python code loads it; but for one that is run where it is made. Those
    that inner functions write are no variables: each is an object that never changes, with a value that does.

    The *loose* ones may change once a function has captured them, so that what it reads is not known when it is made.

    ``first`` are the variables that may be read before they are stored: they are to be ``UNBOUND`` at first, so that
    every place can hand them over, and the instructions ``checked`` must not get that.
    """

    def __init__(self, code: CodeType, source: list[Instr], regions: list[Region]) -> None:
        super().__init__(code, source, regions)
        self.cleared = 0
        mine = [x for x in names_of(code) if x not in code.co_freevars]
        self.objects = written_inside(code)
        self.plain = (1 << len(mine)) - 1
        self.cells = 0
        for i, name in enumerate(mine):
            self.cells |= (name in code.co_cellvars) << i
        for i in self.objects:
            self.plain &= ~(1 << i)
            self.cells &= ~(1 << i)
        for i, instr in enumerate(source):
            if instr.name in SHARED and self.plain >> instr.arg & 1:
                (self.loads if instr.name in LOADS_SHARED else self.stores)[i] = 1 << instr.arg
        self.loads = [x & self.plain for x in self.loads]
        self.stores = [x & self.plain for x in self.stores]
        self.depths = stack_depths(self, source, regions)
        self.renamed: list[int] = []
        self.own = len(names_of(code))
        handlers = {x.handler for x in regions if source[x.handler].name != "PUSH_EXC_INFO"}
        # The comprehensions around: the highest stack on which its variables are stored again, and their new numbers.
        around: list[tuple[int, dict[int, int]]] = []
        restoring = False
        self.own_cells = 0  # of comprehensions
        self.away = [0] * len(source)  # the variables that a comprehension has put away
        self.shared = [self.cells] * len(
            source
        )  # those that are in cells, a comprehension's in their place
        for i, instr in enumerate(source):
            name = instr.name
            for _, names in around:
                for variable, number in names.items():
                    self.away[i] |= 1 << variable
                    if not self.own_cells >> number & 1:
                        self.shared[i] &= ~(1 << variable)
                    else:
                        self.shared[i] |= 1 << variable
            restoring = i in handlers or (restoring and source[i - 1].name not in LEAVING)
            if name == "DELETE_FAST" or name == "DELETE_DEREF":
                self.unbinds[i] = self.stores[i]
            elif name == "LOAD_FAST_AND_CLEAR":
                previous = i - 1
                while source[previous].name == "MAKE_CELL":
                    previous -= 1
                if source[previous].name != name:
                    around.append((self.depths.get(i, 0), {}))
                depth, names = around.pop()
                names[instr.arg] = self.own + len(self.renamed)
                if source[i + 1].name == "MAKE_CELL":
                    self.own_cells |= 1 << names[instr.arg]
                around.append((depth + 1, names))
                self.renamed.append(instr.arg)
                self.loads[i] = 0
                self.stores[i] = self.unbinds[i] = 1 << names[instr.arg]
            elif ("_FAST" in name or name in SHARED) and (around or restoring):
                self.rename(i, instr, around, restoring)
        own = [*self.loads]
        self.loose = 0
        self.capture(source)
        # Whatever may be read before it is stored gets a value that says so, and reading it is checked.
        deleted = 0
        for unbound in self.unbinds:
            deleted |= unbound
        first = self.live()[0] & ~self.bound()[0] & ~deleted if code.co_flags & CO_OPTIMIZED else 0
        if code.co_flags & CO_GENERATOR:
            first = 0
        self.checked = {
            i
            for i, instr in enumerate(source)
            if (instr.op == LOAD_FAST and self.loads[i] & first & ~self.cells & ~self.bound()[i])
            or (instr.name == "LOAD_DEREF" and own[i] & first & ~self.bound()[i])
        }
        if first:
            self.first, self._bound = first, None

    def rename(
        self, i: int, instr: Instr, around: list[tuple[int, dict[int, int]]], restoring: bool
    ) -> None:
        """Find out anew what an instruction loads and stores, inside of comprehensions or in a handler of theirs."""
        self.loads[i] = self.stores[i] = 0
        depth = self.depths.get(i, 0)
        for store, variable in accesses(instr):
            if store:
                if restoring:
                    self.closed(i, variable)
                    continue
                if around and variable in around[-1][1] and depth <= around[-1][0]:
                    self.closed(i, variable)
                    del around[-1][1][variable]
                    if not around[-1][1]:
                        around.pop()
                    depth -= 1
                    continue
                depth -= 1
            if not self.plain >> variable & 1:
                continue
            for _, names in reversed(around):
                if variable in names:
                    variable = names[variable]
                    break
            if store:
                self.stores[i] |= 1 << variable
            else:
                self.loads[i] |= 1 << variable & ~self.stores[i]

    def bound(self) -> list[int]:
        if self._bound is None:
            self._bound = [x & ~away for x, away in zip(super().bound(), self.away, strict=True)]
        return self._bound

    def closed(self, i: int, variable: int) -> None:
        """Nothing changes the cells of comprehensions that had this name any more."""
        for number, one in enumerate(self.renamed, self.own):
            if one == variable and self.own_cells >> number & 1:
                self.stores[i] |= 1 << number
                self.unbinds[i] |= 1 << number

    def capture(self, source: list[Instr]) -> None:
        """Find out where cells may be read by inner functions."""
        cells = self.cells | self.own_cells
        if not cells:
            return
        at_once = consumed_at_once(self.code, source, self.depths)
        lazy = any(
            isinstance(x, CodeType) and x.co_name == "<genexpr>" and i not in at_once
            for i, x in enumerate(self.code.co_consts)
        )
        captured = [0] * len(source)
        taken = [0] * len(source)
        for i, instr in enumerate(source):
            closure = instr.name == "LOAD_CLOSURE" or "LOAD_FAST" in instr.name
            if closure and instr.name != "LOAD_FAST_AND_CLEAR" and self.loads[i] & cells:
                if not made_and_run(self.code, source, i, at_once):
                    taken[i] = self.loads[i] & cells
        todo = [i for i, x in enumerate(taken) if x]
        while todo:
            i = todo.pop()
            out = (captured[i] | taken[i]) & ~self.unbinds[i]
            for j in (*self.after[i], *self.caught[i]):
                if out & ~captured[j]:
                    captured[j] |= out
                    todo.append(j)
        for i, instr in enumerate(source):
            self.loose |= captured[i] & (self.stores[i] | self.unbinds[i])
            name = instr.name
            quiet = name in READS_NO_CELL or "_FAST" in name or (name == "FOR_ITER" and not lazy)
            if captured[i] and not quiet:
                self.loads[i] |= captured[i]

    def name(self, variable: int) -> str:
        return names_of(self.code)[variable]

    def numbers(self, variables: int) -> tuple[int, ...]:
        return tuple([i if i < self.own else self.renamed[i - self.own] for i in bits(variables)])


def consumed_at_once(
    code: CodeType, source: list[Instr], depths: dict[int, int]
) -> dict[int, bool]:
    """The generator expressions, by the number of their constant, that are made nowhere but as a call's first argument.

    The further arguments are constants and variables, so that nothing happens between. It is told whether what is
    called has the name of one that may leave items (see `LAZY`).
    """
    found: dict[int, bool] = {}
    other: set[int] = set()
    for i, instr in enumerate(source):
        if instr.name == "LOAD_CONST" and is_genexpr(code.co_consts[instr.arg]):
            lazy = callee(code, source, i) in LAZY
            if (
                not is_first_argument(source, i, depths)
                or found.setdefault(instr.arg, lazy) is not lazy
            ):
                other.add(instr.arg)
    return {number: lazy for number, lazy in found.items() if number not in other}


def callee(code: CodeType, source: list[Instr], i: int) -> str | None:
    """The global that is called with the generator expression of which the code is loaded here."""
    i -= 1
    while source[i].name in BEFORE_CODE or source[i].name.startswith("LOAD_FAST"):
        i -= 1
    return code.co_names[source[i].arg >> 1] if source[i].name == "LOAD_GLOBAL" else None


def is_genexpr(x: Any) -> bool:
    return isinstance(x, CodeType) and x.co_name == "<genexpr>" and bool(x.co_flags & CO_GENERATOR)


def is_first_argument(source: list[Instr], i: int, depths: dict[int, int]) -> bool:
    """Whether the generator expression of which the code is loaded here goes into a call at once."""
    i += 1
    while source[i].name in ("MAKE_FUNCTION", "SET_FUNCTION_ATTRIBUTE"):
        i += 1
    below = depths.get(i)  # its function lies on top
    if below is None:
        return False
    while not (source[i].name == "CALL" and source[i].arg == 0 and depths.get(i) == below + 1):
        i += 1
        if i == len(source):
            return False
    count = 1
    for instr in source[i + 1 :]:
        if instr.target:
            return False
        name = instr.name
        if name in PLAIN_ARGUMENTS:
            count += 1
        elif name in ("CALL", "CALL_KW"):
            return instr.arg == count - (name == "CALL_KW")
        elif name not in ("PRECALL", "KW_NAMES", "NOP") and not (
            name == "MAKE_FUNCTION" and instr.arg == 0
        ):
            return False
    return False


def made_and_run(code: CodeType, source: list[Instr], i: int, at_once: dict[int, bool]) -> bool:
    """Whether the function for which a cell is loaded here is run at once, and none that it makes lives on."""
    while source[i].name.startswith("LOAD_"):
        i += 1
    if source[i].name != "BUILD_TUPLE" or source[i + 1].name != "LOAD_CONST":
        return False
    number = source[i + 1].arg
    inner = code.co_consts[number]
    if not isinstance(inner, CodeType) or not (inner.co_name in AT_ONCE or number in at_once):
        return False
    return leaves_nothing(inner)


def leaves_nothing(code: CodeType) -> bool:
    """Whether all functions that a code object makes are run at once."""
    inner = [(i, x) for i, x in enumerate(code.co_consts) if isinstance(x, CodeType)]
    if not inner:
        return True
    taken = Assembler(code)
    flow = Flow(code, taken.source, taken.regions)
    at_once = consumed_at_once(code, taken.source, stack_depths(flow, taken.source, taken.regions))
    return all((x.co_name in AT_ONCE or i in at_once) and leaves_nothing(x) for i, x in inner)


def accesses(instr: Instr) -> list[tuple[bool, int]]:
    """The variables that an instruction loads and stores one after the other, and whether it stores them."""
    name, arg = instr.name, instr.arg
    kinds = [x == "STORE" for x in name.split("_") if x in ("LOAD", "STORE")]
    return [*zip(kinds, (arg >> 4, arg & 15) if len(kinds) == 2 else (arg,))]


class Fork:
    """A conditional jump, and where its ways meet again.

    ``index`` is the instruction that decides, before which the ways begin for the recorder, ``jump`` the one that
    jumps, ``join`` where they meet. ``stored`` are the variables that a way may have stored and that are alive at the
    join, by number, and ``pushed`` tells whether each way leaves a value on the stack (1 or 0), as in ``a or b``.
    ``region``: the instructions between.
    """

    __slots__ = ("_region", "index", "join", "jump", "pushed", "stored")

    def __init__(
        self, index: int, jump: int, join: int, stored: tuple[int, ...], pushed: int, region: int
    ) -> None:
        self.index = index
        self.jump = jump
        self.join = join
        self.stored = stored
        self.pushed = pushed
        self._region = region

    @property
    def region(self) -> frozenset[int]:
        return frozenset(bits(self._region))

    def __repr__(self) -> str:
        return f"<fork at {self.index}, join at {self.join}>"


class Handler(NamedTuple):
    """What a handler catches: the instructions it guards, and the variables that it and what follows may read.

    ``unsure`` are those of them that may have no value, so that they cannot be handed over.
    """

    region: frozenset[int]
    names: tuple[int, ...]
    unsure: tuple[int, ...]


class Joins(NamedTuple):
    """What a recorder of regions is told of a code object.

    ``forks`` by the instruction that decides, ``joins`` by where the ways meet, inner forks first, ``handlers`` by
    their first instruction.
    """

    forks: dict[int, Fork]
    joins: dict[int, list[Fork]]
    handlers: dict[int, Handler]

    @property
    def most(self) -> int:
        """How many variables are handed over at one place at most."""
        return max(
            [len({i for fork in forks for i in fork.stored}) for forks in self.joins.values()]
            + [len(handler.names) for handler in self.handlers.values()],
            default=0,
        )


def find_joins(
    flow: RenamedFlow, source: list[Instr], regions: list[Region], loops: list[Loop]
) -> Joins:
    """The forks, joins and handlers of a code object, of which ``loops`` are the loops, outer ones first."""
    handlers = find_handlers(flow, regions)
    if flow.code.co_flags & CO_GENERATOR:
        return Joins({}, {}, {i: Handler(x.region, (), ()) for i, x in handlers.items()})
    for loop in loops:
        leave(loop, flow)
    forks = find_forks(flow, source, loops, handlers)
    joins: dict[int, list[Fork]] = {}
    for fork in forks:
        joins.setdefault(fork.join, []).append(fork)
    return Joins({fork.index: fork for fork in forks}, joins, handlers)


def find_handlers(flow: Flow, regions: list[Region]) -> dict[int, Handler]:
    guarded: dict[int, set[int]] = {}
    for region in regions:
        guarded.setdefault(region.handler, set()).update(range(region.start, region.stop))
    changed = True
    while changed:  # what a handler raises, or raises again, may have come from what it guards
        changed = False
        for inside in guarded.values():
            for i, inner in guarded.items():
                if i in inside and not inner <= inside:
                    inside |= inner
                    changed = True
    found = {}
    for i, inside in guarded.items():
        live, known = flow.live()[i], flow.bound()[i]
        stored = 0
        for j in inside:
            stored |= flow.stores[j]
        found[i] = Handler(
            frozenset(inside), flow.numbers(live & known), flow.numbers(live & stored & ~known)
        )
    return found


def leave(loop: Loop, flow: Flow) -> None:
    """Find out what a loop hands over where it is left."""
    stored = 0
    for i in loop.body:
        stored |= flow.stores[i]
    for i in loop.exits:
        live, known = flow.live()[i] & stored, flow.bound()[i]
        loop.left[i] = flow.numbers(live & known)
        loop.unsure[i] = flow.numbers(live & ~known)


def find_forks(
    flow: RenamedFlow, source: list[Instr], loops: list[Loop], handlers: dict[int, Handler]
) -> list[Fork]:
    """The forks of a code object, inner ones before those around them."""
    jumps = [i for i, x in enumerate(source) if x.jump is not None and "_IF_" in x.name]
    if not jumps:
        return []
    joins = post_dominators(flow, source)
    depths = flow.depths
    loop_at: dict[int, Loop] = {}  # the innermost
    around: dict[Loop, Loop | None] = {}
    for loop in loops:
        around[loop] = loop_at.get(loop.head)
        for i in loop.body:
            loop_at[i] = loop
    # By jump: the fork, how far down its ways touch the stack, and what they store.
    found: dict[int, tuple[Fork, int, int]] = {}
    for i in reversed(jumps):
        join = joins[i]
        if join is None or join == len(source) or source[join].name in AFTER_ITERATION:
            continue
        if any(joins[j] is None for j in flow.after[i]) or i not in depths:
            continue
        index = deciding(source, i)
        if source[index].name in MATCHING:
            continue
        here, there = loop_at.get(i), loop_at.get(join)
        if here is not there and (there is None or there.head != join or around[there] is not here):
            continue
        # An exception that these catch has left the fork.
        own = {j for j, handler in handlers.items() if index in handler.region}
        region, low, stored = 0, depths[join], 0
        todo = [*flow.after[i]]
        for j in todo:
            low = min(low, depths[j])
        fine = True
        while todo and fine:
            j = todo.pop()
            if j == join or region >> j & 1:
                continue
            region |= 1 << j
            stored |= flow.stores[j]
            fine = (
                source[j].name not in RETURNS
                and (here is None or (j in here.body and j != here.head))
                and j in depths
            )
            todo += [k for k in flow.caught[j] if k not in own]
            inner = found.get(j)
            low = min(low, max(depths.get(j, 0) - taken(source[j]), 0))
            if inner is None:
                todo += flow.after[j]
            else:
                region |= inner[0]._region
                low = min(low, inner[1])
                stored |= inner[2]
                todo.append(inner[0].join)
        pushed = depths[join] - low
        kept = stored & flow.live()[join]
        if fine and pushed <= 1 and not kept & ~flow.bound()[join]:
            fork = Fork(index, i, join, flow.numbers(kept), pushed, region)
            found[i] = fork, low, stored
    return [fork for fork, _, _ in found.values()]


def deciding(source: list[Instr], jump: int) -> int:
    """The instruction that decides where a jump goes: the first of those before it that all ways to it pass."""
    i = jump
    while i and not source[i].target:
        before = source[i - 1]
        if before.name in DECIDING | MATCHING:
            return i - 1
        if before.name not in TESTS and not (before.name == "COPY" and before.arg == 1):
            break
        i -= 1
    return i


def post_dominators(flow: Flow, source: list[Instr]) -> list[int | None]:
    """The immediate post-dominator of each instruction, ``len(source)`` for the end of the function.

    None for what never gets there, but by an exception.
    """
    count = len(source)
    before: list[list[int]] = [[] for _ in range(count + 1)]
    for i in range(count):
        for j in flow.after[i] or ([count] if source[i].name in RETURNS else []):
            before[j].append(i)
    order: list[int] = []  # postorder of the reversed graph, from the end
    seen = bytearray(count + 1)
    seen[count] = 1
    todo = [(count, iter(before[count]))]
    while todo:
        i, rest = todo[-1]
        for j in rest:
            if not seen[j]:
                seen[j] = 1
                todo.append((j, iter(before[j])))
                break
        else:
            order.append(i)
            todo.pop()
    rank = {i: k for k, i in enumerate(order)}
    found: list[int | None] = [None] * (count + 1)
    found[count] = count
    changed = True
    while changed:
        changed = False
        for i in reversed(order[:-1]):
            new: int | None = None
            for j in flow.after[i] or [count]:
                if found[j] is None:
                    continue
                if new is None:
                    new = j
                    continue
                a, b = new, j
                while a != b:
                    while rank[a] < rank[b]:
                        a = _there(found[a])
                    while rank[b] < rank[a]:
                        b = _there(found[b])
                new = a
            if new != found[i]:
                found[i], changed = new, True
    return found


def _there(i: int | None) -> int:
    assert i is not None
    return i


def stack_depths(flow: Flow, source: list[Instr], regions: list[Region]) -> dict[int, int]:
    """How many values lie on the stack before each instruction."""
    depths = {0: 0}
    todo = [0]
    handlers = {x.handler: x.depth + x.lasti + 1 for x in regions}
    depths.update(handlers)
    todo += handlers
    while todo:
        i = todo.pop()
        instr = source[i]
        for j in flow.after[i]:
            if j not in depths:
                depths[j] = depths[i] + effect(instr, j != i + 1)
                todo.append(j)
    return depths


def effect(instr: Instr, jump: bool) -> int:
    return dis.stack_effect(instr.op, instr.arg if instr.op in HAS_ARGUMENT else None, jump=jump)


def taken(instr: Instr) -> int:
    """How many values an instruction takes off the stack, or changes there: rather one too many."""
    name = instr.name
    if name == "SWAP":
        return instr.arg
    if name in TAKES_NOTHING or name.startswith(PLAIN_LOADS):
        return 0
    net = effect(instr, False)
    if name == "STORE_FAST_LOAD_FAST":
        return 1
    if name.startswith(GIVES_NOTHING):
        return max(-net, 0)
    if name.startswith("UNPACK_"):
        return 1
    return 1 - net if name.startswith("BUILD_") else max(1 - net, 1)
