"""What the tests of evidence share: verdicts, a bit, laws without code, one audit."""

from functools import partial

import numpy as np

from auditdp import AnyValues, Audit, FiniteLaw, Verdict
from auditdp.adjacency import as_adjacency
from auditdp.auditing.gathering import Settings
from auditdp.auditing.judging import run_audit
from auditdp.evidence.exact import exact_evidence
from auditdp.evidence.game_evidence import play_game
from auditdp.evidence.request import GameOptions
from auditdp.mechanism.protocol import as_mechanism
from auditdp.numerics.streams import stream
from auditdp.record.budget import AuditBudget, Budget

CERTIFIED = Verdict.CERTIFIED
EQUIVALENT = Verdict.EQUIVALENT
INCONCLUSIVE = Verdict.INCONCLUSIVE
MISCALIBRATED = Verdict.MISCALIBRATED
NOT_REFUTED = Verdict.NOT_REFUTED
VIOLATED = Verdict.VIOLATED
BIT = AnyValues((0, 1))
NUMBERS = AnyValues((0.0, 1.0), finite=True)


def finite(*probabilities):
    """The law of the outputs 0, 1, 2 and so on."""
    return FiniteLaw(np.arange(len(probabilities)), list(probabilities))


def bit(keep):
    """The two laws of a bit that is returned as it is with a probability."""
    return [keep, 1 - keep], [1 - keep, keep]


class Stated:
    """A mechanism without code: its law is ``laws[data]``, or ``laws(data)``.

    A list is a list of probabilities, of the outputs 0, 1, 2 and so on.
    """

    name = "stated"

    def __init__(self, laws):
        self.laws = laws

    def distribution(self, data):
        law = self.laws(data) if callable(self.laws) else self.laws[data]
        return finite(*law) if isinstance(law, list) else law


def exact(laws, claim, adjacency=BIT, **options):
    """Exact evidence about a mechanism, or about laws alone."""
    states = hasattr(laws, "distribution") or hasattr(laws, "before_processing")
    mechanism = laws if states else Stated(laws)
    return exact_evidence(mechanism, claim, adjacency, **options)


def audited(mechanism, claim, pairs, *, budget=4_000, alpha=0.01, seed=1, **options):
    """The result of one audit."""
    audit = Audit(mechanism, claim, pairs, **options)
    return run_audit(audit, Settings(alpha, Budget(budget), seed))


def played(
    mechanism,
    claim,
    pairs,
    calls,
    *,
    further=(),
    stop_when_refuted=False,
    alpha=0.05,
    streams=partial(stream, 1),  # noqa: B008
    **options,
):
    """The evidence of one game of ``calls`` calls, and of ``further`` ones."""
    budget = AuditBudget.of(calls, later=further, stop_when_refuted=stop_when_refuted)
    return play_game(
        as_mechanism(mechanism),
        claim,
        as_adjacency(pairs),
        GameOptions(alpha=alpha, budget=budget, **options),
        streams=streams,
    )
