"""Estimation evidence: is an estimate as unbiased, or as precise, as it is promised to be?

Inputs come in classes (degrees, values); the mechanism's output is one number per call, and the truth is known for
every input. Statistics are Student's t for means and a normal approximation with the fourth moment for variances: both
assume independent calls with finite moments and enough of them (asymptotic, unlike the game, which is exact for any
number). A test of "no difference" can only refute; being within a margin is shown by two one-sided tests (Schuirmann
1987).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from auditdp.betting.game import Streams
from auditdp.errors import ClaimError, MechanismError
from auditdp.mechanism import Mechanism, call, check_independence, name_of
from auditdp.results import Counterexample, Evidence, Verdict

LEAST_CALLS = 30


@dataclass(frozen=True)
class Unbiased:
    """The estimate's expectation is the truth.

    Args:
        truth: The quantity that is estimated, as a function of the input.
        margin: How far an expectation may be off and still count as equivalent, in the units of the estimate.
        almost: Whether the promise itself is only "almost unbiased": then a bias within the margin refutes nothing.
        source: Where it is promised.

    Raises:
        ClaimError: If the margin is not positive.
    """

    truth: Callable[[Any], float]
    margin: float
    almost: bool = False
    source: str = field(default="", kw_only=True)
    kind: ClassVar[str] = "Unbiased"

    def __post_init__(self) -> None:
        if not (self.margin > 0 and math.isfinite(self.margin)):
            raise ClaimError(f"Unbiased: expected a finite margin > 0, got margin={self.margin!r}")

    def __str__(self) -> str:
        return f"{'almost ' if self.almost else ''}unbiased (margin {self.margin:.4g})"


@dataclass(frozen=True)
class VarianceAtMost:
    """The estimate's variance is at most a bound.

    Args:
        bound: The bound, in squared units of the estimate.
        truth: The quantity that is estimated, as a function of the input (for the report).
        source: Where it is promised.

    Raises:
        ClaimError: If the bound is not positive.
    """

    bound: float
    truth: Callable[[Any], float]
    source: str = field(default="", kw_only=True)
    kind: ClassVar[str] = "VarianceAtMost"
    margin: ClassVar[None] = None

    def __post_init__(self) -> None:
        if not (self.bound > 0 and math.isfinite(self.bound)):
            raise ClaimError(f"VarianceAtMost: expected a finite bound > 0, got bound={self.bound!r}")

    def __str__(self) -> str:
        return f"variance ≤ {self.bound:.6g}"


Promise = Unbiased | VarianceAtMost


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

    Null hypothesis: the promise holds in every class. A true promise is called VIOLATED with probability at most alpha
    (Holm over the classes); EQUIVALENT is said wrongly with probability at most alpha (two one-sided tests in every
    class, all of which must succeed).

    Args:
        mechanism: Its outputs are single numbers, shape (size,).
        promise: What it promises.
        inputs: Inputs by class; the calls are shared equally between the classes, and within a class between its
        inputs.
        alpha: Level of the tests.
        calls: Calls in total.
        streams: Randomness by (purpose, batch).

    Raises:
        MechanismError: If outputs are not single numbers, or the calls do not suffice for 30 of every input.
    """
    each = calls // max(len(inputs), 1)
    most = max(len(group) for group in inputs.values())
    if each < LEAST_CALLS * most:
        raise MechanismError(
            f"{calls} calls for {len(inputs)} classes of up to {most} inputs are too few: give at least {LEAST_CALLS} "
            f"to every input, that is calls={LEAST_CALLS * most * len(inputs)}"
        )
    first = next(iter(inputs.values()))[0]
    check_independence(mechanism, first, streams("independence", 0))
    errors = {
        name: _errors(mechanism, promise, group, each, streams("estimation", k))
        for k, (name, group) in enumerate(inputs.items())
    }
    classes = [_describe(name, inputs[name], values, promise, alpha / len(errors)) for name, values in errors.items()]
    broken, within = _judge(promise, list(errors.values()), alpha)
    details: dict[str, Any] = {"classes": classes, "margin": promise.margin}
    common: dict[str, Any] = {
        "kind": "estimation",
        "assumptions": [
            "calls are independent, with finite fourth moments",
            f"asymptotic tests with {each:,} calls in each of {len(errors)} classes",
        ],
        "calls": sum(len(values) for values in errors.values()),
        "details": details,
    }
    names, said = list(errors), str(promise)[0].upper() + str(promise)[1:]
    if broken.any():
        worst = classes[int(np.argmax(np.where(broken, _severity(promise, classes), -np.inf)))]
        return Evidence(
            verdict=Verdict.VIOLATED,
            statement=f"{said} is refuted in {int(broken.sum())} of {len(names)} classes at level {alpha:.4g}",
            counterexample=Counterexample(pair=worst["class"], explanation=_explain(promise, worst)),
            **common,
        )
    if within.all():
        return Evidence(
            verdict=Verdict.EQUIVALENT,
            statement=f"{said} holds in all {len(names)} classes with confidence {1 - alpha:.6g}",
            **common,
        )
    open_ones = [name for name, inside in zip(names, within, strict=True) if not inside]
    return Evidence(
        verdict=Verdict.NOT_REFUTED,
        statement=f"{said} is not refuted, but more calls are needed to show it for: {', '.join(open_ones[:5])}",
        **common,
    )


def _errors(
    mechanism: Mechanism, promise: Promise, group: Sequence[Any], calls: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Estimate minus truth over the inputs of one class, shape (calls,).

    For a variance, minus the mean over the calls of the same input instead: a bias that differs between the inputs of a
    class is not variance. The residuals are scaled by √(m/(m-1)) for the mean that they lost.
    """
    parts, like = [], None
    for share, data in zip(np.array_split(np.arange(calls), len(group)), group, strict=True):
        if len(share) == 0:
            continue
        outputs = call(mechanism, data, len(share), rng, like=like)
        if outputs.ndim != 1:
            raise MechanismError(
                f"{name_of(mechanism)}: returned outputs of shape {outputs.shape[1:]}, expected one number per call"
            )
        like = outputs[:0]
        values = outputs.astype(float)
        if isinstance(promise, VarianceAtMost):
            parts.append((values - values.mean()) * math.sqrt(len(values) / max(len(values) - 1, 1)))
        else:
            parts.append(values - promise.truth(data))
    return np.concatenate(parts)


def variance_interval(values: NDArray[np.float64], alpha: float) -> tuple[float, float]:
    """Return a two-sided interval for the variance, by the asymptotic normality of the sample variance.

    Its standard error is √((m₄ - s⁴ (n-3)/(n-1)) / n), with m₄ the fourth central moment; no normality of the values is
    assumed (a χ² interval would assume it).
    """
    n, s2 = len(values), float(values.var(ddof=1))
    m4 = float(((values - values.mean()) ** 4).mean())
    spread = math.sqrt(max(m4 - s2**2 * (n - 3) / (n - 1), 0.0) / n) * stats.norm.isf(alpha / 2)
    return s2 - spread, s2 + spread


def _judge(
    promise: Promise, errors: Sequence[NDArray[np.float64]], alpha: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return for every class whether the promise is refuted there, and whether it is shown to hold there."""
    from statsmodels.stats.multitest import multipletests  # loads pandas: only where it is needed
    from statsmodels.stats.weightstats import DescrStatsW

    refuting, showing = [], []
    for values in errors:
        if isinstance(promise, VarianceAtMost):
            s2 = float(values.var(ddof=1))
            spread = (variance_interval(values, 0.1)[1] - s2) / stats.norm.isf(0.05)
            z = (s2 - promise.bound) / spread if spread > 0 else math.copysign(math.inf, s2 - promise.bound)
            refuting.append(stats.norm.sf(z))
            showing.append(stats.norm.cdf(z))
        elif values.std() == 0:
            off = abs(float(values[0]))
            refuting.append(float(off <= (promise.margin if promise.almost else 0.0)))
            showing.append(float(off > promise.margin))
        else:
            low, high = stats.ttest_1samp(values, -promise.margin), stats.ttest_1samp(values, promise.margin)
            if promise.almost:
                below, above = stats.t.cdf(low.statistic, low.df), stats.t.sf(high.statistic, high.df)
                refuting.append(min(1.0, 2 * min(below, above)))
            else:
                refuting.append(stats.ttest_1samp(values, 0.0).pvalue)
            showing.append(DescrStatsW(values).ttost_mean(-promise.margin, promise.margin)[0])
    broken = multipletests(refuting, alpha=alpha, method="holm")[0]
    return np.asarray(broken), np.asarray(showing) <= alpha


def _describe(
    name: str, group: Sequence[Any], values: NDArray[np.float64], promise: Promise, alpha: float
) -> dict[str, Any]:
    truth = float(np.mean([promise.truth(data) for data in group]))
    half = float(stats.t.isf(alpha / 2, len(values) - 1) * stats.sem(values))
    bias = float(values.mean())
    low, high = variance_interval(values, alpha)
    return {
        "class": name,
        "n": len(values),
        "truth": truth,
        "mean": truth + bias,
        "low": truth + bias - half,
        "high": truth + bias + half,
        "variance": float(values.var(ddof=1)),
        "variance_low": low,
        "variance_high": high,
        "variance_bound": promise.bound if isinstance(promise, VarianceAtMost) else None,
    }


def _severity(promise: Promise, classes: Sequence[dict[str, Any]]) -> NDArray[np.float64]:
    if isinstance(promise, VarianceAtMost):
        return np.array([c["variance"] for c in classes])
    return np.array([abs(c["mean"] - c["truth"]) for c in classes])


def _explain(promise: Promise, c: dict[str, Any]) -> str:
    if isinstance(promise, VarianceAtMost):
        interval = f"[{c['variance_low']:.6g}, {c['variance_high']:.6g}]"
        return (
            f"The variance over {c['n']:,} calls is {c['variance']:.6g}, interval {interval}, above {promise.bound:.6g}"
        )
    bias, half = c["mean"] - c["truth"], c["high"] - c["mean"]
    return (
        f"The truth is {c['truth']:.6g}, the mean over {c['n']:,} calls {c['mean']:.6g}: bias {bias:+.4g} ± {half:.2g}"
    )
