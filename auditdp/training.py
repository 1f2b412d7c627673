"""Audit trainers, by many trainings on neighbouring data or by canaries in one.

``audit_training`` audits the claim of a trainer. ``Training`` makes the trainer a
mechanism: its output depends on the data and a seed alone, also if the trainer draws
from global generators. ``level_by_step`` certifies lower bounds on the privacy loss of
the first steps of a training.
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
"""A function of the output of a training, as an adversary computes it."""


class Training:
    """A trainer as a mechanism ``f(data, rng)`` with one output per call.

    The global generators of Python, NumPy and, if it is loaded, torch are set from
    ``rng`` before every training and restored afterwards. So a trainer that draws from
    them gives the same output for the same seed, in any order and any process. The
    output of a training becomes data as follows: a torch module becomes its
    ``state_dict()``, a tensor becomes an array, and a generator becomes a list. A
    trainer that yields the release of each step is such a generator.

    Args:
        train: ``train(data, rng)``, or ``train(data)`` if it draws from global
            generators.
        attack: A function whose result replaces the output. By post-processing, a
            refutation of the claim for this result refutes the claim for the output.

    Raises:
        MechanismError: If the trainer is not callable, or takes other arguments.
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
        """Return the output of one training, or the result of the attack on it."""
        # A trace must not record the draw of the seed: it is neither noise nor an order
        # of records. So it is drawn by a ``Generator`` that the trace does not observe.
        bits = Generator.bit_generator.__get__(rng)
        seed, loaded = int(Generator(bits).integers(2**63)), "torch" in sys.modules
        released = self._trained(data, seed)
        # If the training loaded torch, torch's generator was not set before.
        if not loaded and "torch" in sys.modules:
            released = self._trained(data, seed)
        return released if self.attack is None else self.attack(released)

    def _trained(self, data: Any, seed: int) -> Any:
        own, shared = np.random.SeedSequence(seed).spawn(2)
        with global_generators(shared):
            return _read(self._given_rng(data, np.random.default_rng(own)))


class _AttackedBatch:
    """A mechanism that trains many models per call, with an attack on each output."""

    def __init__(self, mechanism: Mechanism, attack: Attack) -> None:
        self.mechanism, self.attack = mechanism, attack
        self.name = f"{name_of(attack)} on {name_of(mechanism)}"

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator) -> list[Any]:
        """Return the results of the attack for ``size`` trainings."""
        return [
            self.attack(released) for released in self.mechanism(data, size, rng=rng)
        ]


def as_training(train: Any, attack: Attack | None = None) -> Any:
    """Return a trainer as a mechanism, with the attack on each output if there is one.

    A mechanism ``train(data, size, *, rng)`` stays as it is without an attack.

    Raises:
        MechanismError: If the trainer is not callable, or takes other arguments.
    """
    if not callable(train) or not takes_size(train):
        return Training(train, attack)
    return train if attack is None else _AttackedBatch(train, attack)


@contextmanager
def global_generators(seed: np.random.SeedSequence) -> Iterator[None]:
    """Set the global generators of Python, NumPy and torch during the block.

    Their states are restored after it. Torch is left out if it is not loaded.
    """
    numbers = seed.generate_state(3, np.uint64)
    torch = sys.modules.get("torch")
    before = random.getstate(), np.random.get_state()  # noqa: NPY002
    # ``fork_rng`` would initialise CUDA for its devices, and a fork does not keep that.
    gpus = range(
        torch.cuda.device_count() if torch and torch.cuda.is_initialized() else 0
    )
    with torch.random.fork_rng(gpus) if torch else nullcontext():
        random.seed(int(numbers[0]))
        np.random.seed(numbers[1:2].view(np.uint32))  # noqa: NPY002  # the state that trainers draw from
        if torch:
            # Without a GPU, ``torch.manual_seed`` stores the call stack for each future
            # generator, which takes ten times as long.
            seeded = torch if torch.cuda.is_available() else torch.default_generator
            seeded.manual_seed(int(numbers[2] >> np.uint64(1)))
        try:
            yield
        finally:
            random.setstate(before[0])
            np.random.set_state(before[1])  # noqa: NPY002


def _given_rng(train: Callable[..., Any]) -> Callable[[Any, np.random.Generator], Any]:
    """Return a trainer as a function of data and a generator.

    Raises:
        MechanismError: If the trainer requires other arguments.
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
    """Return the output of a trainer as data: arrays, and dicts and lists of arrays.

    Other values stay as they are.
    """
    if isgenerator(released):
        return [_read(each) for each in released]
    if callable(state := getattr(released, "state_dict", None)):
        released = state()
    if isinstance(released, Mapping):
        return {key: _read(value) for key, value in released.items()}
    if isinstance(released, list | tuple):
        return [_read(each) for each in released]
    value = of_tensor(released)
    # A copy is needed, since trainers change released arrays later.
    return value.copy() if isinstance(value, np.ndarray) else value


def neighbours(pairs: Any, *, search: bool | str) -> Adjacency:
    """Return the adjacency of an audit of a trainer.

    Args:
        pairs: Two inputs (data, neighbour), a list of pairs, or an adjacency.
        search: True to search among pairs that differ like the first given one, if the
            inputs allow that; False for the given pairs alone; or the name of the
            change by which the searched pairs differ. An adjacency that makes pairs
            itself stays as it is.

    Raises:
        AdjacencyError: If there are no pairs; or if ``search`` names a change, and the
            first pair does not differ by it, or the adjacency makes pairs itself.
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
    """Return a tuple of two inputs as a ``Pair``; other arguments stay as they are.

    Each input may itself be a tuple, such as features and labels.
    """
    if (
        isinstance(pairs, tuple)
        and len(pairs) == 2
        and not any(isinstance(world, Pair) for world in pairs)
    ):
        return Pair(*pairs)
    return pairs


MOST_STEPS = 6
"""Largest number of bounds of ``level_by_step`` by default."""


@dataclass(frozen=True)
class LevelByStep:
    """Lower bounds on the privacy loss of the first steps of a training.

    All bounds hold together with confidence 1 - alpha.

    Attributes:
        steps: Numbers of released steps, increasing. ``bounds`` has a bound for each.
        bounds: Lower bounds on the claim's parameter, such as ε. For an accountant's
            curve (``AccountedDP``) they are on ε at the δ that the claim quotes.
        claim: The claim about all steps.
        alpha: Upper limit of the probability that any of the bounds exceeds the true
            privacy loss.
        trainings: Number of trainings on each of the two inputs.
    """

    steps: Sequence[int]
    bounds: Sequence[float]
    claim: ClaimRecord
    alpha: float
    trainings: int

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the bounds and the claim over the number of steps, and return the axes.

        Args:
            axes: Axes of Matplotlib; new ones by default.
        """
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
    """Certify lower bounds on the privacy loss after several numbers of steps.

    All bounds use the same trainings. Each bound comes from a game on the recorded
    releases of the first steps (``auditdp.bounds.stated_assumptions``), with an equal
    share of alpha. The bounds show in which steps the privacy loss grows most.

    Args:
        train: ``train(data, rng)`` or ``train(data)``, which yields or returns the
            release of each step, all with the same number of entries; or a mechanism
            ``train(data, size, *, rng)`` that returns an array of shape (size, steps,
            ...).
        claim: The claim about all steps together.
        pairs: Two inputs (data, neighbour), or an adjacency whose first pair is used.
        trainings: Number of trainings on each input, at least 20.
        steps: Numbers of steps, each at least 1 and at most that of a training; by
            default at most six, in a geometric sequence up to all steps.
        alpha: Upper limit of the probability that any of the bounds exceeds the true
            privacy loss.
        seed: Root seed.

    Raises:
        ConfigurationError: If a number is out of range.
        AdjacencyError: If the inputs are not neighbours.
        MechanismError: If the trainer is not callable, takes other arguments, or
            releases one number a training; or if the number of released entries differs
            between steps, trainings or inputs.
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
    # The curve of an accountant has no parameter to bound. So the bounds are on ε, at
    # the δ that the accountant quotes.
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
    """Return the releases of all steps and trainings, shape (size, steps, entries)."""
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


TRAININGS = 1_000
"""Default number of trainings of an audit with ``pairs``."""
SUSPECT_TRAININGS = 20_000
"""Default number of trainings if traces or bets suggest that the claim is false."""


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
    """Audit the claim of a trainer.

    Give either ``pairs`` or ``canaries``.

    With ``pairs``, such as two neighbouring data sets, a coin chooses one of them for
    each training, and forecasters bet on the coin. This gives the larger lower bounds,
    and needs many trainings. With ``canaries``, one training is enough: for each
    canary, a coin decides whether it is in the data, and an attack on the output
    guesses the coins. This gives smaller lower bounds.

    The output is the return value of the trainer: the final model, predictions, or all
    steps, if the trainer yields after every step. Further knowledge of an adversary,
    such as the composition of batches, may be part of the output only if the claim
    covers it.

    Args:
        train: ``train(data, rng)``, or ``train(data)`` if it draws from the global
            generators of Python, NumPy or torch, which are set before every training
            (see ``Training``). With ``canaries``, data is a bool array of shape
            (canaries,), True for those that are in. For ``pairs`` also a mechanism that
            trains many models at once, ``train(data, size, *, rng)``, with its
            ``log_prob`` or ``score`` if it has one (``auditdp.mechanism.protocol``).
        claim: The claim of the trainer's accountant, such as ``ApproxDP(3.0, 1e-5)``,
            or better the whole curve (``AccountedDP``). It may be a function of the
            number of records, which returns the claim.
        pairs: Two inputs (data, neighbour), each of which may be a tuple such as
            features and labels; a list of pairs; or an adjacency. They have to differ
            by the change that the claim is about: a record added or replaced.
        search: Whether to search for other neighbours. For given pairs, the search is
            among pairs that differ like the first one and stay within the range of its
            data (``auditdp.adjacency.Alike``). One pair may fit several changes, such
            as one edge or one node. Then the narrowest is searched; the result lists
            the others, and ``search`` may name one of them.
        canaries: Number of canaries, with ``pairs=None``.
        attack: ``attack(released)``. With ``canaries`` it is required, and returns a
            score for each, larger for those that seem to be in the data. With ``pairs``
            it is optional: its value replaces the output, such as the score of a
            membership inference.
        calls: Limit of the number of trainings, including those of the trace, the
            search and the confirmation. The default is 1,000, or up to 20,000 if traces
            or bets suggest that the claim is false. With ``canaries`` the default is 1;
            each further training draws the coins of the canaries anew.
        find: A fault that the game has to find nine times in ten, such as 'level:1.5'
            (see ``auditdp.record.budget.Fault``). The game then gets the number of
            trainings that this needs, and at least ``calls``. Those of the confirmation
            and of other checks are additional. Empty for no fault, as it must be with
            ``canaries``.
        stop_when_refuted: Whether to end at the verdict. False uses all trainings for
            the best lower bound.
        alpha: Upper limit of the probability that a true claim is refuted, or that the
            lower bound exceeds the true privacy loss.
        seed: Root seed; equal seeds give equal results.
        controls: Trainers that break the claim on purpose. The result is INCONCLUSIVE
            unless the audit refutes each of them.
        evidence: Kinds of evidence; by default 'game', or 'one_run' with ``canaries``.
        forecasters: Forecasters for the game; chosen automatically by default.
        trace: Whether to trace the code first. A trace proposes pairs and fits laws to
            the noise.
        observe: Side outputs that belong to the output: 'stdout', 'logging', 'files'
            (see ``Audit``).
        progress: Called with the number of trainings so far and in total. By default a
            notebook draws a bar.

    Returns:
        The result. Its ``history`` has the lower bound after a number of trainings, and
        is empty with ``canaries``.

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
            f"find={find!r} sets the number of calls of a game, and with canaries= there is no game; give calls="
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
        if_suspect=SUSPECT_TRAININGS if calls is None else None,
        stop_when_refuted=stop_when_refuted,
    )
    settings = Settings(alpha, budget, seed, name_of(audited))
    return carried_out(built, settings, progress)
