"""``auditdp account FAMILY``: accountants as a calculator, a command for each family.

Each function builds a ``Model`` from its own options; the decorator ``family`` makes a
command of it. ``account_answers`` has the questions that are common to all families.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import typer

from auditdp.cli.account_answers import FreeParameter, Model, family
from auditdp.errors import ConfigurationError

if TYPE_CHECKING:
    from auditdp.accountants import Accountant

Noise = Annotated[
    float | None,
    typer.Option(help="σ of the noise on a sum of gradients, over the clipping norm."),
]
Rate = Annotated[
    float | None, typer.Option(help="Probability of a record to be sampled.")
]
Records = Annotated[int | None, typer.Option(help="How many records there are.")]
Batch = Annotated[int | None, typer.Option(help="How many records a batch has.")]
Sensitivity = Annotated[
    float, typer.Option(help="How far neighbours move the query (or a score) at most.")
]

MOST_PARTS = 100_000
"""Largest number of TIMES in one ``--part``, since parts are composed one by one."""


class Scheme(StrEnum):
    """Sampling schemes of ``auditdp account subsample``."""

    poisson = "poisson"
    fixed = "fixed"
    with_replacement = "with-replacement"


class Sampling(StrEnum):
    """Sampling schemes of the batches of ``auditdp account dp-sgd``."""

    poisson = "poisson"
    fixed = "fixed"
    shuffled = "shuffled"


@family("compose")
def compose(
    part_epsilon: Annotated[float | None, typer.Option(help="ε of each part.")] = None,
    part_delta: Annotated[float, typer.Option(help="δ of each part.")] = 0.0,
    count: Annotated[int | None, typer.Option(help="How many equal parts.")] = None,
    part: Annotated[
        list[str] | None,
        typer.Option(help="Unequal parts, each as EPSILON,DELTA[,TIMES]."),
    ] = None,
) -> Model:
    """Adaptive composition of (ε, δ)-DP mechanisms.

    The accountants are the optimal composition and, for equal parts, the three theorems
    that are often quoted in its place.
    """
    if part:
        if part_epsilon is not None or part_delta or count is not None:
            raise ConfigurationError(
                "--part describes unequal parts; give all of them so, or none"
            )
        return _unequal(part)
    times = _needed(
        "count", count, "how many parts there are (or --part for unequal ones)"
    )

    def accountants(epsilon: float) -> Sequence[Accountant]:
        from auditdp.accountants import (
            AdvancedComposition,
            BasicComposition,
            KairouzCorollary,
            OptimalComposition,
        )

        kinds = (
            OptimalComposition,
            KairouzCorollary,
            AdvancedComposition,
            BasicComposition,
        )
        return [kind(epsilon, part_delta, times) for kind in kinds]

    parameters = {"part-delta": part_delta, "count": times}
    return Model(
        parameters,
        accountants,
        FreeParameter("part-epsilon", part_epsilon, False),
        lambda e: accountants(e)[:1],
    )


@family("top-k")
def top_k(
    count: Annotated[int, typer.Option(help="How many are selected.")],
    eta: Annotated[
        float | None, typer.Option(help="Bounded range (ε) of each selection.")
    ] = None,
    scale: Annotated[
        float | None, typer.Option(help="Scale of the Gumbel noise, instead of --eta.")
    ] = None,
    sensitivity: Sensitivity = 1.0,
    monotone: Annotated[
        bool,
        typer.Option(help="A neighbour moves all scores the same way; with --scale."),
    ] = False,
) -> Model:
    """The k largest scores by Gumbel noise.

    That is k selections by the exponential mechanism.
    """
    from auditdp import accountants as analyses

    parameters: dict[str, object] = {"count": count}
    if scale is not None:
        if eta is not None:
            raise ConfigurationError(
                "--eta and --scale describe the same noise; give one of them"
            )
        eta = analyses.bounded_range(scale, sensitivity=sensitivity, monotone=monotone)
        parameters |= {"scale": scale, "sensitivity": sensitivity, "monotone": monotone}
    elif monotone or sensitivity != 1.0:
        raise ConfigurationError(
            "--monotone and --sensitivity belong to --scale; --eta already includes them"
        )
    kinds = (
        analyses.TopKZCDP,
        analyses.TopKNonAdaptive,
        analyses.TopKBoundedRange,
        analyses.TopKDurfeeRogers,
        analyses.TopKAdvanced,
        analyses.TopKOptimalComposition,
        analyses.TopKPure,
    )
    return Model(
        parameters,
        lambda eta: [kind(count, eta) for kind in kinds],
        FreeParameter("eta", eta, False),
    )


@family("gaussian")
def gaussian(
    sigma: Annotated[
        float | None,
        typer.Option(help="Standard deviation of the noise of each coordinate."),
    ] = None,
    sensitivity: Sensitivity = 1.0,
    count: Annotated[int, typer.Option(help="How many releases.")] = 1,
) -> Model:
    """Gaussian noise.

    The accountants are the exact curve and zCDP. For one release there is also the
    classic formula, once for ε ≤ 1, where it is proved, and once for every ε.
    """

    def accountants(sigma: float) -> Sequence[Accountant]:
        from auditdp.accountants import ZCDP, ClassicGaussian, GaussianCurve
        from auditdp.numerics.balls import above, ball

        curve = GaussianCurve(sigma, sensitivity, count)
        classic = [
            ClassicGaussian(sigma, sensitivity, everywhere=each)
            for each in (False, True)
            if count == 1
        ]
        return [curve, ZCDP(above(ball(curve.zcdp))), *classic]

    parameters = {"sensitivity": sensitivity, "count": count}
    return Model(
        parameters,
        accountants,
        FreeParameter("sigma", sigma, True),
        lambda sigma: accountants(sigma)[:1],
    )


@family("laplace")
def laplace(
    scale: Annotated[float | None, typer.Option(help="Scale of the noise.")] = None,
    sensitivity: Sensitivity = 1.0,
    count: Annotated[int, typer.Option(help="How many releases.")] = 1,
) -> Model:
    """Laplace noise on a number.

    The accountants bound the curve of the composition from above and from below. A
    third one is the optimal composition of any mechanisms with the ε of one release.
    """

    def accountants(scale: float) -> Sequence[Accountant]:
        from auditdp.accountants import LaplaceLower, LaplaceUpper, OptimalComposition

        curve = LaplaceUpper(scale, sensitivity, count)
        return [
            curve,
            LaplaceLower(scale, sensitivity, count),
            OptimalComposition(curve.epsilon, 0.0, count),
        ]

    parameters = {"sensitivity": sensitivity, "count": count}
    return Model(
        parameters,
        accountants,
        FreeParameter("scale", scale, True),
        lambda scale: accountants(scale)[:1],
    )


@family("zcdp")
def zcdp(
    rho: Annotated[float | None, typer.Option(help="ρ of each part.")] = None,
    count: Annotated[int, typer.Option(help="How many parts.")] = 1,
) -> Model:
    """Composition of ρ-zCDP mechanisms."""

    def accountants(rho: float) -> Sequence[Accountant]:
        from auditdp.accountants import ZCDP
        from auditdp.accountants.parameter_checks import check_count, check_positive
        from auditdp.numerics.balls import double_above

        check_count("zcdp", count=count)
        check_positive("zcdp", rho=rho)
        return [ZCDP(double_above(lambda read: count * read(rho)))]

    return Model({"count": count}, accountants, FreeParameter("rho", rho, False))


@family("subsample")
def subsample(
    scheme: Annotated[Scheme, typer.Option(help="How the sample is drawn.")],
    mechanism_epsilon: Annotated[
        float | None, typer.Option(help="ε of the mechanism without sampling.")
    ] = None,
    mechanism_delta: Annotated[
        float, typer.Option(help="δ of the mechanism without sampling.")
    ] = 0.0,
    sampling_rate: Rate = None,
    records: Records = None,
    batch: Batch = None,
) -> Model:
    """Any (ε, δ)-DP mechanism on a sample of the data."""
    from auditdp.accountants import (
        FixedSizeSubsampled,
        PoissonSubsampled,
        WithReplacementSubsampled,
    )

    parameters: dict[str, object] = {
        "scheme": scheme.value,
        "mechanism-delta": mechanism_delta,
    }
    free = FreeParameter("mechanism-epsilon", mechanism_epsilon, False)
    if scheme is Scheme.with_replacement:
        if sampling_rate is not None:
            raise ConfigurationError(
                "--sampling-rate: how often a record is drawn takes --records and --batch instead"
            )
        n, m = (
            _needed("records", records, "how many there are"),
            _needed("batch", batch, "how many are drawn"),
        )
        parameters |= {"records": n, "batch": m}
        return Model(
            parameters,
            lambda e: [WithReplacementSubsampled(e, mechanism_delta, n, m)],
            free,
        )
    rate = _rate(sampling_rate, records, batch)
    parameters["sampling-rate"] = float(rate)
    kind = PoissonSubsampled if scheme is Scheme.poisson else FixedSizeSubsampled
    return Model(parameters, lambda e: [kind(e, mechanism_delta, float(rate))], free)


@family("dp-sgd")
def dp_sgd(
    noise_multiplier: Noise = None,
    sampling_rate: Rate = None,
    records: Records = None,
    batch: Batch = None,
    steps: Annotated[int | None, typer.Option(help="How many batches in all.")] = None,
    epochs: Annotated[
        int | None, typer.Option(help="How many times the data, instead of --steps.")
    ] = None,
    sampling: Annotated[
        Sampling, typer.Option(help="How batches are drawn.")
    ] = Sampling.poisson,
) -> Model:
    """DP-SGD, by the sampling of its batches.

    Batches are Poisson samples, samples of a fixed size without replacement, or parts
    of the data that is shuffled each epoch. With 'fixed', neighbours replace a record.
    """
    if (steps is None) == (epochs is None):
        raise ConfigurationError(
            "give either --steps or --epochs, the length of the training"
        )
    free = FreeParameter("noise-multiplier", noise_multiplier, True)
    rate = _rate(sampling_rate, records, batch)
    per_epoch = math.ceil(1 / rate)
    if sampling is Sampling.shuffled:
        from auditdp.accountants import shuffled_accountants

        if epochs is None:
            epochs, rest = divmod(_needed("steps", steps, ""), per_epoch)
            if rest:
                raise ConfigurationError(
                    f"--steps {steps}: an epoch has {per_epoch} batches; give whole --epochs"
                )
        passes = epochs
        parameters = {"sampling": "shuffled", "batches": per_epoch, "epochs": passes}
        return Model(
            parameters,
            lambda noise: shuffled_accountants(noise, per_epoch, passes),
            free,
        )
    # An epoch is the number of batches that has each record once on average. The number
    # of all batches is rounded up.
    total = math.ceil((epochs or 0) / rate) if steps is None else steps
    if sampling is Sampling.fixed:
        from auditdp.accountants import fixed_size_accountants

        if sampling_rate is not None:
            raise ConfigurationError(
                "--sampling-rate: batches of a fixed size take --records and --batch instead"
            )
        n, m = (
            _needed("records", records, "how many there are"),
            _needed("batch", batch, "how many a batch has"),
        )
        parameters = {"sampling": "fixed", "records": n, "batch": m, "steps": total}
        return Model(
            parameters, lambda noise: fixed_size_accountants(noise, n, m, total), free
        )
    from auditdp.accountants import Opacus, poisson_accountants

    def own(noise: float) -> list[Accountant]:
        return [
            a
            for a in poisson_accountants(noise, float(rate), total)
            if not isinstance(a, Opacus)
        ]

    parameters = {"sampling": "poisson", "sampling-rate": float(rate), "steps": total}
    return Model(
        parameters,
        lambda noise: poisson_accountants(noise, float(rate), total),
        free,
        own,
    )


@family("node-level")
def node_level(
    nodes: Annotated[int, typer.Option(help="How many nodes are trained on.")],
    batch: Annotated[
        int, typer.Option(help="How many nodes a batch has, drawn without replacement.")
    ],
    steps: Annotated[int, typer.Option(help="How many batches.")],
    noise_multiplier: Noise = None,
    out_degree: Annotated[
        int | None, typer.Option(help="Largest out-degree of a node, after sampling.")
    ] = None,
    layers: Annotated[
        int | None, typer.Option(help="How many layers messages pass through.")
    ] = None,
    reached: Annotated[
        int | None,
        typer.Option(help="How many gradients one node changes, instead of both."),
    ] = None,
) -> Model:
    """DP-SGD of a graph neural network.

    Neighbours differ in one node of a graph of bounded out-degree.
    """
    from auditdp.accountants import node_level_accountants, reached_nodes

    if reached is None:
        reached = reached_nodes(
            _needed("out-degree", out_degree, "the largest out-degree (or --reached)"),
            _needed("layers", layers, "how many layers there are (or --reached)"),
        )
    elif out_degree is not None or layers is not None:
        raise ConfigurationError(
            "--reached follows from --out-degree and --layers; give one or the other"
        )
    # A node reaches at most all nodes.
    gradients = min(reached, nodes)
    parameters = {"nodes": nodes, "reached": gradients, "batch": batch, "steps": steps}
    return Model(
        parameters,
        lambda noise: node_level_accountants(noise, nodes, gradients, batch, steps),
        FreeParameter("noise-multiplier", noise_multiplier, True),
    )


def _unequal(parts: list[str]) -> Model:
    from auditdp.accountants import HeterogeneousComposition

    each: list[tuple[float, float]] = []
    for part in parts:
        try:
            epsilon, delta, *rest = part.split(",")
            (times,) = map(int, rest or ["1"])
            if times > MOST_PARTS:
                raise ConfigurationError(
                    f"--part {part}: expected {MOST_PARTS:,} times at most; equal parts are for --part-epsilon and --count"
                )
            added = [(float(epsilon), float(delta))] * times
        except ValueError:
            added = []
        if not added:
            raise ConfigurationError(
                f"--part {part}: expected EPSILON,DELTA or EPSILON,DELTA,TIMES, such as .5,0,10"
            )
        each += added
    epsilons, deltas = zip(*each, strict=True)
    return Model(
        {"parts": len(each)}, lambda _: [HeterogeneousComposition(epsilons, deltas)]
    )


def _needed(option: str, value: int | None, meaning: str) -> int:
    if value is None:
        raise ConfigurationError(f"--{option} is missing; give {meaning}")
    return value


def _rate(
    sampling_rate: float | None, records: int | None, batch: int | None
) -> Fraction:
    """Return the sampling rate as an exact fraction.

    It is ``sampling_rate``, as the decimal that was written, or else ``batch`` divided
    by ``records``.

    Raises:
        ConfigurationError: If both ways are given, or none completely, or if the rate
            is not in (0, 1].
    """
    given = [
        name
        for name, value in (("--records", records), ("--batch", batch))
        if value is not None
    ]
    if sampling_rate is not None:
        if given:
            raise ConfigurationError(
                f"--sampling-rate and {given[0]}: give the rate, or --records and --batch"
            )
        rate = (
            # The text of a double is the decimal that was written; its value is not.
            Fraction(repr(sampling_rate))
            if math.isfinite(sampling_rate)
            else Fraction(0)
        )
    else:
        rate = Fraction(0)
        n, m = (
            _needed("records", records, "how many there are, or --sampling-rate"),
            _needed("batch", batch, "its size"),
        )
        if n > 0:
            rate = Fraction(m, n)
    if not 0 < rate <= 1:
        of_counts = f"--batch {batch} --records {records}"
        problem = (
            of_counts if sampling_rate is None else f"--sampling-rate {sampling_rate:g}"
        )
        raise ConfigurationError(f"{problem}: expected a rate in (0, 1]")
    return rate
