"""What a mechanism states of its law, and by it the loss of a pair, each computed once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from auditdp.adjacency import Pair
from auditdp.adjacency.pair_search import key
from auditdp.claims.claim import Claim
from auditdp.claims.statements import GaussianDP
from auditdp.evidence.exact_losses import PairLoss
from auditdp.evidence.loss_of_laws import pair_loss
from auditdp.mechanism.calls.inputs import Inputs
from auditdp.mechanism.capabilities import Capabilities
from auditdp.mechanism.protocol import identity_key

Result = TypeVar("Result")


@dataclass(frozen=True)
class Stated:
    """The stated laws of a mechanism."""

    law_of: Callable[[Any], Any]
    loss_of: Callable[[Pair], PairLoss]
    of_output: bool
    """Whether the law is that of the output itself. Where it is the law before post-processing, its loss is an upper bound
    on that of the output, and no lower one.
    """


def stated_by(able: Capabilities, claim: Claim) -> Stated | None:
    """Return what a mechanism states, with losses at the point of δ(ε) that the claim is about; None where it is nothing."""
    if (law := able.law) is None:
        return None
    inputs, name = Inputs(), f"{able.name}: its law"

    def lent_law(data: Any) -> Any:
        with inputs.lent(name, data) as (lent,):
            return law(lent)

    law_of, asked = _once(lent_law, identity_key), asked_by(claim)
    loss_of = _once(
        lambda pair: pair_loss(law_of(pair.data), law_of(pair.neighbour), **asked), key
    )
    return Stated(law_of, loss_of, able.law_of_output is not None)


def is_pure(claim: Claim) -> bool:
    """Return whether a claim is about the pure epsilon."""
    return not isinstance(claim, GaussianDP) and claim.tangents()[0][1] == 0


def asked_by(claim: Claim) -> dict[str, float]:
    """Return the point of the curve δ(ε) that a claim is about, if it is about one."""
    if isinstance(claim, GaussianDP) or is_pure(claim):
        return {}
    return {"epsilon": claim.level, "delta": claim.tangents()[0][1]}


def size(loss: PairLoss) -> tuple[float, float, float]:
    """Return what makes one loss larger than another."""
    main = loss.mu if loss.mu is not None else loss.delta
    known = main is not None and not main.contains(
        0
    )  # else it is the width of the enclosure that would be compared
    return (
        float(main.mid()) if main is not None and known else 0.0,
        loss.lower,
        loss.upper,
    )


def _once(
    function: Callable[[Any], Result], identity: Callable[[Any], Any]
) -> Callable[[Any], Result]:
    """Return the function, computed once for values that are certainly the same."""
    cache: dict[Any, tuple[Result, Any]] = {}

    def of(value: Any) -> Result:
        same = identity(value)
        if same not in cache:
            cache[same] = (
                function(value),
                value,
            )  # the value is kept alive, so that its identity stays its own
        return cache[same][0]

    return of
