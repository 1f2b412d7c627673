"""The numbers of evidence are typed by its kind, and their JSON is what it is documented to be."""

import json
import math
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from auditdp.record.details import (
    KINDS,
    Confirmation,
    CountingDetails,
    Details,
    ExactDetails,
    GameDetails,
)
from auditdp.record.results import Evidence, Verdict, details, with_figure

ADAPTER = TypeAdapter(Evidence)


def of(kind, given):
    return Evidence(kind, Verdict.NOT_REFUTED, "", details=given)


def written(evidence):
    return json.loads(ADAPTER.dump_json(evidence))["details"]


def test_each_kind_of_evidence_is_on_the_page_of_verdicts():
    page = (Path(__file__).parents[3] / "docs/pages/verdicts.md").read_text(
        encoding="utf-8"
    )
    assert [name for name in KINDS if f"\n- `{name}`" not in page] == []


def test_a_mapping_becomes_the_record_of_its_kind():
    found = of("exact", {"exact_epsilon": "inf", "curve": [[0, 1], [1, 0.5]]})
    assert found.details == ExactDetails(
        exact_epsilon=math.inf, curve=[(0.0, 1.0), (1.0, 0.5)]
    )
    assert found == ADAPTER.validate_json(ADAPTER.dump_json(found))


def test_none_is_left_out_of_json_except_in_fields_where_it_has_a_meaning():
    assert written(of("exact", {})) == {"claim_curve": []}
    game = written(of("game", {}))
    assert (game["refuted_at"], game["confirmation"]) == (None, None)
    assert "threshold" not in game
    assert "delta_at_claim" not in written(of("counting", CountingDetails()))
    assert (
        written(of("counting", CountingDetails(delta_upper=0.1)))["delta_at_claim"]
        is None
    )


def test_fields_that_are_keywords_of_python_have_their_own_names_in_json():
    row = {"class": "a", "n": 30} | dict.fromkeys(["truth", "mean", "low", "high"], 0.0)
    row |= dict.fromkeys(["variance", "variance_low", "variance_high"], 1.0)
    found = of("estimation", {"classes": [row]})
    assert found.details.classes[0].name == "a"
    (again,) = written(found)["classes"]
    assert again == row | {
        "variance_bound": None,
        "largest_bias": 0.0,
        "largest_variance": 0.0,
    }


def test_unknown_fields_are_stored_unchanged():
    found = of("game", {"threshold": 3, "new": [1.5, math.inf], "text": "é"})
    assert found.details.more == {"new": [1.5, math.inf], "text": "é"}
    assert written(found)["new"] == [1.5, "inf"]
    assert "more" not in written(found)
    assert dict(found.details.values())["text"] == "é"
    assert type(of("of a later version", {"x": 1}).details) is Details


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("game", {"wealth_path": "nonsense"}),
        ("game", {"refuted_at": [3]}),
        ("game", {"wealth_path": [[7.5, 1.0]]}),
        ("game", {"confirmation": True}),
        ("exact", {"curve": 3}),
        ("exact", {"scope": ["x"]}),
        ("estimation", {"classes": [1]}),
        ("sensitivity", {"exhaustive": "perhaps"}),
        ("exact", GameDetails()),
        ("game", 5),
        ("counting", {"scatter": {"series": None}}),
    ],
)
def test_fields_of_another_type_are_refused(kind, given):
    with pytest.raises(ValidationError, match="details"):
        of(kind, given)


def test_a_figure_is_added_to_existing_details():
    kept = with_figure(
        of("exact", {"scope": "2 pairs", "new": 1}),
        {"scatter": {"log": True}, "points": [1]},
    )
    assert (kept.details.scope, kept.details.scatter.log) == ("2 pairs", True)
    assert kept.details.more == {"new": 1, "points": [1]}


def test_details_of_one_kind_are_found_among_others():
    confirmation = Confirmation(calls=1, log_e_value=2.0, alpha=0.1, confirmed=True)
    games = [GameDetails(confirmation=confirmation), GameDetails()]
    evidence = [of("game", games[0]), of("exact", {}), of("support", games[1])]
    assert list(details(evidence, GameDetails)) == games
    assert list(details(evidence, CountingDetails)) == []
