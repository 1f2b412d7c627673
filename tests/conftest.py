"""What all tests share."""

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(scope="session", autouse=True)
def _single_threaded():
    """Numerical libraries on one thread: small problems waste the cores that the test processes already use."""
    with threadpool_limits(limits=1):
        yield
