"""``audit_training``: the audit of a trainer, by many trainings on two neighbouring data sets or by canaries in one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from auditdp.adjacency.canaries import Canaries
from auditdp.auditing.checking import carried_out
from auditdp.auditing.declaration import Audit
from auditdp.auditing.settings import Settings
from auditdp.claims.base import Claim
from auditdp.errors import ConfigurationError
from auditdp.mechanism.protocol import name_of
from auditdp.record.results import AuditResult
from auditdp.training.trainers import Attack, as_training, neighbours

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
        find: A fault that is to be found nine times in ten, such as 'level:1.5' (see ``auditdp.record.budgets.Fault``):
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
        evidence=evidence if evidence is not None else ("game",) if canaries is None else ("one_run",),
        forecasters=forecasters,
        trace=trace,
        observe=observe,
    )
    settings = Settings(
        alpha,
        TRAININGS if canaries is None else 1,
        seed,
        name_of(audited),
        within=canaries is None and not find,
        proposed=PROPOSED if calls is None else None,
        stop_when_refuted=stop_when_refuted,
    )
    return carried_out(built, settings, progress)
