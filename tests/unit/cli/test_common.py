"""What commands share."""

import io

import pytest

from auditdp.cli.common import coloured


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"TERM": "xterm-256color"}, True),
        ({}, True),
        ({"TERM": "dumb"}, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
        ({"TERM": "xterm", "NO_COLOR": ""}, True),
    ],
)
def test_colours_are_for_terminals_that_show_them_where_nobody_asked_for_none(
    monkeypatch, variables, expected
):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("TERM", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert coloured(Terminal()) is expected
    assert not coloured(io.StringIO())
