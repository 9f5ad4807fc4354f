import pair_rules
import pytest

from wengert import jit


@pytest.fixture(params=[False, True], ids=["traced", "kept"])
def switch(request):
    """With the JIT off, and on."""
    pair_rules.log.clear()
    with jit(request.param):
        yield request.param
