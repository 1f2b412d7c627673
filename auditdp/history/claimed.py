"""What is claimed of whom, as records of different machines are compared: by its numbers, and not by their last digits.

Claims are computed, by accountants or from parameters, and a processor with other instructions computes other last digits.
So two claims are the same where their texts are the same but for numbers, and their numbers are the same but for what
floating point may change. A digest of digits cannot show that, and one of rounded digits neither: a number may lie where it
is rounded up or down.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from itertools import chain

from auditdp.numerics.rounding import same_number
from auditdp.record.results import SYMBOLS, ClaimRecord

SAME_IN_TEXT = 1e-5
"""Relative difference of two numbers that are the same, rounded to six digits in a text."""
NOISE = 1e-12
"""Difference up to which two numbers of a curve are the same: a δ below it is noise."""
DIGITS = 9
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d*)?(?:e[+-]?\d+)?(?!\w)")


@dataclass(frozen=True)
class Claimed:
    """What is claimed of whom; not where it was published, nor how it was audited.

    Attributes:
        text: The claim, as reports write it.
        adjacency: Which inputs are neighbours, as reports write it; a long domain is cut there.
        numbers: The numbers of the claim, one or two, or those of a curve; none where they are not known.
        digest: The digest of the whole adjacency; empty where an earlier version wrote the record, and where no inputs are
            given.
    """

    text: str = ""
    adjacency: str = ""
    numbers: tuple[float, ...] = ()
    digest: str = ""

    @classmethod
    def of(cls, claim: ClaimRecord | None) -> Claimed:
        """Return a claim as it is compared; an audit that was skipped states none."""
        if claim is None:
            return cls()
        parameters = (getattr(claim, name) for name in SYMBOLS)  # of which a claim has one
        given = (*parameters, claim.delta, claim.level, *chain.from_iterable(claim.curve))
        numbers = tuple(float(f"{float(number):.{DIGITS}g}") for number in given if number is not None)
        return cls(claim.text, claim.adjacency, numbers, claim.digest)

    def same(self, other: Claimed) -> bool:
        """Return whether two claims are the same but for what floating point may change.

        Where both have their numbers, those in the text of the claim are not compared: they are the same ones, rounded.
        """
        if not self.same_neighbours(other):
            return False
        if not self.numbers or not other.numbers:
            return same_text(self.text, other.text)
        near = NOISE if len(self.numbers) > 2 else 0.0
        return (
            _NUMBER.sub("#", self.text) == _NUMBER.sub("#", other.text)
            and len(self.numbers) == len(other.numbers)
            and all(same_number(a, b, near=near) for a, b in zip(self.numbers, other.numbers, strict=True))
        )

    def same_neighbours(self, other: Claimed) -> bool:
        """Return whether two claims are about the same neighbours; without both digests their texts alone are compared."""
        digests = {self.digest, other.digest} - {""}
        return len(digests) < 2 and same_text(self.adjacency, other.adjacency)


def same_text(one: str, other: str) -> bool:
    """Return whether two texts are the same but for the last of six digits of the numbers in them.

    >>> same_text("changes by at most 0.333333", "changes by at most 0.333334"), same_text("3 nodes", "4 nodes")
    (True, False)
    """
    return _NUMBER.sub("#", one) == _NUMBER.sub("#", other) and all(
        math.isclose(float(a), float(b), rel_tol=SAME_IN_TEXT)
        for a, b in zip(_NUMBER.findall(one), _NUMBER.findall(other), strict=True)
    )
