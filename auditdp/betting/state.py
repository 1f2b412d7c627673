"""State that a mechanism keeps between its calls: whether a finding is about that, and not about single runs."""

from __future__ import annotations

from auditdp.betting.game import Game
from auditdp.errors import MechanismError
from auditdp.randomness import Streams, prefixed


def check_state(game: Game, streams: Streams, alpha: float) -> int:
    """Raise where calls that share the state of a mechanism show again what untouched copies of it did not.

    To be asked where a finding was not confirmed by calls made one by one.

    Args:
        game: The game that found something.
        streams: Randomness by (purpose, number).
        alpha: Probability that this raises although every output is a run that satisfies the claim, at most.

    Returns:
        Calls that were made.

    Raises:
        MechanismError: If they do.
    """
    if (part := game.calls.changed()) is None:
        return 0
    again = game.confirmation(prefixed(streams, "shared state"), singly=False)
    again.play(game.wealth.calls, alpha=alpha, stop_when_refuted=True)
    if again.wealth.refuted(alpha):
        raise MechanismError(
            f"{game.calls.name}: keeps state between calls ({part or 'itself'} changes), and what it returns depends on it: "
            f"{again.wealth.calls:,} calls of one object refuted the claim, and calls of copies that nobody had called "
            "did not; a claim is about single runs, so let no run depend on the runs before, or audit a function that "
            "makes all runs of one release"
        )
    return again.wealth.calls
