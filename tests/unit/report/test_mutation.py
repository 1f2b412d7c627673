"""The mutation score in reports: beside each audit, with every survivor, and not where no mutants were played."""

from __future__ import annotations

import json

from auditdp.record.results import AuditResult, RunRecord, Verdict
from auditdp.record.traces import Fate, MutantResult, Mutation
from auditdp.report.formats import render
from auditdp.report.sentences import mutation_score

MUTATION = Mutation(
    mutants=[
        MutantResult(
            "half",
            "noise halved",
            "the noise is halved",
            Fate.KILLED,
            "game: refuted",
            120,
        ),
        MutantResult(
            "shared",
            "noise reused",
            "the noise is shared",
            Fate.REJECTED,
            "not independent",
        ),
        MutantResult(
            "<blind>",
            "noise left out",
            "the <noise> is left out",
            Fate.SURVIVED,
            "5,000 calls & nothing",
            5000,
        ),
        MutantResult(
            "same",
            "noise reused",
            "the noise is repeated",
            Fate.EQUIVALENT,
            "post-processing",
        ),
        MutantResult(
            "crash", "noise left out", "the noise is constant", Fate.INVALID, "raised"
        ),
    ],
)


def record(*mutations):
    results = [
        AuditResult(
            f"audit_it.py::a{k}", Verdict.NOT_REFUTED, "nothing seen", mutation=mutation
        )
        for k, mutation in enumerate(mutations)
    ]
    return RunRecord(1, "complete", {}, {}, "", "", [], results)


def test_the_score_in_words():
    assert mutation_score(MUTATION) == "2 of 3 killed (1 equivalent, 1 invalid)"
    assert mutation_score(MUTATION, Mutation(MUTATION.mutants[:1])).startswith(
        "3 of 4 killed ("
    )
    assert mutation_score(Mutation()) == "0 of 0 killed"


def test_the_terminal_shows_the_score_and_the_survivors():
    lines = [
        " ".join(line.split())
        for line in render(record(MUTATION), "terminal").splitlines()
    ]
    assert (
        lines.count("mutants 2 of 3 killed (1 equivalent, 1 invalid)") == 2
    )  # audit and summary
    assert "survivor <blind>: 5,000 calls & nothing" in lines


def test_the_page_shows_the_score_beside_the_audit_and_why_mutants_are_left():
    page = render(record(MUTATION, None), "html")
    assert '<td class="number">2 of 3</td>' in page
    assert '<td class="number">–</td>' in page
    assert "<div>&lt;blind&gt;</div>" in page
    assert "<blind>" not in page
    for mutant in MUTATION.mutants:
        assert (mutant.statement.replace("&", "&amp;") in page) == (
            mutant.name not in ("half", "crash")
        )
    assert "<div>half</div>" in page


def test_a_page_without_mutants_does_not_speak_of_them():
    assert "utant" not in render(record(None), "html")
    assert "utant" not in render(record(None), "terminal")


def test_a_record_with_mutants_goes_to_json_and_back():
    before = record(MUTATION, None)
    assert RunRecord.from_json(before.to_json()) == before


def test_an_older_record_with_mutants_of_the_source_is_read():
    """It names the functions that were not mutated, and has an id for each mutant."""
    before = record(MUTATION)
    older = json.loads(before.to_json())
    mutation = older["results"][0]["mutation"]
    mutation["unread"] = ["f"]
    mutation["mutants"] = [mutant | {"id": "_1 + _2"} for mutant in mutation["mutants"]]
    assert RunRecord.from_plain(older) == before
