"""What all tests share: one thread, and how often what is random is repeated."""

import gc
import os
from collections import defaultdict
from dataclasses import dataclass

import pytest
from hypothesis import settings

# Read when the libraries are loaded: problems are small, and further threads would spin while they wait for work.
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ[f"{library}_NUM_THREADS"] = "1"

from scipy.stats import binom  # noqa: E402

gc.disable()  # until all tests are collected: what that makes stays, and would be looked through in vain
settings.register_profile(
    "in short", deadline=None, max_examples=15
)  # how long one takes is the machine's, and no fault
settings.register_profile("in full", deadline=None, max_examples=300)
settings.load_profile("in short")

FALSE_FAILURE = 1e-6
"""What an assertion about a count may fail with, where what it tests is true; it is computed from the repetitions run."""


def pytest_addoption(parser):
    parser.addoption(
        "--write-faults",
        action="store_true",
        help="write reports/faults.md from the faults injected",
    )
    parser.addoption(
        "--full",
        action="store_true",
        help="repeat what is random in full, as `make statistics` does",
    )


def pytest_configure(config):
    if config.getoption("--full"):
        settings.load_profile("in full")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--full"):
        return
    long = {item for item in items if item.get_closest_marker("full")}
    cases = defaultdict(list)
    for item in items:
        if item.get_closest_marker("dear") and item not in long:
            cases[item.nodeid.partition("[")[0]].append(item)
    left_out = {*long, *(case for each in cases.values() for case in each[1:])}
    if left_out:
        config.hook.pytest_deselected(
            items=[item for item in items if item in left_out]
        )
        items[:] = [item for item in items if item not in left_out]


def pytest_collection_finish():
    gc.collect()
    gc.freeze()  # nine thousand tests, which each collection would look through
    gc.enable()


@dataclass(frozen=True)
class Repetitions:
    """The number of repetitions of a test, and the limits on what is counted in them."""

    full: bool

    def __call__(self, in_full: int, *, least: int = 25, share: int = 100) -> int:
        """So many in full; else a share of them, but at least so many that the assertion can fail."""
        return in_full if self.full else min(in_full, max(in_full // share, least))

    @staticmethod
    def most(repeats: int, rate: float) -> int:
        """More than this have a probability of at most FALSE_FAILURE where each has probability ``rate`` at most."""
        return int(binom.isf(FALSE_FAILURE, repeats, rate))

    @staticmethod
    def fewest(repeats: int, rate: float) -> int:
        """Fewer than this have a probability below FALSE_FAILURE where each has probability ``rate`` at least."""
        least = int(binom.ppf(FALSE_FAILURE, repeats, rate))
        assert least > 0, (
            f"of {repeats} repetitions at a rate of {rate} none may be seen: the assertion could not fail"
        )
        return least


@pytest.fixture(scope="session")
def repeats(request) -> Repetitions:
    return Repetitions(request.config.getoption("--full", default=False))
