"""Methods and views of containers outside that lie outside themselves, beside the containers that the function uses."""

import pytest

from wengert import jit, value_and_grad

# What lies outside; and after the arrow, the body of a function of x.
METHODS = """
L = [1.]; P = L.append -> del L[1:]; L.append(x); P(x * 3); return L[-1] * x
L = [1.]; P = L.append -> P(x * 2); return L[-1] * x
L = [1.]; P = L.append -> L[0] = x * 2; return P.__self__[0] * x
L = [1.]; P = L.append -> return x * (2.0 if P.__self__ is L else 3.0)
L = [1.]; P = L.append -> return x * (2.0 if L.append == P else 3.0)
L = [1.]; P = L.__setitem__ -> L[0] = x; P(0, x * 3); return L[0] * x
L = [1.]; P = L.__getitem__ -> L[0] = x * 2; return P(0) * x
L = [1.]; P = L.extend -> del L[:]; L.append(x); P([x * 2]); return L[-1] * x
L = [1.]; P = L.pop -> L[:] = [x, x * 2]; return P() * x + len(L)
L = [1.]; P = L.copy -> L[0] = x * 2; return P()[0] * x
D = {"a": 1.}; P = D.update -> D["a"] = x; P(a=x * 3); return D["a"] * x
D = {"a": 1.}; P = D.__setitem__ -> D["a"] = x; P("a", x * 3); return D["a"] * x
D = {}; P = D.setdefault -> D.clear(); return P("a", x * 2) * x + D["a"]
D = {}; P = D.pop -> D["a"] = x * 2; return P("a") * x + len(D)
D = {}; P = D.get -> D["a"] = x * 2; return P("a") * x + len(D)
D = {0: 1.}; P = D.get -> D[0] = x; D[1] = x * 2; return max([0, 1], key=P) * x + P(1)
D = collections.defaultdict(list); P = D.__getitem__ -> D.clear(); P("a").append(x * 2); return D["a"][0] * x
L = [1.]; D = collections.defaultdict(L.copy) -> D.clear(); L[0] = x; return D[1][0] * x
Q = collections.deque([1.]); P = Q.append -> Q.clear(); Q.append(x); P(x * 2); return Q[-1] * x
S = set(); P = S.add -> S.clear(); P(x); return sum(S) * x
A = np.zeros(3); P = A.sum -> A[0] = x * 2; return P() * x
A = np.ones(3); P = A.tolist -> A[0] = x; return P()[0] * x
A = np.ones(3); P = A.__setitem__; Q = A.__getitem__ -> P(0, x * 2); return Q(0) * x
L = [1.]; P = functools.partial(L.append) -> del L[:]; L.append(x); P(x * 2); return L[-1] * x
L = [1.]; P = types.MethodType(list.append, L) -> L[0] = x; P(x * 2); return L[-1] * x
L = [1.]; P = types.MethodType(lambda held, v: held.append(v), L) -> L[0] = x; P(x * 2); return L[-1] * x
L = [1.]; P = L.append -> del L[:]; L.append(x); list(map(P, [x * 2])); return L[-1] * x
L = [1.]; P = [L.append] -> del L[:]; L.append(x); P[0](x * 2); return L[-1] * x
L = [1.]; P = (L.append,) -> del L[:]; L.append(x); P[0](x * 2); return L[-1] * x
L = [1.]; P = {"a": L.append} -> del L[:]; L.append(x); P["a"](x * 2); return L[-1] * x
L = [1.]; P = [L.append, 0]; Q = P[0] -> P[1] = x; P[0](x); return x * (2.0 if P[0] is Q else 3.0)
L = [[1.]]; P = L[0].append -> del L[0][:]; L[0].append(x); P(x * 2); return L[0][-1] * x
o = types.SimpleNamespace(v=1.); o.P = o.__dict__.update -> o.v = x; o.P(v=x * 2); return o.v * x
o = types.SimpleNamespace(v=1.); o.P = o.__dict__.get; Q = o.P -> o.v = x * 2; return o.P("v") * x + Q("v")
o = types.SimpleNamespace(v=1.); o.me = o.__dict__ -> o.v = x * 2; return o.me["v"] * x
L = [] -> l = [x]; P = functools.partial(list.append, l); P(x * 2); return l[-1] * x
L = [] -> l = [x]; P = functools.partial(l.append); P(x * 2); return l[-1] * x
"""

WORLD = "import collections, functools, itertools, types, weakref\nimport numpy as np\n"


def rows(table):
    return [row for row in table.strip().splitlines() if row]


def world(row):
    """What lies outside, with the function ``f``, made anew."""
    setup, body = row.split(" -> ")
    space = {"__name__": "world"}
    exec(f"{WORLD}{setup}\ndef f(x):\n    {body}\n".replace("¶", "\n"), space)
    return space


def shown(space):
    """What lies outside, as text."""
    return {key: str(space[key]) for key in ("L", "D", "Q", "A", "S", "P") if has_text(space, key)}


def has_text(space, key):
    return key in space and " at 0x" not in str(space[key])


def check(row):
    plain, traced = world(row), world(row)
    h = 1e-6
    slope = (world(row)["f"](1.3 + h) - world(row)["f"](1.3 - h)) / (2 * h)
    for _ in range(6):
        value, gradient = value_and_grad(traced["f"])(1.3)
        assert value == pytest.approx(plain["f"](1.3))
        assert gradient == pytest.approx(slope, abs=1e-4)
        assert shown(traced) == shown(plain)


@pytest.mark.parametrize("row", rows(METHODS))
def test_methods_kept_outside_work_on_what_the_run_has(row):
    check(row)


@pytest.mark.parametrize("row", rows(METHODS))
def test_methods_kept_outside_without_programs(row):
    with jit(False):
        check(row)
