"""Search for functions that draw randomness, by syntax trees; nothing is imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from auditdp.errors import ConfigurationError

GENERATORS = ("rng", "generator", "random_generator", "np_random", "random_state")
"""Names of parameters that usually take a numpy Generator."""
DRAWS = {
    *(
        "laplace",
        "normal",
        "standard_normal",
        "gumbel",
        "exponential",
        "geometric",
        "binomial",
        "multivariate_normal",
    ),
    *(
        "gauss",
        "normalvariate",
        "expovariate",
        "SystemRandom",
        "default_rng",
        "Laplace",
        "Gaussian",
        "randn",
        "rand",
    ),
}
"""Names of functions and methods that draw noise."""
SOURCES = (
    "np.random",
    "numpy.random",
    "random",
    "secrets",
    "opendp",
    "diffprivlib",
    "pydp",
    "torch.distributions",
)
"""Modules and packages whose functions draw noise, as they are written in code."""
LEFT_OUT = {"tests", "test", "audits", "docs", "build", "node_modules", "site-packages"}
"""Names of folders that are skipped."""


def files_of(path: Path) -> list[Path]:
    """Return a list of the file ``path``, or the sorted Python files below a folder.

    Of a folder, files of tests and audits are omitted, and so are folders in
    ``LEFT_OUT`` and those whose names begin with a dot or an underscore.
    """
    if path.is_file():
        return [path]
    inside = (
        file
        for file in sorted(path.rglob("*.py"))
        if not file.name.startswith(("test_", "audit_", "conftest"))
    )
    return [
        file
        for file in inside
        if not any(
            p in LEFT_OUT or p[:1] in "._" for p in file.relative_to(path).parts[:-1]
        )
    ]


def tree_of(path: Path, shown: str) -> ast.Module:
    """Return the syntax tree of a file.

    Args:
        path: The file.
        shown: Its name in the message of an error.

    Raises:
        ConfigurationError: If the file is no Python.
    """
    try:
        return ast.parse(path.read_bytes(), str(path))
    except (SyntaxError, ValueError) as error:
        raise ConfigurationError(
            f"{shown}, line {getattr(error, 'lineno', 1)}: not Python: {error}"
        ) from error


def functions_of(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    """Return the functions of a module by name, and methods by 'Class.method'."""
    found = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    for owner in tree.body:
        if isinstance(owner, ast.ClassDef):
            methods = (node for node in owner.body if isinstance(node, ast.FunctionDef))
            found |= {f"{owner.name}.{node.name}": node for node in methods}
    return found


def drawing(tree: ast.Module) -> Iterator[str]:
    """Yield the names of the public functions and methods that draw randomness.

    A function draws if it has a parameter for a generator, calls a function that draws
    noise, or calls a function of the file that draws.
    """
    functions = functions_of(tree)
    draws = {name for name, node in functions.items() if _draws(node)}
    while more := {
        name
        for name, node in functions.items()
        if name not in draws and _calls(node) & _bare(draws)
    }:
        draws |= more
    yield from (
        name
        for name in functions
        if name in draws and not any(p.startswith("_") for p in name.split("."))
    )


def _bare(names: set[str]) -> set[str]:
    return {name.rpartition(".")[2] for name in names}


def _draws(node: ast.FunctionDef) -> bool:
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    if any(argument.arg in GENERATORS for argument in arguments):
        return True
    called = [
        ast.unparse(call.func) for call in ast.walk(node) if isinstance(call, ast.Call)
    ]
    return any(
        name.startswith(tuple(f"{s}." for s in SOURCES))
        or name.rpartition(".")[2] in DRAWS
        for name in called
    )


def _calls(node: ast.FunctionDef) -> set[str]:
    return {
        ast.unparse(call.func).rpartition(".")[2]
        for call in ast.walk(node)
        if isinstance(call, ast.Call)
    }
