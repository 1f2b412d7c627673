"""Audits: how they are declared, which verdict is drawn, and what a failing test of one's own says."""

import dataclasses
import doctest
import functools
import importlib
import math
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import auditdp
from auditdp.adjacency import AnyValues, Pair
from auditdp.auditing.check import assert_private
from auditdp.auditing.declaration import Audit
from auditdp.auditing.decorator import audit, collect, data_file
from auditdp.auditing.gathering import Settings
from auditdp.auditing.judging import run_audit
from auditdp.claims.statements import ApproxDP, GaussianDP, PureDP
from auditdp.errors import (
    AdjacencyError,
    CollectionError,
    ConfigurationError,
    MechanismError,
    NotConfirmed,
    PrivacyViolation,
    Skip,
)
from auditdp.evidence.estimation import Unbiased
from auditdp.mechanism.laws import FiniteLaw
from auditdp.record.budget import Budget
from auditdp.record.results import Verdict
from auditdp.testing import (
    GaussianMechanism,
    LaplaceMechanism,
    LeakyResponse,
    Response,
    SharedNoise,
)

pytestmark = pytest.mark.dear

BIT = AnyValues((0, 1))
SETTINGS = Settings(alpha=1e-6, budget=Budget(3000), root_seed=0, key="test")


class Hidden:
    """A mechanism whose law is not stated."""

    def __init__(self, mechanism):
        self.mechanism = mechanism
        self.name = f"hidden {mechanism.name}"

    def __call__(self, data, size, *, rng):
        return self.mechanism(data, size, rng=rng)


class Pretender(Hidden):
    """A mechanism that states one law and draws from another."""

    def __init__(self, mechanism, stated):
        super().__init__(mechanism)
        self.distribution = stated.distribution


class Fragile:
    """States a law whose pure epsilon is 2; draws nothing."""

    name = "fragile"

    def __call__(self, data, size, *, rng):
        raise RuntimeError("must not be called")

    def distribution(self, data):
        return FiniteLaw(
            np.array([0, 1]),
            [Fraction(9, 10), Fraction(1, 10)]
            if data
            else [Fraction(1, 10), Fraction(9, 10)],
        )


def run(*args, settings=SETTINGS, **kwargs):
    return run_audit(Audit(*args, **kwargs), settings)


def safe():
    return Response(1.0 - 1e-9)


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ({"claim": PureDP(1.0)}, "needs pairs"),
        ({"claim": Unbiased(float, margin=1.0)}, "needs inputs"),
        ({"claim": Unbiased(float, margin=1.0), "inputs": {}}, "needs inputs"),
        (
            {"claim": PureDP(1.0), "pairs": BIT, "evidence": ["gaem"]},
            "did you mean 'game'",
        ),
        ({"claim": PureDP(1.0), "pairs": BIT, "evidence": "exact"}, "unknown evidence"),
        ({"claim": 1.0, "pairs": BIT}, "claim=1.0"),
    ],
)
def test_arguments_that_do_not_fit_together_are_refused(arguments, shown):
    with pytest.raises(CollectionError, match=shown):
        Audit(Response(1.0), **arguments)


def test_pairs_that_cannot_be_read_are_refused_where_they_are_declared():
    with pytest.raises(AdjacencyError, match="can be read as one pair"):
        Audit(Response(1.0), PureDP(1.0), ((0, 1), (2, 3)))


def nothing(nodes=2):
    """It audits nothing much."""
    return Audit(Response(1.0), PureDP(1.0), BIT)


def test_the_decorator_needs_no_parentheses():
    plain, with_options = audit(nothing), audit(source="Theorem 1")(nothing)
    assert (plain.wrong, plain.expect, plain.source) == ("", "holds", "")
    assert with_options.source == "Theorem 1"
    for declared in (plain, with_options):
        assert declared.description == "It audits nothing much."
        assert isinstance(declared.build({})[0], Audit)


WRONG = [
    ((), {"expct": "violation"}, "no option expct='violation'; did you mean 'expect'"),
    (("our paper",), {}, "by name, such as .* got 'our paper'"),
    ((), {"source": 3}, "a text, got source=3"),
    ((), {"expect": "maybe"}, "'holds', 'violation' or 'miscalibration', got 'maybe'"),
    ((), {"timeout": "5"}, "timeout, .* got '5'"),
    ((), {"timeout": -1}, "timeout, .* got -1"),
    ((), {"smallest": {"nodes": [2, 1]}}, "ascending sizes"),
    ((), {"smallest": {"nodes": []}}, "ascending sizes"),
    ((), {"smallest": {"nodes": [1, 1]}}, "ascending sizes"),
    ((), {"smallest": {"nodes": ["a", 1]}}, "ascending sizes"),
    ((), {"smallest": 3}, "ascending sizes"),
    ((), {"smallest": {"nodes": [1], "size": [1]}}, "ascending sizes"),
    ((), {"smallest": {"size": [1]}}, "no parameter 'size'"),
]


@pytest.mark.parametrize(("positional", "options", "shown"), WRONG, ids=str)
def test_a_mistake_in_the_decorator_is_kept_until_its_audit_is_built(
    positional, options, shown
):
    declared = audit(*positional, **options)(nothing)
    line = nothing.__code__.co_firstlineno
    with pytest.raises(CollectionError, match=f"^line {line}: .*{shown}"):
        declared.build({})
    assert (declared.read({"nodes": "x"}), declared.timeout, declared.smallest) == (
        {},
        None,
        {},
    )


def test_what_is_decorated_must_be_callable():
    with pytest.raises(
        CollectionError, match="expected a function that returns an Audit, got 3"
    ):
        audit()(3)


MISTAKES = """
from auditdp import Audit, PureDP, Pair, Records, audit

@audit
def good():
    return Audit(len, PureDP(1.0), Pair(1, 0))

@audit(expct="violation")
def misspelt():
    return Audit(len, PureDP(1.0), Pair(1, 0))

@audit
def unreadable():
    return Audit(len, PureDP(1.0),
                 Records(3, (None, "b")))

@audit
def twice():
    return Audit(len, PureDP(1.0), Pair(1, 0))

@audit
def twice():
    return Audit(len, PureDP(1.0), Pair(1, 0))
"""


def test_a_mistake_in_an_audit_costs_that_audit_alone_and_names_its_line(tmp_path):
    path = tmp_path / "audit_it.py"
    path.write_text(MISTAKES)
    good, misspelt, unreadable, twice = collect(path, tmp_path)
    assert isinstance(good.build({})[0], Audit)
    for declared, shown in (
        (misspelt, "^line 8: .*'expect'"),
        (unreadable, r"^line 15: Records: expected values, .*\[None, 'b'\]; .*Rows"),
        (twice, "^line 22: the file has another function of this name in line 18"),
    ):
        with pytest.raises(CollectionError, match=shown):
            declared.build({})


def test_a_mistake_outside_of_audits_costs_the_file_and_names_its_line(tmp_path):
    path = tmp_path / "audit_it.py"
    path.write_text("from auditdp import AnyValues\n\nVALUES = AnyValues((0,))\n")
    with pytest.raises(
        CollectionError, match=r"^audit_it.py, line 3: AnyValues: expected at least two"
    ):
        collect(path, tmp_path)


def verdicts(result):
    return {evidence.kind: evidence.verdict for evidence in result.evidence}


def test_a_proof_beats_a_clean_game():
    result = run(safe(), PureDP(1.0), BIT)
    clean = Verdict.NOT_REFUTED
    proved = {"exact": Verdict.CERTIFIED, "game": clean, "counting": clean}
    assert verdicts(result) == proved
    assert (result.verdict, result.counterexample) == (Verdict.CERTIFIED, None)
    assert 0 <= result.epsilon_lower <= result.epsilon_upper
    assert result.epsilon_upper == pytest.approx(1.0, abs=1e-6)
    assert (result.id, result.alpha) == ("test", 1e-6)
    assert 0.9 * SETTINGS.budget.calls < result.calls <= SETTINGS.budget.calls
    assert (result.claim.kind, result.claim.epsilon) == ("PureDP", 1.0)
    assert (result.claim.delta, result.claim.mu) == (0.0, None)


@pytest.mark.parametrize(
    ("epsilon", "game", "verdict", "summary"),
    [
        (1.0, Verdict.VIOLATED, Verdict.VIOLATED, "does not draw from the law"),
        (
            3.0,
            Verdict.NOT_REFUTED,
            Verdict.INCONCLUSIVE,
            "the law that it states at most 1: it does not draw from that law; what is certified is the law",
        ),
    ],
)
def test_a_code_that_loses_more_than_its_law_is_not_certified_whether_or_not_it_keeps_the_claim(
    epsilon, game, verdict, summary
):
    result = run(Pretender(Response(2.0), safe()), PureDP(epsilon), BIT)
    found = {"exact": Verdict.CERTIFIED, "game": game, "counting": Verdict.INCONCLUSIVE}
    assert verdicts(result) == found
    assert result.verdict is verdict
    assert summary in result.summary
    assert (result.counterexample is not None) is (verdict is Verdict.VIOLATED)


def test_a_code_that_loses_less_than_its_law_is_told_from_it_by_counting_alone():
    mechanism = Pretender(safe(), Response(2.0))
    result = run(mechanism, PureDP(3.0), BIT)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "does not draw from the law that it states" in result.summary
    assert "what is certified is the law, and not the code" in result.summary
    assert (
        run(mechanism, PureDP(3.0), BIT, evidence=["exact", "game"]).verdict
        is Verdict.CERTIFIED
    )


def test_a_refuted_law_is_said_not_to_be_that_of_the_code():
    result = run(Pretender(safe(), Response(2.0)), PureDP(1.5), BIT)
    assert result.verdict is Verdict.VIOLATED
    assert "The code does not draw from the law that it states" in result.summary


def test_an_exact_refutation_needs_no_game():
    result = run(Response(2.0), PureDP(1.0), BIT, settings=Settings(1e-6, Budget(8), 0))
    assert result.verdict is Verdict.VIOLATED
    assert result.evidence[1].verdict is Verdict.INCONCLUSIVE
    assert "factor of" in result.counterexample.explanation


def test_a_hidden_law_is_refuted_by_the_game():
    result = run(Hidden(Response(2.0)), PureDP(1.0), BIT)
    assert [e.kind for e in result.evidence] == ["game", "counting"]
    assert result.verdict is Verdict.VIOLATED
    assert 1.0 <= result.epsilon_lower <= 2.0
    assert result.epsilon_upper is None
    assert result.log_e_value > math.log(1e6)


def test_a_clean_game_says_what_it_would_have_seen():
    result = run(Hidden(safe()), PureDP(1.0), BIT)
    assert result.verdict is Verdict.NOT_REFUTED
    assert result.evidence[0].details.detectable_epsilon > 1.0
    assert "nine times in ten" in result.summary


def test_controls_that_are_refuted_leave_the_verdict_alone():
    result = run(
        safe(), PureDP(1.0), BIT, controls=[Response(2.0), Hidden(Response(3.0))]
    )
    assert result.verdict is Verdict.CERTIFIED
    assert [c.verdict for c in result.controls] == [Verdict.VIOLATED] * 2
    assert [c.name for c in result.controls] == ["Response(2)", "hidden Response(3)"]
    assert result.surviving_controls == []


@pytest.mark.parametrize(
    ("mechanism", "verdict"),
    [
        (safe(), "CERTIFIED"),
        (Response(2.0), "VIOLATED"),
        (Hidden(safe()), "NOT_REFUTED"),
    ],
)
def test_a_surviving_control_makes_the_audit_inconclusive_and_the_summary_keeps_the_verdict(
    mechanism, verdict
):
    result = run(
        mechanism,
        PureDP(1.0),
        BIT,
        controls=[Response(2.0), Hidden(Response(1.0))],
        calls=800,
    )
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "no power" in result.summary
    assert "hidden Response(1)" in result.summary
    assert "Response(2)," not in result.summary
    assert f"for the mechanism itself: {verdict}" in result.summary
    assert result.surviving_controls == ["hidden Response(1)"]
    assert result.counterexample is None
    assert result.is_finding


def test_a_control_is_audited_with_the_evidence_that_is_asked_for():
    result = run(safe(), PureDP(1.0), BIT, evidence=["game"], controls=[Response(2.0)])
    assert [e.kind for e in result.evidence] == ["game"]
    assert result.controls[0].calls > 0
    result = run(
        Response(1.0 - 1e-9), PureDP(1.0), BIT, evidence=["exact"], controls=[Fragile()]
    )
    assert result.controls[0].verdict is Verdict.VIOLATED
    assert result.calls == result.controls[0].calls == 0


def test_no_evidence_is_an_error():
    with pytest.raises(CollectionError, match="no evidence"):
        run(Hidden(safe()), PureDP(1.0), BIT, evidence=["exact"])


def test_pairs_that_are_played_are_checked():
    with pytest.raises(AdjacencyError):
        run(Hidden(safe()), PureDP(1.0), BIT, play=[Pair(0, 7)])
    with pytest.raises(AdjacencyError):
        run(safe(), PureDP(1.0), BIT, play=[Pair(0, 7)], exhaustive=False)


def test_played_pairs_alone_do_not_certify():
    result = run(safe(), PureDP(1.0), BIT, exhaustive=False)
    assert result.verdict is Verdict.NOT_REFUTED


@pytest.mark.full
@pytest.mark.parametrize(
    ("mechanism", "claim", "verdict"),
    [
        (LeakyResponse(1.0 - 1e-9, 0.01), ApproxDP(1.0, 0.01), Verdict.CERTIFIED),
        (LeakyResponse(1.0, 0.2), ApproxDP(1.0, 0.01), Verdict.VIOLATED),
        (LaplaceMechanism(1.0), ApproxDP(1.0, 0.01), Verdict.CERTIFIED),
        (GaussianMechanism(0.5), GaussianDP(1.0), Verdict.VIOLATED),
    ],
)
def test_other_claims_are_audited_too(mechanism, claim, verdict):
    assert run(mechanism, claim, BIT).verdict is verdict


@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0])
def test_a_log_ratio_that_leaves_the_cap_by_its_last_bit_is_no_violation(scale):
    """Half of all Laplace outputs sit exactly at the cap: rounding must not make everything be staked on them."""
    claim = ApproxDP(1 / scale, 0.01)
    assert (
        run(LaplaceMechanism(scale), claim, BIT, evidence=["game"]).verdict
        is Verdict.NOT_REFUTED
    )


def test_noise_shared_by_a_call_is_an_error_and_no_verdict():
    with pytest.raises(MechanismError, match="independent"):
        run(SharedNoise(1.0), PureDP(1.0), BIT)


def test_a_figure_joins_the_details_of_the_last_evidence():
    result = run(
        safe(),
        PureDP(1.0),
        BIT,
        figure=lambda rng: {"points": rng.integers(0, 9, 2).tolist()},
    )
    assert len(result.evidence[-1].details.more["points"]) == 2
    assert "points" not in result.evidence[0].details.more


def outcome(result):
    return result.verdict, result.epsilon_lower, result.log_e_value, result.calls


def test_the_seed_and_the_key_determine_the_outcome():
    def hidden(settings):
        return outcome(run(Hidden(safe()), PureDP(1.0), BIT, settings=settings))

    settings = [
        Settings(1e-6, Budget(500), *of)
        for of in ((0, "test"), (0, "test"), (1, "test"), (0, "other"))
    ]
    first, again, *others = map(hidden, settings)
    assert first == again
    assert len({first, *others}) == 3


def noisy(data, size, *, rng):
    return data + rng.laplace(scale=1.0, size=size)


def test_assert_private_fails_with_the_counterexample():
    with pytest.raises(PrivacyViolation) as caught:
        assert_private(noisy, PureDP(0.3), [(0.0, 1.0)], calls=5000, seed=3)
    text = str(caught.value)
    assert isinstance(caught.value, AssertionError)
    assert text.startswith("noisy is not 0.3-DP")
    for part in (
        "pair: 0.0 | 1.0",
        "ε ≥ 0.",
        "fresh calls, made one by one, confirmed it",
        "the claim allows 57",
    ):
        assert part in text
    assert re.search(r"seed=3, calls=5,?000, alpha=1e-06", text)  # as it was asked for


def by_size(data, size, *, rng):
    return data + rng.laplace(scale=1.0 if size == 1 else 0.2, size=size)


def test_assert_private_fails_where_a_refutation_is_not_confirmed():
    with pytest.raises(NotConfirmed, match="e-value") as caught:
        assert_private(by_size, PureDP(1.0), [(0.0, 1.0)], calls=2000, alpha=0.05)
    assert caught.value.result.is_unconfirmed


def test_assert_private_shows_the_output_where_the_law_is_known():
    with pytest.raises(
        PrivacyViolation, match=r"output: .*\n  why: [Tt]his output has probability"
    ):
        assert_private(Response(2.0), PureDP(1.0), Pair(0, 1), calls=100)


def violation(mechanism, **options):
    with pytest.raises(PrivacyViolation) as caught:
        assert_private(mechanism, PureDP(0.3), [(0.0, 1.0)], calls=2000, **options)
    return str(caught.value)


class Plain:
    """A class without a name of its own: its repr holds its address."""

    def __init__(self, scale):
        self.scale = scale

    def __call__(self, data, size, *, rng):
        return data + rng.laplace(scale=self.scale, size=size)


@dataclasses.dataclass
class Wrapping:
    """A class whose repr holds the address of what it wraps."""

    function: object

    def __call__(self, data, size, *, rng):
        return self.function(data, size, rng=rng)


def test_assert_private_is_deterministic_by_seed():
    assert (
        violation(noisy, seed=1) == violation(noisy, seed=1) != violation(noisy, seed=2)
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: Plain(1.0),
        lambda: functools.partial(Plain(1.0)),
        lambda: lambda data, size, *, rng: noisy(data, size, rng=rng),
        lambda: Wrapping(lambda data, size, *, rng: noisy(data, size, rng=rng)),
    ],
    ids=["instance", "partial", "lambda", "wrapping"],
)
def test_where_the_mechanism_lies_in_memory_does_not_matter(make):
    one, other = make(), make()
    results = [
        assert_private(m, PureDP(1.0), [(0.0, 1.0)], calls=300) for m in (one, other)
    ]
    assert outcome(results[0]) == outcome(results[1])


def test_assert_private_passes_on_what_is_wrong_with_the_arguments():
    with pytest.raises(MechanismError, match="rng"):
        assert_private(lambda data: data, PureDP(1.0), [(0, 1)])
    with pytest.raises(AdjacencyError):
        assert_private(noisy, PureDP(1.0), 3)


def clipped(data, size, *, rng):
    outputs = noisy(data, size, rng=rng)
    return np.where(outputs > 3, np.inf, outputs)


def sometimes_missing(probability):
    def mechanism(data, size, *, rng):
        missing = rng.random(size) < probability(data)
        return np.where(missing, np.nan, rng.random(size))

    return mechanism


def test_infinite_and_missing_outputs_are_audited():
    """NaN stands for a missing number, which reveals something if it depends on the data."""
    for fair in (clipped, sometimes_missing(lambda data: 0.3)):
        result = assert_private(fair, PureDP(1.0), [(0, 1)], calls=300)
        assert result.verdict is Verdict.NOT_REFUTED
    revealing = sometimes_missing(lambda data: 0.6 if data else 0.1)
    with pytest.raises(PrivacyViolation):
        assert_private(revealing, PureDP(0.5), [(0, 1)], calls=5_000)


@audit
def many_types(epsilon=1.0, nodes=8, label="a", strict=False, scales=(1.0, 2.0)):
    return Audit(Response(epsilon), PureDP(epsilon), BIT)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("epsilon", "2", 2.0),
        ("epsilon", "1e-3", 1e-3),
        ("nodes", "12", 12),
        ("label", "3", "3"),
        ("strict", "True", True),
        ("strict", "0", False),
        ("scales", "3.0,4.0", (3.0, 4.0)),
    ],
)
def test_a_parameter_is_read_in_the_type_of_its_default(name, text, value):
    built, parameters = many_types.build({name: text})
    assert parameters == many_types.parameters | {name: value}
    assert type(parameters[name]) is type(value)
    assert built.claim == PureDP(parameters["epsilon"])


UNREADABLE = "epsilon=big epsilon= nodes=1.5 nodes= strict=maybe strict=yes!"


@pytest.mark.parametrize("given", UNREADABLE.split())
def test_a_parameter_that_cannot_be_read_is_named(given):
    name, _, text = given.partition("=")
    with pytest.raises(ConfigurationError, match=f"-P {name}="):
        many_types.build({name: text})


def test_a_factory_must_return_an_audit_and_have_defaults():
    with pytest.raises(CollectionError, match="returned int"):
        audit()(lambda: 3).build({})
    with pytest.raises(CollectionError, match="'epsilon' needs a default"):
        audit()(lambda epsilon: None).build({})


def test_collect_finds_the_audits_of_a_file_in_order(tmp_path):
    path = tmp_path / "audit_two.py"
    path.write_text(
        "from auditdp import Audit, PureDP, audit\n"
        "@audit()\ndef second():\n    return Audit(None, PureDP(1.0), [(0, 1)])\n"
        "@audit()\ndef first():\n    return Audit(None, PureDP(1.0), [(0, 1)])\n"
    )
    assert [d.id for d in collect(path, tmp_path)] == [
        "audit_two.py::second",
        "audit_two.py::first",
    ]
    path.write_text("x = 1\nraise RuntimeError('no')\n")
    with pytest.raises(
        CollectionError, match="line 2: does not import: RuntimeError: no"
    ):
        collect(path, tmp_path)


def test_data_files_come_from_the_folder_that_is_named(tmp_path, monkeypatch):
    monkeypatch.delenv("AUDITDP_DATA", raising=False)
    with pytest.raises(Skip, match=r"needs graph.txt; give its folder with --data"):
        data_file("graph.txt")
    monkeypatch.setenv("AUDITDP_DATA", str(tmp_path))
    with pytest.raises(Skip, match=r"needs graph.txt, which is not in"):
        data_file("graph.txt")
    (tmp_path / "graph.txt").write_text("0 1")
    assert data_file("graph.txt").read_text() == "0 1"


def test_the_examples_in_docstrings_are_true():
    package = Path(auditdp.__file__).parent
    files = [
        file
        for file in package.rglob("*.py")
        if ">>> " in file.read_text(encoding="utf-8")
    ]
    names = [
        ".".join(file.relative_to(package.parent).with_suffix("").parts).removesuffix(
            ".__init__"
        )
        for file in files
    ]
    results = {name: doctest.testmod(importlib.import_module(name)) for name in names}
    assert {name: r.failed for name, r in results.items() if r.failed} == {}
    assert results["auditdp.auditing.check"].attempted >= 4
    assert results["auditdp.claims.statements"].attempted >= 1
