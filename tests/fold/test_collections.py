"""Queues, dicts with defaults and counters, and objects of the user's that are containers themselves."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator

import pytest

from fold.comparing import compare, followed

pytestmark = pytest.mark.usefixtures("folding_at_once")


def breadth_first(x: float, n: int) -> float:
    graph = {i: [2 * i + 1, 2 * i + 2] for i in range(n)}
    queue, total, seen = deque([0]), 0.0, {0}
    while queue:
        u = queue.popleft()
        total += x ** (u % 4) / (u + 1)
        for v in graph.get(u, []):
            if v < n and v not in seen:
                seen.add(v)
                queue.append(v)
    return total


def both_ends(x: float, n: int) -> float:
    queue, total = deque([x, 2 * x], maxlen=4), 0.0
    for i in range(n + 2):
        if i % 3 == 0:
            queue.appendleft(x * i)
        else:
            queue.append(x + i)
        total += queue[0] * queue[-1] + len(queue)
        if i % 4 == 3:
            total += queue.pop() * 0.5
            try:
                queue.popleft()
                total += queue.popleft()
                queue.popleft()
                queue.popleft()
                queue.popleft()
            except IndexError:
                total += x
        queue.extend([0.1, x])
        queue[0] = total
        for v in queue:
            total += v * 0.01
        if 0.1 in queue:
            total *= 1.1
    return total + sum(queue) + max(queue) + list(queue)[0] + sorted(queue)[-1]


def of_tuples(x: float, n: int) -> float:
    queue, total = deque((i, x * i) for i in range(n)), 0.0
    while queue:
        i, v = queue.popleft()
        total += v
        if i > 3 and len(queue) < 3:
            queue.append((i - 2, v * 0.5))
    return total + x


def with_defaults(x: float, n: int) -> float:
    groups = defaultdict(list)
    for i in range(n):
        groups[i % 3].append(x * i)
    sizes: dict[int, int] = defaultdict(int)
    for k, items in groups.items():
        for _ in items:
            sizes[k] += 1
    total = 0.0
    for k in sorted(groups):
        total += sum(groups[k]) * (sizes[k] + sizes[k + 5])
    if 7 in sizes:
        total += 1.0
    try:
        defaultdict()[3]
    except KeyError:
        total += x
    return total + len(sizes) + sizes.get(9, x) + sizes.pop(0) + (1.0 if sizes else 2.0)


def counted(x: float, n: int) -> float:
    counts = Counter(i * i % 5 for i in range(n))
    counts[7] += 2
    k, most = counts.most_common(1)[0]
    return x**k * most + sum(v * x for v in counts.values()) + counts[100]


class Bag:
    def __init__(self, items: list[float]) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __bool__(self) -> bool:
        return len(self.items) > 2

    def __contains__(self, x: float) -> bool:
        return x in self.items

    def __iter__(self) -> Iterator[float]:
        return iter(self.items)

    def __getitem__(self, i: int) -> float:
        return self.items[i]


def of_the_users(x: float, n: int) -> float:
    bag = Bag([x * i for i in range(n)])
    total = len(bag) * x
    if bag:
        total += 1.0 + max(bag)
    if x in bag:
        total += bag[1]
    return total + sum(bag) + sum(v * v for v in bag)


@pytest.mark.parametrize(
    "f", [breadth_first, both_ends, of_tuples, with_defaults, counted, of_the_users]
)
def test_folded(f: Callable[..., float]) -> None:
    followed(f)


@pytest.mark.parametrize(
    "made",
    [
        "deque([x], (2, 1, -1)[n % 3])",
        "deque([x], maxlen=0.5)",
        "defaultdict(n)",
        "Counter(x)",
        "Counter(None)",
        "Counter({1: n})",
        "Counter(Counter([n]))",
        "Counter(items=[n] * n)",
        "defaultdict(default_factory=int)",
        "defaultdict(int, a=1)",
        "deque(iterable=[n])",
    ],  # fmt: skip
)
def test_what_they_are_not_made_of(made: str) -> None:
    space = {"deque": deque, "defaultdict": defaultdict, "Counter": Counter}
    held = f"try: held = {made}\n    except TypeError: return 3 * x"
    exec(f"def f(x, n):\n    {held}\n    return x * (len(held) + sum(held)) if n > 1 else x", space)
    compare(space["f"])  # type: ignore[arg-type]


def test_a_deque_changes_while_it_is_looped_over() -> None:
    def f(x: float, n: int) -> float:
        queue, total = deque([x] * n), 0.0
        try:
            for v in queue:
                total += v
                if total > 2.0:
                    queue.append(1.0)
                    queue.pop()
        except RuntimeError:
            total = -1.0 * x
        return total

    compare(f)


def test_what_a_deque_does_not_have() -> None:
    def f(x: float, n: int) -> float:
        queue = deque([x] * n)
        try:
            queue.maxlen = 3  # type: ignore[misc]
            queue.other = x  # type: ignore[attr-defined]
        except AttributeError:
            return x * len(queue) if isinstance(queue, deque) else x
        return x if deque([x]) == queue else 2.0 * x

    compare(f)


def test_counters_are_given_counts_and_have_no_items_to_miss() -> None:
    def f(x: float, n: int) -> float:
        counts = Counter([i % 3 for i in range(n)])
        try:
            del counts[7], counts[1]
        except KeyError:
            return -x
        total = sum(i * x for i, _ in counts.most_common(n - 3)) + sum(counts.values())
        if n > 4:
            counts.update({0: 5})
        return total + x * counts[0]

    compare(f)


def test_they_are_sequences_and_mappings_to_match() -> None:
    space = {"deque": deque, "defaultdict": defaultdict, "Counter": Counter}
    text = """
def f(x, n):
    held = deque([x] * n) if n > 3 else defaultdict(float) if n > 1 else Counter([1])
    match held:
        case [a]: return a
        case [a, *_]: return 2.0 * a
        case {1: a}: return a * x * 3.0
        case {}: return 4.0 * x
    return -x
"""
    exec(text, space)
    compare(space["f"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "asked",
    ["len(deque([x])._items)", "Counter()._held", "getattr(deque(), '_first')", "iter([x]).at"],
)
def test_what_stands_for_them_is_not_seen(asked: str) -> None:
    space = {"deque": deque, "Counter": Counter}
    text = f"def f(x, n):\n    try: {asked}\n    except AttributeError: return x * n\n    return -x"
    exec(text, space)
    compare(space["f"])  # type: ignore[arg-type]
