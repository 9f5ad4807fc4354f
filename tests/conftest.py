"""Every warning is an error, and generated examples are the same in every run."""

import contextlib
import gc
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # so that every test can import `helpers`

try:
    from hypothesis import HealthCheck, given, settings, strategies
except ImportError:  # the tests that need it skip themselves

    def draw_once():
        pass
else:
    settings.register_profile(
        "wengert",
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    settings.load_profile("wengert")

    @settings(max_examples=1)
    @given(strategies.none())
    def draw_once(_):
        """Hypothesis makes its own generator of numbers, and asks the collector who refers to it."""


try:
    from wengert import settings as wengert_settings
except ImportError:
    pass
else:  # tests call the same code in ever other worlds, and must not depend on the clock
    from wengert.transforms.budget import Budget

    Budget.limited = False
    wengert_settings.strict = True


def pytest_configure(config):
    config.addinivalue_line("filterwarnings", "error")


def pytest_collection_finish():
    draw_once()  # the collector does not know who refers to what is frozen
    gc.collect()
    gc.freeze()  # tens of thousands of tests, which every collection would look at


@pytest.fixture
def registered():
    """What a test does to the rules is undone after it; what comes with a package is not its doing."""
    from wengert.rules import registry

    for package in [*registry.awaited]:
        with contextlib.suppress(ImportError):
            registry.load(package)
    rules, before = registry.rules, dict(registry.rules)
    yield
    for fn in [fn for fn in rules if fn not in before]:
        del rules[fn]
    for fn in [fn for fn in before if rules.get(fn) is not before[fn]]:
        rules[fn] = before[fn]
