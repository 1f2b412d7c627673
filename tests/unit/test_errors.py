import json
import tomllib
from pathlib import Path

import pytest

from auditdp.auditing.decorator import collect
from auditdp.errors import (
    EXTRAS,
    CollectionError,
    MissingExtraError,
    did_you_mean,
    raised_at,
)

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def missing(name):
    try:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    except ModuleNotFoundError as error:
        return MissingExtraError.of(error)


@pytest.mark.parametrize(("package", "extra"), EXTRAS.items())
def test_a_missing_package_names_the_extra_that_has_it(package, extra):
    assert f"pip install 'auditdp[{extra}]'" in str(missing(f"{package}.nn"))
    wanted = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"][
        extra
    ]
    assert any(package.replace("_", "-") in line for line in wanted)


def test_other_failures_are_not_taken_for_a_missing_extra():
    assert missing("somebody_elses_module") is None
    assert MissingExtraError.of(ValueError("torch")) is None
    assert (
        MissingExtraError.of(
            ImportError("cannot import name 'x' from 'torch'", name="torch")
        )
        is None
    )


def test_an_audit_file_that_needs_an_extra_says_which(tmp_path, monkeypatch):
    monkeypatch.setitem(EXTRAS, "package_of_an_extra", "torch")
    path = tmp_path / "audit_gnn.py"
    path.write_text("import package_of_an_extra\n")
    with pytest.raises(
        CollectionError,
        match=r"needs package_of_an_extra, .* pip install 'auditdp\[torch\]'",
    ):
        collect(path, tmp_path)


def test_did_you_mean():
    assert did_you_mean("epsilom", ["epsilon", "delta"]) == "did you mean 'epsilon'?"
    assert did_you_mean("zzz", ["b", "a"]) == "known: a, b"
    assert did_you_mean("zzz", []) == "known: none"


def test_where_something_is_raised_is_the_innermost_line_that_is_no_library_s():
    def careless(words):
        return json.loads(words)  # raises

    with pytest.raises(json.JSONDecodeError) as caught:
        careless("{")
    line = next(
        number
        for number, text in enumerate(Path(__file__).read_text().splitlines(), 1)
        if "# raises" in text
    )
    assert raised_at(caught.value) == f"test_errors.py, line {line}"
    assert raised_at(ValueError("never raised")) == ""
