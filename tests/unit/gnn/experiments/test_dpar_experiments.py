"""DPAR's experiments: what their settings mean, what they print, and a small run of each method."""

import math
import os
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from gnn.experiments.catalogue.dpar import (
    DPAR_PUBLISHED,
    EXPERIMENTS,
    FILES,
    METHODS,
    ONE_HOT,
    accuracy_of,
    guarantee,
    parameters_of,
    published,
)
from gnn.experiments.experiment import LARGEST
from gnn.experiments.grid import settings
from gnn.experiments.privacy import Ledger, supported
from gnn.pipelines.dpar import DPARParameters

FOUND = {each.name: each for each in EXPERIMENTS}
HAS_DATA = (Path(os.environ.get("AUDITDP_DATA", "")) / "cora_ml.npz").is_file()


def setting(**changes):
    return {
        "data": "Cora-ML",
        "method": "DPAR-EM0",
        "epsilon": 8.0,
        "form": "published",
    } | changes


@pytest.mark.parametrize("name", FOUND)
def test_every_setting_of_dpar_has_parameters(name):
    """And factors other than these, the data and the method are all read: no axis without an effect."""
    for each in settings(FOUND[name], "paper"):
        if str(each["method"]).startswith("DPAR"):
            DPARParameters(**parameters_of(each))
    base = settings(FOUND[name], "paper")[0]
    for factor in FOUND[name].factors:
        if (
            len(factor.paper) > 1
            and factor.name not in ("data", "method")
            and name not in ("dpar-table", "dpar-features", "dpar-test-nodes")
        ):
            first, second = (
                parameters_of({**base, factor.name: value})
                for value in factor.paper[:2]
            )
            assert first != second, factor.name


def test_features_as_a_special_case_of_dpar_spend_nearly_all_on_training():
    found = DPARParameters(**parameters_of(setting(method=ONE_HOT)))
    assert (found.pagerank_rows, found.k, found.share) == (1, 1, 0.001)
    assert published(setting(method=ONE_HOT), "accuracy").mean == 0.6107
    assert guarantee(setting(method=ONE_HOT)).audit == DPAR_PUBLISHED


def test_a_budget_of_two_parts_is_their_sum():
    found = parameters_of(
        {
            "data": "Cora-ML",
            "method": "DPAR-GM",
            "pagerank epsilon": 1.0,
            "training epsilon": 4.0,
            "form": "repaired",
        }
    )
    assert (found["epsilon"], found["share"], found["method"], found["accounting"]) == (
        5.0,
        0.2,
        "GM",
        "repaired",
    )
    assert parameters_of(setting(method="DPAR-GM", clip=0.5))["row_clip"] == 0.5
    assert parameters_of(setting(method="DPAR-EM1", clip=0.5))["entry_clip"] == 0.5


def test_the_table_has_the_numbers_of_the_source_and_no_method_twice():
    table = settings(FOUND["dpar-table"], "paper")
    printed = [
        published(each, "accuracy") for each in table if each["form"] == "published"
    ]
    assert sum(each is not None for each in printed) == 3 * (6 * 2 + 3)
    assert {each["method"] for each in table if math.isinf(each["epsilon"])} == {
        "DPAR",
        "GAP",
        "Features",
    }
    assert sum(each["form"] == "repaired" for each in table) == 3 * 3 * 2


def test_the_published_form_has_no_audit_that_supports_it_and_the_repaired_one_has():
    assert guarantee(setting()).audit == DPAR_PUBLISHED
    assert guarantee(setting()).supports is None
    assert guarantee(setting(form="repaired")).supports == 8.0
    assert guarantee(setting(epsilon=math.inf)).printed is None
    assert guarantee(setting(method="GAP", epsilon=1.0)).supports == 1.0


def test_what_the_audits_say_of_gap_and_sage_names_their_sampler():
    """The certificate is for graphs of bounded degrees; the arcs that are sampled here are refuted."""
    ledger = Ledger.read(
        Path(__file__).resolve().parents[4] / "reports" / "claims.json"
    )
    gap = supported(guarantee(setting(method="GAP", epsilon=1.0)), ledger)
    assert gap.startswith(
        "none at this ε, the claim is refuted at another (GAP, node level, arcs sampled"
    )
    sage = [
        supported(guarantee(setting(method="SAGE", epsilon=epsilon)), ledger)
        for epsilon in (1.0, 8.0)
    ]
    assert sage[0].startswith("refuted (SAGE-DP, as deployed, on arcs that are sampled")
    assert sage[1].startswith(
        "none at this ε, the claim is refuted at another (SAGE-DP, as deployed"
    )
    published = supported(guarantee(setting(epsilon=8.0)), ledger)
    assert published.startswith("refuted (DPAR training (Alg. 2), accounting: one step")


@pytest.mark.dear
@pytest.mark.skipif(
    not HAS_DATA, reason="needs cora_ml.npz in the folder that AUDITDP_DATA names"
)
@pytest.mark.parametrize("method", METHODS)
def test_an_epoch_on_cora_ml(method):
    epsilon = math.inf if method == "DPAR" else 8.0
    short = setting(method=method, epsilon=epsilon, epochs=1) | {
        "baseline batch": 800,
        "baseline epochs": 1,
    }
    found = accuracy_of(short, 1, "cpu")
    assert 0.0 < found["accuracy"] < 1.0
    assert 1 / 7 <= found[LARGEST] <= 1.0
    assert found["peak memory"] < 3000
    assert FILES["Cora-ML"] in FOUND["dpar-table"].files(short)
