"""Thirty trainers as they are written, twenty with a mistake: each with its claim, and the pair that its user would give.

Least squares on twenty records unless it says otherwise. A line that ends in ``# wrong`` is the mistake.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from auditdp import AccountedDP, ApproxDP, GaussianDP, Pair, PureDP
from auditdp.accountants import GaussianCurve, PLDUpper
from benchmarks.traced_case import lines_marked

RECORDS, STEPS, NOISE, RATE, NORM = 20, 4, 4.0, 0.05, 1.0
MU = STEPS**0.5 / NOISE
DELTA = 1e-5
POISSON_NOISE, SHARE, EPOCHS = 1.0, 0.25, 3


@dataclass(frozen=True)
class Trainer:
    """One trainer.

    Attributes:
        train: The trainer.
        claim: What its accountant says.
        pair: What a user would give.
        is_broken: Whether the claim is false.
        needs: The library that it needs beside numpy.
    """

    train: Callable[..., Any]
    claim: Any
    pair: Pair
    is_broken: bool
    needs: str

    @property
    def lines(self) -> set[int]:
        """The lines of the mistake."""
        return lines_marked(self.train, "# wrong")


TRAINERS: dict[str, Trainer] = {}


def people(records: int = RECORDS) -> tuple[Any, Any]:
    """Return features, shape (records, 2), and labels that depend on them with noise."""
    rng = np.random.default_rng(7)
    features = rng.normal(size=(records, 2))
    return features, features @ [1.5, -1.0] + 0.3 * rng.normal(size=records)


def _without(place: int = 7) -> Pair:
    features, labels = people()
    return Pair(
        (features, labels), (np.delete(features, place, 0), np.delete(labels, place))
    )


def _replaced(place: int = 7) -> Pair:
    features, labels = people()
    others = features.copy(), labels.copy()
    others[0][place], others[1][place] = features[0], labels[0]
    return Pair((features, labels), others)


FULL, PRINTED = (
    GaussianDP(MU),
    ApproxDP(round(GaussianCurve(1 / MU).epsilon_at(DELTA) + 5e-4, 3), DELTA),
)
WITHOUT, REPLACED = _without(), _replaced()
STEPS_OF_EPOCHS = int(EPOCHS / SHARE)


def _poisson(factor: float) -> PLDUpper:
    return PLDUpper(POISSON_NOISE * factor, SHARE, STEPS_OF_EPOCHS)


POISSON = AccountedDP(_poisson(1.0), quoted=DELTA, family=_poisson)


def _add(claim: Any, pair: Pair, *, broken: bool, needs: str) -> Callable[[Any], Any]:
    def decorate(train: Any) -> Any:
        TRAINERS[train.__name__.replace("_", " ")] = Trainer(
            train, claim, pair, broken, needs
        )
        return train

    return decorate


def wrong(claim: Any, pair: Pair, needs: str = "") -> Callable[[Any], Any]:
    """Add a trainer that breaks its claim; its docstring says how."""
    return _add(claim, pair, broken=True, needs=needs)


def right(claim: Any, pair: Pair, needs: str = "") -> Callable[[Any], Any]:
    """Add a trainer that keeps its claim."""
    return _add(claim, pair, broken=False, needs=needs)


def gradients(weights: Any, features: Any, labels: Any) -> Any:
    """Return the gradients of half the squared errors, shape (records, 3), the last one of the bias."""
    errors = features @ weights[:2] + weights[2] - labels
    return errors[:, None] * np.column_stack([features, np.ones(len(features))])


def clipped(values: Any, norm: float = NORM) -> Any:
    """Return rows cut to a norm."""
    return values * np.minimum(
        1, norm / np.maximum(np.linalg.norm(values, axis=-1, keepdims=True), 1e-12)
    )


@wrong(FULL, WITHOUT)
def clipping_per_layer(data, rng):
    """Weights and bias are clipped to the norm each: √2 of it together."""
    weights = np.zeros(3)
    for _ in range(STEPS):
        raw = gradients(weights, *data)
        total = np.concatenate([clipped(raw[:, :2]), clipped(raw[:, 2:])], axis=1).sum(
            0
        )
        weights = weights - RATE * (
            total + rng.normal(scale=NOISE * NORM, size=3)
        )  # wrong
    return weights


@wrong(FULL, WITHOUT)
def bias_not_clipped(data, rng):
    """The bias is not clipped."""
    weights, steps = np.zeros(3), []
    for _ in range(STEPS):
        raw = gradients(weights, *data)
        total = np.append(clipped(raw[:, :2]).sum(0), raw[:, 2].sum())
        noised = total + rng.normal(scale=NOISE * NORM, size=3)  # wrong
        steps.append(noised)
        weights = weights - RATE * noised
    return steps


@wrong(PRINTED, WITHOUT)
def mean_clipped(data, rng):
    """The mean gradient is clipped, with noise for one record's share of it."""
    weights = np.zeros(3)
    for _ in range(STEPS):
        mean = clipped(gradients(weights, *data).mean(0))
        weights = weights - 0.5 * (
            mean + rng.normal(scale=NOISE * NORM / RECORDS, size=3)
        )  # wrong
    return weights


@wrong(FULL, WITHOUT)
def noise_divided_twice(data, rng):
    """Noise of the mean is divided by the number of records once more."""
    weights = np.zeros(3)
    for _ in range(STEPS):
        mean = clipped(gradients(weights, *data)).sum(0) / RECORDS
        noise = rng.normal(scale=NOISE * NORM / RECORDS, size=3) / RECORDS
        weights = weights - 0.5 * (mean + noise)  # wrong
    return weights


@wrong(FULL, WITHOUT)
def seeded_in_every_step(data, rng):
    """The generator is seeded anew in every step."""
    weights, seed, steps = np.zeros(3), int(rng.integers(2**32)), []
    for _ in range(STEPS):
        noise = np.random.default_rng(seed).normal(scale=NOISE * NORM, size=3)
        noised = clipped(gradients(weights, *data)).sum(0) + noise  # wrong
        weights = weights - RATE * noised
        steps.append(noised)
    return steps


@wrong(FULL, WITHOUT)
def more_steps(data, rng):
    """Four times the steps that are accounted for."""
    weights = np.zeros(3)
    for _ in range(4 * STEPS):
        total = clipped(gradients(weights, *data)).sum(0)
        weights = weights - RATE * (
            total + rng.normal(scale=NOISE * NORM, size=3)
        )  # wrong
    return weights


@wrong(POISSON, REPLACED)
def shuffled_batches(data, rng):
    """Shuffled batches of one size, accounted as Poisson ones, and one record replaced."""
    features, labels = data
    weights, size = np.zeros(3), int(SHARE * len(labels))
    for _ in range(EPOCHS):
        order = rng.permutation(len(labels))
        for start in range(0, len(labels), size):
            batch = order[start : start + size]
            total = clipped(gradients(weights, features[batch], labels[batch])).sum(0)
            noised = total + rng.normal(scale=POISSON_NOISE * NORM, size=3)  # wrong
            weights = weights - RATE * noised
            yield noised


@wrong(POISSON, WITHOUT)
def batch_sizes(data, rng):
    """The sizes of the batches are released."""
    features, labels = data
    weights = np.zeros(3)
    for _ in range(STEPS_OF_EPOCHS):
        batch = rng.random(len(labels)) < SHARE
        total = clipped(gradients(weights, features[batch], labels[batch])).sum(0)
        weights = weights - RATE * (
            total + rng.normal(scale=POISSON_NOISE * NORM, size=3)
        )
        yield {"weights": weights, "records": int(batch.sum())}  # wrong


@wrong(FULL, WITHOUT)
def loss_logged(data, rng):
    """The loss on the private data is logged beside the model."""
    features, labels = data
    weights = np.zeros(3)
    for _ in range(STEPS):
        weights = weights - RATE * (
            clipped(gradients(weights, *data)).sum(0)
            + rng.normal(scale=NOISE * NORM, size=3)
        )
    loss = float(((features @ weights[:2] + weights[2] - labels) ** 2).mean())  # wrong
    return {"weights": weights, "loss": loss}


@wrong(FULL, WITHOUT)
def stopped_by_the_data(data, rng):
    """It stops when the loss on the private data no longer falls."""
    features, labels = data
    weights, losses = np.zeros(3), [np.inf]
    for step in range(STEPS):  # noqa: B007
        weights = weights - 0.02 * (
            clipped(gradients(weights, *data)).sum(0)
            + rng.normal(scale=NOISE * NORM, size=3)
        )
        losses.append(((features @ weights[:2] + weights[2] - labels) ** 2).sum())
        if losses[-1] > losses[-2]:  # wrong
            break
    return {
        "steps": step,
        "weights": weights,
        "stopped at": round(float(losses[-1]), 6),
    }


@wrong(FULL, WITHOUT)
def rate_by_the_gradient(data, rng):
    """The learning rate is divided by the norm of the gradient without noise."""
    weights = np.zeros(3)
    for _ in range(STEPS):
        total = clipped(gradients(weights, *data)).sum(0)
        weights = weights - (
            total + rng.normal(scale=NOISE * NORM, size=3)
        ) / np.linalg.norm(total)  # wrong
    return weights


@wrong(FULL, WITHOUT)
def standardised(data, rng):
    """Features are standardised by the private data, and the scaling is released with the model."""
    features, labels = data
    middle, scale = features.mean(0), features.std(0) + 1e-9  # wrong
    features = (features - middle) / scale
    weights = np.zeros(3)
    for _ in range(STEPS):
        total = clipped(gradients(weights, features, labels)).sum(0)
        weights = weights - RATE * (total + rng.normal(scale=NOISE * NORM, size=3))
    return {"weights": weights, "middle": middle, "scale": scale}


def _linear(torch: Any) -> Any:
    model = torch.nn.Linear(2, 1)
    torch.nn.init.zeros_(model.weight)
    torch.nn.init.zeros_(model.bias)
    return model


def _tensors(torch: Any, data: Any) -> tuple[Any, Any]:
    return torch.as_tensor(data[0], dtype=torch.float32), torch.as_tensor(
        data[1], dtype=torch.float32
    )[:, None]


@wrong(PRINTED, WITHOUT, needs="torch")
def gradient_of_the_batch(data):
    """Clip_grad_norm_ clips the gradient of the batch, with noise for one record's share of it."""
    import torch

    features, labels = _tensors(torch, data)
    model = _linear(torch)
    for _ in range(STEPS):
        model.zero_grad()
        torch.nn.functional.mse_loss(model(features), labels).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), NORM)
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.5 * (
                    p.grad + NOISE * NORM / RECORDS * torch.randn_like(p)
                )  # wrong
    return model


@wrong(FULL, WITHOUT, needs="torch")
def microbatches(data):
    """Microbatches of four are clipped, not records: their mean turns round by twice the norm."""
    import torch

    features, labels = _tensors(torch, data)
    model = _linear(torch)
    for _ in range(STEPS):
        total = [torch.zeros_like(p) for p in model.parameters()]
        for start in range(0, len(labels), 4):
            model.zero_grad()
            torch.nn.functional.mse_loss(
                model(features[start : start + 4]), labels[start : start + 4]
            ).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), NORM)
            total = [t + p.grad for t, p in zip(total, model.parameters(), strict=True)]
        with torch.no_grad():
            for p, t in zip(model.parameters(), total, strict=True):
                p -= RATE * (t + NOISE * NORM * torch.randn_like(p))  # wrong
    return model


def _clipped_sums(torch: Any, model: Any, features: Any, labels: Any) -> list[Any]:
    """Return the sums of the gradients of the records, each clipped."""
    sums = [torch.zeros_like(p) for p in model.parameters()]
    for x, y in zip(features, labels, strict=True):
        model.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), NORM)
        sums = [s + p.grad for s, p in zip(sums, model.parameters(), strict=True)]
    return sums


@wrong(FULL, WITHOUT, needs="torch")
def bias_without_noise(data):
    """The bias has no noise."""
    import torch

    features, labels = _tensors(torch, data)
    model = _linear(torch)
    for _ in range(STEPS):
        weight, bias = _clipped_sums(torch, model, features, labels)
        with torch.no_grad():
            model.weight -= RATE * (weight + NOISE * NORM * torch.randn_like(weight))
            model.bias -= RATE * bias  # wrong
    return model


@wrong(FULL, WITHOUT, needs="torch")
def batch_norm(data):
    """The running mean of a BatchNorm layer, without noise, is saved with the model."""
    import torch

    features, labels = _tensors(torch, data)
    norm, model = torch.nn.BatchNorm1d(2, affine=False), _linear(torch)
    for _ in range(STEPS):
        sums = _clipped_sums(torch, model, norm(features), labels)  # wrong
        with torch.no_grad():
            for p, s in zip(model.parameters(), sums, strict=True):
                p -= RATE * (s + NOISE * NORM * torch.randn_like(p))
    return {**model.state_dict(), **norm.state_dict()}


@wrong(FULL, WITHOUT, needs="torch")
def fixed_seed(data):
    """The generator of the noise has a fixed seed."""
    import torch

    features, labels = _tensors(torch, data)
    model, generator = _linear(torch), torch.Generator(features.device).manual_seed(0)
    for _ in range(STEPS):
        sums = _clipped_sums(torch, model, features, labels)
        with torch.no_grad():
            for p, s in zip(model.parameters(), sums, strict=True):
                p -= RATE * (
                    s
                    + NOISE
                    * NORM
                    * torch.randn(p.shape, generator=generator, device=p.device)
                )  # wrong
    return model


def _private(
    data: Any, *, noise: float = POISSON_NOISE, poisson: bool = True
) -> tuple[Any, ...]:
    import torch
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader, TensorDataset

    dataset, model = TensorDataset(*_tensors(torch, data)), _linear(torch)
    loader = DataLoader(dataset, batch_size=int(SHARE * RECORDS), shuffle=not poisson)
    return PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=RATE),
        data_loader=loader,
        noise_multiplier=noise,
        max_grad_norm=NORM,
        poisson_sampling=poisson,
    )


def _epochs(model: Any, optimiser: Any, loader: Any, epochs: int = EPOCHS) -> Any:
    import torch

    for _ in range(epochs):
        for x, y in loader:
            optimiser.zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimiser.step()
    return model


@wrong(POISSON, WITHOUT, needs="opacus")
def half_the_noise(data):
    """Half the noise that is accounted for."""
    return _epochs(*_private(data, noise=POISSON_NOISE / 2))._module  # wrong


@wrong(POISSON, WITHOUT, needs="opacus")
def gradient_kept(data):
    """The last batch's gradient before clipping and noise is returned for a plot."""
    import torch

    model, optimiser, loader = _private(data)
    _epochs(model, optimiser, loader)
    optimiser.zero_grad()
    torch.nn.functional.mse_loss(
        model(loader.dataset.tensors[0]), loader.dataset.tensors[1]
    ).backward()
    return {
        **model._module.state_dict(),
        "norm": float(model._module.weight.grad.norm()),
    }  # wrong


def graph() -> Pair:
    """Return a ring of twenty nodes with a hub, with and without its last node: features, labels and edges."""
    features, labels = people()
    edges = {(k, (k + 1) % RECORDS) for k in range(RECORDS - 1)} | {
        (RECORDS - 1, k) for k in (2, 5, 8, 11, 14)
    }
    kept = sorted(edge for edge in edges if RECORDS - 1 not in edge)
    return Pair((features, labels, sorted(edges)), (features[:-1], labels[:-1], kept))


def _sums(features: Any, edges: Any, most: int | None = None) -> Any:
    """Return the sums of features of each node and its neighbours."""
    total, sent = features.copy(), np.zeros(len(features), int)
    for a, b in edges:
        if most is None:
            total[a] += features[b]
        if most is None or sent[a] < most:
            total[b] += features[a]
            sent[a] += 1
    return total


@wrong(FULL, graph())
def nodes_as_records(data, rng):
    """A node is in the sums of all its neighbours too, and is accounted as one record."""
    features, labels, edges = data
    weights, sums = np.zeros(3), _sums(features, edges)
    for _ in range(STEPS):
        total = clipped(gradients(weights, sums, labels)).sum(0)
        weights = weights - RATE * (
            total + rng.normal(scale=NOISE * NORM, size=3)
        )  # wrong
    return weights


@right(FULL, WITHOUT)
def full_batch(data, rng):
    """DP-SGD on all records."""
    weights = np.zeros(3)
    for _ in range(STEPS):
        weights = weights - RATE * (
            clipped(gradients(weights, *data)).sum(0)
            + rng.normal(scale=NOISE * NORM, size=3)
        )
    return weights


@right(FULL, WITHOUT)
def all_steps(data, rng):
    """The same, every step released."""
    weights = np.zeros(3)
    for _ in range(STEPS):
        noised = clipped(gradients(weights, *data)).sum(0) + rng.normal(
            scale=NOISE * NORM, size=3
        )
        weights = weights - RATE * noised
        yield noised


@right(POISSON, WITHOUT)
def poisson_batches(data, rng):
    """Poisson batches, every step released."""
    features, labels = data
    weights = np.zeros(3)
    for _ in range(STEPS_OF_EPOCHS):
        batch = rng.random(len(labels)) < SHARE
        total = clipped(gradients(weights, features[batch], labels[batch])).sum(0)
        noised = total + rng.normal(scale=POISSON_NOISE * NORM, size=3)
        weights = weights - RATE * noised
        yield noised


@right(FULL, WITHOUT)
def momentum(data, rng):
    """Momentum and an average of the weights, made of noised gradients alone."""
    weights, speed, average = np.zeros(3), np.zeros(3), np.zeros(3)
    for _ in range(STEPS):
        noised = clipped(gradients(weights, *data)).sum(0) + rng.normal(
            scale=NOISE * NORM, size=3
        )
        speed = 0.9 * speed + noised
        weights = weights - RATE * speed
        average = 0.5 * average + 0.5 * weights
    return {"weights": weights, "average": average}


@right(GaussianDP(2 * MU), REPLACED)
def one_replaced(data, rng):
    """A record replaced moves the sum by twice the norm, and that is accounted for."""
    weights = np.zeros(3)
    for _ in range(STEPS):
        weights = weights - RATE * (
            clipped(gradients(weights, *data)).sum(0)
            + rng.normal(scale=NOISE * NORM, size=3)
        )
    return weights


@right(FULL, WITHOUT, needs="torch")
def loop_of_torch(data):
    """Gradients of records by a loop of torch."""
    import torch

    features, labels = _tensors(torch, data)
    model = _linear(torch)
    for _ in range(STEPS):
        sums = _clipped_sums(torch, model, features, labels)
        with torch.no_grad():
            for p, s in zip(model.parameters(), sums, strict=True):
                p -= RATE * (s + NOISE * NORM * torch.randn_like(p))
    return model


@right(FULL, WITHOUT, needs="torch")
def by_vmap(data):
    """Gradients of records by torch.func."""
    import torch
    from torch.func import grad, vmap

    features, labels = _tensors(torch, data)
    weights = torch.zeros(3)

    def loss(w, x, y):
        return 0.5 * ((x @ w[:2] + w[2] - y) ** 2).sum()

    for _ in range(STEPS):
        each = vmap(grad(loss), in_dims=(None, 0, 0))(weights, features, labels)
        each = each * (NORM / each.norm(dim=1, keepdim=True).clamp(min=1e-12)).clamp(
            max=1
        )
        weights = weights - RATE * (each.sum(0) + NOISE * NORM * torch.randn(3))
    return weights


@right(POISSON, WITHOUT, needs="opacus")
def opacus_with_a_public_divisor(data):
    """Opacus as its documentation has it, but that sums are divided by a number that is public.

    As documented it is ``int(len(dataset) * sample_rate)``, 5 of twenty records and 4 of nineteen: another model.
    """
    model, optimiser, loader = _private(data)
    optimiser.expected_batch_size = int(SHARE * RECORDS)
    return _epochs(model, optimiser, loader)._module


VOTES, VOTE_EPSILON = 5, 1.0


@right(PureDP(VOTES * VOTE_EPSILON), REPLACED)
def votes_of_teachers(data, rng):
    """Votes of teachers on parts of the data with Laplace noise; a record moves two counts."""
    _, labels = data
    guesses = [float(np.median(labels[k::5])) for k in range(5)]
    answers = []
    for cut in np.linspace(-1, 1, VOTES):
        ones = sum(guess > cut for guess in guesses)
        counts = np.array([5 - ones, ones]) + rng.laplace(
            scale=2 / VOTE_EPSILON, size=2
        )
        answers.append(int(counts[1] > counts[0]))
    return answers


@right(GaussianDP(MU * 7), graph())
def nodes_with_a_cap(data, rng):
    """A node is sent to three others: it moves its own gradient, and turns theirs round."""
    features, labels, edges = data
    weights, sums = np.zeros(3), _sums(features, edges, most=3)
    for _ in range(STEPS):
        total = clipped(gradients(weights, sums, labels)).sum(0)
        weights = weights - RATE * (total + rng.normal(scale=NOISE * NORM, size=3))
    return weights
