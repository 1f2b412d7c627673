"""The ``auditor`` fixture: ``assert_private`` with randomness that belongs to the test, and a place in the report."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from auditdp.auditing.assertion import ALPHA, asserted
from auditdp.auditing.declaration import Audit
from auditdp.auditing.settings import Settings
from auditdp.claims.base import Claim
from auditdp.claims.estimates import Promise
from auditdp.errors import ConfigurationError, ControlSurvived, NotConfirmed, PrivacyViolation, did_you_mean
from auditdp.mechanism.protocol import name_of
from auditdp.numerics.randomness import stream
from auditdp.pytest_plugin import keep
from auditdp.pytest_plugin.session import AuditSession
from auditdp.record.budgets import Budget
from auditdp.record.results import RESULT, AuditResult

KNOWN = ("alpha", "calls", "find")


class Auditor:
    """Audits mechanisms inside one test.

    Randomness is keyed by the root seed and the test's id, so that it is the same for any number of processes and any
    selection of tests.

    ``marked`` are the keywords of the test's marker ``auditdp``.

    Raises:
        ConfigurationError: If the marker has an unknown keyword.
    """

    def __init__(self, item: pytest.Item, session: AuditSession, **marked: Any) -> None:
        for name in marked:
            if name not in KNOWN:
                raise ConfigurationError(f"marker auditdp({name}=): {did_you_mean(name, KNOWN)}")
        self._item, self._session, self._made = item, session, 0
        self._budget = Budget.read(session.budget)
        self._calls, self._find = marked.get("calls"), marked.get("find")
        self._alpha = marked.get("alpha", ALPHA)

    def assert_private(
        self,
        mechanism: Any,
        claim: Claim | Promise | Callable[[int], Claim],
        pairs: Any = None,
        *,
        inputs: Mapping[str, Sequence[Any]] | None = None,
        calls: int | None = None,
        find: str | None = None,
        alpha: float | None = None,
        controls: Sequence[Any] = (),
        evidence: Sequence[str] | None = None,
        forecasters: Sequence[Any] | None = None,
        trace: bool = True,
        observe: Sequence[str] = (),
    ) -> AuditResult:
        """Raise if the claim is refuted, or a control is not; see ``auditdp.assert_private``.

        Unless given, ``calls``, ``find`` and ``alpha`` are those of the marker; else calls, or the fault, are those of the
        budget, and alpha is 1e-6.

        Raises:
            PrivacyViolation: If the claim is refuted.
            ControlSurvived: If a control is not refuted.
            NotConfirmed: If the claim is refuted, and that is not confirmed.
            AuditError: If the inputs or the mechanism cannot be used.
        """
        __tracebackhide__ = True
        self._made += 1
        name = self._item.nodeid + (f" ({self._made})" if self._made > 1 else "")
        calls, find = self._calls if calls is None else calls, self._find if find is None else find
        budgeted = str(self._budget.find) if self._budget.find is not None and calls is None else ""
        built = Audit(
            mechanism,
            claim,
            pairs,
            inputs=inputs,
            calls=calls,
            find=budgeted if find is None else find,
            controls=list(controls),
            evidence=evidence,
            forecasters=forecasters,
            trace=trace,
            observe=observe,
        )
        settings = Settings(
            alpha=self._alpha if alpha is None else alpha,
            calls=self._budget.calls,
            root_seed=int(stream(self._session.seed, "pytest", name).integers(2**32)),
            key=name_of(mechanism),
            trace=self._session.trace,
        )
        try:
            result = asserted(built, settings)
        except (PrivacyViolation, ControlSurvived, NotConfirmed) as error:
            self._keep(error.result, name)
            raise
        self._keep(result, name)
        return result

    def _keep(self, result: AuditResult, name: str) -> None:
        seed = ["--auditdp-seed", str(self._session.seed), "--auditdp-budget", self._session.budget]
        kept = replace(result, id=name, reproduce=shlex.join(["pytest", self._item.nodeid, *seed]))
        keep(self._item, RESULT.dump_json(kept).decode())
