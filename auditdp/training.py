"""A trainer as a mechanism: whatever its randomness comes from, a training is a function of its data and its seed.

How the level that is certified grows from step to step, for trainers that release something at every step.

``audit_training``: the audit of a trainer, by many trainings on two neighbouring data sets or by canaries in one.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from inspect import isgenerator, signature
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.random import Generator

from auditdp.adjacency import Adjacency, Alike, Neighbours, Pair, as_adjacency
from auditdp.adjacency.graph_symmetry import AlikeGraph, graph_of, may_be_edges
from auditdp.adjacency.nodes import Canaries
from auditdp.auditing.check import carried_out
from auditdp.auditing.declaration import Audit
from auditdp.auditing.gathering import Settings
from auditdp.auditing.judging import claim_of_privacy
from auditdp.betting.forecasters.normal_laws import NormalRatio
from auditdp.bounds.answers import RUNS, played
from auditdp.bounds.data import FEWEST_OUTPUTS
from auditdp.bounds.privacy_curves import EpsilonDelta, curve_of_claim
from auditdp.bounds.result import Question
from auditdp.claims.claim import Claim
from auditdp.claims.curves import AccountedDP
from auditdp.errors import AdjacencyError, ConfigurationError, MechanismError
from auditdp.mechanism.calls.inputs import of_tensor
from auditdp.mechanism.protocol import Mechanism, name_of, takes_size
from auditdp.numerics.arrays import Floats
from auditdp.numerics.streams import stream
from auditdp.record.budget import Budget
from auditdp.record.results import AuditResult, ClaimRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
            raise MechanismError(
                f"expected a trainer, a callable train(data, rng) or train(data), got {train!r}"
            )
        self.train, self.attack = train, attack
        self.name = (
            name_of(train)
            if attack is None
            else f"{name_of(attack)} on {name_of(train)}"
        )
        self._given_rng = _given_rng(train)
        self.forecasters = [NormalRatio()]

    def __call__(self, data: Any, rng: np.random.Generator) -> Any:
        """Return what one training releases, or what the attack makes of it."""
        # A trace watches neither the draw of the seed, which is no noise and no order of records, nor its generator.
        bits = Generator.bit_generator.__get__(rng)
        seed, loaded = int(Generator(bits).integers(2**63)), "torch" in sys.modules
        released = self._trained(data, seed)
        if (
            not loaded and "torch" in sys.modules
        ):  # it was loaded while it trained, so that its generator was not set
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
        return [
            self.attack(released) for released in self.mechanism(data, size, rng=rng)
        ]


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
    gpus = range(
        torch.cuda.device_count() if torch and torch.cuda.is_initialized() else 0
    )  # a fork may not ask others
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
    parameters = [
        p
        for p in signature(train).parameters.values()
        if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
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
    return (
        value.copy() if isinstance(value, np.ndarray) else value
    )  # trainers go on to change what they released


def neighbours(pairs: Any, *, search: bool | str) -> Adjacency:
    """Return the adjacency of an audit: of pairs that are given, where a search is wanted, those that are like the first.

    Raises:
        AdjacencyError: If ``search`` names a change by which the first pair does not differ, or no pairs are given.
    """
    adjacency = as_adjacency(two_worlds(pairs))
    named = search if isinstance(search, str) else None
    if not (
        isinstance(adjacency, Neighbours)
        and adjacency.search is None
        and adjacency.relation is None
    ):
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
    if (
        isinstance(pairs, tuple)
        and len(pairs) == 2
        and not any(isinstance(world, Pair) for world in pairs)
    ):
        return Pair(*pairs)
    return pairs


MOST_STEPS = 6
"""Numbers of steps that are looked at, unless they are given."""


@dataclass(frozen=True)
class LevelByStep:
    """Lower bounds on the level of what the first steps release; all hold together with confidence 1 - alpha.

    Attributes:
        steps: How many steps are released, increasing.
        bounds: The bound for each.
        claim: The claim about all steps.
        alpha: Probability that any of the bounds is above the truth.
        trainings: Trainings on either input.
    """

    steps: Sequence[int]
    bounds: Sequence[float]
    claim: ClaimRecord
    alpha: float
    trainings: int

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the bounds against the steps, and the claim, on Matplotlib's own new axes unless some are given."""
        from auditdp.report.html.notebook import plot_levels

        return plot_levels(
            [*zip(self.steps, self.bounds, strict=True)],
            self.claim,
            "steps released",
            axes,
        )


def level_by_step(
    train: Callable[..., Any],
    claim: Claim,
    pairs: Any,
    *,
    trainings: int = 500,
    steps: Sequence[int] | None = None,
    alpha: float = 0.05,
    seed: int = 0,
) -> LevelByStep:
    """Certify a level for each of some numbers of steps, from the same trainings.

    Each bound is that of a game on the recorded releases of the first steps (``auditdp.bounds.stated_assumptions``), with an
    equal share of alpha. It says which steps give the most away, and whether a claim about all of them grows as it should.

    Args:
        train: ``train(data, rng)`` or ``train(data)``, which yields or returns what each step releases, the same number of
            numbers in each; or a mechanism ``train(data, size, *, rng)`` that returns shape (size, steps, ...).
        claim: About all steps together.
        pairs: Two inputs (data, neighbour), or an adjacency, of which the first pair is taken.
        trainings: On either input, at least 20.
        steps: Numbers of steps to look at; at most six unless given, growing by equal ratios up to all.
        alpha: Probability that any of the bounds is above the truth.
        seed: Root seed.

    Raises:
        ConfigurationError: If a number is out of range.
        MechanismError: If trainings do not release the same numbers in every step.
    """
    if not 0 < alpha < 1 or trainings < FEWEST_OUTPUTS:
        raise ConfigurationError(
            f"expected alpha strictly between 0 and 1 and trainings >= {FEWEST_OUTPUTS}, got alpha={alpha!r} and "
            f"trainings={trainings!r}"
        )
    adjacency = as_adjacency(two_worlds(pairs))
    pair: Pair = adjacency.pairs()[0]
    adjacency.check(pair)
    first, second = (
        _released(train, data, trainings, stream(seed, "level by step", world))
        for world, data in enumerate((pair.data, pair.neighbour))
    )
    if first.shape[1:] != second.shape[1:]:
        raise MechanismError(
            f"{name_of(train)}: releases shape {first.shape[1:]} on one input and {second.shape[1:]} on the other"
        )
    last = first.shape[1]
    chosen = sorted(
        set(
            np.geomspace(1, last, MOST_STEPS).round().astype(int).tolist()
            if steps is None
            else steps
        )
    )
    if not chosen or chosen[0] < 1 or chosen[-1] > last:
        raise ConfigurationError(
            f"expected steps in 1..{last}, the steps of a training, got steps={steps!r}"
        )
    # The levels of an accountant's curves bound nothing; ε at the δ that it quotes is bounded by itself.
    curve = (
        EpsilonDelta(claim.quoted)
        if isinstance(claim, AccountedDP)
        else curve_of_claim(claim)
    )
    question = Question(curve, alpha / len(chosen), claim.level)
    bounds = [
        played(_flat(first[:, :k]), _flat(second[:, :k]), question, seed, [RUNS]).lower
        for k in chosen
    ]
    return LevelByStep(
        chosen, bounds, claim_of_privacy(claim, adjacency.name), alpha, trainings
    )


def _flat(releases: Floats) -> Floats:
    return releases.reshape(len(releases), -1)


def _released(train: Any, data: Any, size: int, rng: np.random.Generator) -> Floats:
    """Return what each step of each training releases, shape (size, steps, numbers)."""
    mechanism: Any = as_training(train)
    try:
        if mechanism is train:
            made = np.asarray(mechanism(data, size, rng=rng), dtype=float)
        else:
            made = np.array([mechanism(data, rng) for _ in range(size)], dtype=float)
    except (TypeError, ValueError) as error:
        raise MechanismError(
            f"{name_of(train)}: expected the same numbers from every step of every training: {error}"
        ) from error
    if made.ndim < 2:
        raise MechanismError(
            f"{name_of(train)}: releases one number a training, expected something from every step: yield it after each"
        )
    return made.reshape(*made.shape[:2], -1)


TRAININGS, PROPOSED = 1_000, 20_000
"""Trainings on neighbouring data sets unless another number is given, and where a trace proposes that the claim fails."""


def audit_training(
    train: Callable[..., Any],
    claim: Claim | Callable[[int], Claim],
    pairs: Any = None,
    *,
    search: bool | str = True,
    canaries: int | None = None,
    attack: Attack | None = None,
    calls: int | None = None,
    find: str = "",
    stop_when_refuted: bool = True,
    alpha: float = 0.05,
    seed: int = 0,
    controls: Sequence[Callable[..., Any]] = (),
    evidence: Sequence[str] | None = None,
    forecasters: Sequence[Any] | None = None,
    trace: bool = True,
    observe: Sequence[str] = (),
    progress: Callable[[int, int], None] | None = None,
) -> AuditResult:
    """Audit the claim of a trainer, and return what was found.

    With ``pairs``, such as two neighbouring data sets, models are trained on either by the throw of a coin, and forecasters
    bet on which: this certifies most, and takes many trainings. With ``canaries`` one training is enough: each canary is in
    the data or not by a coin of its own, and an attack that sees what is released guesses which are. This certifies less.

    What is released is whatever the trainer returns: the final model, predictions, or, from a trainer that yields something
    after every step, all of the steps. What an adversary sees besides, such as which examples were in a batch, belongs there
    only where the claim allows them to see it.

    Args:
        train: ``train(data, rng)``, or ``train(data)`` where it draws from the global generators of Python, NumPy or torch,
            which are set before every training (see ``Training``). With ``canaries``, data is a bool array that says which
            are in, shape (canaries,). For ``pairs`` also a mechanism that trains many models at once,
            ``train(data, size, *, rng)``, with its ``log_prob`` or ``score`` if it has one (``auditdp.mechanism.protocol``).
        claim: What its accountant promises, such as ``ApproxDP(3.0, 1e-5)``, or better the whole curve (``AccountedDP``).
        pairs: Two inputs (data, neighbour), each of which may be a tuple such as features and labels; a list of pairs; or an
            adjacency. Whether a record is added or replaced has to be what the claim is about.
        search: Whether other neighbours are looked for. Where a pair is given, or a list of them, that is among those that
            differ as the first one does and are within what its data shows (``auditdp.adjacency.Alike``). Where a pair may
            be meant in several ways, such as one edge or one node, the narrowest is searched; the result says which it was
            and lists the others, and ``search`` may name one of them.
        canaries: How many canaries there are.
        attack: ``attack(released)``: with ``canaries`` a score of each, larger for those that look more like being in; with
            ``pairs``, what is bet on in place of the released, such as the score of a membership inference.
        calls: Trainings at most, those of the trace, of the search and of the confirmation among them. Unless given 1,000,
            or up to 20,000 where two traced trainings propose that the claim fails, or are not what its accountant was
            told; or one with ``canaries``, of which several have canaries anew.
        find: A fault that is to be found nine times in ten, such as 'level:1.5' (see ``auditdp.record.budget.Fault``):
            the game then has as many trainings as that takes, and at least ``calls``, and what comes beside it is on top.
        stop_when_refuted: Whether to end at the verdict; False plays all trainings for the best lower bound.
        alpha: Probability that a true claim is refuted, or that the lower bound exceeds the truth.
        seed: Root seed; the same one gives the same result.
        controls: Trainers that break the claim on purpose, each of which has to be refuted.
        evidence: Kinds of evidence; 'game' unless given, or 'one_run' with ``canaries``.
        forecasters: Forecasters for the game; chosen automatically unless given.
        trace: Whether the code is traced first, for pairs to play and what its noise tells; False leaves that out.
        observe: What of 'stdout', 'logging' and 'files' is part of the output, beside what is returned (see ``Audit``).
        progress: Called with the trainings made and those to make; in a notebook a bar is shown unless it is given.

    Returns:
        The result; its ``history`` is how the bound grew with the trainings.

    Raises:
        ConfigurationError: If the arguments do not fit together.
        AuditError: If the inputs or the trainer cannot be used.
    """
    if (pairs is None) == (canaries is None):
        raise ConfigurationError(
            "expected either pairs=(data, neighbour) or canaries=the number of canaries, got "
            f"{'neither' if pairs is None else 'both'}"
        )
    if canaries is not None and attack is None:
        raise ConfigurationError(
            "canaries= needs attack=, a function from what is released to a score of each canary: the scores must not come "
            "from whoever knows which are in"
        )
    if canaries is not None and find:
        raise ConfigurationError(
            f"find={find!r} says how many calls a game has, and with canaries= there is none; give calls="
        )
    audited = as_training(train, attack)
    built = Audit(
        audited,
        claim,
        neighbours(pairs, search=search) if canaries is None else Canaries(canaries),
        calls=calls,
        find=find,
        controls=[as_training(control, attack) for control in controls],
        evidence=evidence
        if evidence is not None
        else ("game",)
        if canaries is None
        else ("one_run",),
        forecasters=forecasters,
        trace=trace,
        observe=observe,
    )
    budget = Budget(
        TRAININGS if canaries is None else 1,
        is_scarce=canaries is None and not find,
        if_suspect=PROPOSED if calls is None else None,
        stop_when_refuted=stop_when_refuted,
    )
    settings = Settings(alpha, budget, seed, name_of(audited))
    return carried_out(built, settings, progress)
