"""``audit_training``: the audit of a trainer, by many trainings on two neighbouring data sets or by canaries in one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from auditdp.adjacency.canaries import Canaries
from auditdp.auditing.checking import Checked, carried_out
from auditdp.auditing.declaration import Audit
from auditdp.auditing.settings import Settings
from auditdp.claims.base import Claim
from auditdp.errors import ConfigurationError
from auditdp.mechanism.protocol import name_of
from auditdp.record.details import GameDetails
from auditdp.training.trainers import Attack, as_training, worlds_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TRAININGS = 1_000
"""Trainings on two neighbouring data sets, unless another number is given."""


@dataclass(frozen=True, repr=False)
class AuditedTraining(Checked):
    """What an audit of a trainer found; as ``Checked``, with the bound as it grew."""

    @property
    def history(self) -> list[tuple[int, float]]:
        """After how many trainings which lower bound was certified, wherever it rose; empty for canaries and for curves.

        All of these bounds hold together with the audit's confidence, so one may stop wherever one likes.
        """
        game = self.result.game
        return game.details.bound_path if game is not None and isinstance(game.details, GameDetails) else []

    def plot_history(self, axes: Axes | None = None) -> Axes:
        """Draw the lower bound against the trainings, and the claim, on Matplotlib's own new axes unless some are given.

        Raises:
            ConfigurationError: If there is no history, as of an audit by canaries or of an accountant's curve.
        """
        if not self.history:
            raise ConfigurationError("an audit by canaries, or of an accountant's curve, has no history; use plot()")
        from auditdp.report.html.notebook import plot_levels

        points = [*self.history, (max(self.result.calls, 1), self.history[-1][1])]
        return plot_levels(points, self.result.claim, "trainings", axes, stepwise=True)


def audit_training(
    train: Callable[..., Any],
    claim: Claim,
    *,
    worlds: Any = None,
    canaries: int | None = None,
    attack: Attack | None = None,
    trainings: int | None = None,
    controls: Sequence[Callable[..., Any]] = (),
    forecasters: Sequence[Any] | None = None,
    alpha: float = 0.05,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> AuditedTraining:
    """Audit the claim of a trainer, and return what was found.

    With ``worlds``, two neighbouring data sets, models are trained on either by the throw of a coin, and forecasters bet on
    which: this certifies most, and takes many trainings. With ``canaries`` one training is enough: each canary is in the
    data or not by a coin of its own, and an attack that sees what is released guesses which are. This certifies less.

    What is released is whatever the trainer returns: the final model, predictions, or, from a trainer that yields something
    after every step, all of the steps. What an adversary sees besides, such as which examples were in a batch, belongs there
    only where the claim allows them to see it.

    Args:
        train: ``train(data, rng)``, or ``train(data)`` where it draws from the global generators of Python, NumPy or torch,
            which are set before every training (see ``Training``). With ``canaries``, data is a bool array that says which
            are in, shape (canaries,). For ``worlds`` also a mechanism that trains many models at once,
            ``train(data, size, *, rng)``, with its ``log_prob`` or ``score`` if it has one (``auditdp.mechanism.protocol``).
        claim: What its accountant promises, such as ``ApproxDP(3.0, 1e-5)``, or better the whole curve (``AccountedDP``).
        worlds: Two inputs (data, neighbour), a list of pairs, or an adjacency. Whether a record is added or replaced has to
            be what the claim is about.
        canaries: How many canaries there are.
        attack: ``attack(released)``: with ``canaries`` a score of each, larger for those that look more like being in; with
            ``worlds``, what is bet on in place of the released, such as the score of a membership inference.
        trainings: How many; 1,000 unless given, or one with ``canaries``, of which several have canaries anew.
        controls: Trainers that break the claim on purpose, each of which has to be refuted.
        forecasters: Forecasters for the game; chosen automatically unless given.
        alpha: Probability that a true claim is refuted, or that the lower bound exceeds the truth.
        seed: Root seed; the same one gives the same result.
        progress: Called with the trainings made and those to make; in a notebook a bar is shown unless it is given.

    Raises:
        ConfigurationError: If the arguments do not fit together.
        AuditError: If the inputs or the trainer cannot be used.
    """
    if (worlds is None) == (canaries is None):
        raise ConfigurationError(
            "expected either worlds=(data, neighbour) or canaries=the number of canaries, got "
            f"{'neither' if worlds is None else 'both'}"
        )
    if canaries is not None and attack is None:
        raise ConfigurationError(
            "canaries= needs attack=, a function from what is released to a score of each canary: the scores must not come "
            "from whoever knows which are in"
        )
    number = trainings if trainings is not None else (TRAININGS if canaries is None else 1)
    if number < 1:
        raise ConfigurationError(f"expected trainings >= 1, got trainings={trainings!r}")
    audited = as_training(train, attack)
    built = Audit(
        audited,
        claim,
        Canaries(canaries) if canaries is not None else worlds_of(worlds),
        controls=[as_training(control, attack) for control in controls],
        evidence=("game",) if canaries is None else ("one_run",),
        forecasters=forecasters,
        calls=number,
    )
    settings = Settings(alpha=alpha, calls=number, root_seed=seed, key=name_of(audited))
    return AuditedTraining(*carried_out(built, settings, progress))
