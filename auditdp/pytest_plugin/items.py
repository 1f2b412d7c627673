"""Audit files and audits as pytest items, and the class of the ``auditor`` fixture."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from auditdp.auditing.check import ALPHA, asserted
from auditdp.auditing.declaration import Audit
from auditdp.auditing.gathering import Settings
from auditdp.claims.claim import Claim
from auditdp.claims.estimates import Promise
from auditdp.errors import (
    ConfigurationError,
    ControlSurvived,
    NotConfirmed,
    PrivacyViolation,
    did_you_mean,
)
from auditdp.mechanism.protocol import name_of
from auditdp.numerics.streams import stream
from auditdp.pytest_plugin import audit_session, keep
from auditdp.pytest_plugin.session import AuditSession
from auditdp.record.budget import Budget
from auditdp.record.results import RESULT, AuditResult, Verdict
from auditdp.report import terminal
from auditdp.report.sentences import undecided


class AuditFile(pytest.File):
    """An audit file; a separate process imports it."""

    def collect(self) -> Iterator[AuditItem]:
        """Yield the audits of the file, in its order.

        Raises:
            CollectError: If the file cannot be imported.
        """
        collected = audit_session(self.config).collect(self.path)
        if collected.failure:
            raise self.CollectError(collected.failure)
        for listed in collected.audits:
            name = listed.id.rpartition("::")[2]
            yield AuditItem.from_parent(
                self, name=name, audit=listed.id, description=listed.description
            )


class AuditItem(pytest.Item):
    """One audit as a test item.

    Attributes:
        audit: The id of the audit, which keys its randomness.
        description: The description that the audit file declares.
    """

    def __init__(self, *, audit: str, description: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.audit = audit
        self.description = description
        self.add_marker("audit")

    def setup(self) -> None:
        """Run the audit.

        A crash is an error of the set-up, so pytest does not count it as a failure. A
        skipped audit skips the item; if ``fail_on`` has 'skipped', it is an error, too.
        """
        self.result = audit_session(self.config).run(self.audit)
        keep(self, RESULT.dump_json(self.result).decode())
        if self.result.verdict is Verdict.ERROR:
            pytest.fail(terminal.line(self.result), pytrace=False)
        if self.result.verdict is Verdict.SKIPPED:
            self._undecided("skipped")

    def runtest(self) -> None:
        """Fail if the result is a finding, or a refutation was not confirmed.

        An inconclusive audit is skipped, unless ``fail_on`` has 'inconclusive'.
        """
        if self.result.is_finding or self.result.is_unconfirmed:
            pytest.fail(terminal.line(self.result), pytrace=False)
        if self.result.is_undecided or self.result.verdict is Verdict.INCONCLUSIVE:
            self._undecided("inconclusive")

    def _undecided(self, what: str) -> None:
        if what in audit_session(self.config).fail_on:
            pytest.fail(
                f"{what}, which the settings (fail_on) make a failure: {self.result.summary}",
                pytrace=False,
            )
        pytest.skip(f"{what}: {undecided(self.result) or self.result.summary}")

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return the file and the name of the item for reports of pytest."""
        return self.path, None, f"audit {self.name}"


KNOWN = ("alpha", "calls", "find")


class Auditor:
    """The value of the fixture ``auditor``: it audits mechanisms in one test.

    The root seed, the test's id, the number of the call in the test and the mechanism's
    name key the randomness. So it does not depend on the number of processes or on the
    selection of tests.

    Args:
        item: The test.
        session: The shared state of all audits.
        marked: Keywords of the test's marker ``auditdp``: calls, find, alpha.

    Raises:
        ConfigurationError: If the marker has an unknown keyword.
    """

    def __init__(self, item: pytest.Item, session: AuditSession, **marked: Any) -> None:
        for name in marked:
            if name not in KNOWN:
                raise ConfigurationError(
                    f"marker auditdp({name}=): {did_you_mean(name, KNOWN)}"
                )
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
        """Audit a mechanism; raise if the claim or not every control is refuted.

        The arguments are those of ``auditdp.assert_private``. By default ``calls``,
        ``find`` and ``alpha`` are those of the marker ``auditdp``. Without them, the
        budget of the session states ``calls`` and ``find``, and ``alpha`` is 1e-6.

        Returns:
            The result, which may be inconclusive.

        Raises:
            PrivacyViolation: If the claim is refuted.
            ControlSurvived: If a control is not refuted.
            NotConfirmed: If the claim is refuted without a confirmation.
            AuditError: If the inputs or the mechanism cannot be used.
        """
        __tracebackhide__ = True
        self._made += 1
        name = self._item.nodeid + (f" ({self._made})" if self._made > 1 else "")
        calls, find = (
            self._calls if calls is None else calls,
            self._find if find is None else find,
        )
        budgeted = (
            str(self._budget.fault)
            if self._budget.fault is not None and calls is None
            else ""
        )
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
            budget=Budget(self._budget.calls),
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
        seed = [
            "--auditdp-seed",
            str(self._session.seed),
            "--auditdp-budget",
            self._session.budget,
        ]
        kept = replace(
            result, id=name, reproduce=shlex.join(["pytest", self._item.nodeid, *seed])
        )
        keep(self._item, RESULT.dump_json(kept).decode())
