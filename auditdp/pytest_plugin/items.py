"""Audit files and audits as pytest collects them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from auditdp.pytest_plugin import audit_session, keep
from auditdp.record.results import RESULT, Verdict
from auditdp.report.standing import undecided
from auditdp.report.terminal import run as terminal


class AuditFile(pytest.File):
    """An audit file, which is imported in a process of its own."""

    def collect(self) -> Iterator[AuditItem]:
        """Yield its audits, in the order of the file.

        Raises:
            CollectError: If it does not import.
        """
        collected = audit_session(self.config).collect(self.path)
        if collected.failure:
            raise self.CollectError(collected.failure)
        for listed in collected.audits:
            name = listed.id.rpartition("::")[2]
            yield AuditItem.from_parent(self, name=name, audit=listed.id, description=listed.description)


class AuditItem(pytest.Item):
    """One audit.

    Attributes:
        audit: Its id, by which its randomness is keyed.
    """

    def __init__(self, *, audit: str, description: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.audit = audit
        self.description = description
        self.add_marker("audit")

    def setup(self) -> None:
        """Run the audit; one that crashes is an error of the set-up, and no failure."""
        self.result = audit_session(self.config).run(self.audit)
        keep(self, RESULT.dump_json(self.result).decode())
        if self.result.verdict is Verdict.ERROR:
            pytest.fail(terminal.line(self.result), pytrace=False)
        if self.result.verdict is Verdict.SKIPPED:
            self._undecided("skipped")

    def runtest(self) -> None:
        """Fail where the audit is a finding, or a refutation was not confirmed."""
        if self.result.is_finding or self.result.is_unconfirmed:
            pytest.fail(terminal.line(self.result), pytrace=False)
        if self.result.is_undecided or self.result.verdict is Verdict.INCONCLUSIVE:
            self._undecided("inconclusive")

    def _undecided(self, what: str) -> None:
        if what in audit_session(self.config).fail_on:
            pytest.fail(f"{what}, which the settings (fail_on) make a failure: {self.result.summary}", pytrace=False)
        pytest.skip(f"{what}: {undecided(self.result) or self.result.summary}")

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return what pytest calls it by."""
        return self.path, None, f"audit {self.name}"
