"""What is computed from an output loses no more than the output.

g∘M is never refuted where M is certified.

Nothing is known of g∘M but its outputs and what a trace of its code shows; it is
audited as a whole, trace included.
"""

from dataclasses import dataclass, replace
from functools import cache
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest

from auditdp import AnyValues, Audit, PureDP
from auditdp.auditing.decorator import collect
from auditdp.auditing.gathering import Settings
from auditdp.auditing.judging import run_audit
from auditdp.errors import Skip
from auditdp.mechanism.laws import LaplaceLaw
from auditdp.mechanism.protocol import as_mechanism
from auditdp.record.budget import Budget
from auditdp.record.results import REFUTATIONS, Verdict

pytestmark = pytest.mark.statistical

ALPHA = 1e-6
"""Of each audit."""
ROOT = Path(__file__).parents[2]


def _of_numbers(change):
    return lambda outputs: (
        change(outputs) if np.asarray(outputs).dtype.kind in "biuf" else outputs
    )


PROCESSED = {
    "sorted": _of_numbers(
        lambda outputs: np.sort(outputs, axis=-1) if outputs.ndim > 1 else outputs
    ),
    "reversed": lambda outputs: outputs[:, ::-1] if np.ndim(outputs) > 1 else outputs,
    "rounded": _of_numbers(np.round),
    "first half": lambda outputs: (
        outputs[:, : (outputs.shape[1] + 1) // 2] if np.ndim(outputs) > 1 else outputs
    ),
    "one to one": _of_numbers(lambda outputs: 3.0 - outputs.astype(float) * 2),
}


@dataclass(frozen=True)
class Counts:
    """Three counts with Laplace noise, of which one may be one larger."""

    scale: float

    def __call__(self, data, size, *, rng):
        return np.array([4, 2 + data, 7]) + rng.laplace(
            scale=self.scale, size=(size, 3)
        )

    def distribution(self, data):
        return LaplaceLaw(np.array([4.0, 2.0 + data, 7.0]), np.full(3, self.scale))


@dataclass(frozen=True)
class Processed:
    """g∘M, of which no law is stated."""

    change: str
    mechanism: object

    def __call__(self, data, size, *, rng):
        return PROCESSED[self.change](
            np.asarray(as_mechanism(self.mechanism)(data, size, rng=rng))
        )


@cache
def verdict(mechanism):
    return run_audit(
        Audit(mechanism, PureDP(1.0), AnyValues((0, 1))),
        Settings(ALPHA, Budget(300, is_limit=True), 1),
    ).verdict


@pytest.mark.dear
@pytest.mark.parametrize("change", PROCESSED)
def test_what_is_computed_from_a_certified_release_is_not_refuted(change):
    """With a quarter of the noise it is: none of the changes hides that."""
    assert verdict(Counts(1.0)) is Verdict.CERTIFIED
    assert verdict(Processed(change, Counts(1.0))) is Verdict.NOT_REFUTED
    assert verdict(Processed(change, Counts(0.25))) is Verdict.VIOLATED


def certified(path):
    """The audits of a file that are certified, without their twins."""
    for declared in collect(path, ROOT):
        try:
            built, _ = declared.build({})
        except Skip:
            continue
        if built.mechanism is None or built.is_promise:
            continue
        plain = replace(
            built,
            controls=(),
            forecasters=None,
            figure=None,
            accountants=(),
            about=None,
        )
        if (
            run_audit(plain, settings(declared.id)).verdict is Verdict.CERTIFIED
        ):  # by evidence that it names, if it does
            yield declared.id, replace(plain, evidence=None)


def settings(key):
    return Settings(ALPHA, Budget(1_000, is_limit=True), 1, key=key)


@pytest.mark.full
@pytest.mark.parametrize(
    "name",
    [
        "classic",
        "classic_selection",
        "edges",
        "feature_rr",
        "labels",
        "link_ldp",
        "numeric",
    ],
)
def test_what_is_computed_from_what_this_repository_certifies_is_not_refuted(name):
    """Each audit with one of the changes, in turn."""
    found = dict(certified(ROOT / f"audits/audit_{name}.py"))
    wrong = [
        (key, change)
        for (key, built), change in zip(found.items(), cycle(PROCESSED), strict=False)
        if run_audit(
            replace(built, mechanism=Processed(change, built.mechanism)), settings(key)
        ).verdict
        in REFUTATIONS
    ]
    assert found
    assert not wrong, f"of {len(found)} audits, each at {ALPHA=}"
