"""The ``auditor`` fixture: ``assert_private`` with randomness that belongs to the test, and a place in the report."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from auditdp.auditing.assertion import assert_private
from auditdp.claims.statements import Claim
from auditdp.errors import ConfigurationError, PrivacyViolation, did_you_mean
from auditdp.numerics.randomness import stream
from auditdp.pytest_plugin import keep
from auditdp.pytest_plugin.session import AuditSession
from auditdp.record.budgets import Budget
from auditdp.record.results import RESULT, AuditResult

KNOWN = ("calls", "alpha")


class Auditor:
    """Audits mechanisms inside one test.

    Randomness is keyed by the root seed and the test's id, so that it is the same for any number of processes and any
    selection of tests.

    Args:
        item: The test.
        session: What the audits of the session share.
        marked: Keywords of the test's marker ``auditdp``.

    Raises:
        ConfigurationError: If the marker has an unknown keyword.
    """

    def __init__(self, item: pytest.Item, session: AuditSession, **marked: Any) -> None:
        for name in marked:
            if name not in KNOWN:
                raise ConfigurationError(f"marker auditdp({name}=): {did_you_mean(name, KNOWN)}")
        self._item, self._session, self._made = item, session, 0
        budget = Budget.read(session.budget)
        self._find = "" if budget.find is None or "calls" in marked else str(budget.find)
        self._calls = marked.get("calls", budget.calls)
        self._alpha = marked.get("alpha", 1e-6)

    def assert_private(
        self,
        mechanism: Any,
        claim: Claim,
        pairs: Any,
        *,
        calls: int | None = None,
        find: str | None = None,
        alpha: float | None = None,
        forecasters: Sequence[Any] | None = None,
    ) -> AuditResult:
        """Raise if the claim is refuted; see ``auditdp.assert_private``.

        Args:
            mechanism: ``f(data, size, *, rng)`` or ``f(data, rng)``.
            claim: What it promises.
            pairs: An adjacency, one ``Pair``, or a list of pairs (data, neighbour).
            calls: Calls to spend; those of the marker, or of the budget, unless given.
            find: A fault that decides how many calls there are; that of the budget unless ``calls`` are given.
            alpha: Probability that a private mechanism fails the test; that of the marker, or 1e-6, unless given.
            forecasters: Forecasters for the game; chosen automatically unless given.

        Raises:
            PrivacyViolation: If the claim is refuted.
            AuditError: If the inputs or the mechanism cannot be used.
        """
        __tracebackhide__ = True
        self._made += 1
        name = self._item.nodeid + (f" ({self._made})" if self._made > 1 else "")
        try:
            result = assert_private(
                mechanism,
                claim,
                pairs,
                calls=self._calls if calls is None else calls,
                find=find if find is not None else self._find if calls is None else "",
                alpha=self._alpha if alpha is None else alpha,
                seed=int(stream(self._session.seed, "pytest", name).integers(2**32)),
                forecasters=forecasters,
            )
        except PrivacyViolation as error:
            self._keep(error.result, name)
            raise
        self._keep(result, name)
        return result

    def _keep(self, result: AuditResult, name: str) -> None:
        seed = ["--auditdp-seed", str(self._session.seed), "--auditdp-budget", self._session.budget]
        kept = replace(result, id=name, reproduce=shlex.join(["pytest", self._item.nodeid, *seed]))
        keep(self._item, RESULT.dump_json(kept).decode())
