from __future__ import annotations

import ast

import pytest

from auditdp.cli.init.audit_file import audit_text
from auditdp.cli.init.signature import read_signature


@pytest.fixture
def read(tmp_path):
    def made(source, name="f", path="mine.py"):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)
        return read_signature(f"{path}::{name}", tmp_path)

    return made


@pytest.mark.parametrize(
    ("source", "epsilon", "delta", "says"),
    [
        ("def f(x, rng, epsilon=0.5): pass", 0.5, 0.0, "the parameters of f"),
        ("def f(x, rng, *, eps=2, delta=1e-5): pass", 2.0, 1e-5, "the parameters of f"),
        ("def f(x, rng):\n    '''It is (1, 1e-6)-DP.'''", 1.0, 1e-6, "the docstring of f"),
        ("def f(x, rng):\n    '''A 0.25-LDP report.'''", 0.25, 0.0, "the docstring of f"),
        ("def f(x, rng):\n    '''Private with ε = .1 for all.'''", 0.1, 0.0, "the docstring of f"),
        ("def f(x, rng):\n    '''3-differentially private.'''", 3.0, 0.0, "the docstring of f"),
        ("def f(x, rng, epsilon):\n    '''With epsilon=4.'''", 4.0, 0.0, "the docstring of f"),
        ("def f(x, rng, epsilon): pass", None, 0.0, ""),
        ("def f(x, rng):\n    '''Rounds to 3 digits.'''", None, 0.0, ""),
    ],
)
def test_what_is_claimed(read, source, epsilon, delta, says):
    found = read(source)
    assert (found.epsilon, found.delta, found.says) == (epsilon, delta, says)


@pytest.mark.parametrize(
    ("source", "call"),
    [
        ("def f(x, rng): pass", "f"),
        ("def f(x, size, *, rng): pass", "f"),
        ("def f(x, rng, epsilon=1.0): pass", "partial(f, epsilon=epsilon)"),
        ("def f(x): pass", "unseeded(f)"),
        ("def f(x, eps=1.0): pass", "unseeded(partial(f, eps=epsilon))"),
        ("def f(x, generator): pass", "lambda data, rng: f(data, generator=rng)"),
        ("def f(x, size, generator): pass", "lambda data, size, rng: f(data, size=size, generator=rng)"),
        ("def f(x, rng, scale): pass", "partial(f, scale=2)"),
    ],
)
def test_how_an_audit_calls_it(read, source, call):
    text = audit_text(read(source), {"scale": "2"} if "scale" in source else {})
    ast.parse(text)
    assert f"        {call},\n" in text


@pytest.mark.parametrize(
    ("annotation", "pair"),
    [
        ("int", "(0, 1)"),
        ("float", "(0.0, 1.0)"),
        ("bool", "(False, True)"),
        ("str", '("a", "b")'),
        ("list[int]", "([0, 1, 1], [1, 1, 1])"),
        ("Sequence[float]", "([0.0, 1.0, 1.0], [1.0, 1.0, 1.0])"),
        ("np.ndarray", "(np.array([0.0, 1.0, 1.0]), np.array([1.0, 1.0, 1.0]))"),
    ],
)
def test_neighbours_by_annotation(read, annotation, pair):
    text = audit_text(read(f"def f(x: {annotation}, rng): pass"), {})
    assert f"        pairs=[{pair}],\n" in text
    assert ("import numpy as np\n" in text) == ("np." in pair)


@pytest.mark.parametrize("annotation", ["", ": Graph", ": 'Records'"])
def test_no_neighbours_where_the_annotation_says_nothing(read, annotation):
    text = audit_text(read(f"def f(x{annotation}, rng): pass"), {})
    ast.parse(text)
    assert "        pairs=[],\n" in text


@pytest.mark.parametrize(
    ("path", "module"),
    [
        ("mine.py", "mine"),
        ("src/pkg/mine.py", "pkg.mine"),
        ("pkg/__init__.py", "pkg"),
        ("pkg/sub/mine.py", "pkg.sub.mine"),
    ],
)
def test_the_module_of_a_path(read, path, module):
    assert read("def f(x, rng): pass", path=path).module == module
