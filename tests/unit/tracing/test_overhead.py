"""A watched run costs no more than five plain ones of 100 µs."""

import json
import time

import numpy as np

from auditdp.tracing import Trace

ROWS = [("abc"[k % 3], k % 17) for k in range(60)]
MOST = 5.0


def report(rows, rng):
    counts, spent = {}, 0
    for name, amount in rows:
        counts[name] = counts.get(name, 0) + min(amount, 10)
    for k in range(900):
        spent += counts["a"] * k % 7
    mean = float(
        np.clip(np.array([amount for _, amount in rows], float), 0, 1).mean()
        + rng.normal(scale=0.1)
    )
    return json.dumps(
        {
            "counts": {k: counts[k] + rng.laplace(scale=10.0) for k in "abc"},
            "mean": mean,
            "x": spent,
        }
    )


def seconds(run, times=60):
    """The least CPU time of a run, over a few measurements of many."""
    found = []
    for _ in range(7):
        started = time.process_time()
        for _ in range(times):
            run()
        found.append((time.process_time() - started) / times)
    return min(found)


def test_overhead():
    rng, trace = np.random.default_rng(0), Trace(report)
    plain = seconds(lambda: report(ROWS, rng))
    with trace:
        watched = seconds(lambda: trace.record(ROWS, rng))
    assert (
        40e-6 < plain < 2e-3
    )  # a function of some 100 µs, or the factor means nothing
    assert watched < MOST * plain
