"""``auditdp bounds``: files that other tools wrote, and the one method that decides."""

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
from tests.cli.test_refusals import HISTOGRAM

RNG = np.random.default_rng(11)
LABELS = RNG.integers(0, 2, 300)
SCORES = np.round(2 * LABELS + RNG.normal(size=300), 3)
FIRST, SECOND = RNG.normal(2, 1, (200, 2)), RNG.normal(0, 1, (150, 2))
GUESSES = ["" if abs(score - 1) < 0.2 else str(int(score > 1)) for score in SCORES]
LIKELY = np.where(np.arange(300) % 2, 0.48, 0.5)
SCORED = "bounds s.csv --scores score --labels in"
ONE_RUN = f"{SCORED} --design one-run"
GUESSED = "bounds s.csv --guesses guess --labels in --format json"


def table(head, rows, separator=","):
    return "\n".join([head, *(separator.join(map(str, row)) for row in rows)])


@pytest.fixture(scope="module")
def records(shared_project):
    write = shared_project.write
    rows = zip(SCORES, LABELS, GUESSES, LIKELY, strict=True)
    write("s.csv", table("score,in,guess,likely", rows))
    arrays = {"first": FIRST, "second": SECOND, "score": SCORES, "label": LABELS}
    np.savez(shared_project.root / "o.npz", **arrays)
    padded = [*SECOND, *[("", "")] * 50]
    both = [(*first, *second) for first, second in zip(FIRST, padded, strict=True)]
    write("o.tsv", table("a\tb\tc\td", both, "\t"))
    write("first.csv", table("a,b", FIRST))
    write("second.csv", table("a,b", SECOND))
    write("fake.parquet", "not a table")
    return shared_project


def test_scores_of_one_run(records):
    outcome = records(f"{ONE_RUN} --claim 1")
    expected = from_scores(SCORES, LABELS, design="one-run", claim=1.0)
    assert outcome.code == 1
    assert outcome.out.startswith(expected.statement)
    assert "by scan" in outcome.out
    assert "the first choice for this kind of record, whatever the" in outcome.out
    deciding, comparison = outcome.out.split("for comparison, not corrected")
    assert "assumes  each label was thrown by its own fair coin" in deciding
    assert "one-run-curve" in comparison
    assert "Steinke" in comparison
    stands = records(f"{ONE_RUN} --claim 20")
    assert (stands.code, "is not refuted" in stands.out) == (0, True)
    assert records(f"{SCORED} --design arms").code == 0


def test_json_holds_the_same_bound(records):
    outcome = records(f"{ONE_RUN} --delta 1e-5 --claim 1 --format json")
    expected = from_scores(SCORES, LABELS, design="one-run", delta=1e-5, claim=1.0)
    assert outcome.record["deciding"]["lower"] == expected.lower
    assert outcome.record["deciding"]["statement"] == expected.statement
    assert [bound["method"] for bound in outcome.record["comparison"]] == ["one-run"]
    assert outcome.record["assumed"]["lower"] > 2 * expected.lower
    assert outcome.code == int(expected.refuted)
    shown = records(f"{ONE_RUN} --delta 1e-5 --claim 1").out
    assert "ASSUMING independent Gaussian scores" in shown


def test_members_as_they_are(records):
    outcome = records(f"{SCORED} --propensities likely --claim 1")
    expected = from_observed(SCORES, LABELS, LIKELY, claim=1.0)
    assert outcome.out.startswith(expected.statement)
    assert "assumes  given what is known of the rows" in outcome.out


def test_guesses(records):
    found = records(f"{GUESSED} --design one-run").record["deciding"]
    made = [k for k, guess in enumerate(GUESSES) if guess]
    correct = sum(int(GUESSES[k]) == LABELS[k] for k in made)
    assert found["lower"] == from_guesses(correct, len(made), canaries=300).lower
    counts = []
    for rows in (np.flatnonzero(label == LABELS) for label in (1, 0)):
        counts += [sum(GUESSES[k] == "1" for k in rows), len(rows)]
    by_arms = records(f"{GUESSED} --design arms").record["deciding"]
    assert by_arms["lower"] == from_counts(*counts).lower != found["lower"]


def test_every_option_applies_to_some_record():
    options = {option.name for option in fields(BoundsOptions)}
    assert set().union(*TAKEN.values()) == options


@pytest.mark.dear
@pytest.mark.parametrize("row", ["5,-3", "5,2.5", "4,3"])
def test_outputs_that_are_called_counts_are_read(records, row):
    """Below 0, no whole number, or a value that comes twice: these are no numbers of times."""
    records.write("h.csv", f"{HISTOGRAM}\n{row}")
    assert records("bounds h.csv --first value --second count").code == 0


@pytest.mark.dear
@pytest.mark.parametrize(
    "files",
    [
        "o.npz --first first --second second",
        "o.tsv --first a,b --second c,d",
        "--first first.csv --second second.csv",
    ],
)
def test_outputs_from_every_kind_of_file(records, files):
    outcome = records(f"bounds {files} --parameter mu --claim 0.2 --format json")
    expected = from_outputs(FIRST, SECOND, parameter="mu", claim=0.2)
    assert (outcome.record["deciding"]["lower"], outcome.code) == (expected.lower, 1)
    compared = [bound["method"] for bound in outcome.record["comparison"]]
    assert compared == ["split-exact", "split-clopper-pearson"]


@pytest.mark.dear
def test_the_method_that_was_asked_for_decides(records):
    arms = "bounds o.npz --scores score --labels label --design arms"
    outcome = records(f"{arms} --method dkw --seed 3")
    expected = from_scores(SCORES, LABELS, design="arms", method="dkw")
    assert outcome.out.startswith(expected.statement)
    assert "by dkw" in outcome.out
    assert "requested by --method" in outcome.out


def test_parquet_without_pyarrow_names_the_extra(records, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'auditdp\[parquet\]'"):
        read(records.root / "fake.parquet")


@pytest.mark.dear
def test_parquet(records):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = pyarrow.table({"score": SCORES, "in": LABELS})
    parquet.write_table(columns, records.root / "s.parquet")
    read_it = "bounds {}.parquet --scores score --labels in --design coin --format json"
    found = records(read_it.format("s")).record["deciding"]
    assert found["lower"] == from_scores(SCORES, LABELS, design="coin").lower
    assert records(read_it.format("fake")).code == 2
