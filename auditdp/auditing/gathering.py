"""Gathering the evidence about one mechanism: which kinds apply, and what share of alpha and of the calls each has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from auditdp.adjacency import Adjacency
from auditdp.auditing.declaration import Audit
from auditdp.auditing.settings import Settings
from auditdp.claims.estimates import Unbiased, VarianceAtMost
from auditdp.claims.statements import ApproxDP, Claim, GaussianDP, PureDP
from auditdp.errors import CollectionError, Timeout
from auditdp.evidence.accounting import accounting_evidence
from auditdp.evidence.counting.evidence import counting_evidence
from auditdp.evidence.estimation.evidence import estimation_evidence
from auditdp.evidence.exact.coverage import EXAMPLES as PAIRS_GENERATED
from auditdp.evidence.exact.evidence import exact_evidence, has_exact_law
from auditdp.evidence.game.evidence import play_game
from auditdp.evidence.game.support import support_evidence
from auditdp.evidence.one_run import one_run_evidence
from auditdp.evidence.sensitivity.evidence import EXAMPLES, sensitivity_evidence
from auditdp.mechanism.calls.untouched import starting_untouched
from auditdp.mechanism.capabilities import Capabilities, capabilities
from auditdp.mechanism.protocol import Mechanism, as_mechanism
from auditdp.numerics.randomness import Streams
from auditdp.record.details import KINDS
from auditdp.record.results import Evidence, Verdict
from auditdp.record.verdict import without_fallen_certificates

COUNTING_CALLS = 4
"""Counting has a quarter of the calls of the game, beside them."""
COUNTING_ALPHA = 0.1
"""Share of an audit's alpha that counting has where it applies."""


def gather(
    built: Audit, mechanism: Any, settings: Settings, purpose: str, *, control: bool = False, bounded: bool = True
) -> list[Evidence]:
    """Run every applicable kind of evidence on one mechanism.

    Args:
        built: The audit.
        mechanism: Its mechanism, or another that is audited as it is.
        settings: Of the audit.
        purpose: Names the randomness.
        control: Whether the mechanism is to be refuted: evidence then stops when it is.
        bounded: Whether the game is to give a lower bound.
    """
    claim = built.claim
    assert not callable(claim)  # settled when the audit was made
    if built.is_formula:
        assert not isinstance(claim, Unbiased | VarianceAtMost)  # checked then, too
        return [accounting_evidence(claim, built.accountants, about=built.about)]
    adapted, streams = as_mechanism(mechanism), settings.streams(purpose)
    calls = max(built.calls if built.calls is not None else settings.calls, settings.least)
    if isinstance(claim, Unbiased | VarianceAtMost):
        assert built.inputs is not None  # checked when the audit was made
        with starting_untouched(adapted):
            return [
                estimation_evidence(adapted, claim, built.inputs, alpha=settings.alpha, calls=calls, streams=streams)
            ]
    calls -= settings.lacking(built.calls)
    about = _Gathering(built, claim, mechanism, adapted, settings, streams, calls, control=control, bounded=bounded)
    with starting_untouched(adapted):
        found = about.evidence()
    if not found:
        raise CollectionError(
            f"no evidence can be gathered: {about.able.name} states no law or query for evidence={list(about.kinds)}; "
            "add 'game'"
        )
    return without_fallen_certificates(found)


@contextmanager
def kept_if_refuted(found: list[Evidence]) -> Iterator[None]:
    """Keep the evidence that refutes the claim, where what comes after it fails or runs out of time; say so there."""
    try:
        yield
    except (Exception, SystemExit, Timeout) as error:
        refuted = next((k for k, evidence in enumerate(found) if evidence.verdict is Verdict.VIOLATED), None)
        if refuted is None:
            raise
        late = f"what came after it ended with {type(error).__name__}: {error}"
        found[refuted] = replace(found[refuted], statement=f"{found[refuted].statement}; {late}")


@dataclass(frozen=True)
class _Gathering:
    """What the evidence about one mechanism is gathered with; of each kind there is None where it does not apply.

    Attributes:
        built: The audit.
        claim: Its claim, of privacy.
        mechanism: The mechanism as it is given.
        adapted: The same, as it is called.
        settings: Of the audit.
        streams: Randomness by (purpose, batch).
        calls: Calls of the game.
        control: Whether the mechanism is to be refuted.
        bounded: Whether the game is to give a lower bound.
    """

    built: Audit
    claim: Claim
    mechanism: Any
    adapted: Mechanism
    settings: Settings
    streams: Streams
    calls: int
    control: bool
    bounded: bool

    @cached_property
    def able(self) -> Capabilities:
        """What the mechanism offers."""
        return capabilities(self.mechanism)

    @property
    def adjacency(self) -> Adjacency:
        """Which inputs are neighbours."""
        return self.built.adjacency

    @cached_property
    def kinds(self) -> list[str]:
        """The kinds of evidence that are asked for and can be about such a claim: of a curve, only what is played."""
        is_curve = not isinstance(self.claim, PureDP | ApproxDP | GaussianDP)
        return [kind for kind in self.built.asked if KINDS[kind].any_claim or not is_curve]

    def evidence(self) -> list[Evidence]:
        """Gather it all. Counting has its share of alpha; of the rest, each kind that may err has an equal one."""
        bets, alpha = [kind for kind in self.kinds if KINDS[kind].sampled], self.settings.alpha
        share = COUNTING_ALPHA if bets else 1.0
        counted = self.counting(alpha * share)
        left = alpha if counted is None else alpha * (1 - share)
        each = left / max(len(bets), 1)
        kinds: list[Callable[[], Evidence | None]] = [
            self.exact,
            self.accounting,
            partial(self.game, each),
            lambda: counted,
            partial(self.one_run, each),
            partial(self.support, each),
            self.sensitivity,
        ]
        found: list[Evidence] = []
        for gathered in kinds:
            with kept_if_refuted(found):
                found += [evidence for evidence in (gathered(),) if evidence is not None]
        return found

    def counting(self, alpha: float) -> Evidence | None:
        """Outputs that are counted; of a control none, since counting refutes no claim."""
        if "counting" not in self.kinds or self.control:
            return None
        return counting_evidence(
            self.adapted,
            self.claim,
            self.adjacency,
            alpha=alpha,
            calls=self.calls // COUNTING_CALLS,
            streams=self.streams,
            play=self.built.play,
            law=self.able.law_of_output if "exact" in self.kinds else None,
        )

    def exact(self) -> Evidence | None:
        """Stated laws, of the listed pairs alone where the audit is not exhaustive."""
        if "exact" not in self.kinds or not has_exact_law(self.mechanism, self.adjacency, refuting=self.control):
            return None
        return exact_evidence(
            self.mechanism,
            self.claim,
            self.adjacency,
            play=None if self.built.exhaustive else (self.built.play or self.adjacency.pairs()),
            seed=int(self.streams("exact", 0).integers(2**32)),
            examples=self.settings.generated(PAIRS_GENERATED),
            refuting=self.control,
        )

    def accounting(self) -> Evidence | None:
        """Accountants, which are about the class that is described; the mechanism may be a better one than its worst."""
        if "accounting" not in self.kinds or not self.built.accountants or self.control:
            return None
        about = self.built.about
        return accounting_evidence(self.claim, self.built.accountants, about=about, attained=about is not None)

    def game(self, alpha: float) -> Evidence | None:
        """Bets, with as many calls as find a fault where one is to be found."""
        if "game" not in self.kinds:
            return None
        settings, betting = self.settings, self._betting(alpha)
        if (find := settings.find or self.built.fault) is not None:
            betting |= {"calls": max(self.built.calls or 1, settings.least), "find": find, "most": settings.most}
        return play_game(
            self.adapted,
            self.claim,
            self.adjacency,
            forecasters=self.built.forecasters,
            bounded=self.bounded,
            further=settings.further,
            recorded=None if self.control else settings.recorded,
            **betting,
        )

    def one_run(self, alpha: float) -> Evidence | None:
        """Canaries of one training, or of as many as the audit names."""
        if "one_run" not in self.kinds:
            return None
        trainings = self.calls if self.built.calls is not None else 1
        return one_run_evidence(
            self.adapted, self.claim, self.adjacency, alpha=alpha, trainings=trainings, streams=self.streams
        )

    def support(self, alpha: float) -> Evidence | None:
        """Bets on bit patterns."""
        if "support" not in self.kinds:
            return None
        return support_evidence(self.adapted, self.claim, self.adjacency, **self._betting(alpha))

    def sensitivity(self) -> Evidence | None:
        """What is computed before the noise, of the listed pairs alone where the audit is not exhaustive."""
        if "sensitivity" not in self.kinds or not self.able.is_calibrated:
            return None
        examples = self.settings.generated(EXAMPLES) if self.built.exhaustive else 0
        return sensitivity_evidence(
            self.mechanism, self.adjacency, streams=self.streams, play=self.built.play, examples=examples
        )

    def _betting(self, alpha: float) -> dict[str, Any]:
        """Return the arguments of both kinds of evidence that bet."""
        return {
            "alpha": alpha,
            "calls": self.calls,
            "streams": self.streams,
            "play": self.built.play,
            "stop_when_refuted": self.control or self.settings.brief,
        }
