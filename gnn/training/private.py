"""DP-SGD on independent examples: sampling, clipping and noise, in the loop of every training."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from auditdp.accountants import PLDUpper, Solution, solve
from auditdp.errors import ConfigurationError
from gnn.randomness import deterministic, device_of, seeded
from gnn.training.examples import Examples
from gnn.training.gradients import (
    Gradients,
    by_functorch,
    by_opacus,
    check_private,
    clipped_by_layers,
    clipped_sum,
    noisy_mean,
    weights_of,
)
from gnn.training.loop import check_finite, run_epochs, weighted_mean
from gnn.training.metrics import accuracy
from gnn.training.record import Loss, Record, Score, Settings, last
from gnn.validation import (
    DataError,
    check_choice,
    check_count,
    check_number,
    check_positive,
)


@dataclass(frozen=True)
class PrivateSettings:
    """Settings of ``fit_private`` besides the model and the examples.

    Args:
        steps: Number of batches, >= 1.
        noise_multiplier: σ: standard deviation of the noise on the sum of clipped gradients, over the clipping norm; 0 for
            none, and no privacy.
        clipping_norm: C, the most that one example adds to the sum, > 0; infinite for no clipping, and no privacy.
        batch: The noisy sum is divided by it: a public number. With Poisson batches their expected size, such as rate times
            a number of examples that is public.
        rate: Each example is in a batch with this probability, independently (Poisson batches), in (0, 1]. None for batches
            of exactly ``batch`` examples, drawn without replacement.
        learning_rate: Of the optimiser, > 0.
        weight_decay: As of ``Settings``; it reads no example.
        optimiser: "adam" or "sgd".
        gradients: How gradients of examples are taken: "functorch" for any model, "opacus" for rows, "layers" for linear
            layers on rows or mixed rows, which is the fastest where features are many.
        chunk: The most examples whose gradients are held at once; by default all of a batch.

    Raises:
        ConfigurationError: If a setting is outside its range, or there is noise and no clipping.
    """

    steps: int
    noise_multiplier: float
    clipping_norm: float
    batch: float
    rate: float | None
    learning_rate: float = 0.01
    weight_decay: float = 0.0
    optimiser: Literal["adam", "sgd"] = "adam"
    gradients: Literal["functorch", "opacus", "layers"] = "functorch"
    chunk: int | None = None

    def __post_init__(self) -> None:
        owner = "PrivateSettings"
        check_count(owner, "steps", self.steps)
        check_number(owner, "noise_multiplier", self.noise_multiplier)
        if not self.clipping_norm > 0:
            raise ConfigurationError(
                f"{owner}: expected clipping_norm > 0, got {self.clipping_norm!r}"
            )
        if self.noise_multiplier > 0 and math.isinf(self.clipping_norm):
            raise ConfigurationError(
                f"{owner}: noise is relative to clipping_norm, which is infinite; give a finite one"
            )
        check_positive(owner, "batch", self.batch)
        if self.rate is not None and not 0 < self.rate <= 1:
            raise ConfigurationError(
                f"{owner}: expected rate, a probability in (0, 1], or None, got {self.rate!r}"
            )
        if self.rate is None and self.batch != int(self.batch):
            raise ConfigurationError(
                f"{owner}: expected batch, a whole number where rate is None, got {self.batch!r}"
            )
        check_choice(
            owner, "gradients", self.gradients, ("functorch", "opacus", "layers")
        )
        if self.chunk is not None:
            check_count(owner, "chunk", self.chunk)
        self.as_settings()

    def as_settings(self) -> Settings:
        """Return the settings of the optimiser."""
        return Settings(
            epochs=self.steps,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            optimiser=self.optimiser,
        )

    def epsilon(self, delta: float) -> float:
        """Return ε, in nats, for which the weights are proved (ε, delta)-DP for neighbours that differ in one example.

        Infinite without noise. Not for examples that share records, such as ``EgoGraphs``.

        Args:
            delta: In (0, 1).

        Raises:
            ConfigurationError: If the batches are not Poisson; ``auditdp.accountants.dp_sgd_batches`` is for those.
        """
        if self.rate is None:
            raise ConfigurationError(
                "epsilon: batches of fixed size are accounted by auditdp.accountants.dp_sgd_batches"
            )
        if self.noise_multiplier == 0:
            return math.inf
        return PLDUpper(self.noise_multiplier, self.rate, self.steps).epsilon_at(delta)


def noise_for(epsilon: float, delta: float, *, rate: float, steps: int) -> Solution:
    """Return the least noise multiplier, to five digits, that is proved (epsilon, delta)-DP, with the accountant.

    For Poisson batches and neighbours that differ in one example that is there or not.

    Args:
        epsilon: In nats.
        delta: In (0, 1).
        rate: Probability of an example to be in a batch, in (0, 1].
        steps: Number of batches.

    Raises:
        AccountantError: If an argument is out of range, or no noise multiplier between 1e-6 and 1e6 is enough.
    """
    return solve(
        lambda sigma: [PLDUpper(sigma, rate, steps)],
        epsilon,
        delta,
        larger_is_safer=True,
    )


def sample(
    count: int, settings: PrivateSettings, *, generator: torch.Generator
) -> Tensor:
    """Return the ids of a batch, int64, ascending if Poisson.

    Args:
        count: Number of examples.
        settings: Its ``rate``, or its ``batch``.
        generator: On the CPU.
    """
    if settings.rate is None:
        return torch.randperm(count, generator=generator)[: int(settings.batch)]
    # In double precision, as the probability would otherwise be a multiple of 2^-24.
    coins = torch.rand(count, dtype=torch.float64, generator=generator)
    return (coins < settings.rate).nonzero().squeeze(1)


def fit_private(
    model: nn.Module,
    examples: Examples,
    targets: Tensor,
    *,
    settings: PrivateSettings,
    generator: torch.Generator,
    loss: Loss = functional.cross_entropy,
    score: Score = accuracy,
    device: str | torch.device = "cpu",
) -> tuple[nn.Module, Record]:
    """Train a model by DP-SGD and return it with the weights of the last step, and the record.

    A step takes a batch, clips each example's gradient to norm C, adds N(0, (σC)² I) to their sum, and divides by the
    public batch size. Source: Abadi et al. (2016), arXiv:1607.00133v2, Algorithm 1. The result is a function of the
    arguments and of the state of ``generator``, on one device and one number of threads.

    Note:
        The losses and scores of the record are those of the batches, without noise: they are no part of what is private.

    Args:
        model: It is trained in place, on the device; without batch normalisation.
        examples: As ``Rows``, ``PageRankRows`` or ``EgoGraphs``.
        targets: Labels of the examples, shape (examples,) or (examples, classes), none missing.
        settings: Sampling, clipping and noise.
        generator: The randomness of batches, noise and dropout, on the CPU.
        loss: Mean loss of logits at targets.
        score: What is recorded.
        device: Where to train.

    Returns:
        The model, and the record, in which an epoch is as many steps as take each example once on average; one
        without any example has NaN.

    Raises:
        ConfigurationError: If the device does not exist, or the model has no gradients of single examples.
        DataError: If examples and targets do not match, a label is missing, or a fixed batch is larger than the examples.
        TrainingError: If a loss is no number.
    """
    place = device_of(device)
    check_private(model)
    count = len(examples)
    if (
        not count
        or len(targets) != count
        or (targets.ndim == 1 and int(targets.min()) < 0)
    ):
        raise DataError(
            f"fit_private: expected a label >= 0 for each of {count} examples, at least one, got {targets}"
        )
    if settings.rate is None and settings.batch > count:
        raise DataError(
            f"fit_private: expected batches of at most {count} examples, got batch={settings.batch!r}"
        )
    model.to(place).train()
    optimiser = settings.as_settings().optimiser_of(model)
    weights = weights_of(model)
    take = by_opacus if settings.gradients == "opacus" else by_functorch
    in_epoch = max(
        1,
        round(
            1 / settings.rate if settings.rate is not None else count / settings.batch
        ),
    )
    steps = iter(range(settings.steps))

    def total_of(
        index: Tensor,
    ) -> tuple[Gradients, list[tuple[float, int]], list[tuple[float, int]]]:
        total = {name: torch.zeros_like(weight) for name, weight in weights.items()}
        losses, scores = [], []
        for part in torch.split(index, settings.chunk or max(len(index), 1)):
            if len(part):
                given = targets[part.to(targets.device)].to(place)
                inputs = examples.batch(part, place)
                if settings.gradients == "layers":
                    clipped, each, logits = clipped_by_layers(
                        model, examples, inputs, given, loss, settings.clipping_norm
                    )
                else:
                    gradients, each, logits = take(model, examples, inputs, given, loss)
                    clipped = clipped_sum(gradients, settings.clipping_norm)
                total = {name: total[name] + value for name, value in clipped.items()}
                losses.append((float(each.mean()), len(part)))
                scores.append((score(logits, given), len(part)))
        return total, losses, scores

    def train(number: int) -> tuple[float, float]:
        model.train()
        losses: list[tuple[float, int]] = []
        scores: list[tuple[float, int]] = []
        for _ in zip(range(in_epoch), steps, strict=False):
            index = sample(count, settings, generator=generator)
            total, new_losses, new_scores = total_of(index)
            for value, _ in new_losses:
                check_finite(
                    value, f"training loss of epoch {number}", settings.learning_rate
                )
            deviation = (
                settings.noise_multiplier * settings.clipping_norm
                if settings.noise_multiplier
                else 0.0
            )
            mean = noisy_mean(
                total, deviation=deviation, batch=settings.batch, generator=generator
            )
            for name, weight in weights.items():
                weight.grad = mean[name]
            optimiser.step()
            losses += new_losses
            scores += new_scores
        optimiser.zero_grad()
        return weighted_mean(losses), weighted_mean(scores)

    with deterministic(place), seeded(generator, place):
        record = run_epochs(
            model,
            epochs=math.ceil(settings.steps / in_epoch),
            learning_rate=settings.learning_rate,
            patience=None,
            train=train,
            assess=None,
            better=last,
            after=lambda epoch: None,
            device=place,
        )
    return model, record
