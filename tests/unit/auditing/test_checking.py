from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import types
from dataclasses import replace

import matplotlib
import numpy as np
import pytest

import auditdp
from auditdp import (
    LaplaceLaw,
    PrivacyViolation,
    PureDP,
    Unbiased,
    assert_private,
    check,
)
from auditdp.auditing.gathering import Settings
from auditdp.auditing.judging import run_audit
from auditdp.betting.game import Watcher, going_on, watched
from auditdp.errors import CollectionError, ConfigurationError, MechanismError
from auditdp.record.budget import Budget
from auditdp.record.results import RESULT, Verdict
from auditdp.training import audit_training
from tests.unit.report.html.test_pages import Page

pytestmark = pytest.mark.dear


def noisy(value, size, *, rng):
    return value + rng.laplace(scale=0.5, size=size)


@pytest.fixture(scope="module")
def refuted():
    return check(noisy, PureDP(1.0), [(10, 11)], calls=5_000, seed=3)


@pytest.fixture(scope="module")
def clean():
    return check(noisy, PureDP(2.5), [(10, 11)], calls=2_000)


def test_a_finding_is_returned_and_not_raised(refuted):
    assert refuted.verdict is Verdict.VIOLATED
    assert refuted.counterexample.pair == "10 | 11"
    assert 1 < refuted.epsilon_lower <= 2
    assert refuted.epsilon_upper is None
    assert not refuted.interrupted
    assert {e.kind for e in refuted.evidence} >= {"game"}


def test_a_clean_check_has_no_counterexample(clean):
    assert (clean.verdict, clean.counterexample) == (Verdict.NOT_REFUTED, None)


def test_the_same_seed_gives_the_same_result_as_an_audit_of_it(refuted):
    built = auditdp.Audit(noisy, PureDP(1.0), [(10, 11)])
    audited = run_audit(
        built, Settings(alpha=0.05, budget=Budget(5_000), root_seed=3, key="noisy")
    )
    assert audited.log_e_value == refuted.log_e_value
    assert audited.epsilon_lower == refuted.epsilon_lower


def test_it_is_one_short_line(refuted, clean):
    assert repr(refuted).startswith("<VIOLATED: 1-DP claimed, ")
    assert " ≤ ε found, " in repr(refuted)
    assert "2.5-DP claimed" in repr(clean)
    assert all(
        len(repr(found)) < 100 and "\n" not in repr(found) for found in (refuted, clean)
    )
    assert repr(replace(clean, interrupted=True)).endswith("stopped early>")


def test_a_notebook_sees_a_card_with_the_interval(refuted, clean):
    page = Page(refuted._repr_html_())
    shown = " ".join("".join(page.text).split())
    assert "the claim allows 73" in shown
    assert (
        "noisy is claimed to be 1-DP. No outputs are more than e^1 = 2.718 times as likely"
        in shown
    )
    (drawn,) = page.all("svg")
    assert drawn["class"] == "bar violated"
    assert "mark violated" in [
        attributes.get("class") for attributes in page.all("span")
    ]
    assert drawn["aria-label"].startswith("Found ")
    assert [cell.get("class") for cell in page.all("td")] == ["changed", "changed"]
    message = " ".join("".join(Page(clean._repr_html_()).text).split())
    assert "did not refute the claim" in message
    assert "would have refuted ε = " in message
    assert (
        ", and an output that only one of two neighbours gives, if it comes once in "
        in message
    )
    assert (
        "calls. Smaller or rarer leaks may be missed; more calls find more." in message
    )
    assert (
        "pair of neighbours that the audit lists was played, and no other was looked for"
        in message
    )
    assert message.count("NOT REFUTED") == 1
    assert "NOT_REFUTED" not in message


def test_a_hostile_name_is_text_in_the_card():
    def hostile(value, rng):
        return float(value)

    hostile.__name__ = "<script>alert(1)</script>"
    found = check(hostile, PureDP(1.0), [(0, 1)], calls=300)
    assert Page(found._repr_html_()).all("script") == []
    assert "&lt;script&gt;" in found._repr_html_()


def test_it_is_plain_data(refuted):
    data = json.loads(json.dumps(refuted.to_dict(), allow_nan=False))
    assert data.pop("interrupted") is False
    assert RESULT.validate_python(data).log_e_value == refuted.log_e_value


def test_an_infinite_bound_is_plain_data_too():
    found = check(lambda value, rng: value, PureDP(1.0), [(0, 1)], calls=300)
    json.dumps(found.to_dict(), allow_nan=False)


def test_the_plot_shows_the_bound_beside_the_claim(refuted):
    matplotlib.use("agg")
    axes = refuted.plot()
    claim, found = axes.lines[0].get_xdata()[0], axes.lines[-1].get_xdata()[0]
    assert claim == 100.0 < found
    assert "VIOLATED" in axes.get_title(loc="left")
    again = refuted.plot(axes)
    assert again is axes
    matplotlib.pyplot.close(axes.figure)


def test_progress_hears_of_every_batch():
    heard = []
    check(
        noisy,
        PureDP(2.5),
        [(10, 11)],
        calls=1_000,
        progress=lambda done, of: heard.append((done, of)),
    )
    done = [calls for calls, _ in heard]
    assert done == sorted(set(done))
    assert {of for _, of in heard} == {done[-1]}


@pytest.mark.parametrize(
    ("application", "bars"), [("IPKernelApp", True), ("TerminalIPythonApp", False)]
)
def test_a_notebook_shows_a_bar_and_a_terminal_none(monkeypatch, application, bars):
    """IPython as it looks from within its kernel, which is all that is asked of it."""
    drawn = []

    class Handle:
        def update(self, shown):
            drawn.append(shown)

    def display(shown, *, display_id):
        drawn.append(shown)
        return Handle()

    shell = types.SimpleNamespace(config={application: {}})
    monkeypatch.setitem(
        sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell)
    )
    monkeypatch.setitem(
        sys.modules, "IPython.display", types.SimpleNamespace(HTML=str, display=display)
    )
    check(noisy, PureDP(2.5), [(10, 11)], calls=1_000)
    assert bool(drawn) is bars
    if bars:
        assert "<progress" in drawn[0]
        assert drawn[-1] == ""  # nothing is left of it at the end


def test_an_interrupt_keeps_what_there_is_and_the_verdict_keeps_its_guarantee():
    def slow(value, rng):
        slow.calls += 1
        if slow.calls == 1_500:
            os.kill(os.getpid(), signal.SIGINT)
        return value + rng.laplace(scale=0.5)

    slow.calls = 0
    before = signal.getsignal(signal.SIGINT)
    found = check(slow, PureDP(2.5), [(10, 11)], calls=10**8, evidence=["game"])
    assert found.interrupted
    assert found.verdict is Verdict.NOT_REFUTED
    assert 1_000 < found.calls < 100_000
    assert found.epsilon_lower is not None
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupted_game_that_had_refuted_the_claim_is_confirmed():
    def progress(done, of):
        if done > 2_000 and not progress.sent:
            progress.sent = True
            os.kill(os.getpid(), signal.SIGINT)

    progress.sent = False
    found = check(
        noisy,
        PureDP(1.0),
        [(10, 11)],
        calls=10**8,
        evidence=["game"],
        progress=progress,
    )
    assert (found.verdict, found.interrupted) == (Verdict.VIOLATED, True)
    assert found.counterexample.confirmed


def test_the_second_interrupt_is_one():
    watcher = Watcher()
    with watched(watcher):
        assert going_on(1, 2)
        os.kill(os.getpid(), signal.SIGINT)
        assert not going_on(1, 2)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert going_on(1, 2)  # nobody looks on any more


def test_a_check_in_a_thread_leaves_signals_alone():
    found = []
    thread = threading.Thread(
        target=lambda: found.append(check(noisy, PureDP(2.5), [(10, 11)], calls=200))
    )
    thread.start()
    thread.join()
    assert found[0].verdict is Verdict.NOT_REFUTED


@pytest.mark.parametrize("options", [{"alpha": 0.0}, {"alpha": 1.0}, {"calls": 0}])
def test_a_setting_that_cannot_be_used_is_refused(options):
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        check(noisy, PureDP(1.0), [(10, 11)], **options)


def test_promises_are_checked_too():
    def noisy(data, size, *, rng):
        return data + rng.normal(size=size)

    promise, inputs = Unbiased(float, margin=0.5), {"one": [1.0]}
    assert (
        check(noisy, promise, inputs=inputs, calls=4_000).verdict is Verdict.EQUIVALENT
    )
    assert (
        assert_private(noisy, promise, inputs=inputs, calls=4_000).verdict
        is Verdict.EQUIVALENT
    )
    with pytest.raises(PrivacyViolation, match="is not unbiased"):
        assert_private(
            lambda x, rng: 2 + noisy(x, 1, rng=rng)[0],
            promise,
            inputs=inputs,
            calls=4_000,
        )
    with pytest.raises(CollectionError, match="needs inputs="):
        check(noisy, promise)
    with pytest.raises(CollectionError, match="needs pairs="):
        check(noisy, PureDP(1.0))
    with pytest.raises(CollectionError, match="and no inputs="):
        check(noisy, PureDP(1.0), [(0, 1)], inputs=inputs)


def test_a_mechanism_that_cannot_be_used_is_an_error():
    def broken(value, rng):
        raise ZeroDivisionError("no")

    with pytest.raises(MechanismError):
        check(broken, PureDP(1.0), [(10, 11)], calls=100)


def test_laws_and_controls_count_as_in_an_audit():
    class Stated:
        def __init__(self, scale):
            self.scale = scale

        def __call__(self, value, size, *, rng):
            return value + rng.laplace(scale=self.scale, size=size)

        def distribution(self, value):
            return LaplaceLaw(np.array([float(value)]), np.array([self.scale]))

    found = check(
        Stated(1.0), PureDP(1.0), [(0.0, 1.0)], calls=2_000, controls=[Stated(0.2)]
    )
    assert {evidence.kind for evidence in found.evidence} >= {"exact", "game"}
    assert [control.verdict for control in found.controls] == [Verdict.VIOLATED]


def test_a_violation_holds_the_result_and_hides_the_frame():
    with pytest.raises(PrivacyViolation) as caught:
        assert_private(noisy, PureDP(0.5), [(10, 11)], calls=3_000)
    assert caught.value.result.verdict is Verdict.VIOLATED
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.result) == (str(caught.value), caught.value.result)
    assert PrivacyViolation("alone").result is None
    shown = str(caught.getrepr())
    assert f"test_checking.py:{caught.traceback[0].lineno + 1}: " in shown
    assert "auditing/check.py" in str(caught.traceback)
    assert "auditing/check.py" not in shown


def test_the_vocabulary_loads_no_report_and_dir_finds_every_public_name():
    heavy = "{'matplotlib', 'jinja2', 'auditdp.report.html.pages'}"
    code = f"import sys, auditdp as a; a.check; assert not {heavy} & set(sys.modules)"
    code += (
        "; assert set(a.__all__) <= set(dir(a)); [getattr(a, name) for name in dir(a)]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, float("nan")])
def test_a_level_that_is_none_is_refused_wherever_it_is_given(alpha):
    def noisy(data, rng):
        return data + rng.laplace()

    def trainer(data, rng):
        return data

    for asked in (
        lambda: check(noisy, PureDP(1.0), [(0, 1)], alpha=alpha),
        lambda: assert_private(noisy, PureDP(1.0), [(0, 1)], alpha=alpha),
        lambda: audit_training(trainer, PureDP(1.0), pairs=(0, 1), alpha=alpha),
        lambda: Settings(alpha, Budget(100), 0),
    ):
        with pytest.raises(
            ConfigurationError,
            match="expected alpha strictly between 0 and 1, got alpha=",
        ):
            asked()
