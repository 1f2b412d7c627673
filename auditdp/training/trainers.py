"""A trainer as a mechanism: whatever its randomness comes from, a training is a function of its data and its seed."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from inspect import isgenerator, signature
from typing import Any, TypeAlias

import numpy as np

from auditdp.adjacency import Pair
from auditdp.calls.inputs import of_tensor
from auditdp.errors import MechanismError
from auditdp.mechanism import Mechanism, name_of

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
        self._takes_rng = _takes_rng(train)

    def __call__(self, data: Any, rng: np.random.Generator) -> Any:
        """Return what one training releases, or what the attack makes of it."""
        seed, loaded = int(rng.integers(2**63)), "torch" in sys.modules
        released = self._trained(data, seed)
        if not loaded and "torch" in sys.modules:  # it was loaded while it trained, so that its generator was not set
            released = self._trained(data, seed)
        return released if self.attack is None else self.attack(released)

    def _trained(self, data: Any, seed: int) -> Any:
        with global_generators(seed):
            given = (np.random.default_rng(seed),) if self._takes_rng else ()
            return _read(self.train(data, *given))


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
    if not callable(train) or "size" not in signature(train).parameters:
        return Training(train, attack)
    return train if attack is None else _AttackedBatch(train, attack)


@contextmanager
def global_generators(seed: int) -> Iterator[None]:
    """Set the global generators of Python, NumPy and torch (where it is loaded) from a seed, and put them back at the end.

    Args:
        seed: From 0 to 2⁶³ - 1.
    """
    numbers = np.random.SeedSequence(seed).generate_state(4, np.uint64)
    torch = sys.modules.get("torch")
    before = random.getstate(), np.random.get_state(), torch.get_rng_state() if torch else None  # noqa: NPY002
    random.seed(int(numbers[0]))
    np.random.seed(numbers[1:2].view(np.uint32))  # noqa: NPY002  # the state that trainers draw from
    if torch:
        torch.manual_seed(int(numbers[2] >> np.uint64(1)))
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])  # noqa: NPY002
        if torch and before[2] is not None:
            torch.set_rng_state(before[2])


def _takes_rng(train: Callable[..., Any]) -> bool:
    """Return whether a trainer takes a generator, as its second argument or by the name ``rng``.

    Raises:
        MechanismError: If it takes something else.
    """
    parameters = [p for p in signature(train).parameters.values() if p.default is p.empty and p.kind < p.VAR_POSITIONAL]
    if len(parameters) not in (1, 2):
        names = ", ".join(p.name for p in parameters) or "nothing"
        raise MechanismError(
            f"{name_of(train)}: takes {names}, expected train(data, rng), or train(data) where it draws from global "
            "generators; bind other arguments with functools.partial or give them defaults"
        )
    return len(parameters) == 2


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
    return of_tensor(released)


def worlds_of(worlds: Any) -> Any:
    """Return two inputs as a pair, also where each is a tuple itself, such as features and labels; else what is given."""
    if isinstance(worlds, tuple) and len(worlds) == 2 and not any(isinstance(world, Pair) for world in worlds):
        return Pair(*worlds)
    return worlds
