"""``auditdp bounds``: files that other tools wrote, one method that decides, and refusals that say what to do."""

from __future__ import annotations

import sys
from dataclasses import fields

import numpy as np
import pytest

from auditdp.bounds import (
    from_counts,
    from_guesses,
    from_observed,
    from_outputs,
    from_scores,
)
from auditdp.bounds.data import read
from auditdp.cli.bounds_command import TAKEN, BoundsOptions
from auditdp.errors import MissingExtraError

pytestmark = pytest.mark.dear

RNG = np.random.default_rng(11)
LABELS = RNG.integers(0, 2, 300)
SCORES = np.round(2 * LABELS + RNG.normal(size=300), 3)
FIRST, SECOND = RNG.normal(2, 1, (200, 2)), RNG.normal(0, 1, (150, 2))
GUESSES = ["" if abs(score - 1) < 0.2 else str(int(score > 1)) for score in SCORES]


@pytest.fixture
def records(shared_project):
    rows = zip(SCORES, LABELS, GUESSES, strict=True)
    shared_project.write(
        "s.csv", "score,in,guess\n" + "\n".join(f"{s},{b},{g}" for s, b, g in rows)
    )
    np.savez(
        shared_project.root / "o.npz",
        first=FIRST,
        second=SECOND,
        score=SCORES,
        label=LABELS,
    )
    padded = [
        [*map(str, FIRST[k]), *(map(str, SECOND[k]) if k < 150 else ["", ""])]
        for k in range(200)
    ]
    shared_project.write(
        "o.tsv", "a\tb\tc\td\n" + "\n".join("\t".join(row) for row in padded)
    )
    shared_project.write(
        "first.csv", "a,b\n" + "\n".join(",".join(map(str, row)) for row in FIRST)
    )
    shared_project.write(
        "second.csv", "a,b\n" + "\n".join(",".join(map(str, row)) for row in SECOND)
    )
    shared_project.write("ragged.csv", "a,b\n1,2\n3\n")
    shared_project.write("twice.csv", "a,a\n1,2\n")
    shared_project.write("empty.csv", "")
    shared_project.write("words.csv", "score,in\n1,yes\n2,no\n")
    shared_project.write("minus.csv", "score,in\n1,1\n2,-1\n")
    shared_project.write("hole.csv", "score,in\n1,1\n,1\n2,0\n2,0\n")
    shared_project.write("ones.csv", "score,in\n1,1\n2,1\n3,1\n")
    shared_project.write("fake.npz", "not a zip file")
    shared_project.write("fake.parquet", "not a table")
    shared_project.write("notes.txt", "a\n1\n")
    return shared_project


def test_scores_of_one_run(records):
    outcome = records(
        "bounds",
        "s.csv",
        "--scores",
        "score",
        "--labels",
        "in",
        "--design",
        "one-run",
        "--claim",
        "1",
    )
    expected = from_scores(SCORES, LABELS, design="one-run", claim=1.0)
    assert outcome.code == 1
    assert outcome.out.startswith(expected.statement)
    assert "by scan" in outcome.out
    assert (
        "the first choice for this kind of record, whatever the numbers" in outcome.out
    )
    deciding, comparison = outcome.out.split(
        "for comparison, not corrected for choosing among them:"
    )
    assert "assumes  each label was thrown by its own fair coin" in deciding
    assert "one-run-curve" in comparison
    assert "Steinke" in comparison


def test_a_claim_that_stands_is_exit_code_0(records):
    outcome = records(
        "bounds",
        "s.csv",
        "--scores",
        "score",
        "--labels",
        "in",
        "--design",
        "one-run",
        "--claim",
        "20",
    )
    assert outcome.code == 0
    assert "is not refuted" in outcome.out
    assert (
        records(
            "bounds", "s.csv", "--scores", "score", "--labels", "in", "--design", "arms"
        ).code
        == 0
    )


def test_json_holds_the_same_bound(records):
    arguments = [
        "--scores",
        "score",
        "--labels",
        "in",
        "--design",
        "one-run",
        "--delta",
        "1e-5",
        "--claim",
        "1",
    ]
    outcome = records("bounds", "s.csv", *arguments, "--format", "json")
    expected = from_scores(SCORES, LABELS, design="one-run", delta=1e-5, claim=1.0)
    assert outcome.record["deciding"]["lower"] == expected.lower
    assert outcome.record["deciding"]["statement"] == expected.statement
    assert [bound["method"] for bound in outcome.record["comparison"]] == ["one-run"]
    assert outcome.record["assumed"]["lower"] > 2 * expected.lower
    assert (
        "ASSUMING independent Gaussian scores"
        in records("bounds", "s.csv", *arguments).out
    )
    assert outcome.code == int(expected.refuted)


def test_members_as_they_are(records):
    likely = np.where(np.arange(300) % 2, 0.48, 0.5)
    rows = zip(SCORES, LABELS, likely, strict=True)
    records.write(
        "p.csv", "score,in,likely\n" + "\n".join(f"{s},{b},{p}" for s, b, p in rows)
    )
    arguments = [
        "bounds",
        "p.csv",
        "--scores",
        "score",
        "--labels",
        "in",
        "--propensities",
        "likely",
    ]
    outcome = records(*arguments, "--claim", "1")
    assert outcome.out.startswith(
        from_observed(SCORES, LABELS, likely, claim=1.0).statement
    )
    assert "assumes  given what is known of the rows" in outcome.out
    assert "leave out --design" in records(*arguments, "--design", "one-run").err


def test_guesses(records):
    guesses = [
        "bounds",
        "s.csv",
        "--guesses",
        "guess",
        "--labels",
        "in",
        "--format",
        "json",
    ]
    outcome = records(*guesses, "--design", "one-run")
    made = [k for k, guess in enumerate(GUESSES) if guess]
    correct = sum(int(GUESSES[k]) == LABELS[k] for k in made)
    assert (
        outcome.record["deciding"]["lower"]
        == from_guesses(correct, len(made), canaries=300).lower
    )
    (first, inside), (second, outside) = (
        (sum(GUESSES[k] == "1" for k in rows), len(rows))
        for rows in map(np.flatnonzero, (LABELS == 1, LABELS == 0))
    )
    found = records(*guesses, "--design", "arms").record["deciding"]
    assert found["lower"] == from_counts(first, inside, second, outside).lower
    assert found["lower"] != outcome.record["deciding"]["lower"]


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (
            [
                "--guesses",
                "guess",
                "--labels",
                "in",
                "--design",
                "coin",
                "--propensities",
                "in",
            ],
            "--propensities",
        ),
        (
            [
                "--guesses",
                "guess",
                "--labels",
                "in",
                "--design",
                "coin",
                "--guess",
                "in",
            ],
            "--guess",
        ),
        (
            [
                "--guesses",
                "guess",
                "--labels",
                "in",
                "--design",
                "coin",
                "--guess-count",
                "3",
            ],
            "--guess-count",
        ),
        (
            ["--guesses", "guess", "--labels", "in", "--design", "coin", "--seed", "3"],
            "--seed",
        ),
        (["--first", "score", "--second", "in", "--design", "bogus"], "--design"),
        (["--first", "score", "--second", "in", "--labels", "in"], "--labels"),
        (
            [
                "--scores",
                "score",
                "--labels",
                "in",
                "--propensities",
                "in",
                "--design",
                "coin",
            ],
            "--design",
        ),
        (
            [
                "--scores",
                "score",
                "--labels",
                "in",
                "--propensities",
                "in",
                "--delta",
                "1e-5",
            ],
            "--delta",
        ),
        (
            [
                "--scores",
                "score",
                "--labels",
                "in",
                "--propensities",
                "in",
                "--method",
                "scan",
            ],
            "--method",
        ),
    ],
)
def test_an_option_that_does_not_apply_is_refused(records, arguments, option):
    outcome = records("bounds", "s.csv", *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert f"leave out {option}\n" in outcome.err


def test_every_option_applies_to_some_record():
    assert set().union(*TAKEN.values()) == {
        option.name for option in fields(BoundsOptions)
    }


HISTOGRAM = "value,count\n" + "\n".join(f"{k},{k * k % 17}" for k in range(-20, 21))


@pytest.mark.parametrize(
    "arguments",
    [
        ["h.csv", "--first", "value", "--second", "count"],
        ["--first", "h.csv", "--second", "h.csv"],
    ],
)
def test_a_histogram_is_no_list_of_outputs(records, arguments):
    records.write("h.csv", HISTOGRAM)
    outcome = records("bounds", *arguments)
    assert outcome.code == 2
    assert "column 'count'" in outcome.err


def test_outputs_of_several_numbers_beside_counts(records):
    np.savez(
        records.root / "n.npz", first=FIRST, second=SECOND[:, 0], count=np.arange(200)
    )
    outcome = records("bounds", "n.npz", "--first", "first", "--second", "count")
    assert (outcome.code, "column 'count'" in outcome.err) == (2, True)


@pytest.mark.parametrize("row", ["5,-3", "5,2.5", "4,3"])
def test_outputs_that_are_called_counts_are_read(records, row):
    """Below 0, no whole number, or a value that comes twice: these are no numbers of times."""
    records.write("h.csv", f"{HISTOGRAM}\n{row}")
    assert records("bounds", "h.csv", "--first", "value", "--second", "count").code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["o.npz", "--first", "first", "--second", "second"],
        ["o.tsv", "--first", "a,b", "--second", "c,d"],
        ["--first", "first.csv", "--second", "second.csv"],
    ],
)
def test_outputs_from_every_kind_of_file(records, arguments):
    outcome = records(
        "bounds", *arguments, "--parameter", "mu", "--claim", "0.2", "--format", "json"
    )
    expected = from_outputs(FIRST, SECOND, parameter="mu", claim=0.2)
    assert outcome.record["deciding"]["lower"] == expected.lower
    assert outcome.code == 1
    assert [bound["method"] for bound in outcome.record["comparison"]] == [
        "split-exact",
        "split-clopper-pearson",
    ]


def test_the_method_that_was_asked_for_decides(records):
    arguments = [
        "o.npz",
        "--scores",
        "score",
        "--labels",
        "label",
        "--design",
        "arms",
        "--method",
        "dkw",
        "--seed",
        "3",
    ]
    outcome = records("bounds", *arguments)
    assert outcome.out.startswith(
        from_scores(SCORES, LABELS, design="arms", method="dkw").statement
    )
    assert "by dkw" in outcome.out
    assert "asked for by --method" in outcome.out


SCORED = ["--scores", "score", "--labels", "in", "--design", "coin"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], ["say what was recorded", "got none"]),
        (
            ["s.csv", *SCORED, "--guesses", "guess"],
            ["only one of", "scores and guesses"],
        ),
        (["s.csv", "--scores", "score"], ["--scores needs --labels COLUMN"]),
        (["--scores", "score", "--labels", "in"], ["--scores needs FILE"]),
        (
            ["s.csv", "--scores", "score", "--labels", "in"],
            ["unknown design ''", "arms: every row"],
        ),
        (
            ["s.csv", "--scores", "scor", *SCORED[2:]],
            ["s.csv: no column 'scor'", "did you mean 'score'?"],
        ),
        (["s.csv", *SCORED, "--method", "skan"], ["'skan'", "did you mean 'scan'?"]),
        (
            ["s.csv", *SCORED, "--delta", "0.1", "--method", "scan"],
            ["'scan' does not fit coin", "delta=0.1"],
        ),
        (["s.csv", *SCORED, "--delta", "1"], ["delta in [0, 1)", "1.0"]),
        (["s.csv", *SCORED, "--alpha", "5"], ["alpha between 0 and 1", "5.0"]),
        (["s.csv", *SCORED, "--claim", "-1"], ["claim >= 0", "-1.0"]),
        (["s.csv", *SCORED, "--parameter", "nu"], ["--parameter", "'nu'"]),
        (
            ["s.csv", "--guesses", "guess", "--labels", "in"],
            ["unknown design ''", "arms: every row"],
        ),
        (
            ["s.csv", "--guesses", "guess", "--labels", "in", "--design", "bogus"],
            ["unknown design 'bogus'"],
        ),
        (
            ["s.csv", "--guesses", "score", "--labels", "in", "--design", "coin"],
            ["guesses: expected 1 for in and 0 for out"],
        ),
        (["s.csv", "--first", "score"], ["--second is missing"]),
        (["none.csv", *SCORED], ["none.csv: no such file"]),
        (["notes.txt", *SCORED], ["notes.txt: cannot read .txt", ".parquet"]),
        (["empty.csv", *SCORED], ["empty.csv: no rows"]),
        (["ragged.csv", *SCORED], ["row 2 has 1 cells, expected 2"]),
        (["twice.csv", *SCORED], ["two columns have the same name", "rename one"]),
        (["words.csv", *SCORED], ["column 'in', row 1", "'yes'"]),
        (["minus.csv", *SCORED], ["1 for in and 0 for out, got -1", "recode"]),
        (["hole.csv", *SCORED], ["scores: row 2 is nan", "the same for either label"]),
        (["ones.csv", *SCORED], ["3 in and 0 out"]),
        (["fake.npz", *SCORED], ["fake.npz: cannot read it as .npz: BadZipFile"]),
    ],
)
def test_what_cannot_be_used_is_refused(records, arguments, message):
    outcome = records("bounds", *arguments)
    assert outcome.code == 2, outcome
    assert outcome.out == ""
    assert "Traceback" not in outcome.err
    for words in message:
        assert words in " ".join(outcome.err.split())


def test_parquet_without_pyarrow_names_the_extra(records, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'auditdp\[parquet\]'"):
        read(records.root / "fake.parquet")


def test_parquet(records):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(
        pyarrow.table({"score": SCORES, "in": LABELS}), records.root / "s.parquet"
    )
    outcome = records("bounds", "s.parquet", *SCORED, "--format", "json")
    assert (
        outcome.record["deciding"]["lower"]
        == from_scores(SCORES, LABELS, design="coin").lower
    )
    refused = records("bounds", "fake.parquet", *SCORED)
    assert refused.code == 2
    assert "not a parquet file" in refused.err.lower()
