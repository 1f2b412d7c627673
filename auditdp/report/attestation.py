"""Attestations of runs: in-toto statements about a record and its sources.

The statement has version v1, and the predicate test-result v0.1
(github.com/in-toto/attestation, ``spec/v1/statement.md`` and
``spec/predicates/test-result.md``). The first subject is the record, the others are the
sources. The annotations of the record have the verdict and the bounds of each audit.
They also have those fields of the public registry of deployments that an audit can fill
(github.com/opendp/deployments-registry-data, ``schemas/deployments-schema.yaml``).
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
"""The outcomes, best first, with the field of the predicate that lists their audits."""
VARIANTS = {
    "PureDP": "Pure DP",
    "ApproxDP": "Approximate DP",
    "ZeroConcentratedDP": "Zero-concentrated DP",
    "RenyiDP": "Renyi DP",
}
"""The registry's name of each kind of claim; other kinds are 'Custom' there."""


def differences(attested: Any, found: Any, place: str = "") -> Iterator[str]:
    """Yield a sentence for each difference between attested data and the data found.

    Dictionaries are compared key by key, and a missing key counts as None. ``place`` is
    the path of the compared data inside the record, such as "audits, x".
    """
    if isinstance(attested, dict) and isinstance(found, dict):
        # A key that one side lacks counts as None there, so it is reported, too.
        for name in attested | found:
            inside = ", ".join(filter(None, [place, name]))
            yield from differences(attested.get(name), found.get(name), inside)
    elif attested != found:
        was, now = (
            "nothing" if value is None else shorten(str(value), 80)
            for value in (attested, found)
        )
        yield f"{place}: {was} was attested, {now} is found"


def statement(
    record: RunRecord, name: str, digest: str, *, url: str = ""
) -> dict[str, Any]:
    """Return the in-toto statement about a run, without a signature.

    An audit has passed if its claim is not refuted, or if it found its declared fault.
    It has the outcome WARNED if it decided nothing, was skipped, or played only pairs
    with equal outputs. It has failed if it is a finding, crashed, has no result, or has
    a refutation that was not confirmed. The result of the run is the worst outcome; a
    run that audited nothing has failed.

    Args:
        record: The run.
        name: The name of the file of the record.
        digest: The SHA-256 of that file, in hexadecimal digits.
        url: A web page about the run; empty for none.
    """
    tests: dict[str, list[str]] = {outcome: [] for outcome in OUTCOMES}
    for item in judged(record):
        tests[_outcome(item)].append(item.audit)
    # These determine all random draws, so a run with the same ones is a repetition.
    given = json.dumps(
        [record.root_seed, record.arguments, record.versions], sort_keys=True
    )
    subjects = [_subject(path, found) for path, found in record.sources.items()]
    # Outcomes are listed from best to worst.
    worst = "FAILED"
    if record.audited:
        worst = [outcome for outcome in OUTCOMES if tests[outcome]][-1]
    predicate: dict[str, Any] = {
        "result": worst,
        "configuration": [
            _subject(
                "seed, arguments and versions",
                hashlib.sha256(given.encode()).hexdigest(),
            )
        ],
    }
    if url:
        predicate["url"] = url
    predicate |= {OUTCOMES[outcome]: names for outcome, names in tests.items()}
    return {
        "_type": STATEMENT,
        "subject": [_subject(name, digest) | {"annotations": noted(record)}, *subjects],
        "predicateType": PREDICATE,
        "predicate": predicate,
    }


def _subject(name: str, digest: str) -> dict[str, Any]:
    return {"name": name, "digest": {"sha256": digest}}


def _outcome(item: Judged) -> str:
    if item.level in (Level.UNCONFIRMED, Level.FINDING, Level.CRASHED):
        return "FAILED"
    # A game with equal outputs on both inputs can refute nothing.
    is_blind = item.result is not None and item.result.has_same_outputs
    if item.level is Level.FINE and not is_blind:
        return "PASSED"
    return "WARNED"


def noted(record: RunRecord) -> dict[str, Any]:
    """Return the annotations of a record in a statement.

    They are the origin and the setting of the run, its alpha, and under "audits" the
    verdict and the bounds of each audit, by id.
    """
    origin = ("run", "status", "started", "author", "root_seed", "revision")
    setting = ("versions", "device", "sandbox")
    audits = {}
    for result in record.results:
        bounds = (result.epsilon_lower, result.epsilon_upper)
        audits[result.id] = {
            "verdict": result.verdict.value,
            "expected": result.expected,
            "self_reported": result.is_self_reported,
            "bounds": [json_number(bound) for bound in bounds],
        }
        claim = result.claim
        if claim is not None and claim.parameter in SYMBOLS:
            audits[result.id] |= _deployment(result, claim)
    return {
        **{name: getattr(record, name) for name in (*origin, *setting)},
        "alpha": math.fsum(entry.alpha for entry in record.alpha_ledger),
        "audits": audits,
    }


def _deployment(result: AuditResult, claim: ClaimRecord) -> dict[str, Any]:
    """Return the fields of the registry of deployments that an audit can fill.

    Curator, sector, region and deployment model are unknown to an audit.
    """
    # The registry has no field for the μ of Gaussian DP.
    parameters = {}
    for name in ("epsilon", "delta", "rho"):
        if getattr(claim, name) is not None:
            parameters[name] = json_number(getattr(claim, name))
    implementation = {"mechanisms": result.mechanism}
    for found in details(result.evidence, AccountingDetails):
        names = [each.name for each in found.accountants]
        if names:
            implementation["composition"] = ", ".join(names)
    if claim.source:
        implementation["justification"] = claim.source
    return {
        "basic": {
            "name": result.id.rpartition("::")[2],
            "description": result.description,
        },
        "dp_variant": {"variant_name": VARIANTS.get(claim.kind, "Custom")},
        "privacy_loss": {
            "privacy_unit": claim.adjacency,
            "privacy_parameters": parameters,
            "privacy_parameters_details": claim.text,
        },
        "implementation": implementation,
    }
