"""Estimation evidence: tests of promises that an estimate is unbiased, or precise.

Inputs come in classes (such as degrees or values). The mechanism's output is one number
per call, and the truth is known for every input. The tests are bets on means. They are
valid for any number of independent calls, as the game is, if the range of the estimate
is declared. Tests that refute a bound on a variance are valid without it. The others
are asymptotic, as their statements note. A test of "no difference" can only refute it;
two one-sided tests show that a difference is within a margin (Schuirmann 1987).

The second half of the module has these bets: is the mean of independent numbers, or
their variance, above a value or below it?

Every test multiplies factors that are not negative and have expectation at most 1 under
its null hypothesis, given the numbers before. Their product, the *wealth*, is a
supermartingale: it ever reaches 1/alpha with probability at most alpha if the
hypothesis is true (Ville 1939), and if it does, the hypothesis is refuted at level
alpha. That holds for any number of numbers; for a mean they need not have one law. The
functions return the logarithm of the wealth that decides the test.

Mean. Under "the mean is at most m" the factor is 1 + s(X − m). Its expectation is at
most 1 for every stake s >= 0 that is fixed before X, and it is positive if s < 1/(m −
low) and X >= low. The stakes are the predictable plug-in ones of Waudby-Smith & Ramdas
(2024), "Estimating means of bounded random variables by betting", JRSS B 86(1),
arXiv:2010.09686, for n numbers: √(2 ln(1/alpha)/(nv)), where v is here the mean square
distance of the numbers before from m. The cost relative to Student's test: to find a
bias of a coin nine times in ten takes 1.6, 1.2 and 1.2 times the calls at alpha = .05,
2.3e-4 and 1e-6 (2,000 calls, 150 samples); without declared limits 2.0, 1.3 and 1.3
times, with normal noise.

Variance, from above. Groups of five numbers have sample variances that are not negative
and have the variance as their mean, so "the variance is at most B" is a hypothesis on a
mean with low = 0: no further assumption. Variance, from below. Given the past, (X − c)²
has a mean of at least the variance, for any c that depends on the past: "the variance
is at least B" is a hypothesis on the mean of numbers up to the square of the range.

Without declared limits the mean is tested with the limits of the numbers so far,
widened on both sides by their distance. Factors that a number beyond them would make
negative are 0, which adds to their expectation the contribution of such numbers: the
test is asymptotic. For a margin of safety, the wealth at the end decides such a test,
and not its maximum. Exponential and log-normal noise (σ = 1) keep alpha = 1e-4 and
1e-6, in 3,000,000 samples of 100 calls, in tests of the mean and of the variance.
Values that are too rare to occur in the calls break it, as they break every such test:
with normal noise that jumps by 30 standard deviations in one call of 1,000, a variance
at its bound is shown to be below it in 35 % of 3,000 samples of 1,000 calls, at alpha =
.05 and at 1e-3; 37 % of the samples have no jump.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from auditdp.claims.estimates import (
    Limits,
    Promise,
    Unbiased,
    VarianceAtMost,
    checked_range,
)
from auditdp.errors import MechanismError
from auditdp.evidence.request import EvidenceRequest, believed
from auditdp.mechanism.calls import Calls
from auditdp.mechanism.calls.independence import check_calls
from auditdp.mechanism.capabilities import capabilities
from auditdp.mechanism.protocol import Mechanism, brief, name_of
from auditdp.numerics.arrays import Floats, Integers
from auditdp.numerics.rounding import confidence
from auditdp.numerics.streams import Streams
from auditdp.record.details import ClassOfInputs, EstimationDetails
from auditdp.record.results import Counterexample, Evidence, Verdict

LEAST_CALLS = 30
"""Smallest number of calls on each input."""
DECLARE = "range= of the promise, or output_range(data) of the mechanism"
START = 10
"""Number of first calls without a bet; they decide the size of the first bet.

Without declared limits, bets begin after 2 * ``START`` changes between consecutive
values.
"""
GROUP = 5
"""Number of calls of one sample variance.

The mean of the sample variances of n calls has the relative variance (excess kurtosis +
2.5)/n. With groups of two calls it would be (excess kurtosis + 4)/n, and with one group
of all calls (excess kurtosis + 2)/n.
"""
INFLATION = 3.0
"""Ratio of the assumed kurtosis to that of the sample, if the promise states none.

With 2, the variance of log-normal noise (σ = 1) is wrongly shown to be below the bound
8 times as often as alpha = 1e-6 allows (in 4 of 500,000 samples of 400 calls); with 3,
never."""
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Sample:
    """The errors of the estimates on one input.

    Attributes:
        name: Name of the input's class.
        errors: Estimate minus truth of each call, shape (calls,).
        limits: Declared limits of the errors, or None if no range is declared.
    """

    name: str
    errors: Floats
    limits: Limits | None


def gathered(request: EvidenceRequest, alpha: float) -> Evidence:
    """Return the evidence of tests of the estimates on every class of inputs."""
    # No other claim has such evidence.
    assert isinstance(request.claim, Promise)
    return estimation_evidence(
        request.adapted,
        request.claim,
        request.inputs,
        alpha=alpha,
        calls=request.calls,
        streams=request.streams,
    )


def estimation_evidence(
    mechanism: Mechanism,
    promise: Promise,
    inputs: Mapping[str, Sequence[Any]],
    *,
    alpha: float,
    calls: int,
    streams: Streams,
) -> Evidence:
    """Run the estimator on every class of inputs and test the promise.

    Null hypothesis: the promise holds for every input. If it is true, the verdict is
    VIOLATED with probability at most alpha (Holm over the inputs). If it is false, the
    verdict is EQUIVALENT with probability at most alpha (two one-sided tests for every
    input, all of which must succeed). Both hold for any number of independent calls if
    ranges are declared, and are asymptotic if the statement notes that. The functions
    that bet have the proofs.

    Outputs are single numbers, shape (size,). The range of the mechanism's method
    ``output_range(data)``, if it has one, is used instead of the range of the promise.
    Calls are shared equally between the classes, and within a class between its inputs.

    Raises:
        MechanismError: If outputs are not single finite numbers within the declared
            range, or there are fewer than 30 calls for each input.
    """
    # The calls of a class are shared by its inputs, so that the largest class decides.
    each = calls // max(len(inputs), 1)
    largest_class = max(len(group) for group in inputs.values())
    if each < LEAST_CALLS * largest_class:
        raise MechanismError(
            f"{calls} calls for {len(inputs)} classes of up to {largest_class} inputs are too few: "
            f"give at least {LEAST_CALLS} to every input, that is calls={LEAST_CALLS * largest_class * len(inputs)}"
        )
    first = next(iter(inputs.values()))
    caller = Calls(mechanism)
    check_calls(caller, first[:2], streams)
    samples: list[Sample] = []
    for k, (name, group) in enumerate(inputs.items()):
        samples += _samples(
            caller, promise, name, group, each, streams("estimation", k)
        )
    level = alpha / len(samples)
    classes = {}
    for name, group in inputs.items():
        own = [sample for sample in samples if sample.name == name]
        classes[name] = _describe(own, group, promise, level)
    # Each input has tests of its own, and classes are for the report.
    broken, within = _judge(promise, samples, alpha)
    pairs = list(zip(samples, broken, within, strict=True))
    refuted = dict.fromkeys(s.name for s, is_broken, _ in pairs if is_broken)
    undecided = [s for s, _, is_within in pairs if not is_within]
    promised = str(promise)[0].upper() + str(promise)[1:]
    undeclared = any(s.limits is None for s in samples)
    counterexample, tested = None, first
    # The class that is furthest off is reported, and its inputs are tested for
    # dependence.
    if refuted:
        worst = max((classes[name] for name in refuted), key=_severity(promise))
        asymptotic = undeclared and isinstance(promise, Unbiased)
        at = f"{'the asymptotic ' if asymptotic else ''}level {alpha:.4g}"
        verdict, statement = (
            Verdict.VIOLATED,
            f"{promised} is refuted in {len(refuted)} of {len(classes)} classes at {at}",
        )
        explanation = _explain(promise, worst)
        counterexample = Counterexample(pair=worst.name, explanation=explanation)
        tested = inputs[worst.name]
    else:
        asymptotic = undeclared and promise.kurtosis is None
        at = f"{'asymptotic ' if asymptotic else ''}{confidence(alpha)}"
        verdict = Verdict.EQUIVALENT
        statement = f"{promised} holds in all {len(classes)} classes with {at}"
        if undecided:
            verdict = Verdict.NOT_REFUTED
            needed = _needed(undecided, asymptotic)
            statement = f"{promised} is not refuted, but {needed}"
    found = Evidence(
        kind="estimation",
        verdict=verdict,
        statement=statement,
        calls=sum(len(s.errors) for s in samples),
        assumptions=_assumptions(
            promise, samples, alpha, asymptotic, refuted=bool(refuted)
        ),
        counterexample=counterexample,
        details=EstimationDetails(
            classes=list(classes.values()), margin=promise.margin
        ),
    )
    return believed(found, caller, tested[:2], streams, calls)


def _needed(undecided: Sequence[Sample], asymptotic: bool) -> str:
    """Return a phrase for what would decide the promise on these inputs."""
    names = ", ".join(sorted({s.name for s in undecided})[:5])
    if not asymptotic:
        return f"more calls are needed to show it for: {names}"
    if all(varies(s.errors) for s in undecided):
        return f"more calls are needed for an asymptotic test to show it, or a declared range ({DECLARE}), for: {names}"
    return f"a declared range ({DECLARE}) is needed to show it, and no asymptotic test will do, for: {names}"


def _samples(
    caller: Calls,
    promise: Promise,
    name: str,
    group: Sequence[Any],
    calls: int,
    rng: np.random.Generator,
) -> list[Sample]:
    """Return the sample of every input of one class."""
    samples = []
    shares = np.array_split(np.arange(calls), len(group))
    for share, data in zip(shares, group, strict=True):
        outputs = caller(data, len(share), rng)
        if outputs.ndim != 1:
            raise MechanismError(
                f"{caller.name}: returned outputs of shape {outputs.shape[1:]}, expected one number per call"
            )
        with caller.inputs.lent(f"{caller.name}: the promise's truth", data) as (lent,):
            truth = promise.truth(lent)
        values = outputs.astype(float)
        if not np.isfinite(values).all():
            text = "NaN" if np.isnan(values).any() else "an infinite number"
            raise MechanismError(
                f"{caller.name}: returned {text} on input {brief(data)}, which estimates nothing"
            )
        limits = _declared(caller.mechanism, promise, data, values)
        if limits is not None:
            limits = limits[0] - truth, limits[1] - truth
        # The last bits of a subtraction are no bias.
        rounded = np.isclose(values, truth, rtol=1e-12, atol=0.0)
        errors = np.where(rounded, 0.0, values - truth)
        samples.append(Sample(name, errors, limits))
    return samples


def _declared(
    mechanism: Mechanism, promise: Promise, data: Any, values: Floats
) -> Limits | None:
    """Return the declared range for an input, and check that all values lie in it.

    The range is widened by a bound on rounding.

    Returns:
        The range, or None if none is declared.
    """
    own = capabilities(mechanism).output_range
    given = own(data) if own is not None else None
    # The mechanism's own range precedes that of the promise.
    if given is None:
        given = promise.range(data) if callable(promise.range) else promise.range
    if given is None:
        return None
    low, high = checked_range(given, name_of(mechanism), MechanismError)
    slack = 1e-9 * (high - low) + 1e-12 * max(abs(low), abs(high))
    low, high = low - slack, high + slack
    if values.min() < low or values.max() > high:
        far = values[np.argmax(np.maximum(low - values, values - high))]
        raise MechanismError(
            f"{name_of(mechanism)}: returned {far:.9g} on input {brief(data)}, outside the declared range {given!r}; "
            f"declare the range of all estimates ({DECLARE}), or none; a control that is wider needs one of its own"
        )
    return low, high


def _judge(
    promise: Promise, samples: Sequence[Sample], alpha: float
) -> tuple[Flags, Flags]:
    """Return two flags for each sample: the promise is refuted, and it is proved."""
    refuting, showing = [], []
    level = alpha / len(samples)
    for s in samples:
        if isinstance(promise, VarianceAtMost):
            bound = promise.bound
            refuting.append(variance_above(s.errors, bound, level))
            shown = variance_below(s.errors, bound, alpha, s.limits, promise.kurtosis)
        else:
            # A promise of almost no bias is refuted only beyond its margin.
            allowed = promise.margin if promise.almost else 0.0
            refuting.append(bias(s.errors, -allowed, allowed, level, s.limits))
            shown = mean_within(s.errors, promise.margin, alpha, s.limits)
        showing.append(shown)
    broken = _holm(np.exp(-np.maximum(refuting, 0.0)), alpha)
    return broken, np.asarray(showing) >= math.log(1 / alpha)


def _holm(p_values: Floats, alpha: float) -> Flags:
    """Return a mask of the hypotheses refuted at a joint level alpha (Holm 1979).

    statsmodels has the same test, but runs the garbage collector at every call: for 20
    p-values it took 190 ms on a busy core, and these lines take 0.02 ms.
    """
    # The k-th smallest p-value is compared with alpha over the number of hypotheses
    # that are left, until one fails.
    order, count = np.argsort(p_values), len(p_values)
    below = p_values[order] <= alpha / (count - np.arange(count))
    refuted = np.zeros(count, dtype=np.bool_)
    refuted[order] = np.logical_and.accumulate(below)
    return refuted


def _assumptions(
    promise: Promise,
    samples: Sequence[Sample],
    alpha: float,
    asymptotic: bool,
    *,
    refuted: bool,
) -> list[str]:
    """Return the assumptions of the verdict, one sentence each."""
    found = ["calls are independent"]
    if isinstance(promise, VarianceAtMost) and refuted:
        # Nothing else, whatever is declared.
        return found
    if promise.kurtosis is not None:
        return [
            *found,
            f"the kurtosis of the estimates is at most {promise.kurtosis:g}, as declared",
        ]
    if any(s.limits is not None for s in samples):
        found.append(
            "every estimate lies in the declared range, as all observed ones do"
        )
    if asymptotic:
        fewest = min(len(s.errors) for s in samples if s.limits is None)
        found.append(
            f"asymptotic tests, with at least {fewest:,} calls of every input: a value of probability below "
            f"{min(1.0, math.log(1 / alpha) / fewest):.2g} may never have occurred, and is assumed to change no mean; "
            f"a declared range ({DECLARE}) needs no such assumption"
        )
    if asymptotic and isinstance(promise, VarianceAtMost):
        found.append(
            f"the kurtosis of the estimates is at most {INFLATION:g} times the observed one (not so for normal noise that "
            "jumps by 30 standard deviations in one call of 1,000: that is wrongly found within its bound in 35 % "
            "of samples of 1,000 calls, at level 0.05 and at 0.001); a declared range, or kurtosis= of the promise, needs "
            "no such assumption"
        )
    return found


def _describe(
    samples: Sequence[Sample], group: Sequence[Any], promise: Promise, alpha: float
) -> ClassOfInputs:
    """Return the bias and the variance of one class, for the report.

    They are computed for all inputs of the class together; the largest bias and the
    largest variance of a single input are added. The intervals are Student's and only
    for the reader: no verdict rests on them.
    """
    parts = [s.errors for s in samples]
    values = np.concatenate(parts)
    truth = float(np.mean([promise.truth(data) for data in group]))
    mean, half = truth + float(values.mean()), _student(values, alpha)
    variances = [float(v.var(ddof=1)) for v in parts]
    variance = float(np.average(variances, weights=[len(v) for v in parts]))
    groups = np.concatenate([sample_variances(v) for v in parts])
    low, high = variance_interval(groups, variance, alpha)
    return ClassOfInputs(
        name=samples[0].name,
        n=len(values),
        truth=truth,
        mean=mean,
        low=mean - half,
        high=mean + half,
        variance=variance,
        variance_low=low,
        variance_high=high,
        variance_bound=promise.bound if isinstance(promise, VarianceAtMost) else None,
        largest_bias=max((float(v.mean()) for v in parts), key=abs),
        largest_variance=max(variances),
    )


def variance_interval(
    groups: Floats, variance: float, alpha: float
) -> tuple[float, float]:
    """Return Student's interval around ``variance``, at confidence 1 - ``alpha``.

    Its width follows from ``groups``, the sample variances of groups of calls.
    """
    spread = _student(groups, alpha)
    return variance - spread, variance + spread


def _student(values: Floats, alpha: float) -> float:
    """Return half the width of Student's interval for a mean."""
    quantile = -stdtrit(len(values) - 1, alpha / 2)
    return float(quantile * values.std(ddof=1) / math.sqrt(len(values)))


def _severity(promise: Promise) -> Any:
    if isinstance(promise, VarianceAtMost):
        return lambda c: c.largest_variance
    return lambda c: abs(c.largest_bias)


def _explain(promise: Promise, c: ClassOfInputs) -> str:
    if isinstance(promise, VarianceAtMost):
        return (
            f"The variance over {c.n:,} calls is {c.variance:.6g}, interval [{c.variance_low:.6g}, "
            f"{c.variance_high:.6g}], and {c.largest_variance:.6g} at the worst input, above {promise.bound:.6g}"
        )
    bias, half = c.mean - c.truth, c.high - c.mean
    text = f"The truth is {c.truth:.6g}, the mean over {c.n:,} calls {c.mean:.6g}: bias {bias:+.4g} ± {half:.2g}"
    if math.isclose(c.largest_bias, bias, rel_tol=1e-9):
        return text
    return f"{text}, {c.largest_bias:+.4g} at the worst input"


def bias(
    values: Floats, low: float, high: float, alpha: float, limits: Limits | None
) -> float:
    """Return the log wealth against "the mean lies between ``low`` and ``high``".

    Half of the wealth bets that the mean is larger, and half that it is smaller.

    Args:
        values: Independent numbers, shape (n,).
        low: Smallest mean of the hypothesis.
        high: Largest mean of the hypothesis.
        alpha: The level for which the stakes are sized. The wealth is valid at every
            level.
        limits: The declared limits of all values; None for an asymptotic test.
    """
    both = _sides(values, low, high, alpha / 2, limits)
    return _wealth(np.logaddexp(*both) - math.log(2), limits is not None)


def mean_within(
    values: Floats, margin: float, alpha: float, limits: Limits | None
) -> float:
    """Return the log wealth against "the mean is not within ±margin".

    It is the smaller log wealth of two tests, against "the mean is at most -margin" and
    "the mean is at least margin". If the hypothesis is true, one of these is true, so
    the smaller wealth is valid. The stakes are sized for the level ``alpha``. Without
    declared ``limits`` the test is asymptotic.
    """
    both = _sides(values, margin, -margin, alpha, limits)
    return min(_wealth(side, limits is not None) for side in both)


def _sides(
    values: Floats, low: float, high: float, alpha: float, limits: Limits | None
) -> tuple[Floats, Floats]:
    """Return the log wealth after each number against each of two hypotheses.

    They are "the mean is at most ``high``" and "the mean is at least ``low``".
    """
    lower, upper = limits or (None, None)
    above = mean_bets(values, high, alpha, lower)
    return above, mean_bets(-values, -low, alpha, None if upper is None else -upper)


def variance_above(values: Floats, bound: float, alpha: float) -> float:
    """Return the log wealth against "the variance is at most ``bound``".

    The values are independent and of one law, which may be any. The stakes are sized
    for the level ``alpha``.
    """
    bets = mean_bets(sample_variances(values), bound, alpha, 0.0, start=2)
    return _wealth(bets, True)


def variance_below(
    values: Floats,
    bound: float,
    alpha: float,
    limits: Limits | None = None,
    kurtosis: float | None = None,
) -> float:
    """Return the log wealth against "the variance is at least ``bound``".

    Args:
        values: Independent numbers of one law, shape (n,).
        bound: The smallest variance of the hypothesis.
        alpha: The level for which the stakes are sized.
        limits: The declared limits of all values; used if no kurtosis is stated.
        kurtosis: The largest possible E[(X − μ)⁴]/σ⁴. If neither this nor ``limits`` is
            given, three times the kurtosis of the sample is assumed: the test is
            asymptotic, and invalid if the true kurtosis is larger than that. The result
            is then 0 for values that change too rarely (``varies``).
    """
    if kurtosis is not None:
        return _wealth(kurtosis_bets(values, bound, alpha, kurtosis), True)
    if limits is not None:
        # The mean square around any centre is at least the variance. Each centre is
        # known before its value is bet on.
        means = np.cumsum(values)[:-1] / np.arange(1, len(values))
        centre = np.concatenate([values[:1], means])
        widest = np.maximum(centre - limits[0], limits[1] - centre) ** 2
        # A small variance is a small mean of squares, so that signs are reversed.
        squares = (values - centre) ** 2
        return _wealth(mean_bets(-squares, -bound, alpha, -widest), True)
    if not varies(values):
        return 0.0
    assumed = INFLATION * sample_kurtosis(values)
    return _wealth(kurtosis_bets(values, bound, alpha, assumed), False)


def kurtosis_bets(
    values: Floats, bound: float, alpha: float, kurtosis: float
) -> Floats:
    """Return the log wealth, after each group, against "the variance is at least B".

    B is ``bound``, and the kurtosis K is at most ``kurtosis``. Let Y be the sample
    variance of a group of k = 5 calls, and s a stake that is fixed beforehand. The
    group multiplies the wealth by f(Y)/(1 − s + s²c/4), where f(Y) = (1 − sY/(2B))² up
    to Y = 2B/s, and 0 from there.

    This factor has expectation at most 1. Y = σ²U with E[U] = 1 and E[U²] <= c, where c
    = 1 + (K − 3)/k + 2/(k − 1). Since f decreases, E[f(σ²U)] <= E[f(BU)] if σ² >= B.
    Since f(Y) <= 1 − sY/B + s²Y²/(4B²) everywhere, E[f(BU)] <= 1 − s + s²c/4.
    """
    groups = sample_variances(values)
    second = 1 + (kurtosis - 3) / GROUP + 2 / (GROUP - 1)
    # The stake depends on the number of groups alone, so that it is fixed beforehand.
    stake = min(math.sqrt(2 * math.log(1 / alpha) / len(groups) / (second - 1)), 1.0)
    with np.errstate(divide="ignore"):
        factors = 2 * np.log(np.maximum(1 - stake * groups / bound / 2, 0.0))
    return np.cumsum(factors - math.log(1 - stake + stake**2 * second / 4))


def sample_variances(values: Floats) -> Floats:
    """Return the sample variances of consecutive groups of five calls.

    The last calls that fill no group are left out.
    """
    groups = values[: len(values) // GROUP * GROUP].reshape(-1, GROUP)
    return np.asarray(groups.var(axis=1, ddof=1))


def sample_kurtosis(values: Floats) -> float:
    """Return the mean fourth power of deviations over the squared variance."""
    squares = (values - values.mean()) ** 2
    return float((squares**2).mean() / squares.mean() ** 2)


def varies(values: Floats) -> bool:
    """Return True if values change often enough for a test without declared limits.

    ``2 * START`` changes between consecutive values are enough.
    """
    return bool(_changes(values)[-1] >= 2 * START)


def _changes(values: Floats) -> Integers:
    """Return the number of changes between consecutive values, up to each value.

    A single value that differs from its neighbours counts twice.
    """
    return np.cumsum(np.diff(values, prepend=values[:1]) != 0)


def _wealth(process: Floats, valid: bool) -> float:
    """Return the log wealth that decides a test.

    Args:
        process: The log wealth after each bet, which begins with 0.
        valid: True for a test that is valid for any number of bets: the largest log
            wealth decides it. False for an asymptotic test: the last one decides.
    """
    return max(0.0, float(process.max())) if valid else float(process[-1])


def mean_bets(
    values: Floats,
    mean: float,
    alpha: float,
    low: Floats | float | None,
    start: int = START,
) -> Floats:
    """Return the log wealth, after each number, against "the mean is at most ``mean``".

    Args:
        values: Independent numbers, shape (n,).
        mean: The largest mean of the hypothesis.
        alpha: The level for which the stakes are sized.
        low: A lower limit of each number, or None if none is declared.
        start: Number of first numbers without a bet, if limits are declared.
    """
    place = np.arange(len(values))
    allowed = place >= start
    if low is None:
        # Without declared limits, those of the numbers so far are widened.
        smallest, largest = np.minimum.accumulate(values), np.maximum.accumulate(values)
        low = _before(2 * smallest - largest, values[0])
        allowed = _before(_changes(values), 0) >= 2 * START
    gains = values - mean
    # A stake may depend on the numbers before, and not on its own number.
    mean_squares = _before(np.cumsum(gains**2), 0.0) / np.maximum(place, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        wanted = np.sqrt(2 * math.log(1 / alpha) / len(values) / mean_squares)
        # One number may cost at most three quarters of the wealth.
        bearable = np.where(low < mean, 0.75 / (mean - low), np.inf)
        stakes = np.minimum(wanted, bearable)
        stakes = np.where(allowed & np.isfinite(stakes), stakes, 0.0)
        return np.cumsum(np.log(np.maximum(1 + stakes * gains, 0.0)))


def _before(running: NDArray[Any], first: float) -> NDArray[Any]:
    """Return a running quantity before each number, and ``first`` before the first."""
    return np.concatenate([[first], running[:-1]])
