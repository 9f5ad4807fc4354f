"""`profile`: what each line costs, by line, with sums that can be counted by hand."""

import html.parser
import inspect
import linecache
import time
from _statistics import _normal_dist_inv_cdf  # a function in C that has no rule

import numpy as np
import pytest

from wengert import NoRuleError, TraceError, grad, profile, rrule


def layer(w, x):
    h = w @ x  # hidden

    return np.tanh(h)


def network(ws, x):
    for w in ws:
        x = layer(w, x)
    total = 0.0
    for i in range(10):
        total += x[i, 0] * 2.0  # ten times
    return total + (x < 2.0).sum() * 1.0


WS, X = [np.eye(20) * 0.5] * 4, np.ones((20, 5))


def at(told, f, text):
    """The cost of the line of `f` that contains `text`."""
    lines, start = inspect.getsourcelines(f)
    (number,) = [start + i for i, line in enumerate(lines) if text in line]
    found = [x for x in told.lines if x.site.lineno == number and x.site.filename == __file__]
    assert len(found) == 1
    return found[0]


def test_operations_and_memory_are_counted_by_line():
    told = profile(network, WS, X)
    hidden, out = at(told, layer, "# hidden"), at(told, layer, "tanh")
    assert (hidden.operations, hidden.steps, hidden.kept) == (4, 4, 4 * 800)
    assert (out.operations, out.steps, out.kept) == (4, 4, 4 * 800)
    assert hidden.cotangents == 4 * (3200 + 800)  # of the weights and of x, in each layer
    ten = at(told, network, "# ten times")
    assert (ten.operations, ten.steps, ten.kept) == (30, 30, 0)
    last = at(told, network, "return total")
    assert last.operations == 4 and last.steps == 1  # of what is compared nothing has a derivative
    total = told.total
    assert total.operations == sum(x.operations for x in told.lines) == 42
    assert total.forward == pytest.approx(sum(x.forward for x in told.lines))
    assert all(x.forward > 0 for x in told.lines) and total.reverse > 0


def test_time_belongs_to_its_line():
    def slow(x):
        time.sleep(0.02)
        return x * 2.0

    @rrule(slow, pure=True)
    def slow_rule(x):
        def pullback(dy):
            return (slow(dy),)

        return slow(x), pullback

    def f(x):
        y = x * 3.0
        z = slow(y)  # here
        return z * 4.0

    told = profile(f, 1.0)
    here = at(told, f, "# here")
    assert here.forward >= 0.02 and here.reverse >= 0.02
    assert at(told, f, "3.0").forward < 0.02 > at(told, f, "4.0").reverse


def test_it_is_the_source_with_numbers_beside():
    text = str(profile(network, WS, X))
    assert repr(profile(lambda x: x * x, 1.0)).startswith("<lambda>  # test_profile.py:")
    lines = text.splitlines()
    assert lines[0].startswith("network  # test_profile.py:")
    assert lines[1].split() == ["ops", "forward", "kept", "steps", "reverse", "cotangents"]
    source = inspect.getsource(layer).splitlines() + inspect.getsource(network).splitlines()
    shown = [line for line in lines if any(line.endswith(s) for s in source if s.strip())]
    assert len(shown) == len([s for s in source if s.strip()])
    (hidden,) = [line for line in lines if "# hidden" in line]
    assert hidden.split()[0] == "4" and "3.2 kB" in hidden
    assert lines[-1].endswith("in all") and lines[-1].split()[0] == "42"


def test_in_notebooks_it_is_a_table():
    page = profile(network, WS, X)._repr_html_()
    assert "(x &lt; 2.0).sum()" in page and "<script" not in page
    open_tags = []

    class Parser(html.parser.HTMLParser):
        def handle_starttag(self, tag, attrs):
            open_tags.append(tag)

        def handle_endtag(self, tag):
            assert open_tags.pop() == tag

    Parser().feed(page)
    assert not open_tags
    assert page.count("<tr") == len(str(profile(network, WS, X)).splitlines()) - 1


def test_library_code_belongs_to_the_line_that_calls_it():
    solve = pytest.importorskip("scipy.integrate").solve_ivp

    def f(k):
        return solve(lambda t, y: -k * y, (0.0, 1.0), [1.0]).y[0, -1]

    told = profile(f, 1.5)
    (line,) = told.lines
    assert "lambda t, y" in linecache.getline(__file__, line.site.lineno)
    steps = [x for x in told.libraries if x.site.function == "rk_step"]
    assert len(steps) == 1 and 0 < steps[0].operations < line.operations
    assert 0 < steps[0].reverse < line.reverse and steps[0].steps < line.steps
    text = str(told)
    assert text.count("rk_step, in rk.py") == 1 and "of that, in libraries" in text
    assert text.splitlines()[-1].split()[0] == str(line.operations)


def test_the_function_is_called_once_and_gradients_are_taken_for_their_function():
    calls = []

    def f(x, y):
        calls.append(x)
        return x * y

    told = profile(grad(f), 2.0, y=3.0)
    assert calls == [2.0] and told.total.operations == 1 and told.total.steps == 1
    assert profile(f, 2.0, 3.0).title == told.title


def test_refusals():
    with pytest.raises(NoRuleError):
        profile(lambda x: _normal_dist_inv_cdf(x, 0.0, 1.0), 0.3)
    with pytest.raises(TraceError, match="inside a function that is being traced"):
        grad(lambda x: profile(abs, x).total.operations * x)(1.0)


def test_lines_of_our_own_belong_to_the_line_that_has_called_them():
    """Also where Wengert lies in a checkout: they stood among the user's."""

    def clipped(x):
        y = np.zeros(3)
        y.fill(x[0])
        np.putmask(y, x > 1.0, x)
        return (y * y).sum()

    shown = profile(clipped, np.array([0.5, 1.5, 2.5]))
    assert {line.site.filename for line in shown.lines} == {__file__}
    assert {cost.site.function for cost in shown.libraries} >= {"putmask", "fill"}
