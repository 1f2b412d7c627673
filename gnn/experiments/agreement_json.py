"""The answers to all tables and figures as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from gnn.experiments.agreement import DEVIATIONS, Answer, Cell, Contrast
from gnn.experiments.agreement_text import sentence, verdict
from gnn.experiments.grid import plain
from gnn.experiments.published.papers import Paper
from gnn.experiments.summary import FEWEST

SCHEMA = 1


def as_json(found: Mapping[str, tuple[Paper, Sequence[Answer]]], root_seed: int) -> str:
    """Return the answers of each paper, by its name, as JSON."""
    whole = {
        "schema": SCHEMA,
        "root_seed": root_seed,
        "standard_deviations": DEVIATIONS,
        "fewest_runs": FEWEST,
        "papers": [
            {
                "name": paper.name,
                "source": paper.source,
                "sentence": verdict(answers),
                "printed": [_answer(each) for each in answers],
            }
            for paper, answers in found.values()
        ],
    }
    return json.dumps(whole, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _answer(answer: Answer) -> dict[str, Any]:
    printed = answer.printed
    return {
        "place": printed.place,
        "shows": printed.shows,
        "sentence": sentence(answer),
        "experiments": list(printed.experiments),
        "cells": _counted(answer.cells),
        "comparisons": _counted(answer.contrasts),
        "recorded_runs": answer.recorded,
        "planned_runs": answer.planned,
        "each_cell": [_cell(each) for each in answer.cells],
        "each_comparison": [_contrast(each) for each in answer.contrasts],
    }


def _counted(found: Sequence[Cell] | Sequence[Contrast]) -> dict[str, int]:
    return dict(Counter(each.outcome for each in found))


def _cell(cell: Cell) -> dict[str, Any]:
    found = cell.measured
    return {
        "cell": list(cell.printed.cell),
        "printed": cell.printed.mean,
        "ours": found and found.mean,
        "sd": found and found.sd,
        "runs": len(found.values) if found else 0,
        "outcome": cell.outcome,
        "experiment": cell.experiment,
        "note": cell.note,
        "because": cell.because,
    }


def _contrast(contrast: Contrast) -> dict[str, Any]:
    return {
        "statement": contrast.ordering.text,
        "setting": {name: plain(value) for name, value in contrast.setting.items()},
        "difference": contrast.difference,
        "sd": contrast.sd,
        "runs": contrast.runs,
        "outcome": contrast.outcome,
        "experiment": contrast.ordering.experiment,
    }
