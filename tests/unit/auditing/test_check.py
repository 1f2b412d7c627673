"""``check`` returns a finding, ``assert_private`` raises it, and both stop when they are interrupted."""

import dataclasses
import functools
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import types

import matplotlib
import numpy as np
import pytest

import auditdp
from auditdp import (
    LaplaceLaw,
    Pair,
    PrivacyViolation,
    PureDP,
    Unbiased,
    assert_private,
    check,
)
from auditdp.auditing.gathering import Settings
from auditdp.auditing.judging import run_audit
from auditdp.betting.game import Watcher, going_on, watched
from auditdp.errors import (
    AdjacencyError,
    ConfigurationError,
    MechanismError,
    NotConfirmed,
)
from auditdp.record.budget import Budget
from auditdp.record.results import RESULT, Verdict
from auditdp.testing import Response
from auditdp.training import audit_training
from tests.unit.report.html.test_pages import Page

VIOLATED, NOT_REFUTED = Verdict.VIOLATED, Verdict.NOT_REFUTED
PAIR = [(10, 11)]


def noisy(value, size, *, rng):
    return value + rng.laplace(scale=0.5, size=size)


@pytest.fixture(scope="module")
def refuted():
    return check(noisy, PureDP(1.0), PAIR, calls=5_000, seed=3)


@pytest.fixture(scope="module")
def clean():
    return check(noisy, PureDP(2.5), PAIR, calls=2_000)


def test_a_finding_is_returned_and_not_raised(refuted):
    assert refuted.verdict is VIOLATED
    assert refuted.counterexample.pair == "10 | 11"
    assert 1 < refuted.epsilon_lower <= 2
    assert refuted.epsilon_upper is None
    assert not refuted.interrupted
    assert "game" in {evidence.kind for evidence in refuted.evidence}


def test_a_clean_check_has_no_counterexample(clean):
    assert (clean.verdict, clean.counterexample) == (NOT_REFUTED, None)


def test_the_same_seed_gives_the_same_result_as_an_audit_of_it(refuted):
    built = auditdp.Audit(noisy, PureDP(1.0), PAIR)
    settings = Settings(alpha=0.05, budget=Budget(5_000), root_seed=3, key="noisy")
    audited = run_audit(built, settings)
    assert audited.log_e_value == refuted.log_e_value
    assert audited.epsilon_lower == refuted.epsilon_lower


def test_its_representation_is_one_short_line(refuted, clean):
    stopped = dataclasses.replace(clean, interrupted=True)
    lines = list(map(repr, (refuted, clean, stopped)))
    assert lines[0].startswith("<VIOLATED: 1-DP claimed, ")
    assert " ≤ ε found, " in lines[0]
    assert "2.5-DP claimed" in lines[1]
    assert lines[2].endswith("stopped early>")
    assert all(len(line) < 110 and "\n" not in line for line in lines)


def text_of(result):
    return " ".join("".join(Page(result._repr_html_()).text).split())


def test_a_notebook_shows_a_card_with_the_interval(refuted):
    page, text = Page(refuted._repr_html_()), text_of(refuted)
    assert "the claim allows 73" in text
    meaning = "No output is more than e^1 = 2.718 times as likely"
    assert f"noisy is claimed to be 1-DP. {meaning}" in text
    (drawn,) = page.all("svg")
    assert drawn["class"] == "bar violated"
    assert drawn["aria-label"].startswith("Found ")
    assert "mark violated" in [span.get("class") for span in page.all("span")]
    assert [cell.get("class") for cell in page.all("td")] == ["changed", "changed"]


def test_the_card_of_a_clean_check_states_its_power(clean):
    text = text_of(clean)
    assert "did not refute the claim" in text
    assert "would have refuted ε = " in text
    assert (
        "an output that only one of two neighbours gives, if it occurs once in" in text
    )
    assert "Smaller or rarer leaks may be missed; more calls find more." in text
    assert "the audit tested only the pair that it lists" in text
    assert text.count("NOT REFUTED") == 1
    assert "NOT_REFUTED" not in text


def test_a_hostile_name_is_text_in_the_card_and_an_infinite_bound_is_plain_data():
    def hostile(value, rng):
        return float(value)

    hostile.__name__ = "<script>alert(1)</script>"
    found = check(hostile, PureDP(1.0), [(0, 1)], calls=300)
    assert Page(found._repr_html_()).all("script") == []
    assert "&lt;script&gt;" in found._repr_html_()
    json.dumps(found.to_dict(), allow_nan=False)


def test_it_is_plain_data(refuted):
    data = json.loads(json.dumps(refuted.to_dict(), allow_nan=False))
    assert data.pop("interrupted") is False
    assert RESULT.validate_python(data).log_e_value == refuted.log_e_value


def test_the_plot_shows_the_bound_beside_the_claim(refuted):
    matplotlib.use("agg")
    axes = refuted.plot()
    claim, found = axes.lines[0].get_xdata()[0], axes.lines[-1].get_xdata()[0]
    assert claim == 100.0 < found
    assert "VIOLATED" in axes.get_title(loc="left")
    assert refuted.plot(axes) is axes
    matplotlib.pyplot.close(axes.figure)


# Progress and interrupts.


def test_progress_is_reported_after_every_batch():
    reports = []
    progress = lambda done, of: reports.append((done, of))  # noqa: E731
    check(noisy, PureDP(2.5), PAIR, calls=1_000, progress=progress)
    done = [calls for calls, _ in reports]
    assert done == sorted(set(done))
    assert {of for _, of in reports} == {done[-1]}


@pytest.mark.parametrize("application", ["IPKernelApp", "TerminalIPythonApp"])
def test_a_notebook_shows_a_bar_and_a_terminal_none(monkeypatch, application):
    """A stand-in for IPython as it appears within its kernel."""
    drawn = []

    def display(shown, *, display_id):
        drawn.append(shown)
        return types.SimpleNamespace(update=drawn.append)

    shell = types.SimpleNamespace(config={application: {}})
    python = types.SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", python)
    displays = types.SimpleNamespace(HTML=str, display=display)
    monkeypatch.setitem(sys.modules, "IPython.display", displays)
    check(noisy, PureDP(2.5), PAIR, calls=1_000)
    assert bool(drawn) is (application == "IPKernelApp")
    if drawn:
        assert "<progress" in drawn[0]
        # It disappears at the end.
        assert drawn[-1] == ""


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupt_keeps_the_evidence_and_the_verdict_keeps_its_guarantee():
    def slow(value, rng):
        slow.calls += 1
        if slow.calls == 1_500:
            interrupt()
        return value + rng.laplace(scale=0.5)

    slow.calls = 0
    before = signal.getsignal(signal.SIGINT)
    found = check(slow, PureDP(2.5), PAIR, calls=10**8, evidence=["game"])
    assert (found.interrupted, found.verdict) == (True, NOT_REFUTED)
    assert 1_000 < found.calls < 100_000
    assert found.epsilon_lower is not None
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupted_game_that_had_refuted_the_claim_is_confirmed():
    def progress(done, of):
        if done > 2_000 and not progress.sent:
            progress.sent = True
            interrupt()

    progress.sent = False
    options = {"calls": 10**8, "evidence": ["game"], "progress": progress}
    found = check(noisy, PureDP(1.0), PAIR, **options)
    assert (found.verdict, found.interrupted) == (VIOLATED, True)
    assert found.counterexample.confirmed


def test_the_second_interrupt_raises():
    with watched(Watcher()):
        assert going_on(1, 2)
        interrupt()
        assert not going_on(1, 2)
        with pytest.raises(KeyboardInterrupt):
            interrupt()
    # Nothing is watched any more.
    assert going_on(1, 2)


def test_a_check_in_a_thread_leaves_signals_alone():
    found = []

    def target():
        found.append(check(noisy, PureDP(2.5), PAIR, calls=200))

    thread = threading.Thread(target=target)
    thread.start()
    thread.join()
    assert found[0].verdict is NOT_REFUTED


# Claims, laws and errors.


def test_promises_are_checked_too():
    def normal(data, size, *, rng):
        return data + rng.normal(size=size)

    def biased(data, rng):
        return data + 2 + rng.normal()

    promise = Unbiased(float, margin=0.5)
    options = {"inputs": {"one": [1.0]}, "calls": 4_000}
    for entry in (check, assert_private):
        assert entry(normal, promise, **options).verdict is Verdict.EQUIVALENT
    with pytest.raises(PrivacyViolation, match="is not unbiased"):
        assert_private(biased, promise, **options)


def test_laws_and_controls_count_as_in_an_audit():
    class Stated:
        def __init__(self, scale):
            self.scale = scale

        def __call__(self, value, size, *, rng):
            return value + rng.laplace(scale=self.scale, size=size)

        def distribution(self, value):
            return LaplaceLaw(np.array([float(value)]), np.array([self.scale]))

    controls = [Stated(0.2)]
    found = check(Stated(1.0), PureDP(1.0), PAIR, calls=2_000, controls=controls)
    assert {"exact", "game"} <= {evidence.kind for evidence in found.evidence}
    assert [control.verdict for control in found.controls] == [VIOLATED]


def broken(value, rng):
    raise ZeroDivisionError("no")


@pytest.mark.parametrize("entry", [check, assert_private])
@pytest.mark.parametrize(
    ("mechanism", "pairs", "error"),
    [
        (broken, PAIR, MechanismError),
        (lambda data: data, PAIR, MechanismError),
        (noisy, 3, AdjacencyError),
    ],
)
def test_errors_of_the_mechanism_and_of_the_pairs_are_raised(
    entry, mechanism, pairs, error
):
    with pytest.raises(error):
        entry(mechanism, PureDP(1.0), pairs, calls=100)


def train(data, rng):
    return data


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, float("nan")])
@pytest.mark.parametrize("entry", [check, assert_private, audit_training])
def test_a_level_outside_0_and_1_is_refused(entry, alpha):
    message = "expected alpha strictly between 0 and 1, got alpha="
    with pytest.raises(ConfigurationError, match=message):
        entry(train, PureDP(1.0), pairs=[(0, 1)], alpha=alpha)
    with pytest.raises(ConfigurationError, match=message):
        Settings(alpha, Budget(100), 0)


# Assertions.


def violation(mechanism=noisy, claim=PureDP(0.5), pairs=PAIR, **options):  # noqa: B008
    with pytest.raises(PrivacyViolation) as caught:
        assert_private(mechanism, claim, pairs, **options)
    return caught


def test_a_violation_has_the_counterexample_and_how_to_reproduce_it():
    text = str(violation(calls=5000, seed=3).value)
    assert text.startswith("noisy is not 0.5-DP")
    assert "pair: 10 | 11" in text
    assert "ε ≥ " in text
    assert "fresh calls, made one by one, confirmed the refutation" in text
    assert "the claim allows 62" in text
    assert re.search(r"seed=3, calls=5,?000, alpha=1e-06", text)
    by_law = violation(Response(2.0), PureDP(1.0), Pair(0, 1), calls=100)
    assert by_law.match(r"output: .*\n  why: [Tt]his output has probability")


def test_a_violation_has_the_result_and_hides_the_frame():
    caught = violation(calls=3_000)
    assert isinstance(caught.value, AssertionError)
    assert caught.value.result.verdict is VIOLATED
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.result) == (str(caught.value), caught.value.result)
    assert PrivacyViolation("alone").result is None
    shown = str(caught.getrepr())
    assert re.search(r"test_check.py:\d+: ", shown)
    assert "auditing/check.py" in str(caught.traceback)
    assert "auditing/check.py" not in shown


def test_a_refutation_that_is_not_confirmed_raises():
    def by_size(data, size, *, rng):
        return data + rng.laplace(scale=1.0 if size == 1 else 0.2, size=size)

    with pytest.raises(NotConfirmed, match="e-value") as caught:
        assert_private(by_size, PureDP(1.0), PAIR, calls=2000, alpha=0.05)
    assert caught.value.result.is_unconfirmed


def test_an_assertion_is_deterministic_by_seed():
    first, again, other = (
        str(violation(calls=2000, seed=seed).value) for seed in (1, 1, 2)
    )
    assert first == again != other


class Plain:
    """A class without a name of its own, whose repr contains its address."""

    def __call__(self, data, size, *, rng):
        return noisy(data, size, rng=rng)


@dataclasses.dataclass
class Wrapping(Plain):
    """A class whose repr contains the address of its function."""

    function: object


@pytest.mark.dear
@pytest.mark.parametrize(
    "make",
    [
        Plain,
        lambda: functools.partial(Plain()),
        lambda: lambda data, size, *, rng: noisy(data, size, rng=rng),
        lambda: Wrapping(lambda: None),
    ],
    ids=["instance", "partial", "lambda", "wrapping"],
)
def test_the_address_of_the_mechanism_does_not_matter(make):
    mechanisms = make(), make()
    one, other = (check(each, PureDP(2.5), PAIR, calls=300) for each in mechanisms)
    assert one.log_e_value == other.log_e_value
    assert one.epsilon_lower == other.epsilon_lower


def clipped(data, size, *, rng):
    outputs = data + rng.laplace(size=size)
    return np.where(outputs > 3, np.inf, outputs)


def sometimes_missing(probability):
    def mechanism(data, size, *, rng):
        missing = rng.random(size) < probability[data]
        return np.where(missing, np.nan, rng.random(size))

    return mechanism


def test_infinite_and_missing_outputs_are_audited():
    """NaN stands for a missing number, which reveals something if it depends on the data."""
    for fair in (clipped, sometimes_missing([0.3, 0.3])):
        result = assert_private(fair, PureDP(1.0), [(0, 1)], calls=300)
        assert result.verdict is NOT_REFUTED
    violation(sometimes_missing([0.1, 0.6]), pairs=[(0, 1)], calls=5_000)


def test_the_vocabulary_loads_no_report_and_dir_has_every_public_name():
    heavy = "{'matplotlib', 'jinja2', 'auditdp.report.html.pages'}"
    code = f"""
import sys, auditdp as a
a.check
assert not {heavy} & set(sys.modules)
assert set(a.__all__) <= set(dir(a))
[getattr(a, name) for name in dir(a)]
"""
    subprocess.run([sys.executable, "-c", code], check=True)
