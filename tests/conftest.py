"""Every warning is an error, and generated examples are the same in every run."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # so that every test can import `helpers`

try:
    from hypothesis import HealthCheck, settings
except ImportError:  # the tests that need it skip themselves
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


try:
    from wengert import settings as wengert_settings
except ImportError:
    pass
else:  # tests call the same code in ever other worlds, for which a user would be warned
    wengert_settings.patience = 1_000_000
    wengert_settings.strict = True


def pytest_configure(config):
    config.addinivalue_line("filterwarnings", "error")
