"""Figures of the statements of GraphPub, from the laws of the mechanism and from randomised response."""

import math
from collections import defaultdict
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from auditdp.mechanism.laws import precision
from audits.papers.graphpub import STATEMENTS
from gnn.experiments.catalogue.graph_pub import METHODS
from gnn.experiments.published.graph_pub import ACCURACY
from gnn.experiments.record import read, record_path
from mechanisms.edges.graph_pub import GraphPub, counts, noisy_degree_law
from tests.statistical.stated_laws import EDGE, matrix

REPORTS = Path(__file__).resolve().parents[3] / "reports"
KEEP = math.e / (1 + math.e)
"""Randomised response at ε = 1."""


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 20.0])
def test_lists_are_as_long_as_degrees(epsilon):
    """With noise of scale 1/ε the two degrees that one edge changes lose 2ε together; with scale 2/ε they lose ε."""
    for nodes in (9, 2708):
        degrees = np.arange(9)
        real, others = counts(epsilon, degrees, nodes)
        assert real + others == pytest.approx(degrees)
        odds = math.exp(epsilon) * degrees / (nodes - degrees)
        assert real == pytest.approx(odds * others)
    graph = matrix(5, (0, 1), (0, 2), (0, 3), (3, 4))
    (lists,) = GraphPub(epsilon, 5, np.ones((5, 5))).distribution(graph).outcomes
    assert lists.reshape(5, 4).sum(axis=1).tolist() == graph.sum(axis=1).tolist()
    assert loss_of_two_degrees(epsilon) == pytest.approx(2 * epsilon)
    assert loss_of_two_degrees(epsilon / 2) == pytest.approx(epsilon)


def loss_of_two_degrees(epsilon):
    """The privacy loss of two noisy degrees that one edge raises from 3 to 4."""
    with precision():
        before, after = (dict(noisy_degree_law(m, epsilon, 9)) for m in (3, 4))
        ratios = [before[value] / after[value] for value in before]
        joint = [one * other for one, other in product(ratios, ratios)]
        return max(abs(float(ratio.log())) for ratio in joint)


def test_a_published_edge_can_be_told():
    """Of a node of degree 4 in Cora no neighbour is published.

    Of two nodes one lists a neighbour.
    """
    real, others = counts(1.0, 4, 2708)
    assert (real, others) == pytest.approx((0.016, 3.98), abs=0.005)
    (lists,) = GraphPub(1.0, 2, np.ones((2, 2))).distribution(EDGE).outcomes
    (none,) = GraphPub(1.0, 2, np.ones((2, 2))).distribution(0 * EDGE).outcomes
    assert lists.any()
    assert not none.any()


def test_the_counts_are_expectations():
    """Means of randomised response on a row of N − 1 bits, scaled to m.

    The printed ones count one zero more.
    """
    nodes, degree = 50, 6
    real = KEEP * degree
    others = (1 - KEEP) * (nodes - 1 - degree)
    one_more = (1 - KEEP) * (nodes - degree)
    printed = counts(1.0, degree, nodes)
    scaled = [degree * x / (real + one_more) for x in (real, one_more)]
    assert printed == pytest.approx(scaled)
    assert printed[1] > degree * others / (real + others)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_an_edge_is_two_entries_of_randomised_response(epsilon):
    """Each inverted with probability 1/(1 + e^ε): one entry loses ε, two that are drawn independently 2ε."""
    inverted = 1 / (1 + math.exp(epsilon))
    there, missing = (
        np.array([1 - inverted, inverted]),
        np.array([inverted, 1 - inverted]),
    )
    one = np.log(there / missing)
    two = np.log(np.outer(there, there) / np.outer(missing, missing))
    assert np.abs(one).max() == pytest.approx(epsilon)
    assert np.abs(two).max() == pytest.approx(2 * epsilon)


def test_no_function_of_a_noisy_graph_loses_more():
    """All maps of the two outputs of randomised response on one pair, and of the four on two pairs that differ in one."""
    one = np.array([[KEEP, 1 - KEEP], [1 - KEEP, KEEP]])
    two = np.array([np.outer(row, one[0]).ravel() for row in one])
    for laws in (one, two):
        size = laws.shape[1]
        losses = []
        for function in product(range(size), repeat=size):
            mapped = laws @ np.eye(size)[list(function)]
            mapped = mapped[:, mapped[0] > 0]
            losses.append(np.abs(np.log(mapped[0] / mapped[1])).max())
        assert max(losses) == pytest.approx(1.0)


def accuracies(experiment):
    """Accuracy of GCN in each run, by data set, method, ε and share of ε, the repetitions in order."""
    found = defaultdict(list)
    records = read(record_path(REPORTS, experiment)).values()
    for record in sorted(records, key=lambda each: each.repetition):
        given = record.parameters
        if (given["model"], given["form"]) == ("GCN", "published"):
            setting = given["data"], given["method"], given["epsilon"]
            accuracy = record.metrics["accuracy"]
            found[*setting, given.get("budget used", 1)].append(accuracy)
    return {setting: np.array(values) for setting, values in found.items()}


def distance(ours, printed):
    """Ours above a printed number, in standard deviations of five runs of ours."""
    assert len(ours) == 5
    return (ours.mean() - printed) / ours.std(ddof=1)


def test_baselines_are_printed_below_ours_at_the_same_budget():
    """The figures of the card, and what it states of distances from ours with ε and with ε/2."""
    (card,) = (s.settled.why for s in STATEMENTS if s.key == "graphpub-baselines")
    ours = accuracies("graph-pub-table") | accuracies("graph-pub-baselines")
    agree, gains, at_20 = [], [], []
    for data, method in product(("Cora", "Citeseer"), METHODS):
        printed = {e: ACCURACY[data, "GCN", method, float(e)].mean for e in (20, 8, 2)}
        whole = {e: ours[data, method, e, 1] for e in printed}
        if method in ("RR", "GraphPub"):
            at_20.append(round(whole[20].mean() - printed[20], 3))
        if method == "GraphPub":
            assert whole[8].mean() < printed[8]
            continue
        half = {e: ours[data, method, e, 0.5] for e in printed}
        shown = [f"{x[8].mean():.3f} ± {x[8].std(ddof=1):.3f}" for x in (whole, half)]
        figures = f"{method} {printed[8]:.3f}, {', '.join(shown)}"
        assert figures.replace(" 0.", " .") in card
        assert distance(whole[8], printed[8]) > 6
        assert distance(whole[20], printed[20]) > 2
        assert (distance(half[8], printed[8]) < -2) == (method == "RR")
        lower = distance(whole[2], printed[2]) > 2
        assert lower == ((data, method) != ("Cora", "RR"))
        assert abs(distance(whole[2], half[2].mean())) < 1
        gain = printed[8] - printed[2]
        assert distance(whole[8] - whole[2], gain) > 4
        if abs(distance(half[8] - half[2], gain)) <= 2:
            gains.append((data, method))
        near = [e for e in printed if abs(distance(half[e], printed[e])) <= 2]
        agree += [(data, method, e) for e in near if e > 2]
    dprr = ("Citeseer", "DPRR")
    assert agree == [("Cora", "DPRR", 20), (*dprr, 20), (*dprr, 8)]
    assert gains == [("Cora", "LAPGRAPH"), dprr, ("Citeseer", "LAPGRAPH")]
    assert (min(at_20), max(at_20)) == (0.033, 0.054)


def test_randomised_response_at_2_predicts_one_class():
    """In 19 of the 20 runs on two graphs, with ε and with ε/2, so that their accuracy is a floor."""
    records = read(record_path(REPORTS, "graph-pub-baselines")).values()
    shares = []
    for record in records:
        given = record.parameters
        if (given["method"], given["epsilon"]) == ("RR", 2):
            shares.append(record.metrics["largest predicted class"])
    assert (len(shares), shares.count(1.0)) == (20, 19)
