"""A trainer as a mechanism: whatever its randomness comes from, a training is a function of its data and its seed."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from inspect import isgenerator, signature
from typing import Any, TypeAlias

import numpy as np
from numpy.random import Generator

from auditdp.adjacency import Adjacency, Alike, Neighbours, Pair, as_adjacency
from auditdp.adjacency.alike_graph import AlikeGraph, graph_of, may_be_edges
from auditdp.betting.forecasting.normal import NormalRatio
from auditdp.errors import AdjacencyError, MechanismError
from auditdp.mechanism.calls.inputs import of_tensor
from auditdp.mechanism.protocol import Mechanism, name_of, takes_size

Attack: TypeAlias = Callable[[Any], Any]
"""What somebody computes who sees what a training releases, and nothing else."""


class Training:
    """A trainer as the Mechanism protocol has one, ``f(data, rng)``, with one output a call.

    The global generators of Python, NumPy and, where it is loaded, torch are set from ``rng`` before every training and put
    back afterwards, so that a trainer which draws from them gives the same again, in any order and any process. What a
    training releases is read as follows: a module of torch by its ``state_dict()``, a tensor as an array, and a generator
    (a trainer that yields what each step releases) as the list of what it yields.

    Args:
        train: ``train(data, rng)``, or ``train(data)`` where it draws from global generators.
        attack: What is computed from the released, in its place; the audit is then of that attack. By the post-processing of
            differential privacy, what refutes the claim for it refutes the claim.

    Raises:
        MechanismError: If the trainer is not callable, or takes something else.
    """

    def __init__(self, train: Callable[..., Any], attack: Attack | None = None) -> None:
        if not callable(train):
            raise MechanismError(f"expected a trainer, a callable train(data, rng) or train(data), got {train!r}")
        self.train, self.attack = train, attack
        self.name = name_of(train) if attack is None else f"{name_of(attack)} on {name_of(train)}"
        self._given_rng = _given_rng(train)
        self.forecasters = [NormalRatio()]

    def __call__(self, data: Any, rng: np.random.Generator) -> Any:
        """Return what one training releases, or what the attack makes of it."""
        # A trace watches neither the draw of the seed, which is no noise and no order of records, nor its generator.
        bits = Generator.bit_generator.__get__(rng)
        seed, loaded = int(Generator(bits).integers(2**63)), "torch" in sys.modules
        released = self._trained(data, seed)
        if not loaded and "torch" in sys.modules:  # it was loaded while it trained, so that its generator was not set
            released = self._trained(data, seed)
        return released if self.attack is None else self.attack(released)

    def _trained(self, data: Any, seed: int) -> Any:
        own, shared = np.random.SeedSequence(seed).spawn(2)
        with global_generators(shared):
            return _read(self._given_rng(data, np.random.default_rng(own)))


class _AttackedBatch:
    """An attack on each output of a mechanism that trains many models at once."""

    def __init__(self, mechanism: Mechanism, attack: Attack) -> None:
        self.mechanism, self.attack = mechanism, attack
        self.name = f"{name_of(attack)} on {name_of(mechanism)}"

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator) -> list[Any]:
        """Return what the attack makes of each of ``size`` trainings."""
        return [self.attack(released) for released in self.mechanism(data, size, rng=rng)]


def as_training(train: Any, attack: Attack | None = None) -> Any:
    """Return a trainer as a mechanism; one that has a ``size``, and so is one, as it is, with the attack on each output.

    Raises:
        MechanismError: If the trainer is not callable, or takes something else.
    """
    if not callable(train) or not takes_size(train):
        return Training(train, attack)
    return train if attack is None else _AttackedBatch(train, attack)


@contextmanager
def global_generators(seed: np.random.SeedSequence) -> Iterator[None]:
    """Set the global generators of Python, NumPy and torch, where it is loaded, from a seed; put them back at the end."""
    numbers = seed.generate_state(3, np.uint64)
    torch = sys.modules.get("torch")
    before = random.getstate(), np.random.get_state()  # noqa: NPY002
    gpus = range(torch.cuda.device_count() if torch and torch.cuda.is_initialized() else 0)  # a fork may not ask others
    with torch.random.fork_rng(gpus) if torch else nullcontext():
        random.seed(int(numbers[0]))
        np.random.seed(numbers[1:2].view(np.uint32))  # noqa: NPY002  # the state that trainers draw from
        if torch:
            # without a GPU, `torch.manual_seed` keeps the whole stack for each generator that may come, ten times the cost
            seeded = torch if torch.cuda.is_available() else torch.default_generator
            seeded.manual_seed(int(numbers[2] >> np.uint64(1)))
        try:
            yield
        finally:
            random.setstate(before[0])
            np.random.set_state(before[1])  # noqa: NPY002


def _given_rng(train: Callable[..., Any]) -> Callable[[Any, np.random.Generator], Any]:
    """Return a trainer as a function of data and a generator, which it is given where it takes one.

    Raises:
        MechanismError: If it takes something else.
    """
    parameters = [p for p in signature(train).parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    required = [p.name for p in parameters if p.default is p.empty]
    if len(required) not in (1, 2):
        raise MechanismError(
            f"{name_of(train)}: takes {', '.join(required) or 'nothing'}, expected train(data, rng), or train(data) where "
            "it draws from global generators; bind other arguments with functools.partial or give them defaults"
        )
    if any(p.name == "rng" for p in parameters):
        return lambda data, rng: train(data, rng=rng)
    return train if len(required) == 2 else lambda data, rng: train(data)


def _read(released: Any) -> Any:
    """Return what is released as data: arrays, and dicts and lists of them."""
    if isgenerator(released):
        return [_read(each) for each in released]
    if callable(state := getattr(released, "state_dict", None)):
        released = state()
    if isinstance(released, Mapping):
        return {key: _read(value) for key, value in released.items()}
    if isinstance(released, list | tuple):
        return [_read(each) for each in released]
    value = of_tensor(released)
    return value.copy() if isinstance(value, np.ndarray) else value  # trainers go on to change what they released


def neighbours(pairs: Any, *, search: bool | str) -> Adjacency:
    """Return the adjacency of an audit: of pairs that are given, where a search is wanted, those that are like the first.

    Raises:
        AdjacencyError: If ``search`` names a change by which the first pair does not differ, or no pairs are given.
    """
    adjacency = as_adjacency(two_worlds(pairs))
    named = search if isinstance(search, str) else None
    if not (isinstance(adjacency, Neighbours) and adjacency.search is None and adjacency.relation is None):
        if named is not None:
            raise AdjacencyError(
                f"search={named!r} names how given pairs differ, and {adjacency.name} makes pairs itself"
            )
        return adjacency
    if not search:
        return adjacency
    try:
        given = adjacency.pairs()
        if graph_of(given[0].data) is not None:
            return AlikeGraph(given, named)
        if may_be_edges(given[0].data):
            raise AdjacencyError(
                "pairs of numbers may be edges or records; give a graph's edges beside features or labels"
            )
        return Alike(given, named)
    except AdjacencyError as error:
        if named is not None:
            raise
        return replace(adjacency, unsearched=str(error))


def two_worlds(pairs: Any) -> Any:
    """Return two inputs as a pair, also where each is a tuple itself, such as features and labels; else what is given."""
    if isinstance(pairs, tuple) and len(pairs) == 2 and not any(isinstance(world, Pair) for world in pairs):
        return Pair(*pairs)
    return pairs
