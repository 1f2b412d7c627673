"""What the papers print: shapes of the tables, sums as check digits, and single values."""

import pytest

from gnn.experiments.published import dpar, dprr, graph_pub, hetero_rr, lpgnn


def test_graph_pub_table_2_is_whole():
    """Three data sets, three models, four methods, eight budgets; the sum is that of the source's printed numbers."""
    assert len(graph_pub.ACCURACY) == 3 * 3 * 4 * 8
    assert graph_pub.ACCURACY["Cora", "GAT", "RR", 2.0].mean == 0.0944
    assert graph_pub.ACCURACY["Polblogs", "GraphSAGE", "GraphPub", 1.0].mean == 0.8324
    assert all(0 < value.mean < 1 for value in graph_pub.ACCURACY.values())


def test_graph_pub_attacks_name_more_pairs_than_there_are_edges_in_cora():
    ratios = {key: row.recall / row.precision for key, row in graph_pub.ATTACKS.items()}
    assert ratios["Cora", "original"] == pytest.approx(1.517, abs=1e-3)
    assert ratios["Polblogs", "published"] == pytest.approx(1, abs=1e-2)


def test_lpgnn_tables_agree_where_they_overlap():
    for data in ("Cora", "Facebook", "LastFM"):
        assert (
            lpgnn.FEATURES["MBM", data].mean == lpgnn.LEARNING[data, 1.0, "Drop"].mean
        )
        assert lpgnn.FEATURES["MBM", data].sd == lpgnn.LEARNING[data, 1.0, "Drop"].sd
    assert (len(lpgnn.FEATURES), len(lpgnn.LEARNING)) == (16, 27)


def test_dpar_table_1_is_whole():
    assert len(dpar.ACCURACY) == 5 * 2 * 6
    assert len(dpar.NON_PRIVATE) == 5 * 3
    assert dpar.ACCURACY["Physics", "DPAR-GM", 8.0].mean == 0.9101
    assert dpar.NON_PRIVATE["Reddit", "GAP"].mean == 0.9949


def test_dpar_on_cora_ml_is_of_single_runs_on_342_nodes():
    numbers = [
        dpar.ACCURACY["Cora-ML", f"DPAR-{name}", epsilon].mean
        for name in ("EM0", "EM1", "GM")
        for epsilon in (1, 8)
    ]
    numbers.append(dpar.NON_PRIVATE["Cora-ML", "DPAR"].mean)
    fitting = [
        n
        for n in range(100, 2 * dpar.TEST_NODES)
        if all(round(round(v * n) / n, 4) == v for v in numbers)
    ]
    assert fitting == [dpar.TEST_NODES]


def test_hetero_rr_is_better_by_its_own_tests():
    assert all(
        found.p_value < 0.01 and found.per_cent > 0
        for found in hetero_rr.IMPROVEMENTS.values()
    )


@pytest.mark.parametrize("module", [dpar, dprr, graph_pub, hetero_rr, lpgnn])
def test_every_paper_is_named_and_says_what_its_text_does_not(module):
    assert "arXiv:" in module.SOURCE
    assert any(not statement.verified for statement in module.STATEMENTS)
