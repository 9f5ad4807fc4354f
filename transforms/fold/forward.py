"""The forward part: the ops of a region as statements, which keep a trail for the reverse part.

A loop and a scope are written in their place, a function as one that is nested in the program. Loops keep a list with
a row for each pass, scopes and functions one row. A way that no pass has gone executes the statement ``miss``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cached_property
from typing import Any

from ...tracer.fold.recorder import UNKNOWN
from ...tracer.fold.region import (
    APPEND,
    ARRAY,
    CONTENT,
    CONTENTS,
    DICT,
    DROP,
    EXHAUSTED,
    LENGTH,
    LIST,
    LOAD,
    MEMORIES,
    OBJECT,
    PACK,
    POP,
    PUT,
    REPEAT,
    STORE,
    Access,
    Draw,
    Function,
    Invoke,
    Loop,
    Op,
    Pair,
    Reference,
    Region,
    Scope,
    Several,
    Take,
    inner,
    is_memory,
    results_of,
)
from ...tracer.kinds import is_one_of
from ..kernels import is_steady
from ..silence import OF_NAN, leaving
from .arrays import LEAST, is_elementwise, is_sure, rule_of, view_of
from .held import Held, States, classes, is_taken
from .lowered import Lowered
from .pulls import described, example
from .snapshots import own, snapshot
from .ways import Check, Node, Same, Turn, Unemittable
from .writer import Code, Late, Rows, Writer, joined

Leaf = Callable[[Node, int], None]  # writes what stands where a way ends
NOW = "  # as it is now"  # behind what must be computed before anything is written to an array
STEADY = frozenset((float, int, bool, str, range, abs, len, list))


class Trail:
    """The rows of a loop: of the passes that lead to a next one, and of those that leave it.

    They are one where the way out goes through loops and scopes, whose reverse code would be written twice. ``range``
    is what the loop goes through, if it is counted.
    """

    def __init__(self, turns: list[Turn], range: Op | None) -> None:
        self.turns = turns
        self.range = range
        roots = [root for turn in turns for root in turn.roots]
        self.home = {leaf: turn for turn in turns for root in turn.roots for leaf in root.leaves()}
        leaving = [x for x in self.home if goes_out(x)]
        self.apart = not any(
            isinstance(op, (Loop, Scope, Invoke)) for x in leaving for y in x.path for op in y.ops
        )
        self.next = Rows(roots, lambda x: not (self.apart and goes_out(x)))
        self.last = Rows(roots, goes_out) if self.apart else self.next

    @property
    def wanted(self) -> bool:
        return self.next.wanted or self.last.wanted

    @property
    def is_last_kept(self) -> bool:
        """Whether the row of the pass that left the loop comes behind those of the others; to be asked at the end."""
        return self.apart and self.last.wanted and not self.last.empty

    @cached_property
    def is_range(self) -> bool:
        """Whether the range can be walked backwards in place of the rows; to be asked when all is written.

        They hold its items and nothing else, and every pass led to a next one until none was left.
        """
        whole = {x for turn in self.turns if turn.exhausted for x in turn.exhausted.leaves()}
        return (
            self.range is not None
            and self.apart
            and self.last.empty
            and whole.issuperset(self.last.leaves)
            and len(self.next.leaves) == 1
            and all(
                x is self.home[leaf].root.given
                for leaf in self.next.leaves
                for x in self.next.values(leaf)
            )
        )

    def rows(self, leaf: Node) -> Rows:
        return self.last if goes_out(leaf) else self.next


def goes_out(leaf: Node) -> bool:
    return leaf.end is not None and leaf.end.kind != "next"


def is_content(x: Any) -> bool:
    return isinstance(x, Op) and x.fn == CONTENT


def is_typed(op: Op) -> bool:
    """Whether the class of a call's value follows from those of its operands."""
    if op.fn in STEADY:
        return True
    if any(isinstance(x, Reference) for x in op.args):
        return False
    try:
        return is_steady(example(op, ())[0])
    except Unemittable:
        return False


def seen_as(op: Op, kind: type) -> type:
    """The exception that a program raises in the place of another one: an object is a dict there."""
    if op.fn != LOAD or kind is not AttributeError:
        return kind
    return kind if is_one_of(type_of(op.args[0]), MEMORIES) else KeyError


def type_of(x: Any) -> Any:
    """The type of an operand."""
    x = x.ops[0] if isinstance(x, Reference) else x
    return x.type if isinstance(x, Op) else type(x)


class Forward:
    """Writes regions into ``code``; ``trails`` and ``rows`` say of loops, scopes and functions what they keep."""

    def __init__(self, writer: Writer, held: Held) -> None:
        self.writer = writer
        self.held = held
        self.of_states = States(held, writer.name)
        self.code = Code()
        self.trails: dict[Loop, Trail] = {}
        self.rows: dict[Scope | Function, Rows] = {}
        self.functions: dict[Function, str] = {}
        self.halves: dict[Function, str] = {}  # the names of their reverse halves
        self.invoked: list[Function] = []  # each once, in the order in which they are met
        self.states: dict[Any, dict[Any, int]] = {}
        self.typed: dict[Any, bool] = {}  # see `is_typed`
        self.lowered = Lowered(writer)

    # ----------------------------------------------------------------------------------------------- nodes

    def tree(self, node: Node, depth: int, leaf: Leaf) -> None:
        """A node and what follows; ``leaf`` writes what stands at the ends."""
        for step in node.steps:
            if isinstance(step, Check):
                self.check(step, depth)
            elif isinstance(step, Same):
                self.same(step.reference, depth)
            else:
                self.op(step, depth)
        if node.end is not None:
            leaf(node, depth)
        elif node.trying is not None:
            self.trying(node, depth, leaf)
        elif node.kids:
            self.decision(node, depth, leaf)
        else:
            self.code.add(self.writer.miss, depth)

    def decision(self, node: Node, depth: int, leaf: Leaf) -> None:
        subject = node.subject
        if isinstance(subject, (Loop, Scope, Invoke)):
            word = "if"
            for outcome, kid in node.kids.items():
                test = f"{self.writer.kind(subject)} == {self.state(subject, outcome)}"
                self.code.add(f"{word} {test}:", depth)
                self.tree(kid, depth + 1, leaf)
                word = "elif"
            self.code.add(f"else: {self.writer.miss}", depth)
            return
        if type(subject) is Take:
            self.distinguish(node, subject, depth, leaf)
            return
        if subject == EXHAUSTED or set(node.kids) != {True, False}:
            raise Unemittable("a decision that is not between True and False")
        self.one_each(subject, depth)
        self.code.add(f"if {self.condition(node, subject)}:", depth)
        self.tree(node.kids[True], depth + 1, leaf)
        self.code.add("else:", depth)
        self.tree(node.kids[False], depth + 1, leaf)

    def condition(self, node: Node | None, subject: Op) -> str:
        """The source text of a truth; it is computed where it is decided on, if the op is not a step."""
        if subject in self.writer.ways.home:
            return self.writer.name(subject)
        if (
            subject.fn is operator.truth and subject not in self.writer.called
        ):  # which is what Python asks there
            return self.writer.name(subject.args[0])
        return self.writer.call(subject)

    def check(self, check: Check, depth: int) -> None:
        subject, outcome = check
        if isinstance(subject, (Loop, Scope, Invoke)):
            if len(self.state_numbers(subject)) > 1:
                test = f"{self.writer.kind(subject)} != {self.state(subject, outcome)}"
                self.code.add(f"if {test}: {self.writer.miss}", depth)
            return
        if type(subject) is Take:
            tests = " and ".join(self.of_states.tests(outcome, self.writer.name(subject)))
            self.code.add(f"if not ({tests}): {self.writer.miss}", depth)
            self.give(subject, outcome, depth)
            return
        if outcome not in (True, False):
            raise Unemittable("a decision that is not between True and False")
        self.one_each(subject, depth)
        test = self.condition(None, subject)
        self.code.add(f"if {f'not ({test})' if outcome else test}: {self.writer.miss}", depth)

    def distinguish(self, node: Node, take: Take, depth: int, leaf: Leaf) -> None:
        """It depends on what was taken out of a memory; constant texts come before any text."""
        word = "if"
        for state, kid in sorted(node.kids.items(), key=lambda item: str in {*classes(item[0])}):
            tests = " and ".join(self.of_states.tests(state, self.writer.name(take)))
            self.code.add(f"{word} {tests}:", depth)
            self.give(take, state, depth + 1)
            self.tree(kid, depth + 1, leaf)
            word = "elif"
        self.code.add(f"else: {self.writer.miss}", depth)

    def give(self, take: Take, state: Any, depth: int) -> None:
        """The numbers and memories in what was taken get their values."""
        texts = self.of_states.inside(state, self.writer.name(take))
        for op, text in zip(take.results.get(state, ()), texts, strict=False):
            self.code.add(f"{self.writer.name(op)} = {text}", depth)

    def one_each(self, subject: Op, depth: int) -> None:
        """What a condition compares has to be one object each."""
        if subject not in self.writer.ways.home:
            for x in subject.args:
                self.same(x, depth)

    def trying(self, node: Node, depth: int, leaf: Leaf) -> None:
        """An op that was seen to raise: what it raised decides."""
        assert node.trying is not None
        raised, error = self.writer.fresh("e"), self.writer.fresh("e")
        kinds = {
            kind: self.writer.name_of_class(seen_as(node.trying, kind))
            for kind in node.kids
            if kind is not None
        }
        caught = f"({', '.join(kinds.values())})" if len(kinds) > 1 else next(iter(kinds.values()))
        self.code.add("try:", depth)
        self.op(node.trying, depth + 1)
        self.code.add(f"{raised} = None", depth + 1)
        self.code.add(f"except {caught} as {error}:", depth)
        self.code.add(f"{raised} = type({error})", depth + 1)
        self.code.add(f"if {raised} is None:", depth)
        self.tree(node.kids[None], depth + 1, leaf)
        for kind, name in kinds.items():
            self.code.add(f"elif {raised} is {name}:", depth)
            self.tree(node.kids[kind], depth + 1, leaf)
        self.code.add(f"else: {self.writer.miss}", depth)

    def same(self, operand: Any, depth: int) -> None:
        """Candidates that may be several objects have to be one."""
        if isinstance(operand, Reference):
            first, *others = [self.writer.name(x) for x in self.writer.aliases.candidates(operand)]
            if others:
                test = " or ".join(f"{first} is not {other}" for other in others)
                self.code.add(f"if {test}: {self.writer.miss}", depth)

    # ------------------------------------------------------------------------------------------------- ops

    def op(self, op: Op, depth: int) -> None:
        for x in op.args:
            self.same(x, depth)
        if isinstance(op, Loop):
            self.loop(op, depth)
        elif isinstance(op, Scope):
            self.scope(op, depth)
        elif isinstance(op, Invoke):
            self.invoke(op, depth)
        else:
            self.statement(op, depth)

    def statement(self, op: Op, depth: int) -> None:
        writer, add = self.writer, self.code.add
        if op.fn == OBJECT:
            names, values = op.args[1::2], op.args[2::2]
            tag = f"{self.of_states.tag}: {writer.name(op.args[0])}"
            tags = [tag] if self.held.tagged else []
            items = [
                f"{writer.name(k)}: {writer.name(x)}" for k, x in zip(names, values, strict=True)
            ]
            add(f"{writer.name(op)} = {{{', '.join(tags + items)}}}", depth)
            return
        if op in writer.called:
            self.call(op, depth)
            return
        if op.fn == CONTENT:
            text = f"{writer.name(op)} = {writer.name(op.args[0])}.copy()"
            add(lambda: text if op in writer.snapshots else "", depth)
            return
        if isinstance(op, Access):
            add(self.access(op), depth)
            return
        args = [writer.name(x) for x in op.args]
        if op.fn == ARRAY:
            made = f"{writer.text.named(own, 'own')}({args[0]})"
            if writer.active(op.args[0]):  # whose value the reverse part may ask for
                made = f"{args[0]}.copy('K')"
            add(f"{writer.name(op)} = {made}", depth)
            return
        if op.fn == STORE:
            add(f"{args[0]}[{args[1]}] = {args[2]}", depth)
            return
        if op.fn == DROP:
            add(f"del {args[0]}[{args[1]}]", depth)
            return
        if op.fn == APPEND:
            add(f"{args[0]}.append({args[1]})", depth)
            return
        add(f"{writer.name(op)} = {self.value(op, args)}", depth)
        if op.fn == DICT and len(op.args) > 2 and any(isinstance(k, Op) for k in op.args[::2]):
            add(f"if len({writer.name(op)}) != {len(op.args) // 2}: {writer.miss}", depth)
        if is_taken(op) and op.type is not UNKNOWN and not self.held.is_sure(op):
            tests = " and ".join(self.of_states.tests(op.type, writer.name(op)))
            add(f"if not ({tests}): {writer.miss}", depth)
        if callable(op.fn) and not self.is_typed(op):
            wrong = f"type({writer.name(op)}) is not {writer.name_of_class(op.type)}"
            add(f"if {wrong}: {writer.miss}", depth)

    def access(self, op: Access) -> str:
        """A read or a write by an index."""
        writer = self.writer
        start = 2 if op.fn == PUT else 1
        names = [*map(writer.name, op.args[start:])]
        place = view_of(writer.name(op.args[0]), op.frame, names, writer.constant)
        if op.fn == PUT:
            return f"{place} = {writer.operand(op.args[1], False)}"
        return f"{writer.name(op)} = {place}"

    def is_typed(self, op: Op) -> bool:
        """Whether the class of a call's value follows from those of its operands."""
        key = (op.fn, op.type, *map(described, op.args))
        if key not in self.typed:
            self.typed[key] = is_typed(op)
        return self.typed[key]

    def value(self, op: Op, args: list[str]) -> str:
        if op.fn == LIST:
            return f"[{', '.join(args)}]"
        if op.fn == DICT:
            return (
                f"{{{', '.join(f'{k}: {x}' for k, x in zip(args[::2], args[1::2], strict=True))}}}"
            )
        if op.fn == PACK:
            return self.of_states.template(op.key[2], iter(op.args))
        if op.fn == CONTENTS:
            return f"[*map({self.writer.text.named(snapshot, 'snapshot')}, {args[0]})]"
        if op.fn == REPEAT:
            return f"{args[0]} * {args[1]}"
        if op.fn == LOAD:
            kind = type_of(op.args[0])
            if is_one_of(kind, MEMORIES) or not is_memory(kind):
                return f"{args[0]}[{args[1]}]"
            return self.of_states.attribute(kind, args[0], op.args[1])
        if op.fn == POP:
            return f"{args[0]}.pop()"
        if op.fn == LENGTH:
            return f"len({args[0]})"
        if not callable(op.fn):
            raise Unemittable(f"an op that has no source: {op.fn}")
        return self.writer.call(op)

    def call(self, op: Op, depth: int) -> None:
        """A call of a function of arrays: a pair where it has a derivative."""
        writer = self.writer
        active = [*map(writer.active, op.args)]
        if isinstance(op, Draw) and not isinstance(
            op, Pair
        ):  # whatever its lists held when it was seen
            if any(on and type_of(x) is not int for x, on in zip(op.args, active, strict=True)):
                raise Unemittable("a draw by numbers that have a derivative")
        given = results_of(op) if isinstance(op, Several) else [op]
        rule = rule_of(op, active) if any(map(writer.active, given)) and any(active) else None
        name = writer.name(op)
        call = self.lowered.value(op, [writer.operand(x, False) for x in op.args])
        call = writer.call(op) if call is None else call
        plain = rule is None or is_elementwise(op, rule) or self.lowered.has(op, rule, active)
        live = NOW if any(is_content(x) for x in op.args) else ""
        least = LEAST.get(op.fn)
        if least is not None and op.args:
            size = f"{writer.operand(op.args[0], False)}.size"
            if isinstance(op.args[0], Reference):
                size = f"len({writer.name(op.args[0])})"
            self.code.add(f"if {size} < {least}: {writer.miss}", depth)
        if plain:
            self.code.add(f"{name} = {call}{live}", depth)
        else:
            assert rule is not None
            fn = rule.function if op.fn not in OF_NAN else leaving(rule.function)
            pair = writer.call(op, fn)
            self.code.add(f"{name}, {writer.name(writer.back(op))} = {pair}", depth)
        if isinstance(op, Several):
            self.parts(op, depth)
        elif not is_sure(op):
            text = " and ".join(self.of_states.tests(op.type, name))
            self.code.add(f"if not ({text}): {writer.miss}", depth)

    def parts(self, op: Several, depth: int) -> None:
        """What is in the tuple that a call has given."""
        whole, names = self.writer.name(op), [*map(self.writer.name, results_of(op))]
        self.code.add(f"if len({whole}) != {len(names)}: {self.writer.miss}", depth)
        self.code.add(f"{joined(names)} = {whole}", depth)
        tests = [
            test
            for name, part in zip(names, results_of(op), strict=True)
            for test in self.of_states.tests(part.type, name)
        ]
        self.code.add(f"if not ({' and '.join(tests)}): {self.writer.miss}", depth)

    def assign(self, pairs: list[tuple[Any, Any]], depth: int) -> None:
        """Give parameters or results their values, all at once."""
        for _, source in pairs:
            self.same(source, depth)
        free = [(x, y) for x, y in pairs if self.writer.resolve(x) is x]
        found = [(self.writer.name(x), self.writer.name(y)) for x, y in free]
        found = [(x, y) for x, y in found if x != y]
        if found:
            left, right = zip(*found, strict=True)
            self.code.add(f"{', '.join(left)} = {', '.join(right)}", depth)

    # ---------------------------------------------------------------------------------------------- states

    def state_numbers(self, op: Op) -> dict[Any, int]:
        """The numbers of the states that a loop, a scope or an invoked function was left in."""
        owner: Any = op.function if isinstance(op, Invoke) else op
        known = self.states.get(owner)
        if known is None:
            regions: list[Region] = [op.function] if isinstance(op, Invoke) else inner(op)
            keys = [x.state for region in regions for x in region.root.ends() if x.kind != "next"]
            if isinstance(op, (Loop, Scope)):
                keys += op.results
            known = self.states[owner] = {key: i for i, key in enumerate(dict.fromkeys(keys))}
        return known

    def state(self, op: Op, state: Any) -> int:
        numbers = self.state_numbers(op)
        return numbers.setdefault(state, len(numbers))

    def leave(self, op: Loop | Scope, node: Node, depth: int) -> None:
        """Results get what survives, and the kind says which ones."""
        end = node.end
        assert end is not None
        self.assign([*zip(op.results.get(end.state, []), end.outs, strict=False)], depth)
        if len(self.state_numbers(op)) > 1:
            self.code.add(f"{self.writer.kind(op)} = {self.state(op, end.state)}", depth)

    # ------------------------------------------------------------------------------------- loops and scopes

    def loop(self, loop: Loop, depth: int) -> None:
        writer, add = self.writer, self.code.add
        turns = writer.ways.turns(loop)
        through = writer.resolve(loop.args[-1]) if loop.counted else None
        trail = self.trails[loop] = Trail(turns, through if isinstance(through, Op) else None)
        add(
            lambda: f"{writer.name(loop)} = []" if trail.wanted and not trail.is_range else "",
            depth,
        )
        numbers = {turn.state: i for i, turn in enumerate(turns)}
        if not turns:
            add(writer.miss, depth)
            return
        self.assign([*zip(turns[0].region.parameters, loop.starts, strict=False)], depth)
        state = writer.fresh("s") if len(turns) > 1 else ""
        if state:
            add(f"{state} = 0", depth)
        if loop.counted:
            item = writer.fresh("t")
            for turn in turns:
                if turn.root.given is not None:
                    writer.names[turn.root.given] = item
            add(f"for {item} in {writer.name(loop.args[-1])}:", depth)
        else:
            add("while True:", depth)

        def leaf(node: Node, depth: int, inside: bool) -> None:
            end = node.end
            assert end is not None
            add(self.pushed(trail, node, writer.name(loop)), depth)
            if end.kind != "next":
                self.leave(loop, node, depth)
                if inside:
                    add("break", depth)
            elif end.state not in loop.bodies:
                add(writer.miss, depth)
            else:
                body = loop.bodies[end.state]
                self.assign([*zip(body.parameters, end.outs, strict=False)], depth)
                if state and numbers[end.state] != numbers[trail.home[node].state]:
                    add(f"{state} = {numbers[end.state]}", depth)

        def bodies(roots: list[Node], depth: int, inside: bool) -> None:
            word = "if"
            for i, root in enumerate(roots):
                deeper = depth
                if state:
                    add(f"{word} {state} == {i}:", depth)
                    word, deeper = "elif", depth + 1
                self.tree(root, deeper, lambda node, d: leaf(node, d, inside))

        bodies([turn.root for turn in turns], depth + 1, True)
        if loop.counted:
            add("else:", depth)
            bodies([x.exhausted for x in turns if x.exhausted is not None], depth + 1, False)

    def settle(self) -> None:
        """A range that is walked backwards is the trail of its loop; to be called when all is written."""
        for loop, trail in self.trails.items():
            if trail.is_range:
                self.writer.names[loop] = self.writer.name(trail.range)

    def pushed(self, trail: Trail, node: Node, name: str) -> Late:
        """The line that adds a row to the trail of a loop; the last one may have nothing to say."""
        rows = trail.rows(node)

        def line() -> str:
            if not rows.wanted or (trail.apart and goes_out(node) and not trail.is_last_kept):
                return ""
            if trail.is_range:
                return ""
            return f"{name}.append({self.writer.row(rows, node)})"

        return line

    def scope(self, scope: Scope, depth: int) -> None:
        root = self.writer.ways.region(scope.region)
        rows = self.rows[scope] = Rows([root])

        def leaf(node: Node, depth: int) -> None:
            self.code.add(self.kept(rows, node, self.writer.name(scope)), depth)
            self.leave(scope, node, depth)

        self.tree(root, depth, leaf)

    def kept(self, rows: Rows, node: Node, name: str) -> Late:
        """The line that keeps the one row of a scope or a function."""
        return lambda: f"{name} = {self.writer.row(rows, node)}" if rows.wanted else ""

    # ------------------------------------------------------------------------------------------- functions

    def invoke(self, op: Invoke, depth: int) -> None:
        writer, add = self.writer, self.code.add
        given = ", ".join(writer.name(x) for x in op.args)
        call = f"{self.function(op.function)}({given})"
        if len(self.state_numbers(op)) < 2:  # the row and the results
            found = [x for ops in op.results.values() for x in ops]
            add(f"{joined(map(writer.name, [op, *found]))} = {call}", depth)
            return
        results, kind = writer.fresh("r"), writer.kind(op)
        add(f"{writer.name(op)}, {kind}, {results} = {call}", depth)
        for state, ops in op.results.items():
            if ops:
                test = f"if {kind} == {self.state(op, state)}"
                add(f"{test}: {joined(map(writer.name, ops))} = {results}", depth)

    def function(self, function: Function) -> str:
        """The name of a function's forward half; both halves are still to be written."""
        if function not in self.functions:
            name = self.functions[function] = self.writer.text.fresh(function.code.co_name)
            self.halves[function] = self.writer.text.fresh(f"{name}_back")
            self.invoked.append(function)
            self.rows[function] = Rows([self.writer.ways.region(function)])
        return self.functions[function]

    def define(self, function: Function) -> None:
        """The forward half: it returns the row and the results, with the number of the state if there are several."""
        rows = self.rows[function]
        parameters = ", ".join(map(self.writer.name, function.parameters))
        add = self.code.add
        add(f"def {self.functions[function]}({parameters}):")

        def leaf(node: Node, depth: int) -> None:
            end = node.end
            assert end is not None
            for x in end.outs:
                self.same(x, depth)
            outs = [*map(self.writer.name, end.outs)]
            numbers = self.states[function]
            if len(numbers) > 1:
                outs = [str(numbers[end.state]), f"({joined(outs)})" if outs else "()"]
            add(lambda: f"return {joined([self.row_or_none(rows, node), *outs])}", depth)

        self.tree(rows.roots[0], 1, leaf)

    def row_or_none(self, rows: Rows, node: Node) -> str:
        return self.writer.row(rows, node) if rows.wanted else "None"
