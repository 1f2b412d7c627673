"""``auditdp attest`` and ``verify``: sign a run, and check its record and sources.

The signed file is a DSSE 1.0 envelope, which securesystemslib writes and verifies. Keys
are PEM files such as those of ``openssl genpkey -algorithm ed25519``.
``report/attestation`` has the statement inside the envelope.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from auditdp.cli.common import Source, app, read_whole, say, tell
from auditdp.cli.project import given
from auditdp.configuration import DEFAULT_LOG
from auditdp.errors import ConfigurationError, MissingExtraError, StoppedError
from auditdp.files import FileLimits, content_of, json_of, write

SUFFIX = ".intoto.jsonl"


@app.command()
def attest(
    key: Annotated[
        Path, typer.Option(callback=given, help="PEM file of the private key.")
    ],
    source: Source = None,
    path: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            callback=given,
            help=f"File to write; RUN{SUFFIX} unless given.",
        ),
    ] = None,
    url: Annotated[
        str,
        typer.Option(
            help="Where the run can be looked at, such as the page of its CI job."
        ),
    ] = "",
) -> None:
    """Sign the results of a recorded run, with digests of its sources.

    It writes an in-toto statement with the predicate test-result v0.1. Its subjects are
    the record, and every file of the project that was imported to collect the audits,
    as it was when the run began. A log that was edited, and sources that have changed
    since, are not signed: the exit code is then 3. The envelope is DSSE.
    """
    from auditdp.report.attestation import PAYLOAD, statement
    from auditdp.runner.run_record import sha256

    file, record = source or DEFAULT_LOG, read_whole(source)
    if not record.sources:
        raise ConfigurationError(
            f"{file} has no digests of sources, as records of earlier versions: run again"
        )
    made = statement(record, file.as_posix(), sha256(file), url=url)
    if changed := [*_changed(made["subject"])]:
        raise StoppedError(
            f"{'; '.join(changed)}: the sources have changed since the run; run again"
        )
    inside = {
        result.mechanism_at.file
        for result in record.results
        if result.mechanism_at is not None
    }
    for name in sorted(inside - {*record.sources}):
        say(
            f"{name} has a mechanism and is not attested: it was imported after the audits were collected"
        )
    audited = {entry.audit.rpartition("::")[0] for entry in record.alpha_ledger}
    for name in sorted(audited - {*record.sources}):
        say(f"{name} has audits and is not attested: the record has no digest of it")
    signer = _key(key, private=True)
    from securesystemslib.dsse import Envelope

    envelope = Envelope(json.dumps(made).encode(), PAYLOAD, {})
    envelope.sign(signer)
    path = path or file.with_name(file.name + SUFFIX)
    write(path, json.dumps(envelope.to_dict()) + "\n")
    tell(f"{path}: {_told(made)}")


@app.command()
def verify(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="STATEMENT", callback=given, help="What auditdp attest wrote."
        ),
    ],
    key: Annotated[
        Path, typer.Option(callback=given, help="PEM file of the public key.")
    ],
    source: Annotated[
        Path | None,
        typer.Option(
            "--run",
            callback=given,
            help="Log or JSON report of the run, where it was moved.",
        ),
    ] = None,
) -> None:
    """Check that a record and its sources are as they were signed.

    The exit code is 0 if they are, whatever the run found. Otherwise it is 3, and the
    changes are listed.
    """
    signed = _opened(path, key)
    record, *sources = signed["subject"]
    file = source or Path(record["name"])
    changed = [*_changed([{**record, "name": file.as_posix()}])]
    if found := [
        *changed,
        *(_otherwise(record, file) if changed else ()),
        *_changed(sources),
    ]:
        for line in found:
            say(f"refused: {line}")
        raise StoppedError(f"{path} is about another record or other sources")
    tell(f"verified: {_told(signed)}")


def _told(statement: dict[str, Any]) -> str:
    """Return a line with a statement's result, its record and its number of sources."""
    from auditdp.report.attestation import OUTCOMES
    from auditdp.report.numbers import count

    predicate, (record, *sources) = statement["predicate"], statement["subject"]
    counts = ", ".join(
        f"{len(predicate[names])} {outcome.lower()}"
        for outcome, names in OUTCOMES.items()
    )
    return f"{predicate['result']} ({counts}), of {record['name']} and {count(len(sources), 'source')}"


def _changed(subjects: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a sentence for each subject whose file is gone or has another digest."""
    from auditdp.runner.run_record import sha256

    for subject in subjects:
        if (digest := sha256(Path(subject["name"]))) != subject["digest"]["sha256"]:
            yield f"{subject['name']} {'has changed' if digest else 'is gone'}"


def _otherwise(attested: dict[str, Any], file: Path) -> Iterator[str]:
    """Yield sentences about the differences of a record from the signed one.

    Problems of its log come first. If the file cannot be read as a record, the one
    sentence states that.

    Args:
        attested: The subject, in the signed statement, that describes the record.
        file: The file of the record.
    """
    from auditdp.report.attestation import differences, noted
    from auditdp.runner.run_record import scan_record

    try:
        reading = scan_record(file)
    except ConfigurationError as error:
        yield str(error)
    else:
        yield from () if reading.is_whole else reading.problems
        yield from differences(attested["annotations"], noted(reading.record))


def _opened(path: Path, key: Path) -> dict[str, Any]:
    """Return the statement in an envelope, after verifying its signature.

    Args:
        path: The file of the envelope.
        key: The file of the public key.

    Raises:
        ConfigurationError: If a file cannot be read.
        StoppedError: If the signature is wrong, or the envelope has another content
            than a statement of auditdp.
    """
    from auditdp.report.attestation import PAYLOAD, PREDICATE, STATEMENT

    public = _key(key, private=False)
    from securesystemslib.dsse import Envelope
    from securesystemslib.exceptions import VerificationError

    try:
        content = json_of(content_of(path, FileLimits.settings_bytes))
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"{path} cannot be read: {error}; expected what auditdp attest wrote"
        ) from error
    try:
        envelope = Envelope.from_dict(content)
        envelope.verify([public], 1)
    except (
        VerificationError,
        KeyError,
        TypeError,
        AttributeError,
        ValueError,
    ) as error:
        raise StoppedError(
            f"{path} was not signed by {key}, or was changed since: {error}"
        ) from error
    try:
        # The content counts only once its signature is verified.
        signed: dict[str, Any] = json_of(envelope.payload)
        types = (envelope.payload_type, signed["_type"], signed["predicateType"])
        # Parts that are read later are read here once, so that a missing one raises.
        _told(signed), signed["subject"][0]["annotations"]["audits"]
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise StoppedError(
            f"{path} is signed, and is no statement of auditdp: {error!r}"
        ) from error
    if types != (PAYLOAD, STATEMENT, PREDICATE):
        raise StoppedError(
            f"{path} is signed, and is no statement of a test run: it is {types}"
        )
    return signed


def _key(path: Path, *, private: bool) -> Any:
    """Return a key for securesystemslib: a signer if ``private``, else a public key.

    Raises:
        MissingExtraError: If securesystemslib or cryptography is not installed.
        ConfigurationError: If the file has no such key.
    """
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.serialization import (
            load_pem_private_key,
            load_pem_public_key,
        )
        from securesystemslib.signer import CryptoSigner, SSlibKey

        pem = content_of(path, FileLimits.settings_bytes)
        return (
            CryptoSigner(load_pem_private_key(pem, None))
            if private
            else SSlibKey.from_crypto(load_pem_public_key(pem))
        )
    except ImportError as error:
        raise MissingExtraError.of(error) or error from None
    except (OSError, TypeError, ValueError, UnsupportedAlgorithm) as error:
        raise ConfigurationError(
            f"{path} is no key that can be used: {error}; expected PEM, to attest a "
            "private key without a passphrase "
            "(openssl genpkey -algorithm ed25519), to verify the public one (openssl pkey -pubout)"
        ) from error
