import json

import jsonschema
import pytest

from auditdp.record.results import SCHEMA
from auditdp.report.record_schema import PATH, run_schema

VALIDATOR = jsonschema.Draft202012Validator(
    json.loads(PATH.read_text(encoding="utf-8"))
)


def test_the_published_schema_is_that_of_the_types():
    """Made anew by: python -m auditdp.report.record_schema."""
    assert json.loads(PATH.read_text(encoding="utf-8")) == run_schema()
    jsonschema.Draft202012Validator.check_schema(run_schema())
    assert PATH.name == f"run-{SCHEMA}.schema.json"


def test_records_are_valid(record, clean_record, large_record):
    for some in (record, clean_record, large_record):
        VALIDATOR.validate(json.loads(some.to_json()))


@pytest.mark.parametrize(
    ("name", "value"),
    [("schema", SCHEMA + 1), ("results", {}), ("root_seed", "one"), ("status", None)],
)
def test_what_is_no_record_is_refused(record, name, value):
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(json.loads(record.to_json()) | {name: value})


def test_a_record_without_its_results_is_refused(record):
    content = json.loads(record.to_json())
    del content["results"]
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(content)
