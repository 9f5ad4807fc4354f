"""The pair contract: a rule runs once a call, and its value and its pullback share what happened in that run.

What is expected is what plain Python gives if one calls the rules by hand, and then their pullbacks in reverse order:
the same draws, prints, counts and lists, with the JIT off, cold and warm.
"""

import itertools
import logging
import math
import random
import time
import traceback

import numpy as np
import pytest
from pair_rules import TIMES, Meter, log, noisy

from helpers import assert_same, user_frames
from wengert import (
    checkpoint,
    custom_rule,
    grad,
    hessian,
    hvp,
    jacobian,
    jvp,
    linearize,
    pullback,
    rrule,
    stop_gradient,
    value_and_grad,
)

pytestmark = pytest.mark.usefixtures("switch", "registered")


# ------------------------------------------------------------------------------------- draws and clocks


def test_value_and_gradient_share_a_draw():
    g = value_and_grad(lambda x: 3.0 * noisy(x))
    random.seed(1)
    found = [g(2.0) for _ in TIMES]
    random.seed(1)
    draws = [random.random() for _ in TIMES]
    assert found == [(3.0 * (2.0 * r), 3.0 * r) for r in draws]


def test_a_gradient_alone_draws_once_a_call():
    g = grad(lambda x: noisy(x) * noisy(x))
    random.seed(2)
    found = [g(2.0) for _ in TIMES]
    random.seed(2)
    for slope in found:
        a, b = random.random(), random.random()
        assert slope == pytest.approx(2 * 2.0 * a * b, rel=1e-14)


def test_a_pullback_keeps_its_draw():
    for _ in TIMES:
        value, back = pullback(noisy, 2.0)
        assert back(1.0) == (value / 2.0,)
        assert back(3.0) == (3.0 * (value / 2.0),)
        assert back(1.0) == (value / 2.0,)


def test_a_draw_in_forward_mode():
    for _ in TIMES:
        value, tangent = jvp(noisy, (2.0,), (5.0,))
        assert tangent == pytest.approx(5.0 * value / 2.0, rel=1e-15)
        value, f_jvp = linearize(noisy, 2.0)
        assert [f_jvp(t) for t in (1.0, 2.0)] == [value / 2.0, 2 * (value / 2.0)]


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_a_draw_in_a_jacobian(mode):
    def f(x):
        y = np.stack([noisy(x[0]), noisy(x[1])])
        return y, stop_gradient(y)

    x = np.array([2.0, 4.0])
    j = jacobian(f, mode=mode)
    for _ in TIMES:
        found, _ = j(x)
        assert found[0, 1] == found[1, 0] == 0.0
        assert 0 < found[0, 0] < 1
        assert found[0, 0] != found[1, 1]


def test_a_draw_at_every_order():
    f = lambda x: noisy(x) ** 3
    for _ in TIMES:
        random.seed(3)
        first = grad(f)(2.0)
        random.seed(3)
        second = grad(grad(f))(2.0)
        random.seed(3)
        third = grad(grad(grad(f)))(2.0)
        random.seed(3)
        r = random.random()
        assert first == pytest.approx(3 * 4 * r**3, rel=1e-13)
        assert second == pytest.approx(6 * 2 * r**3, rel=1e-13)
        assert third == pytest.approx(6 * r**3, rel=1e-13)
        random.seed(3)
        assert hessian(f)(2.0) == pytest.approx(second, rel=1e-13)
        random.seed(3)
        assert hvp(f, (2.0,), (1.5,)) == pytest.approx(1.5 * second, rel=1e-13)
        random.seed(3)
        assert jvp(grad(f), (2.0,), (1.0,))[1] == pytest.approx(second, rel=1e-13)
        random.seed(3)
        assert grad(lambda x: jvp(f, (x,), (1.0,))[1])(2.0) == pytest.approx(second, rel=1e-13)


generator = np.random.default_rng(0)


@custom_rule
def dropout(x, rate=0.5):
    mask = generator.random(x.shape) >= rate
    scale = 1 / (1 - rate)
    return np.where(mask, x * scale, 0.0), lambda d: (np.where(mask, d * scale, 0.0),)


def test_dropout():
    x = np.linspace(1.0, 2.0, 8)
    w = np.linspace(-1.0, 1.0, 8)
    g = value_and_grad(lambda x: (dropout(x, rate=0.25) @ w, 0.0)[0])
    both = grad(lambda x: (dropout(x) * x).sum())
    seen = set()
    for _ in TIMES:
        value, dx = g(x)
        assert dx @ x == pytest.approx(value, rel=1e-12)
        seen.add(dx.tobytes())
        assert set(np.round(dx / w, 12)) <= {0.0, round(4 / 3, 12)}
        assert set(np.round(both(x) / x, 12)) <= {0.0, 4.0}
    assert len(seen) > 1


def test_a_global_generator_of_numpy():
    @custom_rule
    def scaled(x):
        r = np.random.uniform(1.0, 2.0)
        return x * r, lambda d: (d * r,)

    g = value_and_grad(scaled)
    for _ in TIMES:
        value, slope = g(3.0)
        assert value == 3.0 * slope
        assert 1.0 <= slope <= 2.0


def test_the_next_of_an_iterator():
    numbers = itertools.count(1)

    @custom_rule
    def counted(x):
        n = next(numbers)
        return x * n, lambda d: (d * n,)

    g = value_and_grad(lambda x: 2.0 * counted(x))
    assert [g(1.0) for _ in TIMES] == [(2.0 * n, 2.0 * n) for n in range(1, 7)]
    assert next(numbers) == 7
    value, tangent = jvp(counted, (1.0,), (1.0,))
    assert value == tangent == 8.0
    assert next(numbers) == 9


def test_a_generator_of_the_pullback():
    def signs():
        while True:
            yield 1.0
            yield -1.0

    flips = signs()

    @custom_rule
    def flipped(x):
        return x, lambda d: (d * next(flips),)

    assert [grad(flipped)(1.0) for _ in TIMES] == [1.0, -1.0] * 3


def test_the_clock():
    @custom_rule
    def timed(x):
        t = time.perf_counter()
        return x * t, lambda d: (d * t,)

    g = value_and_grad(timed)
    found = [g(2.0) for _ in TIMES]
    assert all(value == 2.0 * slope for value, slope in found)
    assert sorted(found) == found
    assert len(set(found)) == len(found)


def test_a_clock_that_is_read_by_both():
    ticks = itertools.count()

    @custom_rule
    def between(x):
        before = next(ticks)
        return x, lambda d: (d * (next(ticks) - before),)

    g = grad(lambda x: between(between(x)))
    # The outer rule runs last and its pullback first: 2 - 1, then 3 - 0.
    assert [g(1.0) for _ in TIMES] == [3.0] * 6


def test_a_rule_without_traced_arguments_is_run_at_each_call():
    g = grad(lambda x: x * noisy(1.0))
    assert len({g(1.0) for _ in TIMES}) == len(TIMES)

    def drawn(x):
        return x * random.random()

    @rrule(drawn)
    def rule(x):
        raise AssertionError

    g = grad(lambda x: x * drawn(1.0))
    assert len({g(1.0) for _ in TIMES}) == len(TIMES)


# --------------------------------------------------------------------------------------------- effects


def test_prints(capsys):
    @custom_rule
    def loud(x):
        print("value", x)

        def back(d):
            print("pullback", d)
            return (2.0 * d,)

        return 2.0 * x, back

    g = grad(lambda x: 3.0 * loud(loud(x)))
    for _ in TIMES:
        assert g(1.5) == 12.0
        shown = capsys.readouterr().out.splitlines()
        assert shown == ["value 1.5", "value 3.0", "pullback 3.0", "pullback 6.0"]


def test_nothing_is_pulled_where_no_gradient_flows(capsys):
    @custom_rule
    def loud(x):
        print("value")
        return x, lambda d: print("pullback") or (d,)

    g = grad(lambda x, y: x * stop_gradient(loud(y)), argnums=0)
    h = grad(lambda x, y: x * loud(y), argnums=0)
    k = grad(lambda x, y: x * loud(y), argnums=(0, 1))
    for _ in TIMES:
        assert g(2.0, 3.0) == h(2.0, 3.0) == 3.0
        assert capsys.readouterr().out == "value\nvalue\n"
        assert k(2.0, 3.0) == (3.0, 2.0)
        assert capsys.readouterr().out == "value\npullback\n"


def test_attributes_that_count():
    me = Meter()

    @custom_rule
    def metered(x):
        me.calls += 1

        def back(d):
            me.total += float(d)
            return (d,)

        return x * 1.0, back

    g = grad(lambda x: 3.0 * metered(x))
    for n in TIMES:
        assert g(2.0) == 3.0
        assert (me.calls, me.total) == (n + 1, 3.0 * (n + 1))
    assert type(me.total) is float
    assert grad(grad(lambda x: metered(x) ** 3))(2.0) == 12.0
    assert me.calls == 7


def test_lists_of_cotangents_are_plain():
    @custom_rule
    def logged(x):
        log.append(("value", x))

        def back(d):
            log.append(d)
            return (d,)

        return 2.0 * x, back

    g = grad(lambda x: x * logged(x))
    for _ in TIMES:
        log.clear()
        assert g(3.0) == 6.0 + 3.0
        assert_same(log, [("value", 3.0), 3.0])
        log.clear()
        _, back = pullback(lambda x: logged(x), 3.0)
        back(1.0)
        back(2.0)
        assert_same(log, [("value", 3.0), 1.0, 2.0])


def test_lists_of_arrays():
    @custom_rule
    def logged(x):
        def back(d):
            log.append(d)
            d *= 2.0  # its own
            return (d,)

        return x + 0.0, back

    x = np.array([1.0, 2.0])
    g = grad(lambda x: (logged(x) + x).sum())
    for _ in TIMES:
        log.clear()
        assert_same(g(x), np.array([3.0, 3.0]))
        assert_same(log, [np.array([2.0, 2.0])])
        assert type(log[0]) is np.ndarray


def test_variables_of_enclosing_functions():
    n = 0
    total = 0.0

    @custom_rule
    def counted(x):
        nonlocal n
        n += 1

        def back(d):
            nonlocal total
            total += d
            return (d * n,)

        return x * n, back

    f = lambda x: counted(x) + counted(x)
    g = grad(f)
    for i in TIMES:
        # Both pullbacks see the count of the second call.
        assert g(1.0) == 2 * (2 * (i + 1))
        assert (n, total) == (2 * (i + 1), 2.0 * (i + 1))
    _, back = pullback(f, 1.0)
    assert n == 14
    n = 100
    assert back(1.0) == (200.0,)
    assert total == 14.0


def test_a_global_that_counts():
    global ticks
    ticks = 0

    @custom_rule
    def ticking(x):
        global ticks
        ticks += 1

        def back(d):
            global ticks
            ticks += 10
            return (d,)

        return x * 1.0, back

    g = grad(ticking)
    for i in TIMES:
        assert g(1.0) == 1.0
        assert ticks == 11 * (i + 1)


def test_dicts_and_sets():
    counts = {"value": 0, "back": 0}
    seen = set()

    @custom_rule
    def counted(x):
        counts["value"] += 1
        name = f"call {counts['value']}"

        def back(d):
            counts["back"] += 1
            seen.add(name)
            return (d,)

        return x * 1.0, back

    g = grad(lambda x: counted(x) * counted(x))
    for i in TIMES:
        assert g(2.0) == 4.0
        assert counts == {"value": 2 * (i + 1), "back": 2 * (i + 1)}
    assert seen == {f"call {i}" for i in range(1, 13)}


def test_a_counter_of_a_call_lives_as_long_as_its_pullback():
    @custom_rule
    def counting(x):
        n = 0

        def back(d):
            nonlocal n
            n += 1
            return (d * n,)

        return x * 1.0, back

    for _ in TIMES:
        _, back = pullback(counting, 2.0)
        assert [back(1.0) for _ in range(3)] == [(1.0,), (2.0,), (3.0,)]
        assert grad(counting)(2.0) == 1.0


def test_a_buffer_of_a_call_lives_as_long_as_its_pullback():
    @custom_rule
    def summing(x):
        total = np.zeros(x.shape)

        def back(d):
            total[...] += d
            return (total,)

        return x * 1.0, back

    x = np.array([1.0, 2.0])
    for _ in TIMES:
        _, back = pullback(summing, x)
        assert [back(np.ones(2))[0].tolist() for _ in range(2)] == [[1.0, 1.0], [2.0, 2.0]]
        assert grad(lambda x: summing(x).sum())(x).tolist() == [1.0, 1.0]


def test_logging(caplog):
    logger = logging.getLogger("rules")

    @custom_rule
    def logged(x):
        logger.warning("value %s", x)

        def back(d):
            logger.warning("pullback %.1f", d)
            return (d,)

        return x * 2.0, back

    g = grad(lambda x: logged(x))
    for _ in TIMES:
        caplog.clear()
        assert g(1.0) == 1.0
        assert [r.getMessage() for r in caplog.records] == ["value 1.0", "pullback 1.0"]


def test_what_a_pullback_does_stays_in_order_with_the_rest():
    @custom_rule
    def logged(x, name):
        log.append(name)

        def back(d):
            log.append(name.upper())
            return d, None

        return x * 1.0, back

    def f(x):
        log.append("begin")
        y = logged(x, "a") * logged(x, "b")
        log.append("end")
        return y

    g = grad(f)
    for _ in TIMES:
        log.clear()
        g(2.0)
        assert log == ["begin", "a", "b", "end", "B", "A"]


def test_a_stack_of_residuals():
    stack = []

    @custom_rule
    def squared(x):
        stack.append(x)

        def back(d):
            return (2 * stack.pop() * d,)

        return x * x, back

    g = grad(lambda x: squared(squared(x)))
    for _ in TIMES:
        assert g(2.0) == 2 * 4 * 2 * 2.0
        assert stack == []


def test_an_array_outside_that_pullbacks_write_to():
    stats = np.zeros(2)

    @custom_rule
    def watched(x):
        def back(d):
            stats[0] += d
            stats[1] += 1
            return (d,)

        return x * 1.0, back

    g = grad(lambda x: watched(watched(x)) * 2.0)
    for n in TIMES:
        assert g(1.0) == 2.0
        assert stats.tolist() == [4.0 * (n + 1), 2.0 * (n + 1)]


def test_an_array_that_is_returned_again_and_again():
    buffer = np.zeros(2)

    @custom_rule
    def buffered(x, k):
        def back(d):
            buffer[...] = d * k
            return buffer, None

        return x * k, back

    g = grad(lambda x: (buffered(x, 2.0) + buffered(x, 3.0)).sum())
    for _ in TIMES:
        assert g(np.ones(2)).tolist() == [5.0, 5.0]


def test_a_generator_that_is_an_argument():
    @custom_rule
    def dropped(x, rng):
        mask = rng.random(x.shape) < 0.5
        return x * mask, lambda d: (d * mask, None)

    g = value_and_grad(lambda x, rng: dropped(x, rng).sum())
    x = np.arange(1.0, 6.0)
    for seed in TIMES:
        value, dx = g(x, np.random.default_rng(seed))
        mask = np.random.default_rng(seed).random(5) < 0.5
        assert value == (x * mask).sum()
        assert dx.tolist() == mask.tolist()


def test_a_layer_that_keeps_what_it_saw():
    class Layer:
        def __init__(self, w):
            self.w, self.x, self.gradient = w, None, 0.0

        def backward(self, d):
            self.gradient += float(d * self.x)
            return None, d * self.w

    @custom_rule
    def applied(layer, x):
        layer.x = x
        return layer.w * x, layer.backward

    layer = Layer(3.0)
    g = value_and_grad(lambda x: applied(layer, x) * 2.0)
    for n in TIMES:
        assert g(1.5) == (9.0, 6.0)
        assert_same((layer.gradient, layer.x), (3.0 * (n + 1), 1.5))


# ------------------------------------------------------------------------------------------- exceptions


@custom_rule
def failing(x):
    def back(d):
        if d > 2:
            raise ValueError(f"too steep: {d}")  # here
        return (d,)

    return x * 1.0, back


def line_of(function, text):
    source = traceback.linecache.getlines(__file__)
    return next(i + 1 for i, line in enumerate(source) if text in line)


def test_an_exception_in_a_pullback_shows_its_line():
    g = grad(lambda x, s: s * failing(x))
    here = line_of(failing, 'raise ValueError(f"too steep')
    for s in (1.0, 3.0, 1.0, 1.0, 3.0, 1.0, 3.0):
        if s < 2:
            assert g(2.0, s) == s
            continue
        with pytest.raises(ValueError, match="too steep: 3.0") as error:
            g(2.0, s)
        assert ("back", here) in user_frames(error.value, __file__)
    _, back = pullback(failing, 2.0)
    assert back(1.0) == (1.0,)
    with pytest.raises(ValueError, match="too steep") as error:
        back(3.0)
    assert user_frames(error.value, __file__)[-1] == ("back", here)


def test_an_exception_in_a_body():
    @custom_rule
    def positive(x):
        if x < 0:
            raise ArithmeticError("negative")
        return x * 2.0, lambda d: (2.0 * d,)

    def f(x):
        try:
            return positive(x)
        except ArithmeticError:
            return 5.0 * x

    g = grad(f)
    for _ in TIMES:
        assert [g(1.0), g(-1.0)] == [2.0, 5.0]
    with pytest.raises(ArithmeticError, match="negative"):
        grad(positive)(-1.0)


def test_errors_that_say_that_there_is_no_derivative():
    @custom_rule
    def undefined(x):
        def back(d):
            raise NotImplementedError("nothing there")

        return x * 1.0, back

    for _ in TIMES:
        with pytest.raises(NotImplementedError, match="nothing there"):
            grad(undefined)(1.0)


# ----------------------------------------------------------------------------------- loops and checkpoints


def test_in_a_loop():
    def f(x, n):
        for i in range(n):
            x = logged_step(x, i)
        return x

    @custom_rule
    def logged_step(x, i):
        log.append(i)
        return x * 0.5, lambda d: (log.append(-i) or 0.5 * d, None)

    g = grad(f)
    for n in (3, 12, 12, 12, 40, 40, 12):
        log.clear()
        assert g(2.0, n) == 0.5**n
        assert log == [*range(n), *range(0, -n, -1)][:n] + [-i for i in reversed(range(n))]


def test_in_a_long_loop():
    count = [0, 0]

    @custom_rule
    def counted(x):
        count[0] += 1

        def back(d):
            count[1] += 1
            return (d,)

        return x * 1.0, back

    def f(x):
        for _ in range(5000):
            x = 0.999 * x + 1e-4
            if x < 0.01:
                x = counted(x)
        return counted(x)

    g = grad(f)
    slope = g(1.0)
    assert slope == pytest.approx(0.999**5000, rel=1e-9)
    assert count[0] == count[1] >= 1


def test_draws_in_a_while_loop():
    def f(x):
        while x < 100.0:
            x = x + stretched(x)
        return x

    factors = []

    @custom_rule
    def stretched(x):
        r = random.uniform(1.0, 2.0)
        factors.append(r)
        return x * r, lambda d: (d * r,)

    g = value_and_grad(f)
    for _ in TIMES:
        factors.clear()
        value, slope = g(1.0)
        assert value == pytest.approx(math.prod(1 + r for r in factors), rel=1e-12)
        assert slope == pytest.approx(value, rel=1e-12)


def test_in_a_checkpoint(capsys):
    @custom_rule
    def loud(x):
        print("value")
        return np.sin(x), lambda d: (print("pullback") or d * np.cos(x),)

    f = checkpoint(lambda x: loud(np.exp(x)) * 2.0)
    g = grad(lambda x: f(f(x)).sum())
    plain = grad(lambda x: (2 * np.sin(np.exp(2 * np.sin(np.exp(x))))).sum())
    x = np.array([0.1, 0.3])
    for _ in TIMES:
        np.testing.assert_allclose(g(x), plain(x), rtol=1e-14)
        assert capsys.readouterr().out.split() == ["value"] * 2 + ["pullback"] * 2


def test_a_checkpoint_with_a_function_that_has_a_rule():
    def drawn(x):
        return random.random() * x

    @rrule(drawn)
    def rule(x):
        r = random.random()
        return r * x, lambda d: (r * d,)

    f = checkpoint(lambda x: math.sin(x) * drawn(1.0) + drawn(x))
    g = value_and_grad(f)
    for _ in TIMES:
        random.seed(4)
        value, slope = g(2.0)
        random.seed(4)
        a, b = random.random(), random.random()
        assert value == pytest.approx(math.sin(2.0) * a + 2.0 * b, rel=1e-14)
        assert slope == pytest.approx(math.cos(2.0) * a + b, rel=1e-14)


# ---------------------------------------------------------------------------------------- a changed world


def test_what_a_rule_reads_may_change():
    scale = {"k": 2.0}

    @custom_rule
    def scaled(x):
        k = scale["k"]
        return k * x, lambda d: (k * d,)

    @custom_rule
    def late(x):
        return x * 1.0, lambda d: (scale["k"] * d,)

    for rule in (scaled, late):
        g = grad(lambda x: rule(x) * 1.0)
        for k in (2.0, 2.0, 2.0, 3.0, 3.0, 5, 5, 2.0):
            scale["k"] = k
            assert g(1.0) == k
    _, back = pullback(late, 1.0)
    scale["k"] = 11.0
    assert back(1.0) == (11.0,)


def test_another_rule_takes_its_place():
    def f(x):
        return x * 1.0

    g = grad(lambda x: f(x) * 1.0)
    for k in (2.0, 3.0):

        @rrule(f)
        def rule(x, k=k):
            log.append(k)
            return x * 1.0, lambda d: (k * d,)

        log.clear()
        assert [g(1.0) for _ in TIMES] == [k] * 6
        assert log == [k] * 6


def test_a_rule_may_decide():
    @custom_rule
    def leaky(x):
        log.append("value")
        if x > 0:
            return x * 1.0, lambda d: (d,)
        return 0.1 * x, lambda d: (0.1 * d,)

    @custom_rule
    def limited(x):
        return x * 1.0, lambda d: (d if abs(d) < 2 else d * 0.0,)

    g = grad(lambda x, s: s * limited(leaky(x)))
    for x, s in [(1.0, 1.0), (1.0, 1.0), (-1.0, 1.0), (1.0, 3.0), (-1.0, 1.0), (1.0, 1.0)] * 2:
        log.clear()
        assert g(x, s) == (s if abs(s) < 2 else 0.0) * (1.0 if x > 0 else 0.1)
        assert log == ["value"]


# ---------------------------------------------------------------------------------------- pullbacks by hand


def test_a_pullback_called_inside_a_traced_function(capsys):
    @custom_rule
    def loud(x):
        return x * x, lambda d: (print("pullback", d) or 2 * x * d,)

    _, back = pullback(loud, 3.0)

    def f(x):
        return x * back(1.0)[0] + back(x)[0]

    g = grad(f)
    for _ in TIMES:
        assert g(5.0) == 12.0
        assert capsys.readouterr().out == "pullback 1.0\npullback 5.0\n"


def test_a_pullback_inside_a_function(capsys):
    @custom_rule
    def loud(x):
        print("value")
        return x * x, lambda d: (print("pullback") or 2 * x * d,)

    def f(x):
        value, back = pullback(loud, x)
        return value + back(1.0)[0] * back(2.0)[0]

    g = grad(f)
    for _ in TIMES:
        assert g(3.0) == 6.0 + 2 * 8 * 3.0
        assert capsys.readouterr().out.split().count("value") == 1


# --------------------------------------------------------------------------------------- random programs


def made_rules(state):
    """Rules in plain Python that draw, count and collect."""

    def drawn(x):
        r = random.choice([0.5, 1.0, 2.0])
        return x * r, lambda d: (d * r,)

    def drawn_late(x):
        def back(d):
            s = random.choice([1.0, 2.0])
            if s > 1:
                log.append(("late", random.random() < 0.5))
            return (d * s,)

        return x + 1.0, back

    def logged(x):
        log.append(("value", x))
        return 2.0 * x, lambda d: (log.append(("pullback", d)) or 2.0 * d,)

    def counted(x):
        state["n"] += 1
        k = 1.0 if state["n"] % 2 else 2.0

        def back(d):
            state["n"] += 10
            return (d * k,)

        return x * k, back

    def decided(x):
        if x > 1:
            log.append("big")
            return x * 0.5, lambda d: (log.append("big'") or d * 0.5,)
        return x + 1.0, lambda d: (d,)

    def limited(x):
        def back(d):
            state["last"] = d
            return (max(-4.0, min(4.0, d)),)

        return x, back

    def joined(x, y):
        r = random.choice([1.0, 2.0])
        if r == 2.0:
            return 2.0 * x, lambda d: (d * r, None)
        return x + 2.0 * y, lambda d: (d, d * 2.0)

    return {
        rule.__name__: rule
        for rule in (drawn, drawn_late, logged, counted, decided, limited, joined)
    }


def random_program(rng, names):
    """Lines of a function of x and y, in which ``call(name, …)`` calls a rule."""
    lines, count = ["v0, v1 = x, y"], 2
    for _ in range(rng.randint(2, 8)):
        name = rng.choice(names)
        a, b = rng.randrange(count), rng.randrange(count)
        operands = f"v{a}, v{b}" if name == "joined" else f"v{a}"
        lines.append(f"v{count} = {name}({operands})")
        if rng.random() < 0.2 and name != "joined":
            lines += [f"for _ in range({rng.randint(1, 3)}):", f"    v{count} = {name}(v{count})"]
        if rng.random() < 0.4:
            count += 1
            lines.append(f"v{count} = v{count - 1} + v{rng.randrange(count)}")
        count += 1
    return "\n    ".join(["def f(x, y):", *lines, f"return v{count - 1} + v{rng.randrange(count)}"])


class ByHand:
    """A number whose sums are noted, and the rules that were called with it."""

    def __init__(self, value, tape):
        self.value, self.tape, self.cotangent = value, tape, None

    def __add__(self, other):
        made = ByHand(self.value + other.value, self.tape)
        self.tape.append((lambda d: (d, d), (self, other), made))
        return made

    @classmethod
    def rule(cls, rule):
        def called(*xs):
            value, back = rule(*[x.value for x in xs])
            made = ByHand(value, xs[0].tape)
            xs[0].tape.append((back, xs, made))
            return made

        return called

    @classmethod
    def value_and_grad(cls, f):
        def g(*given):
            xs = [cls(x, tape := []) for x in given]
            for x in xs:
                x.tape = tape
            result = f(*xs)
            result.cotangent = 1.0
            for back, operands, made in reversed(tape):
                if made.cotangent is not None:
                    for x, d in zip(operands, back(made.cotangent), strict=True):
                        if d is not None:
                            x.cotangent = d if x.cotangent is None else x.cotangent + d
            return result.value, tuple([x.cotangent or 0.0 for x in xs])

        return g


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_do_what_they_do_by_hand(seed):
    rng = random.Random(seed)
    source = random_program(rng, [*made_rules({})])
    points = [(rng.choice([0.5, 1.0, 3.0]), rng.choice([0.5, 2.0])) for _ in range(10)]

    def results(decorate, gradient):
        state = {"n": 0, "last": None}
        namespace = {name: decorate(rule) for name, rule in made_rules(state).items()}
        exec(source, namespace)
        g = gradient(namespace["f"])
        random.seed(seed)
        found = []
        for x, y in points:
            log.clear()
            found.append((g(x, y), list(log), dict(state)))
        return found

    expected = results(ByHand.rule, ByHand.value_and_grad)
    for decorate in (custom_rule, by_rrule):
        assert_same(results(decorate, lambda f: value_and_grad(f, argnums=(0, 1))), expected)


def by_rrule(rule):
    """A function with this rule, which is never called itself."""

    def function(*xs):
        raise AssertionError

    rrule(function)(rule)
    return function
