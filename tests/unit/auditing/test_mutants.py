"""Mutants: which ones a mechanism has, and what they offer of it."""

import inspect
from dataclasses import dataclass

import numpy as np
import pytest

from auditdp.auditing.mutants import mutants
from auditdp.errors import MechanismError
from auditdp.mechanism.capabilities import capabilities
from auditdp.testing import LaplaceMechanism, Response


def test_the_mutants_of_laplace_noise():
    found = mutants(LaplaceMechanism(2.0), [0.0, 1.0])
    assert [(mutant.operator, mutant.name) for mutant in found] == [
        ("noise halved", "noise halved: draw 1, laplace in LaplaceMechanism.__call__"),
        (
            "noise left out",
            "noise left out: draw 1, laplace in LaplaceMechanism.__call__",
        ),
        ("seed fixed", "seed fixed: LaplaceMechanism(scale=2)"),
    ]


def test_a_mechanism_without_draws_has_no_mutants():
    assert mutants(lambda data, size, *, rng: np.full(size, data), [0.0]) == []


def three_draws(data, size, *, rng):
    return np.stack(
        [data + rng.laplace(size=size), rng.laplace(size=size), rng.random(size)],
        axis=1,
    )


@pytest.mark.parametrize(
    "mechanism", [Response(1.0), LaplaceMechanism(1.0), three_draws]
)
def test_mutants_are_the_same_every_time_and_have_names_of_their_own(mechanism):
    names = [mutant.name for mutant in mutants(mechanism, [1, 2])]
    assert names == [mutant.name for mutant in mutants(mechanism, [1, 2])]
    assert len(set(names)) == len(names)


def test_a_mutant_follows_the_protocol():
    for mutant in mutants(Response(1.0), [0, 1]):
        assert list(inspect.signature(mutant.__call__).parameters) == [
            "data",
            "size",
            "rng",
        ]


def test_a_mechanism_that_cannot_run_has_no_mutants():
    def failing(data, size, *, rng):
        raise KeyError(data)

    with pytest.raises(
        MechanismError,
        match=r"failing raised KeyError: 0\.0 while its mutants were derived",
    ):
        mutants(failing, [0.0])


@dataclass(frozen=True)
class Calibrated:
    sensitivity: float = 1.0
    norm = "l1"

    def query(self, data, rng=None):
        return np.clip(data, 0.0, 1.0)

    def __call__(self, data, size, *, rng):
        return self.query(data) + rng.laplace(scale=self.sensitivity, size=size)

    def log_prob(self, outputs, data):
        return -np.abs(outputs - data)


def test_a_mutant_states_the_law_of_the_mechanism_but_not_the_query_which_no_draw_changes():
    mechanism, outputs = Calibrated(), np.array([0.0, 1.0, 4.0])
    found = mutants(mechanism, [0.0, 1.0])
    assert capabilities(mechanism).is_calibrated
    assert found
    for mutant in found:
        np.testing.assert_array_equal(
            mutant.log_prob(outputs, 0.0), mechanism.log_prob(outputs, 0.0)
        )
        assert not hasattr(mutant, "distribution")
        assert not capabilities(mutant).is_calibrated
        assert not any(
            hasattr(mutant, attribute) for attribute in ("query", "sensitivity", "norm")
        )
