"""What the tests of evidence share: verdicts, a bit, laws without code, one audit."""

import numpy as np

from auditdp import AnyValues, Audit, Verdict
from auditdp.auditing.gathering import Settings
from auditdp.auditing.judging import run_audit
from auditdp.evidence.exact import exact_evidence
from auditdp.mechanism.laws import FiniteLaw
from auditdp.record.budget import Budget

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


def audited(mechanism, claim, pairs, *, calls=4_000, alpha=0.01, seed=1, **options):
    """The result of one audit."""
    audit = Audit(mechanism, claim, pairs, **options)
    return run_audit(audit, Settings(alpha, Budget(calls), seed))
