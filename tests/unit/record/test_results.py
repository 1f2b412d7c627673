"""A result draws itself right after ``import auditdp``, and the same after a round trip."""

import pickle
import subprocess
import sys

from auditdp.record.results import AuditResult, RunRecord, Verdict

DRAWN = """
import sys, auditdp
from auditdp.record.results import result_of
result = result_of({"id": "a.py::b", "verdict": "SKIPPED", "summary": "no reason"})
assert repr(result) == "<SKIPPED: 0.00 s>"
assert not {"matplotlib", "jinja2"} & {*sys.modules}
assert "no reason" in str(result) and "no reason" in result._repr_html_()
"""


def test_a_result_draws_itself_and_loads_no_plotting_library_for_a_line():
    subprocess.run([sys.executable, "-c", DRAWN], check=True)


def test_a_result_survives_pickling(record):
    for result in record.results:
        copy = pickle.loads(pickle.dumps(result))
        assert (copy, repr(copy)) == (result, repr(result))


def test_a_plot_has_the_axes_that_are_given(audit):
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    assert audit("feature_rr").plot(axes) is axes


def test_plain_data_goes_there_and_back(record):
    for result in record.results:
        assert isinstance(result.to_dict()["evidence"], list)
    assert RunRecord.from_json(record.to_json()) == record
    assert AuditResult("a", Verdict.ERROR, "no").to_dict()["counterexample"] is None
