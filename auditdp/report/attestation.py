"""What is attested of a run: an in-toto statement that its record and the sources of its audits are those of a test run.

Statement v1 with the predicate test-result v0.1 (github.com/in-toto/attestation, ``spec/v1/statement.md`` and
``spec/predicates/test-result.md``). The first subject is the record; its annotations have, for each audit, verdict and
bounds, and what an audit knows of an entry in the public registry of deployments
(github.com/opendp/deployments-registry-data, ``schemas/deployments-schema.yaml``), by the names that this has.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from typing import Any

from auditdp.record.details import AccountingDetails
from auditdp.record.json_fields import json_number
from auditdp.record.results import SYMBOLS, AuditResult, ClaimRecord, RunRecord, details
from auditdp.report.machine_readable import Judged, Level, judged
from auditdp.report.plain_text import shorten

PAYLOAD = "application/vnd.in-toto+json"
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://in-toto.io/attestation/test-result/v0.1"
OUTCOMES = {"PASSED": "passedTests", "WARNED": "warnedTests", "FAILED": "failedTests"}
"""What a test can come to, from best to worst, and the list that it is in."""
VARIANTS = {
    "PureDP": "Pure DP",
    "ApproxDP": "Approximate DP",
    "ZeroConcentratedDP": "Zero-concentrated DP",
    "RenyiDP": "Renyi DP",
}
"""The registry's names of kinds of claims; the others are 'Custom'."""
LONG = 80
"""Characters of a value that differs."""


def differences(attested: Any, found: Any, place: str = "") -> Iterator[str]:
    """Yield in what plain data that was attested differs from what is found, each with its place."""
    if isinstance(attested, dict) and isinstance(found, dict):
        for name in {**attested, **found}:
            yield from differences(
                attested.get(name),
                found.get(name),
                f"{place}, {name}" if place else name,
            )
    elif attested != found:
        was, now = (
            "nothing" if value is None else shorten(str(value), LONG)
            for value in (attested, found)
        )
        yield f"{place}: {was} was attested, {now} is found"


def statement(
    record: RunRecord, name: str, digest: str, *, url: str = ""
) -> dict[str, Any]:
    """Return the statement.

    A claim that is not refuted, or a violation that is declared, has passed. Warned are audits that decide nothing, were
    skipped, or played pairs whose outputs are the same. Findings, crashes and audits without a result have failed, and so
    has a run that audited nothing.

    ``name`` and ``digest`` (SHA-256) are those of the file that holds the run, which can be looked at at ``url``.
    """
    tests: dict[str, list[str]] = {outcome: [] for outcome in OUTCOMES}
    for item in judged(record):
        tests[_outcome(item)].append(item.audit)
    asked = [record.root_seed, record.arguments, record.versions]
    return {
        "_type": STATEMENT,
        "subject": [
            {"name": name, "digest": {"sha256": digest}, "annotations": noted(record)},
            *(
                {"name": path, "digest": {"sha256": found}}
                for path, found in record.sources.items()
            ),
        ],
        "predicateType": PREDICATE,
        "predicate": {
            "result": [outcome for outcome in OUTCOMES if tests[outcome]][-1]
            if record.audited
            else "FAILED",
            "configuration": [
                {
                    "name": "seed, arguments and versions",
                    "digest": {
                        "sha256": hashlib.sha256(
                            json.dumps(asked, sort_keys=True).encode()
                        ).hexdigest()
                    },
                }
            ],
            **({"url": url} if url else {}),
            **{OUTCOMES[outcome]: names for outcome, names in tests.items()},
        },
    }


def _outcome(item: Judged) -> str:
    if item.level in (Level.UNCONFIRMED, Level.FINDING, Level.CRASHED):
        return "FAILED"
    blind = item.result is not None and item.result.has_same_outputs
    return "PASSED" if item.level is Level.FINE and not blind else "WARNED"


def noted(record: RunRecord) -> dict[str, Any]:
    """Return what a statement says of the record itself: how the run was made, and what each audit found."""
    names = (
        "run",
        "status",
        "started",
        "author",
        "root_seed",
        "revision",
        "versions",
        "device",
        "sandbox",
    )
    return {
        **{name: getattr(record, name) for name in names},
        "alpha": math.fsum(entry.alpha for entry in record.alpha_ledger),
        "audits": {
            result.id: {
                "verdict": result.verdict.value,
                "expected": result.expected,
                "self_reported": result.is_self_reported,
                "bounds": [
                    json_number(result.epsilon_lower),
                    json_number(result.epsilon_upper),
                ],
                **(
                    _deployment(result, result.claim)
                    if result.claim and result.claim.parameter in SYMBOLS
                    else {}
                ),
            }
            for result in record.results
        },
    }


def _deployment(result: AuditResult, claim: ClaimRecord) -> dict[str, Any]:
    """Return what an audit knows of an entry in the registry: neither curator, sector, region nor deployment model."""
    parameters = {"epsilon": claim.epsilon, "delta": claim.delta, "rho": claim.rho}
    accounted = [
        each.name
        for found in details(result.evidence, AccountingDetails)
        for each in found.accountants
    ]
    return {
        "basic": {
            "name": result.id.rpartition("::")[2],
            "description": result.description,
        },
        "dp_variant": {"variant_name": VARIANTS.get(claim.kind, "Custom")},
        "privacy_loss": {
            "privacy_unit": claim.adjacency,
            "privacy_parameters": {
                name: json_number(value)
                for name, value in parameters.items()
                if value is not None
            },
            "privacy_parameters_details": claim.text,
        },
        "implementation": {
            "mechanisms": result.mechanism,
            **({"composition": ", ".join(accounted)} if accounted else {}),
            **({"justification": claim.source} if claim.source else {}),
        },
    }
