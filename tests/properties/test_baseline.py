"""The file of a baseline holds whatever audits are called."""

from hypothesis import example, given
from hypothesis import strategies as st

from auditdp.record.baseline import read_baseline, write_baseline
from auditdp.record.baseline_entries import Accepted, Entry, rounded_down
from auditdp.record.results import Verdict

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
SHORT = st.floats(0.01, 99).map(lambda value: float(f"{value:.2g}"))
BOUND = st.none() | SHORT
HOLDING = st.sampled_from(
    [Verdict.CERTIFIED, Verdict.NOT_REFUTED, Verdict.SKIPPED, Verdict.INCONCLUSIVE]
)
ENTRIES = st.builds(
    Entry,
    id=TEXT,
    claim=TEXT,
    adjacency=TEXT,
    verdict=HOLDING,
    evidence=st.lists(TEXT, unique=True).map(tuple),
    controls=st.lists(TEXT, unique=True).map(tuple),
    calls=st.integers(0, 10**9),
    at_least=BOUND,
    at_most=BOUND,
    numbers=st.lists(st.floats(0, 99).map(lambda value: float(f"{value:.9g}"))).map(
        tuple
    ),
    counted=st.none() | st.tuples(SHORT, SHORT),
    told_apart=st.none() | st.tuples(SHORT, SHORT),
    accepted=st.none()
    | st.builds(Accepted, TEXT.filter(str.strip), st.none() | st.dates()),
)


def named(name):
    held = Verdict.CERTIFIED
    return [Entry(id=name, claim=name, adjacency=name, verdict=held, controls=(name,))]


@given(st.lists(ENTRIES, unique_by=lambda entry: entry.id))
@example(named("a\nb::c"))
@example(named("\x7f\x00"))
@example(named("ε–\u2028"))
@example(named('"quoted"\\'))
def test_a_file_is_loaded_as_it_was_stored(tmp_path_factory, entries):
    path = tmp_path_factory.mktemp("baseline") / "baseline.toml"
    text = write_baseline(entries)
    path.write_text(text, encoding="utf-8", newline="")
    assert read_baseline(path) == {entry.id: entry for entry in entries}
    assert text == write_baseline(reversed(entries))


@given(st.integers(0, 10**12))
def test_calls_are_rounded_down_by_less_than_a_tenth(calls):
    assert 0.9 * calls <= rounded_down(calls) <= calls
