"""Containers of classes of their own outside, used by the methods and operators of the classes they derive from."""

import collections
import functools
import heapq
import operator
import textwrap
import types

import numpy as np
import pytest

from wengert import WengertError, jit, pullback, value_and_grad

# A program with a function f, and what happens in turn: calls of f, statements (--) and questions (?).
STORIES = {
    "partial_is_left_alone": (
        """
            part=functools.partial(operator.mul,2.0,**{})
            ops={'part':functools.partial(max,2.0,key=abs)}
            k=ops['part'].keywords
            def f(a): return len(ops)*a
        """,
        [
            "1.0",
            "?ops['part'].keywords is k",
            "1.0",
            "?ops['part'].keywords is k",
            "1.0",
            "?ops['part'].keywords is k",
            "1.0",
            "?ops['part'].keywords is k",
            "1.0",
            "?ops['part'].keywords is k",
        ],
    ),
    "partial_beside_what_is_stored": (
        """
            parts={'b':functools.partial(max,2.0,key=abs)}; b=parts['b']; k=b.keywords
            def f(a): parts['c']=1.5; return a
        """,
        [
            "1.0",
            "?parts['b'] is b",
            "2.0",
            "?parts['b'] is b",
            "?b.keywords is k",
            "2.0",
            "?parts['b'] is b",
            "?b.keywords is k",
            "2.0",
            "?parts['b'] is b",
            "?b.keywords is k",
            "2.0",
            "?parts['b'] is b",
            "?b.keywords is k",
        ],
    ),
    "list_getitem": (
        """
            class Stack(list):
                def __getitem__(self,i): return list.__getitem__(self,i)
            stack=Stack([0.5])
            def f(a):
                for z in stack[:3]: a=a*z
                return a
        """,
        [
            "0.25",
            "0.25",
            "0.25",
            "0.25",
            "--stack.append(-0.355)",
            "0.25",
            "0.25",
            "--stack[0]=3.0",
            "0.25",
            "?list(stack)",
        ],
    ),
    "dict_getitem": (
        """
            class D(dict):
                def __getitem__(self,i): return dict.__getitem__(self,i)
            d=D(a=0.5)
            def f(a): return a*d['a']*dict.get(d,'b',1.0)*len(d)
        """,
        [
            "0.25",
            "0.25",
            "0.25",
            "0.25",
            "--d['a']=2.0",
            "0.25",
            "0.5",
            "--d['b']=3.0",
            "0.25",
            "--dict.__setitem__(d,'a',7.0)",
            "0.25",
        ],
    ),
    "methods_of_dict": (
        """
            class D(dict):
                pass
            d=D(a=0.5)
            def f(a):
                a = a*dict.__getitem__(d,'a')*sum(dict.values(d))
                return a*dict.__len__(d)*(2.0 if dict.__contains__(d,'z') else 1.0)
        """,
        [
            "0.25",
            "0.25",
            "0.25",
            "0.25",
            "--d['a']=2.0",
            "0.25",
            "0.5",
            "--d['b']=3.0",
            "0.25",
            "--d['z']=3.0",
            "0.25",
        ],
    ),
    "methods_of_list": (
        """
            class L(list):
                pass
            d=L([0.5])
            def f(a):
                a = a*list.__getitem__(d,0)*list.__len__(d)*list.index(d,d[0])
                return a+sum(list.__iter__(d))+list.count(d,0.5)
        """,
        [
            "0.25",
            "0.25",
            "0.25",
            "0.25",
            "--d.append(2.0)",
            "0.25",
            "0.5",
            "--d[0]=3.0",
            "0.25",
            "--d[1]=0.5",
            "0.25",
        ],
    ),
    "append": (
        """
            class L(list):
                def push(self,x): list.append(self,x)
            l=L()
            def f(a): l.push(a); return a*len(l)
        """,
        [
            "0.25",
            "?list(l)",
            "0.25",
            "?list(l)",
            "0.25",
            "?list(l)",
            "0.25",
            "?list(l)",
            "0.25",
            "?list(l)",
        ],
    ),
    "writers_of_list": (
        """
            class L(list):
                def push(self,x):
                    list.append(self,x)
                    list.extend(self,[x,x*2])
                    list.insert(self,0,x)
                    list.__setitem__(self,1,x*3)
                    list.pop(self)
            l=L()
            def f(a): l.push(a); return a*len(l)
        """,
        [
            "0.25",
            "?list(l)",
            "0.5",
            "?list(l)",
            "0.25",
            "?list(l)",
            "0.5",
            "?list(l)",
            "0.25",
            "?list(l)",
            "0.5",
            "?list(l)",
        ],
    ),
    "writers_of_dict": (
        """
            class D(dict):
                def put(self,k,x):
                    dict.__setitem__(self,k,x)
                    dict.update(self,{k+'2':x*2})
                    dict.setdefault(self,'z',x)
            l=D()
            def f(a): l.put('k',a); return a*len(l)
        """,
        [
            "0.25",
            "?dict(l)",
            "0.5",
            "?dict(l)",
            "0.25",
            "?dict(l)",
            "0.5",
            "?dict(l)",
            "0.25",
            "?dict(l)",
            "0.5",
            "?dict(l)",
        ],
    ),
    "writers_of_set": (
        """
            class S(set):
                def put(self,x): set.add(self,x)
            l=S()
            def f(a): l.put(a); return a*len(l)
        """,
        [
            "0.25",
            "?sorted(l)",
            "0.5",
            "?sorted(l)",
            "0.25",
            "?sorted(l)",
            "0.5",
            "?sorted(l)",
            "0.25",
            "?sorted(l)",
            "0.5",
            "?sorted(l)",
        ],
    ),
    "writers_of_deque": (
        """
            from collections import deque, OrderedDict, Counter, UserList
            class Q(deque):
                def put(self,x): deque.append(self,x); deque.appendleft(self,x*2)
            l=Q()
            def f(a): l.put(a); return a*len(l)
        """,
        [
            "0.25",
            "?list(l)",
            "0.5",
            "?list(l)",
            "0.25",
            "?list(l)",
            "0.5",
            "?list(l)",
            "0.25",
            "?list(l)",
            "0.5",
            "?list(l)",
        ],
    ),
    "append_by_super": (
        """
            class L(list):
                def append(self,x): super().append(x*2)
            l=L()
            def f(a): l.append(a); return a*len(l)
        """,
        [
            "0.25",
            "?list(l)",
            "0.25",
            "?list(l)",
            "0.25",
            "?list(l)",
            "0.25",
            "?list(l)",
            "0.25",
            "?list(l)",
        ],
    ),
    "setitem_by_super": (
        """
            class D(dict):
                def __setitem__(self,k,x): super().__setitem__(k,x*2)
            l=D()
            def f(a): l['a']=a; return a*len(l)*l['a']
        """,
        [
            "0.25",
            "?dict(l)",
            "0.5",
            "?dict(l)",
            "0.25",
            "?dict(l)",
            "0.5",
            "?dict(l)",
            "0.25",
            "?dict(l)",
            "0.5",
            "?dict(l)",
            "0.25",
            "?dict(l)",
            "0.5",
            "?dict(l)",
        ],
    ),
    "ior_of_a_dict": (
        """
            class P(dict): pass
            params=P(a=1.0); p0=params
            def f(a):
                global params
                params|={'b':a}; return a
        """,
        [
            "0.25",
            "?(type(params).__name__,dict(params),params is p0)",
            "0.5",
            "?(type(params).__name__,dict(params),params is p0)",
            "0.25",
            "?(type(params).__name__,dict(params),params is p0)",
            "0.5",
            "?(type(params).__name__,dict(params),params is p0)",
            "0.25",
            "?(type(params).__name__,dict(params),params is p0)",
            "0.5",
            "?(type(params).__name__,dict(params),params is p0)",
        ],
    ),
    "iadd_and_imul_of_a_list": (
        """
            class P(list): pass
            params=P([1.0]); p0=params
            def f(a):
                global params
                params+=[a]; params*=2; return a
        """,
        [
            "0.25",
            "?(type(params).__name__,list(params),params is p0)",
            "0.5",
            "?(type(params).__name__,list(params),params is p0)",
            "0.25",
            "?(type(params).__name__,list(params),params is p0)",
            "0.5",
            "?(type(params).__name__,list(params),params is p0)",
        ],
    ),
    "ior_and_isub_of_a_set": (
        """
            class P(set): pass
            params=P([1.0]); p0=params
            def f(a):
                global params
                params|={a}; params-={1.0}; return a
        """,
        [
            "0.25",
            "?(type(params).__name__,sorted(params),params is p0)",
            "0.5",
            "?(type(params).__name__,sorted(params),params is p0)",
            "0.25",
            "?(type(params).__name__,sorted(params),params is p0)",
            "0.5",
            "?(type(params).__name__,sorted(params),params is p0)",
            "0.25",
            "?(type(params).__name__,sorted(params),params is p0)",
            "0.5",
            "?(type(params).__name__,sorted(params),params is p0)",
        ],
    ),
    "operators_in_place_of_the_standard_containers": (
        """
            from collections import *
            params=OrderedDict(a=1.0)
            p0=params
            c=Counter(a=1)
            dd=defaultdict(list,a=[1.0])
            q=deque([1.0],maxlen=3)
            def f(a):
                global params,c,dd,q
                params|={'b':a}; c+=Counter(b=2); dd|={'c':[a]}; q+=[a]; return a
        """,
        [
            "0.25",
            "?(repr(params),repr(c),repr(dd),repr(q),params is p0)",
            "0.5",
            "?(repr(params),repr(c),repr(dd),repr(q),params is p0)",
            "0.25",
            "?(repr(params),repr(c),repr(dd),repr(q),params is p0)",
            "0.5",
            "?(repr(params),repr(c),repr(dd),repr(q),params is p0)",
            "0.25",
            "?(repr(params),repr(c),repr(dd),repr(q),params is p0)",
            "0.5",
            "?(repr(params),repr(c),repr(dd),repr(q),params is p0)",
        ],
    ),
    "or_of_a_dict": (
        """
            class P(dict): pass
            params=P(a=1.0)
            def f(a):
                z=params|{'b':a}
                w={'b':a}|params
                return a*z['b']*len(w), type(z).__name__, type(w).__name__
        """,
        ["0.25", "0.5", "0.25", "0.5"],
    ),
    "a_view_of_what_out_writes": (
        """
            vector=np.array([0.5,-1.0,2.0]); tail=vector[1:]
            def f(a):
                np.add(vector,a,out=vector); return tail[0]+a
        """,
        [
            "1.0",
            "?vector.tolist()",
            "1.0",
            "?vector.tolist()",
            "1.0",
            "?vector.tolist()",
            "1.0",
            "?vector.tolist()",
        ],
    ),
    "partial_of_a_function": (
        """
            def mul(p,q): return p*q
            parts={'b':functools.partial(mul,2.0)}; b=parts['b']; k=b.keywords; z=b.args
            def f(a): parts['c']=a; return b(a)+parts['b'](a)
        """,
        [
            "1.0",
            "?parts['b'] is b",
            "?b.keywords is k",
            "?b.args is z",
            "?parts['c']",
            "1.0",
            "?parts['b'] is b",
            "?b.keywords is k",
            "?b.args is z",
            "?parts['c']",
            "1.0",
            "?parts['b'] is b",
            "?b.keywords is k",
            "?b.args is z",
            "?parts['c']",
            "1.0",
            "?parts['b'] is b",
            "?b.keywords is k",
            "?b.args is z",
            "?parts['c']",
            "1.0",
            "?parts['b'] is b",
            "?b.keywords is k",
            "?b.args is z",
            "?parts['c']",
        ],
    ),
}


def told(code, steps, mode):
    """What a story shows: values, answers and errors."""
    world = {"functools": functools, "operator": operator, "np": np, "types": types}
    exec(textwrap.dedent(code), world)
    f, shown = world["f"], []
    for step in steps:
        if step.startswith("--"):
            exec(step[2:], world)
        elif step.startswith("?"):
            shown.append(repr(eval(step[1:], world)))
        elif mode is None:
            shown.append(repr(f(eval(step, world))))
        else:
            with jit(mode):
                shown.append(repr(pullback(f, eval(step, world))[0]))
    return shown


@pytest.mark.parametrize(("code", "steps"), STORIES.values(), ids=STORIES)
def test_like_plain_python(code, steps):
    plain = told(code, steps, None)
    assert told(code, steps, False) == plain
    assert told(code, steps, True) == plain


class Row(list):
    def __getitem__(self, i):
        return list.__getitem__(self, i)


class Table(dict):
    def __getitem__(self, key):
        return dict.__getitem__(self, key)


SEALED = {
    Row: [
        "x[0]", "x[:1][0]", "list.__getitem__(x, 0)", "operator.itemgetter(0)(x)", "(x + [])[0]", "(x * 2)[0]",
        "x.pop()", "heapq.heappop(x)", "heapq.heappushpop(x, 2.0)", "heapq.heapreplace(x, 2.0)", "[*x][0]", "min(x)",
    ],
    Table: ["x['p']", "dict.__getitem__(x, 'p')", "x.pop('p')", "{**x}['p']", "dict(**x)['p']", "x.get('p')"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("cls", "text"), [(cls, text) for cls, texts in SEALED.items() for text in texts]
)
def test_numbers_of_a_sealed_argument_are_not_left_out(cls, text):
    """A class that may make something else of its items has no gradient, and what depends on them says so."""
    f = eval(f"lambda x: {text} * 2.0", {"heapq": heapq, "operator": operator})
    argument = cls([0.5, 1.5]) if cls is Row else cls(p=0.5)
    for keep in (True, False):
        with jit(keep):
            with pytest.raises(WengertError, match="would leave out"):
                value, back = pullback(f, cls(argument))
                back(1.0)


class Line(tuple):
    pass


Pair = collections.namedtuple("Pair", "a b")
log, table, thing = [], {}, types.SimpleNamespace()
MADE = {
    "OrderedDict": lambda v: collections.OrderedDict(p=v),
    "list in an OrderedDict": lambda v: collections.OrderedDict(p=[v]),
    "OrderedDict in a list": lambda v: [collections.OrderedDict(p=v)],
    "OrderedDict in a tuple": lambda v: (collections.OrderedDict(p=v), 1),
    "deque": lambda v: collections.deque([v], 3),
    "defaultdict": lambda v: collections.defaultdict(list, p=v),
    "Counter": lambda v: collections.Counter(p=v),
    "tuple of its own class": lambda v: Line([v]),
    "namedtuple": lambda v: Pair(v, 1),
    "list": lambda v: [v],
}


def appended(v):
    log.append(v)


def appended_in_a_dict(v):
    log.append([{"a": v}])


def stored(v):
    table["a"] = v


def set_as_an_attribute(v):
    thing.a = v


def shape_of(value):
    """The classes in a structure, with its numbers."""
    if isinstance(value, dict):
        inside = {key: shape_of(x) for key, x in value.items()}
        return type(value), inside, getattr(value, "default_factory", None)
    if isinstance(value, (list, tuple, collections.deque)):
        return type(value), [shape_of(x) for x in value], getattr(value, "maxlen", None)
    return type(value), value


@pytest.mark.parametrize("put", [appended, appended_in_a_dict, stored, set_as_an_attribute])
@pytest.mark.parametrize("name", MADE)
def test_what_the_outside_is_given_is_of_its_class(put, name):
    """In each call, whoever answers it."""
    make = MADE[name]

    def f(x):
        put(make(x * 2))
        return x * x

    step = value_and_grad(f)
    found = []
    for call in (f, lambda x: step(x)[0]):
        log.clear(), table.clear(), vars(thing).clear()
        found.append([])
        for x in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0):
            call(x)
            found[-1].append([shape_of(x) for x in (log, table, vars(thing))])
    assert found[0] == found[1]
