"""Make the record of a run before its start, and read it from a log or a JSON report.

A log has one JSON object per line: a header with the options of the run, a line for
each finished audit in the order of finishing, and a closing line. Every line names its
run. An incomplete last line is ignored. A resumed run reads the results, checks that
the options are the same, and runs the other audits.

Every line ends with a digest of itself and of the line before. So changed, added,
removed and moved lines are detected. This does not protect against somebody who
computes all digests again or removes all of them, such as a process of the same user.
Removed lines at the end look like a run that was killed.
"""

from __future__ import annotations

import hashlib
import platform
import re
import secrets
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from auditdp import __version__
from auditdp.configuration import project_name
from auditdp.errors import ConfigurationError
from auditdp.files import FileLimits, content_of, json_of, open_file
from auditdp.record.json_fields import Count, Number
from auditdp.record.results import SCHEMA, AuditResult, RunRecord, Verdict, result_of
from auditdp.record.traces import TracedFinding, TracedLine
from auditdp.runner.plan import Plan

DIGEST = re.compile(rb'(.*), "digest": "([0-9a-f]{64})"\}', re.DOTALL)
"""Pattern of a line of a log, with groups for its text and its digest."""
BLOCK = 1 << 20
"""Bytes of a file that are read at a time."""
LIBRARIES = (
    *(
        "numpy",
        "scipy",
        "scikit-learn",
        "statsmodels",
        "python-flint",
        "hypothesis",
        "dp-accounting",
    ),
    *(
        "pandas",
        "polars",
        "torch",
        "torch-geometric",
        "opacus",
        "jax",
        "opendp",
        "diffprivlib",
        "python-dp",
    ),
)
"""Libraries whose versions are recorded: dependencies of auditdp that affect results,
and common libraries of mechanisms."""


def header(
    plan: Plan,
    arguments: dict[str, Any],
    root_seed: int,
    *,
    sources: Iterable[Path] = (),
    sandbox: str = "",
) -> RunRecord:
    """Return the record of a run before its start.

    Its only results are the ERRORs of files that could not be collected.

    Args:
        plan: The plan of the run.
        arguments: The options of the command, which are recorded.
        root_seed: The root seed.
        sources: Files from which the audits are made.
        sandbox: Phrase for the isolation of the audits.
    """
    files = [*sources]
    return RunRecord(
        root_seed=root_seed,
        status="running",
        arguments=arguments,
        versions=versions(),
        revision=_revision(files),
        device=f"{platform.system()} {platform.machine()}, CPU",
        alpha_ledger=plan.ledger,
        results=[failure(path, reason) for path, reason in plan.failures],
        started=now(),
        project=project_name(Path.cwd()),
        run=secrets.token_hex(8),
        sandbox=sandbox,
        sources=dict(sorted(_digests(files))),
    )


def _digests(sources: Iterable[Path]) -> Iterator[tuple[str, str]]:
    """Yield (relative path, SHA-256) of each source below the working folder."""
    here = Path.cwd().resolve()
    for file in sources:
        if file.is_relative_to(here) and (digest := sha256(file, below=here)):
            yield file.relative_to(here).as_posix(), digest


def sha256(path: Path, *, below: Path | None = None) -> str:
    """Return the SHA-256 of a file in hexadecimal; empty without a regular file.

    Args:
        path: The file.
        below: A folder that must contain the file, also after links are resolved; None
            for any place.

    Raises:
        ConfigurationError: If the file is too large, or lies outside ``below``.
    """
    return _hashed(path, b"", below).hexdigest() if path.is_file() else ""


def _hashed(path: Path, before: bytes, below: Path | None) -> Any:
    """Return a SHA-256 object of the bytes ``before`` and the file, if it exists."""
    found = hashlib.sha256(before)
    if path.is_file():
        with open_file(path, below=below) as file:
            # A file may grow while it is read, so the number of blocks is limited.
            for _ in range(0, FileLimits.file_bytes, BLOCK):
                content = file.read(BLOCK)
                if not content:
                    break
                found.update(content)
    return found


def now() -> str:
    """Return the present time in UTC as ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def failure(path: str, reason: str) -> AuditResult:
    """Return the ERROR of a file whose audits could not be collected."""
    return AuditResult(id=path, verdict=Verdict.ERROR, summary=reason)


def versions() -> dict[str, str]:
    """Return the versions of Python, auditdp and installed ``LIBRARIES``, by name."""
    found = {"python": platform.python_version(), "auditdp": __version__}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _revision(sources: Iterable[Path]) -> str:
    """Return a phrase with the commit of the working folder and a digest of the code.

    The code is that of auditdp and of the given sources.
    """
    try:
        commit = subprocess.run(
            ["git", "rev-parse", "--short=12", "HEAD"],
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        commit = "no commit"
    return f"{commit}, sources {digest_of(sources)}"


def digest_of(sources: Iterable[Path]) -> str:
    """Return a digest of the given files and of auditdp's files, in 12 characters.

    It depends on their names and contents, and not on their folders or their order.
    """
    here = Path.cwd().resolve()
    files = {
        file: here if file.is_relative_to(here) else file.parent for file in sources
    }
    own = dict.fromkeys(Path(__file__).resolve().parents[1].rglob("*.py"))
    each = [
        _hashed(file, file.name.encode() + b"\0", below).digest()
        for file, below in {**files, **own}.items()
    ]
    return hashlib.sha256(b"".join(sorted(each))).hexdigest()[:12]


class Reading(NamedTuple):
    """The content of a log or of a JSON report, and the problems with it."""

    record: RunRecord
    problems: list[str]
    """Sentences on lines that do not count, or on missing digests."""
    digest: str = ""
    """Digest of the last line that was not changed. The next new line includes it."""
    size: int = 0
    """Number of bytes up to the end of that line."""
    edited: bool = False
    """True if a line does not follow from the line before it: the log was changed."""
    is_whole: bool = True
    """True if every line counts."""


def chained(before: str, line: bytes) -> str:
    """Return the digest of a line.

    Args:
        before: The digest of the line before it; empty for the first line.
        line: The line, up to its own digest.
    """
    return hashlib.sha256(before.encode() + line).hexdigest()


def read_log(path: Path) -> RunRecord:
    """Return the record in a log.

    Lines that do not count are left out, and the errors are those of ``scan_log``.
    """
    return scan_log(path).record


def scan_log(path: Path) -> Reading:
    """Return the record in a log, and its problems.

    Results are in the order of the plan, after those of files that could not be
    imported. Without a closing line the status of the record is 'running'. The
    following lines do not count, and ``problems`` names them:

    - lines that cannot be read, or belong to another run;
    - the first line whose digest does not follow from the line before it, and all lines
      after it.

    If an audit has two different results, neither counts. Logs of earlier versions have
    no digests, which is a problem, too.

    Raises:
        ConfigurationError: If the file is missing or cannot be read, or is not a log;
            or if its header was changed, its schema is another one, or it contradicts
            itself.
    """
    try:
        whole = content_of(path)
    except FileNotFoundError:
        raise ConfigurationError(
            f"no run is recorded in {path}; start one with: auditdp run"
        ) from None
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from error
    record: RunRecord | None = None
    results: dict[str, AuditResult] = {}
    twice: set[str] = set()
    problems: list[str] = []
    finished = digest = ""
    has_digests = edited = False
    size = 0
    # Text after the last newline was cut off when the process was killed.
    lines = whole[: whole.rfind(b"\n") + 1].split(b"\n")
    for number, line in enumerate(lines[:-1], 1):
        own = DIGEST.fullmatch(line)
        following = chained(digest, own[1] if own else line)
        if (own or has_digests) and (own is None or own[2] != following.encode()):
            reason = f"line {number} of {path} is not what was written after the lines before it: the log was changed"
            # No earlier line has a valid digest, so the header may have been changed,
            # too.
            if not has_digests:
                raise ConfigurationError(f"{reason}, and none of it counts; run again")
            problems.append(f"{reason}, and from there on it is left out")
            edited = True
            break
        digest, has_digests, size = following, own is not None, size + len(line) + 1
        try:
            content = json_of(line)
            if content["kind"] == "header" and record is None:
                record = _header(path, content["record"])
            elif record is None:
                raise ValueError("it has no header")
            elif content.get("run", record.run) != record.run:
                raise ValueError("it belongs to another run")
            elif content["kind"] == "result":
                result = result_of(content["result"])
                if results.setdefault(result.id, result) != result:
                    twice.add(result.id)
                    raise ValueError(
                        f"it is another result of {result.id}, of which none counts"
                    )
            elif content["kind"] == "end":
                record = replace(
                    record, status=content["status"], seconds=content["seconds"]
                )
            if not isinstance(time := content.get("time", ""), str):
                raise ValueError(f"its time is {time!r:.80}")
            finished = time or finished
        except (
            KeyError,
            TypeError,
            AttributeError,
            ValueError,
            # ValidationError is a ValueError.
        ) as error:
            if record is None:
                raise ConfigurationError(
                    f"{path} is not the log of a run: line {number}: {_reason(error)}"
                ) from error
            problems.append(
                f"line {number} of {path} cannot be read and is left out: {_reason(error)}"
            )
    if record is None:
        raise ConfigurationError(f"{path} is not the log of a run: it has no header")
    order = [entry.audit for entry in record.alpha_ledger]
    results_in_order = record.results + [
        results[name] for name in order if name in results and name not in twice
    ]
    record = replace(
        record, results=results_in_order, finished=finished or record.finished
    )
    if record.contradiction:
        raise ConfigurationError(
            f"{path} contradicts itself: {record.contradiction}; run again"
        )
    is_whole = not problems
    if not has_digests:
        problems.append(
            f"{path} has no digests, as logs of earlier versions: a change of it would not be detected"
        )
    return Reading(record, problems, digest, size, edited, is_whole)


def _header(path: Path, content: Any) -> RunRecord:
    """Return the record in the header of a log, or in a JSON report.

    Raises:
        ConfigurationError: If a version with another schema wrote it.
        ValueError: If it is no record.
    """
    schema = content.get("schema", SCHEMA) if isinstance(content, dict) else SCHEMA
    if schema != SCHEMA:
        versions = content.get("versions")
        wrote = (
            versions.get("auditdp", "?")
            if isinstance(versions, dict)
            else "of another version"
        )
        raise ConfigurationError(
            f"{path} was written by auditdp {wrote} with schema {schema}; this is auditdp {__version__} with schema "
            f"{SCHEMA}: read it with the version that wrote it, or run again"
        )
    return RunRecord.from_plain(content)


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return f"{error!r} is missing" if isinstance(error, KeyError) else str(error)


def scan_record(path: Path) -> Reading:
    """Return the record in a JSON report or in a log, and its problems.

    Args:
        path: A report if its name ends in ``.json``, else a log.

    Raises:
        ConfigurationError: If the file is missing or cannot be read, or is not what its
            name promises; or if its schema is another one, or it contradicts itself.
    """
    if path.suffix != ".json":
        return scan_log(path)
    try:
        return Reading(_header(path, json_of(content_of(path))), [])
    except FileNotFoundError:
        raise ConfigurationError(f"no such record: {path}") from None
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ConfigurationError(
            f"{path} is not a run record: {_reason(error)}"
        ) from error


def resumable(old: RunRecord, new: RunRecord) -> None:
    """Raise if the results of two runs cannot be combined.

    Both headers must be equal in the fields that ``differing`` compares.

    Args:
        old: The header of the interrupted run.
        new: The header of this run.

    Raises:
        ConfigurationError: If they differ in one of them. The message has the first
            difference and the remedy.
    """
    if found := differing(old, new, "then", "now"):
        raise ConfigurationError(
            f"cannot resume: {found}, so this is not the interrupted run, and a verdict belongs to its question: run again "
            "without --resume, which keeps the log of the interrupted run"
        )


def differing(
    old: RunRecord, new: RunRecord, first: str = "there", second: str = "here"
) -> str:
    """Return a phrase for the first difference between two headers; empty without one.

    The root seed, the options, the shares of alpha, the versions, the commit, the
    digest of the code, and the sandbox are compared.

    Args:
        old: One header.
        new: The other header.
        first: The word for ``old`` in the phrase.
        second: The word for ``new`` in the phrase.
    """
    a, b = asdict(old), asdict(new)
    for name in (
        "root_seed",
        "arguments",
        "alpha_ledger",
        "versions",
        "revision",
        "sandbox",
    ):
        if a[name] != b[name]:
            one, other = _differing(a[name], b[name])
            return f"{name} differs ({_short(one)} {first}, {_short(other)} {second})"
    return ""


def _differing(a: Any, b: Any) -> tuple[Any, Any]:
    """Return the differing entries of two dictionaries; other values unchanged."""
    if not isinstance(a, dict) or not isinstance(b, dict):
        return a, b
    names = [name for name in {**a, **b} if a.get(name) != b.get(name)]
    return {name: a.get(name) for name in names}, {name: b.get(name) for name in names}


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 120 else text[:119] + "…"


@dataclass(frozen=True)
class TracedAudit:
    """The trace of an audit's mechanism on some of its pairs, as plain data."""

    claim: str
    parameter: str
    """Name of the claim's parameter, such as 'epsilon'. Losses are values of it."""
    pairs: Count
    """Number of traced pairs."""
    generated: Count
    """Number of the traced pairs that are not listed."""
    bounded: Count
    """Number of pairs on which runs with other draws confirmed that the loss of the
    releases bounds the loss of the output."""
    level: Number
    """The loss of all releases of a pair together, on the pair where it is largest;
    it may be infinite."""
    lines: Sequence[TracedLine]
    findings: Sequence[TracedFinding]
    """Suspected faults: first those that runs with other draws confirmed, then those
    that the trace understood completely, then others."""
    opaque: Sequence[str]
    """Sentences on code that the trace did not understand."""
    result: str
    """The result of the trace in one sentence."""
    size: str = ""
    """The traced size, such as 'n = 100'; empty unless the audit tries several. It is
    the first size with a finding that the trace understood completely, or else the last
    one."""


TRACED: TypeAdapter[TracedAudit] = TypeAdapter(TracedAudit)
