"""Methods and views of containers outside that lie outside themselves, beside the containers that the function uses."""

import dataclasses

import pytest

from wengert import WengertError, jit, value_and_grad

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

# Views, where what the function writes is followed.
VIEWS = """
D = {"a": 1.}; P = types.MappingProxyType(D) -> D["a"] = x * 2; return P["a"] * x
D = {"a": 1.}; P = types.MappingProxyType(D) -> return P["a"] * x
D = {"a": [1.]}; P = types.MappingProxyType(D) -> D["a"][0] = x * 2; return P["a"][0] * x
D = {"a": 1.}; P = D.values() -> D["a"] = x * 2; return sum(P) * x
D = {"a": 1.}; P = D.items() -> D["a"] = x * 2; return dict(P)["a"] * x
D = {}; P = D.keys() -> D.clear(); D["a"] = x * 2; return len(P) * x
D = collections.OrderedDict(a=1.); P = D.values() -> D["a"] = x * 2; return sum(P) * x
K = type("K", (), {"a": 1.}); P = K.__dict__ -> K.a = x * 2; return P["a"] * x
K = type("K", (), {"a": 1.}); P = K.__dict__ -> return P["a"] * x
z = 1.; G = globals() -> G["z"] = x * 2; return z * x
z = 1.; G = globals() -> global z; z = x * 2; return G["z"] * x
cell = types.CellType(1.); g = types.FunctionType((lambda v: lambda: v)(1.).__code__, globals(), closure=(cell,)) \
    -> cell.cell_contents = x * 2; return g() * x
cell = types.CellType(1.); g = types.FunctionType((lambda v: lambda: v)(1.).__code__, globals(), closure=(cell,)) \
    -> y = g(); cell.cell_contents = x * 2; return g() * x + cell.cell_contents
g = lambda *, k=1.: k; P = g.__kwdefaults__ -> P["k"] = x * 2; return g() * x
g = lambda *, k=1.: k; P = g.__kwdefaults__ -> y = g(); P["k"] = x * 2; return g() * x
s = Thing(1.); P = proxy(s) -> s.v = x * 2; return P.v * x
s = Thing(1.); P = proxy(s) -> P.v = x * 2; return s.v * x
s = Thing(1.); P = proxy(s) -> P.v = x; P.v += x; P.w = x; del P.w; return s.v * x
s = Thing(1.); P = proxy(s) -> s.v = x * 2; return vars(P)["v"] * getattr(P, "v")
A = np.zeros(3); P = proxy(A) -> A[1] = x * 2; return P[1] * x
S = {1.}; P = proxy(S) -> S.clear(); S.add(x); return sum(P) * x
s = Thing(1.); P = proxy(s) -> s.v = x * 2; return P[0] * x
s = Thing(1.); P = proxy(s) -> s.v = x * 2; return next(iter(P)) * x
Q = collections.deque([1.]); P = proxy(Q) -> Q.append(x * 2); return P[-1] * x
A = np.ones(3) -> P = proxy(A); A[0] = x * 2; return np.sum(P) * x + (-P)[0] * 3 + abs(P)[0]
s = Number(1.) -> P = proxy(s); s.v = x * 2; return math.sin(P) * x + float(P) - (-P) + operator.neg(P)
s = Thing(1.); P = proxy(s) -> return x * (max([P], key=id) is P) * (functools.partial(id, P).args[0] is P)
s = Thing(1.); P = proxy(s) -> return x * (2. if operator.is_(P, s) else 3.) * ([P][0] is P)
Q = collections.deque([1.]); P = proxy(Q) -> P[0] = x * 2; P.append(x); return Q[0] * x + Q[-1]
Q = collections.deque([1.]); P = proxy(Q) -> p = P; p += [x * 2]; return Q[-1] * x
Q = collections.deque([1.]); P = proxy(Q) -> Q[0] = x; t = 0.; t += sum(v * 2 for v in P); return t * x * (x in P)
s = Thing(1.); P = proxy(s) -> s.v = x * 2; return (P[1] + next(iter(P))) * x
L = [1.] * 100; P = iter(L) -> return next(P) * x
L = [1.] * 100; P = itertools.cycle([1., 2.]) -> L[0] = x * 2; return next(P) * x * L[0]
L = [1.] * 100; P = map(abs, L) -> return sum(itertools.islice(P, 3)) * x
L = [1.]; P = (v for v in [1., 2., 3.] * 9) -> L[0] = x * 2; return next(P) * x * L[0]
A = np.ones(3); P = memoryview(A) -> return P[1] * x
A = np.ones(3); P = A.flat -> return P[1] * x
L = [Thing(1.) for _ in range(500)]; Q = []; P = (v.v for v in L) -> Q.append(x); return next(P) * x
A = np.ones(3); Q = np.from_dlpack(A) -> A[1] = x * 2; return Q[1] * x
A = np.ones(3); Q = np.from_dlpack(A) -> Q[0]; A[1] = x * 2; return Q[1] * x
A = np.ones(3); Q = np.from_dlpack(A) -> Q[1] = x * 2; return A[1] * x
"""

# Where it cannot be.
REFUSED = """
L = [1.] * 100; P = iter(L) -> L[:] = [x * 2] * 100; return next(P) * x
L = [1.] * 100; P = iter(L) -> L[:] = [x * 2] * 100; return P.__next__() * x
L = [1.] * 100; P = iter(L) -> L[:] = [x * 2] * 100; return sum(P) * x
L = [1.] * 100; P = iter(L) -> L[:] = [x * 2] * 100; return [v for v in P][0] * x
L = [1.] * 100; P = reversed(L) -> L[:] = [x * 2] * 100; return next(P) * x
L = [1.] * 100; P = enumerate(L) -> L[:] = [x * 2] * 100; return next(P)[1] * x
L = [1.] * 100; P = itertools.cycle(L) -> L[:] = [x * 2] * 100; return next(P) * x
L = [1.] * 100; P = map(lambda v: v * 2, L) -> L[:] = [x * 2] * 100; return next(P) * x
L = [1.] * 100; P = (v for v in L) -> L[:] = [x * 2] * 100; return next(P) * x
L = [1.]; P = (L[0] for _ in range(100)) -> L[0] = x * 2; return next(P) * x
z = 1.; P = (z for _ in range(100)) -> global z; z = x * 2; return next(P) * x
D = dict.fromkeys(range(9), 1.); P = iter(D.values()) -> D.update(dict.fromkeys(D, x)); return next(P) * x
A = np.zeros(3); P = memoryview(A) -> A[1] = x * 2; return P[1] * x
A = np.zeros(3); P = A.flat -> A[1] = x * 2; return P[1] * x
L = [Thing(1.) for _ in range(500)]; P = (L[400].v for _ in range(9)) -> L[400].v = x * 2; return next(P) * x
L = [[Thing(1.)] * 90 for _ in range(90)]; P = map(lambda i: L[i][7].v, range(9)) -> L[3][7].v = x; return sum(P) * x
L = [Thing(1.) for _ in range(50_000)]; P = (L[9].v for _ in range(9)) -> L[9].v = x * 2; return next(P) * x
D = dict(enumerate(map(Thing, [1.] * 500))); P = map(lambda i: D[i].v, [9]) -> D[9].v = x; return next(P) * x
s = Slotted(Slotted(1.)); P = (s.v.v for _ in range(9)) -> s.v.v = x * 2; return next(P) * x
P = (Thing.w for _ in range(9)) -> Thing.w = x * 2; return next(P) * x
s = Thing(1.); P = (s.w for _ in range(9)) -> Thing.w = x * 2; return next(P) * x
s = Thing(1.); P = (v.last for v in [s] * 9) -> s.v = x * 2; return next(P) * x
s = Thing(1.); P = map(lambda v: v, s.forever()) -> s.v = x * 2; return next(P) * x
M.w = 1.; P = (M.w for _ in range(9)) -> M.w = x * 2; return next(P) * x
M.a = np.zeros(3); P = (M.a[1] for _ in range(9)) -> M.a[1] = x * 2; return next(P) * x
s = Thing(1.); P = (f() for f in [lambda: (lambda: s.v)()] * 9) -> s.v = x * 2; return next(P) * x
g = lambda: g.w; g.w = 1.; P = (g() for _ in range(9)) -> g.w = x * 2; return next(P) * x
s = Thing(1.); r = weakref.ref(s); P = (r().v for _ in range(9)) -> s.v = x * 2; return next(P) * x
s = Thing(1.); O = np.array([s, s]); P = (O[1].v for _ in range(9)) -> s.v = x * 2; return next(P) * x
A = np.zeros(3); Q = A[1:]; P = memoryview(Q) -> A[1] = x * 2; return P[0] * x
A = np.zeros(3); Q = A[1:]; P = Q.flat -> A[1] = x * 2; return P[0] * x
A = np.zeros(3); Q = A[1:]; P = iter(Q) -> A[1] = x * 2; return next(P) * x
A = np.zeros(3); Q = A[1:]; P = map(float, Q) -> A[1] = x * 2; return next(P) * x
A = np.zeros(3); Q = A[1:]; P = np.nditer(Q) -> A[1] = x * 2; return float(next(P)) * x
A = np.zeros(3); Q = [A[i:] for i in range(500)]; P = (Q[1][0] for _ in range(9)) -> A[1] = x * 2; return next(P) * x
A = np.zeros(3); Q = memoryview(A); P = map(lambda i: Q[i], [1]) -> A[1] = x * 2; return next(P) * x
A = np.zeros(3); Q = np.from_dlpack(A); P = (Q[1] for _ in range(9)) -> A[1] = x * 2; return next(P) * x
Q = array.array("d", [1.] * 3); A = np.frombuffer(Q); P = (Q[1] for _ in range(9)) -> A[1] = x * 2; return next(P) * x
A = np.zeros(1); Q = ctypes.c_double.from_buffer(A); P = (Q.value for _ in range(9)) -> A[0] = x; return next(P) * x
R = np.zeros(3, "f8,f8"); A = R["f0"]; P = (R[1][0] for _ in range(9)) -> A[1] = x * 2; return next(P) * x
"""

# Where the message names what was read by its class.
BUFFERS = """
A = np.zeros(3); P = (ctypes.c_double * 3).from_buffer(A) -> A[1] = x * 2; return P[1] * x
R = np.zeros(3, "f8,f8"); A = R["f0"]; P = R[1] -> A[1] = x * 2; return P["f0"] * x
"""

WORLD = """
import array, collections, ctypes, functools, itertools, math, operator, types, weakref
import numpy as np
from weakref import proxy
class Thing:
    w = 1.
    def __init__(self, v): self.v = v
    @property
    def last(self): return self.v
    def forever(self):
        while True: yield self.v
    def __getitem__(self, key): return self.v
    def __iter__(self): return iter([self.v])
class Number(Thing):
    def __float__(self): return float(self.v)
    def __neg__(self): return -self.v
class Slotted:
    __slots__ = ("v",)
    def __init__(self, v): self.v = v
M = types.ModuleType("other")
"""


def rows(table):
    return table.strip().replace("\\\n    ", "").splitlines()


def world(row):
    """What lies outside, with the function ``f``, made anew."""
    setup, body = row.split(" -> ")
    space = {"__name__": "world"}
    exec(f"{WORLD}{setup}\ndef f(x):\n    {body}\n", space)
    return space


def shown(space):
    """What lies outside, as text."""
    return {key: str(space[key]) for key in ("L", "D", "Q", "A", "S", "P") if has_text(space, key)}


def has_text(space, key):
    return key in space and " at 0x" not in str(space[key])


def check(row):
    plain, above, below, traced = [world(row) for _ in range(4)]
    h = 1e-6
    for _ in range(6):
        slope = (above["f"](1.3 + h) - below["f"](1.3 - h)) / (2 * h)
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


@pytest.mark.parametrize("row", rows(VIEWS))
def test_views_kept_outside_show_what_the_run_has(row):
    check(row)
    with jit(False):
        check(row)


@pytest.mark.parametrize("row", rows(REFUSED))
def test_what_cannot_be_followed_through_a_window_is_refused(row):
    for _ in range(4):
        with pytest.raises(WengertError, match="in (f|<listcomp>) .*what P, a"):
            value_and_grad(world(row)["f"])(1.3)


@pytest.mark.parametrize("row", rows(BUFFERS))
def test_what_cannot_be_followed_through_a_buffer_is_refused(row):
    for _ in range(4):
        with pytest.raises(WengertError, match="in f .*what a "):
            value_and_grad(world(row)["f"])(1.3)


def test_a_proxy_made_inside_shows_what_the_function_has():
    def f(x):
        shown = {}

        @dataclasses.dataclass
        class Made:
            field: float = dataclasses.field(default=x, metadata=shown)

        before = len(dataclasses.fields(Made)[0].metadata)
        shown["one"] = x
        metadata = dataclasses.fields(Made)[0].metadata
        return x * metadata["one"] + before + 10 * len(metadata)

    for _ in range(4):
        assert value_and_grad(f)(3.0) == (19.0, 6.0)
