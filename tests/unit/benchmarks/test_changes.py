"""The changes of the benchmark's packages replace text that occurs once.

They make other code.
"""

from collections import Counter

from benchmarks.changes.__main__ import HERE
from benchmarks.changes.table import CHANGES


def test_each_change_replaces_text_that_occurs_once():
    for change in CHANGES:
        text = (HERE / f"{change.package}.py").read_text()
        assert text.count(change.before) == 1, change
        compile(text.replace(change.before, change.after), change.name, "exec")
        assert change.before != change.after


def test_there_are_as_many_as_is_said():
    names = Counter((change.package, change.name) for change in CHANGES)
    assert max(names.values()) == 1  # by which a measurement goes on
    packages = {change.package for change in CHANGES}
    worse = sum(change.worse for change in CHANGES)
    assert (len(packages), worse, len(CHANGES)) == (20, 78, 113)
