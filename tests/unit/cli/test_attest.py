"""A run is signed, and whatever changes its record, its sources or the statement is refused with what changed."""

import base64
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from auditdp.cli.attest import attest, verify
from auditdp.errors import ConfigurationError, MissingExtraError, StoppedError
from auditdp.record.results import Evidence, LedgerEntry, RunRecord, Verdict
from auditdp.report.attestation import statement
from auditdp.runner.log import Log
from auditdp.runner.run_record import sha256

SCHEMA = json.loads(
    (Path(__file__).parent / "in-toto-test-result.schema.json").read_text()
)
SOURCES = {
    "audits/audit_counts.py": "def published_count(): ...\n",
    "counts.py": "SCALE = 1.0\n",
}
LOG, STATEMENT = Path("run.jsonl"), Path("run.jsonl.intoto.jsonl")


def pem(private, name):
    serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")
    pkcs8 = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    Path(f"{name}.pem").write_bytes(
        private.private_bytes(serialization.Encoding.PEM, *pkcs8)
    )
    public = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    Path(f"{name}.pub").write_bytes(public)


def log(record, path=LOG):
    """Write the log of a run, with its digests."""
    ledger = [LedgerEntry(result.id, "game", 0.001) for result in record.results]
    made = Log(path)
    made.start(replace(record, status="running", results=[], alpha_ledger=ledger))
    for result in record.results:
        made.add(result)
    made.end("complete", 1.0, record.finished)


@pytest.fixture
def signed(tmp_path, monkeypatch, record):
    """The record of a run whose log is signed, in a folder of its own."""
    ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
    pytest.importorskip("securesystemslib")
    monkeypatch.chdir(tmp_path)
    for name, text in SOURCES.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text)
    for name in ("own", "other"):
        pem(ed25519.Ed25519PrivateKey.generate(), name)
    sources = {name: sha256(Path(name)) for name in SOURCES}
    made = replace(record, results=record.results[:4], run="this", sources=sources)
    log(made)
    attest(Path("own.pem"), LOG)
    return made


def envelope(**changes):
    """Write other fields into the envelope."""
    content = json.loads(STATEMENT.read_text())
    STATEMENT.write_text(json.dumps({**content, **changes}))


def payload():
    return json.loads(base64.b64decode(json.loads(STATEMENT.read_text())["payload"]))


def edited(old, new):
    """Edit the log as an editor does; its digests stay."""
    text = LOG.read_text()
    assert old in text
    LOG.write_text(text.replace(old, new, 1))


def sealed(record, **changes):
    """Write the log anew, so that its digests are right again."""
    LOG.unlink()
    log(replace(record, **changes))


def a_verdict_flipped(record):
    edited('"verdict": "VIOLATED"', '"verdict": "NOT_REFUTED"')


def a_bound_changed(record):
    first, *others = record.results
    sealed(record, results=[replace(first, epsilon_lower=0.125), *others])


def a_source_changed(record):
    Path("counts.py").write_text("SCALE = 0.5\n")


def an_audit_removed(record):
    sealed(record, results=record.results[1:])


def an_audit_added(record):
    more = replace(record.results[0], id="audits/audit_counts.py::more")
    sealed(record, results=[more, *record.results])


def the_payload_edited(record):
    content = payload()
    content["predicate"] |= {"result": "PASSED", "failedTests": []}
    envelope(payload=base64.b64encode(json.dumps(content).encode()).decode())


def the_signature_edited(record):
    (signature,) = json.loads(STATEMENT.read_text())["signatures"]
    envelope(signatures=[{**signature, "sig": base64.b64encode(bytes(64)).decode()}])


def another_key(record):
    Path("own.pub").write_bytes(Path("other.pub").read_bytes())


def another_run(record):
    sealed(record, run="that", root_seed=7)


def the_type_of_the_payload_changed(record):
    envelope(payloadType="application/json")


MANIPULATIONS = {
    a_verdict_flipped: "run.jsonl is not what was written after the lines before it",
    a_bound_changed: "warner_rr, bounds: [1.0, 1.0000000000000002] was attested, [0.125, 1.0000000000000002] is found",
    a_source_changed: "counts.py has changed",
    an_audit_removed: "was attested, nothing is found",
    an_audit_added: "audit_counts.py::more: nothing was attested",
    the_payload_edited: "was changed since",
    the_signature_edited: "was changed since",
    another_key: "was not signed by own.pub",
    another_run: "run: this was attested, that is found",
    the_type_of_the_payload_changed: "was changed since",
}


def test_what_is_as_it_was_is_verified(signed, capsys):
    verify(STATEMENT, Path("own.pub"))
    LOG.rename("moved.jsonl")
    verify(STATEMENT, Path("own.pub"), Path("moved.jsonl"))
    assert capsys.readouterr().out.count("verified: FAILED (") == 2


@pytest.mark.parametrize("manipulation", MANIPULATIONS, ids=lambda each: each.__name__)
def test_what_is_changed_is_refused_with_what_changed(signed, capsys, manipulation):
    manipulation(signed)
    with pytest.raises(StoppedError) as refused:
        verify(STATEMENT, Path("own.pub"))
    assert MANIPULATIONS[manipulation] in capsys.readouterr().err + str(refused.value)


@pytest.mark.parametrize("manipulation", [a_verdict_flipped, a_source_changed])
def test_what_was_changed_is_not_signed(signed, manipulation):
    manipulation(signed)
    with pytest.raises(StoppedError):
        attest(Path("own.pem"), LOG)


def test_the_file_of_an_audit_that_the_record_has_no_digest_of_is_named(signed, capsys):
    known = "audits/audit_edges.py"
    digest = sha256(Path("counts.py"))
    sealed(signed, sources={known: digest, "counts.py": digest})
    Path(known).write_text(SOURCES["counts.py"])
    capsys.readouterr()
    attest(Path("own.pem"), LOG)
    files = {result.id.partition("::")[0] for result in signed.results}
    err = capsys.readouterr().err
    named = re.findall(r"^(\S+) .*the record has no digest", err, re.MULTILINE)
    assert set(named) == files - {known} != set()


def test_a_statement_is_one_by_the_published_schema(signed):
    jsonschema.Draft202012Validator(SCHEMA).validate(payload())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(SCHEMA).validate(
            {**payload(), "predicate": {"result": "GREEN"}}
        )
    assert [subject["name"] for subject in payload()["subject"]] == [
        "run.jsonl",
        *SOURCES,
    ]


def test_the_signature_is_of_the_pre_authentication_encoding_of_dsse(signed):
    """github.com/secure-systems-lab/dsse, protocol.md: another implementation verifies it."""
    content = json.loads(STATEMENT.read_text())
    kind, body = content["payloadType"].encode(), base64.b64decode(content["payload"])
    serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")
    public = serialization.load_pem_public_key(Path("own.pub").read_bytes())
    signature = base64.b64decode(content["signatures"][0]["sig"])
    public.verify(signature, b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(body), body))
    assert kind == b"application/vnd.in-toto+json"


def test_every_audit_is_in_the_list_that_it_has_come_to(record, clean_record):
    def predicate(of):
        return statement(of, "run.json", "0" * 64)["predicate"]

    found = predicate(record)
    passed, warned, failed = (
        found[f"{name}Tests"] for name in ("passed", "warned", "failed")
    )
    assert sorted(passed + warned + failed) == sorted(r.id for r in record.results)
    for result in record.results:
        bad = result.is_finding or result.verdict is Verdict.ERROR
        assert (result.id in failed) == bad
        undecided = result.verdict in (Verdict.SKIPPED, Verdict.INCONCLUSIVE)
        assert not (undecided and result.id in passed)
    proved = [r for r in clean_record.results if r.verdict is Verdict.CERTIFIED]
    same = Evidence("game", Verdict.NOT_REFUTED, "", details={"same_outputs": 5})
    blind = [replace(r, verdict=same.verdict, evidence=[same]) for r in proved]
    alone = replace(clean_record, alpha_ledger=[])
    for results, expected in (
        (record.results, "FAILED"),
        (proved, "PASSED"),
        (blind, "WARNED"),
        ([], "FAILED"),
    ):
        assert predicate(replace(alone, results=results))["result"] == expected


def test_what_the_registry_of_deployments_asks_for(record, audit):
    (found,) = statement(replace(record, results=[audit("feature_rr")]), "", "")[
        "subject"
    ]
    (entry,) = found["annotations"]["audits"].values()
    assert (entry["verdict"], entry["self_reported"]) == ("VIOLATED", False)
    assert entry["dp_variant"] == {"variant_name": "Pure DP"}
    assert entry["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0, "delta": 0.0}


def test_what_cannot_be_used_is_said(signed, monkeypatch):
    Path("old.json").write_text(replace(signed, sources={}).to_json())
    key = Path("own.pem")
    for action, message in (
        (
            lambda: attest(Path("counts.py"), LOG),
            "counts.py is no key that can be used",
        ),
        (lambda: attest(key, Path("old.json")), "no digests of sources"),
        (lambda: verify(LOG, Path("own.pub")), "expected what auditdp attest wrote"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            action()
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'auditdp\[attest\]'"):
        verify(STATEMENT, Path("own.pub"))


def test_a_record_has_the_digests_of_its_sources_whole(signed):
    assert RunRecord.from_json(signed.to_json()).sources == signed.sources
