"""What another thread may do between two steps of one: each test does it at the worst moment."""

import functools
import operator
import sys
import threading
import types

import pytest

from helpers import in_threads
from wengert import frule, grad, jit, rrule
from wengert.rules import registry
from wengert.tracer import hooks, record, rewrite
from wengert.tracer.fold import functions
from wengert.tracer.fold.recorder import Unfolded
from wengert.tracer.run import _Surroundings
from wengert.tracer.tape import Signature
from wengert.transforms import cache, expand, explain, loop_reverse, loops, lowering
from wengert.transforms.budget import Budget
from wengert.transforms.fold import keep


def elsewhere(work, *args):
    """Let another thread do something, here and now."""
    thread = threading.Thread(target=work, args=args)
    thread.start()
    thread.join()


# ------------------------------------------------------------------------------------------------- rules

SLOW = """
import slow
from wengert import rrule

slow.loading.set()
slow.asked.wait(10)
slow.pause()
rrule(slow.cube)(lambda x: (x**3, lambda d: (3.0 * x * x * d,)))
"""


def test_rules_that_two_threads_wait_for(monkeypatch, tmp_path, registered):
    """They are loaded once, and who comes second finds them."""
    slow = types.ModuleType("slow")
    slow.loading, slow.asked = threading.Event(), threading.Event()
    slow.pause = functools.partial(threading.Event().wait, 0.05)
    slow.cube = lambda x: x**3
    slow.cube.__module__ = "slow"
    (tmp_path / "rules_of_slow.py").write_text(SLOW)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "slow", slow)
    monkeypatch.setitem(registry.awaited, "slow", "rules_of_slow")
    found = []

    def second():
        slow.loading.wait(10)
        slow.asked.set()
        found.append(registry.lookup(slow.cube))

    errors = in_threads(lambda: found.append(registry.lookup(slow.cube)), second)
    sys.modules.pop("rules_of_slow", None)
    registry.loaded.discard("slow")
    assert not errors
    assert found[0] is not None and found[0] is found[1]


@pytest.fixture
def cube(monkeypatch, registered):
    """A function whose rules another thread loads when this one has found none, and asks whether there are any."""

    def cube(x):
        return x**3

    def late(fn):
        if fn is cube and "slow" in registry.awaited:
            rrule(cube)(lambda x: (x**3, lambda d: (100.0 * d,)))
            registry.loaded.add("slow")
            del registry.awaited["slow"]
        return package_of(fn)

    package_of = registry.package_of
    cube.__module__ = "slow"
    monkeypatch.setitem(registry.awaited, "slow", "rules_of_slow")
    monkeypatch.setattr(registry, "package_of", late)
    yield cube
    registry.loaded.discard("slow")


def test_rules_that_come_while_they_are_looked_up(cube):
    assert registry.lookup(cube) is not None


def test_rules_that_come_while_a_function_is_called(cube):
    with jit(False):
        assert grad(lambda x: cube(x))(2.0) == 100.0


def test_rules_that_come_while_a_function_is_folded(cube):
    with pytest.raises(Unfolded, match="cube has a rule"):
        functions.call_function(None, "function", cube, (2.0,), {})


def test_factors_that_come_while_they_are_gone_through(monkeypatch):
    class Pair:
        def __iter__(self):
            known[len(known)] = Pair()
            return iter((None, None))

    known = {0: Pair(), 1: Pair()}
    monkeypatch.setattr(registry, "factored", known)
    assert not registry.by_matrix(test_factors_that_come_while_they_are_gone_through)


def test_pullbacks_are_forgotten_before_the_count_says_so(monkeypatch):
    """Or a thread that finds the new count would go by those of the old rules. New signatures come meanwhile."""
    counts = []

    class Kept:
        def __setattr__(self, name, value):
            counts.append(Signature.rules)
            Signature.of(len(counts), float)

    monkeypatch.setattr(Signature, "known", {"a": Kept(), "b": Kept()})
    monkeypatch.setattr(Signature, "rules", 1)
    Signature.renew(2)
    assert counts == [1, 1] and Signature.rules == 2


def product(x, y):
    return x * y, lambda d: (d * y, d * x)


def other_product(x, y):
    """What it says of the derivative holds no global or variable, by which it could not be kept."""
    return x * y, lambda d: (10.0 * d * y, 10.0 * d * x)


def test_a_pullback_of_arithmetic_that_was_found_by_an_old_rule(monkeypatch, registered):
    of = expand.expansion_of

    def late(op, *rest):
        found = of(op, *rest)
        if op.fn is operator.mul:
            monkeypatch.undo()
            elsewhere(rrule(operator.mul, pure=True), other_product)
            elsewhere(grad(lambda x: x + 1.0), 1.0)  # whose sweep forgets those of the old rules
        return found

    rrule(operator.mul, pure=True)(product)
    with jit(False):
        monkeypatch.setattr(expand, "expansion_of", late)
        assert grad(lambda x: x * 2.0)(3.0) == 2.0
        assert grad(lambda x: x * 2.0)(3.0) == 20.0


def test_an_expansion_that_was_found_by_old_rules(monkeypatch, registered):
    """What an frule is transposed to holds what the rules that it comes down to were."""

    def outer(x):
        return x**3

    def inner(t, x):
        return t * x

    whole = expand.expand

    def late(op, *rest):
        found = whole(op, *rest)
        if op.fn is outer:
            monkeypatch.undo()
            elsewhere(rrule(inner, pure=True), other_product)
        return found

    rrule(inner, pure=True)(product)
    frule(outer, pure=True)(lambda primals, tangents: (outer(*primals), inner(*tangents, *primals)))
    with jit(False):
        monkeypatch.setattr(expand, "expand", late)
        assert grad(outer)(2.0) == 2.0
        assert grad(outer)(2.0) == 20.0


def test_the_lowered_form_of_a_value_is_one_in_all_threads(monkeypatch):
    made, value = lowering.made, types.SimpleNamespace
    first = []

    def late(x):
        if x is value and not first:
            first.append(None)
            elsewhere(lambda: first.append(lowering.lowered(value)))
        return made(x) if x is not value else object()

    monkeypatch.setattr(lowering, "known", {})
    monkeypatch.setattr(lowering, "made", late)
    assert lowering.lowered(value) is first[1]


# ---------------------------------------------------------------------------------------------- programs


def test_a_program_of_a_call_that_began_before_the_cache_was_cleared():
    def f(x):
        return x * x

    step = grad(f)
    with jit(True):
        entry = step.__self__.entry()
        [step(2.0) for _ in range(5)]
        (program,) = entry.programs
        cache.clear_cache()
        entry.programs.clear()
        program.dropped = False
        entry.add(program)
        assert program.dropped and not entry.programs


def test_a_region_that_was_recorded_while_another_thread_has_registered_a_rule(
    monkeypatch, registered
):
    def f(x, n):
        total = 0.0
        for i in range(n):
            total += cubed(x) if i % 2 else x
        return total

    def cubed(x):
        return x**3

    def late(*args):
        monkeypatch.undo()
        made.append(written(*args))
        elsewhere(rrule(cubed, pure=True), lambda x: (x**3, lambda d: (100.0 * d,)))
        return made[0]

    written, made = keep.program_of, []
    monkeypatch.setattr(keep, "program_of", late)
    monkeypatch.setenv("WENGERT_FOLD", "1")
    monkeypatch.setattr(Budget, "limited", False)
    step = grad(f)
    with jit(True):
        for n in range(2, 40):
            before = bool(made)
            expected = 100.0 if before else 12.0
            assert step(2.0, n) == (n + 1) // 2 + n // 2 * expected
    assert made


def test_explain_while_a_call_is_kept_at_last(monkeypatch):
    entry = cache.Entry("f", "here", "grad(f)")
    entry.unfit = "a reason"
    advice = explain.advice

    def late(*args):
        entry.unfit = None
        return advice(*args)

    monkeypatch.setattr(explain, "advice", late)
    assert [line for line in explain.not_kept(entry) if "a reason" in line]


# ------------------------------------------------------------------------------------------------- loops


def long(x, n=5000):
    for _ in range(n):
        x = x * 0.99 + 0.01 * x * x
    return x


def test_a_loop_that_changes_when_it_was_compiled(monkeypatch):
    """As another thread collects one more of its columns."""
    whole = loops.LoopFunction.compile

    compiled = []

    def late(self):
        found = whole(self)
        compiled.append(self)
        self.function = None
        return found

    with jit(False):
        expected = grad(long)(0.5)
        monkeypatch.setattr(loops.LoopFunction, "compile", late)
        assert grad(long)(0.5) == expected
    assert compiled


def test_reverses_of_loops_are_built_by_one_thread_at_a_time(monkeypatch):
    """They add to what the loop collects, and go by the numbers of what was added."""
    build, inside, most = loop_reverse.Reverser.build, [], []

    def slow(self):
        inside.append(self)
        most.append(len(inside))
        threading.Event().wait(0.02)
        inside.pop()
        return build(self)

    monkeypatch.setattr(loop_reverse.Reverser, "build", slow)

    def work():
        step = grad(lambda x: long(x, 400))
        with jit(True):
            [step(0.5) for _ in range(4)]

    assert in_threads(work, work, work) == []
    assert most and {*most} == {1}


# -------------------------------------------------------------------------------------------------- runs


def test_a_twin_that_is_made_while_another_thread_looks_for_the_oldest(monkeypatch):
    kept = {i: None for i in range(rewrite.MOST_KEPT)}
    scope = {}
    exec("def f(x):\n    return x", scope)

    def late(frame, event, called):
        if event == "c_call" and called is next and len(kept) < rewrite.MOST_KEPT + 100:
            kept[str(len(kept))] = None

    monkeypatch.setattr(rewrite, "_kept", kept)
    before = sys.getprofile()
    sys.setprofile(late)
    try:
        twin = rewrite.instrument(scope["f"].__code__, hooks)
    finally:
        sys.setprofile(before)
    assert rewrite.is_twin(twin) and 0 not in kept


def test_a_finalizer_that_differentiates_while_a_run_begins():
    """A thread that waits for itself would wait for ever."""
    surroundings = _Surroundings()

    class Last:
        def __del__(self):
            surroundings.enter()
            surroundings.leave()

    def begin():
        vars(record)["__warningregistry__"] = Last()
        surroundings.enter()
        surroundings.leave()

    thread = threading.Thread(target=begin, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
