import ast

import pytest

from auditdp import Rows
from auditdp.cli.init import audit_text, with_audits
from auditdp.cli.init_discovery import drawing
from auditdp.cli.init_domains import columns_of, columns_read
from auditdp.cli.init_signature import read_signature


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
        (
            "def f(x, rng):\n    '''It is (1, 1e-6)-DP.'''",
            1.0,
            1e-6,
            "the docstring of f",
        ),
        (
            "def f(x, rng):\n    '''A 0.25-LDP report.'''",
            0.25,
            0.0,
            "the docstring of f",
        ),
        (
            "def f(x, rng):\n    '''Private with ε = .1 for all.'''",
            0.1,
            0.0,
            "the docstring of f",
        ),
        (
            "def f(x, rng):\n    '''3-differentially private.'''",
            3.0,
            0.0,
            "the docstring of f",
        ),
        (
            "def f(x, rng, epsilon):\n    '''With epsilon=4.'''",
            4.0,
            0.0,
            "the docstring of f",
        ),
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
        ("def f(x, generator): pass", "f(data, generator=rng)"),
        ("def f(x, size, generator): pass", "f(data, size=size, generator=rng)"),
        ("def f(x, rng, scale): pass", "partial(f, scale=2)"),
    ],
)
def test_how_an_audit_calls_it(read, source, call):
    text = audit_text(read(source), {"scale": "2"} if "scale" in source else {})
    ast.parse(text)
    made = "return" if "def mechanism(data" in text else "mechanism ="
    assert f"{made} {call}\n" in text
    assert ("without_noise(mechanism)" in text) == ("unseeded" not in call)


METHODS = """
from dataclasses import dataclass

class Plain:
    def __init__(self, most, epsilon=2.0): ...
    def release(self, x: int, rng, cap): ...

@dataclass
class Record:
    scale: float
    def release(self, x: int, rng): "It is 3-DP."
"""


@pytest.mark.parametrize(
    ("name", "made", "epsilon"),
    [
        (
            "Plain.release",
            "mechanism = partial(Plain(epsilon=epsilon, most=2).release, cap=5)",
            2.0,
        ),
        ("Record.release", "mechanism = Record(scale=1.5).release", 3.0),
    ],
)
def test_a_method_is_bound_to_an_object_that_is_made(read, name, made, epsilon):
    signature = read(METHODS, name)
    text = audit_text(signature, {"most": "2", "cap": "5", "scale": "1.5"})
    assert f"    {made}\n" in text
    assert (
        signature.epsilon,
        f"def {name.lower().replace('.', '_')}_is_private(" in text,
    ) == (epsilon, True)


ROWS = """
from dataclasses import dataclass
from typing import NamedTuple, TypedDict

@dataclass
class Visit:
    age: int
    city: str

class Purchase(TypedDict):
    item: str
    price: float

def f(x: {}, rng):
    return x["age"], x["city"]
"""


@pytest.mark.parametrize(
    ("annotation", "inputs"),
    [
        ("list[int]", list),
        ("Sequence[float] | None", list),
        ("tuple[str, ...]", tuple),
        ("list[list[int]]", list),
        ("list[set[str]]", list),
        ("'list[Visit]'", list),
        ("list[Purchase]", list),
        ("list[tuple[int, float]]", list),
        ("list[dict]", list),
        ("dict[int, list[int]]", dict),
        ("np.ndarray", None),
        ("pd.DataFrame", "pandas"),
        ("pl.DataFrame", "polars"),
    ],
)
def test_what_is_written_is_neighbours_that_generate_inputs(read, annotation, inputs):
    signature = read(ROWS.format(annotation))
    made = {}
    exec(ROWS.partition("def f")[0], made)
    exec(
        "import numpy as np\nfrom hypothesis import strategies as st\nfrom auditdp import Rows",
        made,
    )
    adjacency = eval(signature.pairs, made)
    assert isinstance(adjacency, Rows)
    assert adjacency.into == inputs or (
        inputs is None and adjacency.change == "replace"
    )
    if isinstance(inputs, str):
        pytest.importorskip(inputs)
    for pair in adjacency.pairs():
        adjacency.check(pair)


@pytest.mark.parametrize(
    ("annotation", "pair"),
    [
        ("int", "(0, 1)"),
        ("bool", "(False, True)"),
        ("dict[str, int]", '({"a": 1, "b": 1}, {"a": 1})'),
    ],
)
def test_neighbours_of_one_value(read, annotation, pair):
    assert f"        pairs=[{pair}],\n" in audit_text(
        read(f"def f(x: {annotation}, rng): pass"), {}
    )


PLACES = 'PLACES = ["a", "b"]\n'
INTS, TEXTS = "st.integers(0, 100)", 'st.sampled_from(["a", "b", "other"])'


@pytest.mark.parametrize(
    ("body", "columns"),
    [
        ("x['age'].mean()", {"age": INTS}),
        ("x.groupby('place')['age'].sum().reindex(PLACES)['total']", {"age": INTS, "place": TEXTS}),
        ("[y['age'] for y in x if y['place'] in PLACES]", {"age": INTS, "place": TEXTS}),
        ("x.assign(age=x['age'].clip(0, 90)).agg(['size'])['size']", {"age": "st.integers(-90, 180)"}),
        ("x[x['place'] == 'a']['h'].clip(0.5, 2.5)", {"place": TEXTS.replace('"b", ', ""), "h": "st.floats(-1.5, 4.5)"}),
        ("x['place'].value_counts().reindex(['a', 'b']), rng['draw']", {"place": TEXTS}),
        ("x.sort_values(by='age'), OTHER['key']", {"age": INTS}),
        ("x.age.clip(lower=0, upper=9).sum() + len(x.index), x.copy()", {"age": "st.integers(-9, 18)"}),
        ("sum(y.get('age') for y in x)", {"age": INTS}),
    ],
)  # fmt: skip
def test_columns_are_those_that_code_reads_of_the_data(body, columns):
    places, function = ast.parse(f"{PLACES}def f(x, rng):\n    {body}").body
    assert columns_read(function, "x", {"PLACES": places.value}) == columns


def test_an_example_says_what_columns_hold(tmp_path):
    example = tmp_path / "example.csv"
    example.write_text("age,height,city\n30,1.5,Ulm\n41,1.9,Bonn\n")
    columns = columns_of(example)
    assert [*columns.values()] == [
        "st.integers(30, 41)",
        "st.floats(1.5, 1.9)",
        'st.sampled_from(["Bonn", "Ulm"])',
    ]


def test_audits_are_added_to_a_file_with_the_imports_that_it_lacks(read):
    before = '"""Mine."""\n\nfrom auditdp import Audit, audit\n\n\ndef mine():\n    return 1\n'
    signature = read("def f(x: list[int], rng): pass")
    text = with_audits(before, [(signature, audit_text(signature, {}))])
    assert text.startswith(before.partition("\n\n\n")[0])
    assert "from auditdp import PureDP, Rows, without_noise\n" in text
    assert [
        node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)
    ] == ["mine", "f_is_private"]
    assert text.index("from mine import f") < text.index("def mine():")


def test_functions_that_draw_are_found():
    source = """
import numpy as np
def seeded(x, rng): ...
def own(x): return x + np.random.laplace()
def through(x): return own(x)
def _hidden(x, rng): ...
def plain(x): return x
class Server:
    def noisy(self, x): return self._noise(x)
    def _noise(self, x): return x + self.rng.normal()
"""
    assert [*drawing(ast.parse(source))] == ["seeded", "own", "through", "Server.noisy"]


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
