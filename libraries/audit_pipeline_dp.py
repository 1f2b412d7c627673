"""PipelineDP: whole aggregations by its engine on the local backend, at the total ε and δ of the budget accountant.

Neighbours differ in all rows of one privacy unit, which are there or not (documentation of ``AggregateParams``). Rows are
(unit, partition, value); a unit may have more rows than it may contribute, so that contribution bounding is audited too.
"""

import numpy as np
import pipeline_dp as dp
from pipeline_dp.dp_computations import ExponentialMechanism

from auditdp import ApproxDP, Audit, PureDP, unseeded
from auditdp.adjacency import Neighbours
from libraries.stated import each, of

audit = of("pipeline-dp")
SOURCE = "PipelineDP 0.3.1, DPEngine.aggregate with "
EXTRACTORS = dp.DataExtractors(
    privacy_id_extractor=lambda row: row[0],
    partition_extractor=lambda row: row[1],
    value_extractor=lambda row: row[2],
)
REST = [(unit, "a", 0.5) for unit in range(3)]
MANY = [("new", "a", 1.0), ("new", "a", 1.0), ("new", "b", 1.0)]
ADDED = Neighbours(
    [([*REST, *MANY], REST)], label="one unit with three rows added or removed"
)


def aggregated(
    *metrics,
    epsilon=1.0,
    delta=0.0,
    noise=dp.NoiseKind.LAPLACE,
    calls=1_000,
    **parameters,
):
    """Return the audit of an aggregation with public partitions a and b; a unit with three rows is added or removed."""
    given = {
        "max_partitions_contributed": 2,
        "max_contributions_per_partition": 1,
        "min_value": 0.0,
        "max_value": 1.0,
    } | parameters

    def release(data):
        accountant = dp.NaiveBudgetAccountant(epsilon, delta)
        engine = dp.DPEngine(accountant, dp.LocalBackend())
        asked = dp.AggregateParams(noise_kind=noise, metrics=list(metrics), **given)
        result = engine.aggregate(
            list(data), asked, EXTRACTORS, public_partitions=["a", "b"]
        )
        accountant.compute_budgets()
        return [value for _, found in sorted(result) for value in found]

    return Audit(
        each(release),
        ApproxDP(epsilon, delta) if delta else PureDP(epsilon),
        ADDED,
        calls=calls,
    )


@audit(source=SOURCE + "Metrics.COUNT", reading="count")
def count():
    """The number of rows of each partition."""
    return aggregated(dp.Metrics.COUNT)


@audit(source=SOURCE + "Metrics.PRIVACY_ID_COUNT", reading="privacy id count")
def units():
    """The number of units of each partition."""
    return aggregated(dp.Metrics.PRIVACY_ID_COUNT)


@audit(source=SOURCE + "Metrics.SUM", reading="sum")
def total():
    """The sum of each partition."""
    return aggregated(dp.Metrics.SUM)


@audit(source=SOURCE + "Metrics.MEAN", reading="mean")
def mean():
    """The mean of each partition."""
    return aggregated(dp.Metrics.MEAN)


@audit(source=SOURCE + "Metrics.VARIANCE", reading="variance")
def variance():
    """The variance of each partition."""
    return aggregated(dp.Metrics.VARIANCE)


@audit(source=SOURCE + "Metrics.COUNT and SUM", reading="count and sum")
def several():
    """The number of rows and the sum of each partition, which share the budget."""
    return aggregated(dp.Metrics.COUNT, dp.Metrics.SUM)


@audit(source=SOURCE + "Metrics.COUNT, Gaussian", reading="count, Gaussian")
def count_gaussian():
    """The number of rows of each partition with Gaussian noise."""
    return aggregated(dp.Metrics.COUNT, delta=1e-2, noise=dp.NoiseKind.GAUSSIAN)


@audit(source=SOURCE + "Metrics.PERCENTILE", reading="percentiles")
def percentiles():
    """The median of each partition."""
    return aggregated(dp.Metrics.PERCENTILE(50))


@audit(
    source="PipelineDP 0.3.1, DPEngine.select_partitions", reading="select_partitions"
)
def partitions(epsilon=1.0, delta=0.05):
    """The keys of partitions that are selected; a unit with rows in two partitions is added or removed."""

    def release(data):
        accountant = dp.NaiveBudgetAccountant(epsilon, delta)
        engine = dp.DPEngine(accountant, dp.LocalBackend())
        asked = dp.SelectPartitionsParams(max_partitions_contributed=1)
        result = engine.select_partitions(list(data), asked, EXTRACTORS)
        accountant.compute_budgets()
        kept = list(result)
        return ["a" in kept, "b" in kept]

    return Audit(each(release), ApproxDP(epsilon, delta), ADDED, calls=1_000)


# What follows is refuted.


@audit(
    source="PipelineDP 0.3.1, docstring of ExponentialMechanism",
    reading="ExponentialMechanism",
    expect="violation",
)
def exponential(epsilon=1.0):
    """One of two candidates by scores of sensitivity 1; neighbours are scores that move by 1.

    False: exp(score·ε/2) is taken as it is. Of scores of −1,491 both weights are 0 and their share is NaN, which raises
    ValueError; of −1,490 they are the smallest double.
    """

    class Scored(ExponentialMechanism.ScoringFunction):
        global_sensitivity = 1.0
        is_monotonic = False

        def __init__(self, scores):
            self.scores = scores

        def score(self, k):
            return self.scores[k]

    def select(scores):
        with np.errstate(invalid="ignore"):
            return int(ExponentialMechanism(Scored(scores)).apply(epsilon, [0, 1]))

    high, low = -1490.0 / epsilon, -1491.0 / epsilon
    return Audit(
        unseeded(select), PureDP(epsilon), [((low, low), (high, high))], calls=500
    )
