"""What the source of a function says that an audit needs: read from its syntax tree, without importing it."""

from __future__ import annotations

import ast
import keyword
import re
from dataclasses import dataclass
from pathlib import Path

from auditdp.errors import ConfigurationError, did_you_mean

GENERATORS = ("rng", "generator", "random_generator", "np_random", "random_state")
"""Names of a parameter that takes a numpy Generator."""
LEVELS = {"epsilon": "epsilon", "eps": "epsilon", "delta": "delta"}
"""Names of parameters that say what is claimed."""
_NUMBER = r"(\d+(?:\.\d*)?(?:e-?\d+)?|\.\d+)"
_BOTH = re.compile(rf"\(\s*{_NUMBER}\s*,\s*{_NUMBER}\s*\)[- ]?(?:DP|LDP|differential)", re.I)
_PURE = re.compile(rf"{_NUMBER}[- ](?:DP|LDP|differential)|(?:epsilon|eps|ε)\s*=\s*{_NUMBER}", re.I)


@dataclass(frozen=True)
class Signature:
    """A function that is to be audited.

    Attributes:
        module: By which it is imported.
        name: Its name.
        data: The name of its first parameter, the private data.
        annotation: The annotation of that parameter; empty where it has none.
        generator: The name of the parameter that takes its randomness; empty where it has none.
        takes_size: Whether it returns many outputs at once.
        level_names: The parameters that say what is claimed: their own names, by 'epsilon' and 'delta'.
        required: Further parameters without a default.
        epsilon: What it claims, as far as its parameters or its docstring say; None where they do not.
        delta: The same for δ.
        says: Where that is said.
    """

    module: str
    name: str
    data: str
    annotation: str
    generator: str
    takes_size: bool
    level_names: dict[str, str]
    required: tuple[str, ...]
    epsilon: float | None
    delta: float
    says: str


def read_signature(target: str, root: Path) -> Signature:
    """Return what the source of ``path/to/module.py::function`` says.

    Args:
        target: The file, relative to the root, and the function.
        root: The folder from which modules are imported.

    Raises:
        ConfigurationError: If there is no such file or function, or it takes no data.
    """
    path_text, separator, name = target.partition("::")
    path = root / path_text
    if not separator or not name or path.suffix != ".py":
        raise ConfigurationError(f"{target}: expected a function of a file, such as package/counts.py::noisy_count")
    if not path.is_file():
        raise ConfigurationError(f"{path_text}: no such file; give a path from {root}")
    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except (SyntaxError, ValueError) as error:
        raise ConfigurationError(f"{path_text}, line {getattr(error, 'lineno', 1)}: no Python: {error}") from error
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    if name not in functions:
        kind = next((node for node in tree.body if getattr(node, "name", None) == name), None)
        if kind is not None:
            raise ConfigurationError(f"{target}: is no plain function; write its audit by hand, as the README shows")
        raise ConfigurationError(f"{path_text} has no function {name!r}; {did_you_mean(name, functions)}")
    return _signature(_module(path.resolve(), root), functions[name])


def _module(path: Path, root: Path) -> str:
    if not path.is_relative_to(root):
        raise ConfigurationError(f"{path} is not below {root}; go to the folder of its project")
    parts = path.relative_to(root).with_suffix("").parts
    parts = parts[1:] if parts[0] == "src" and len(parts) > 1 else parts
    parts = parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts
    for part in parts:
        if not part.isidentifier() or keyword.iskeyword(part):
            raise ConfigurationError(f"{path.relative_to(root)} cannot be imported: {part!r} is no name of a module")
    return ".".join(parts)


def _signature(module: str, node: ast.FunctionDef) -> Signature:
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: dict[str, ast.expr | None] = dict.fromkeys(argument.arg for argument in positional)
    given = arguments.defaults
    defaults |= {
        argument.arg: value for argument, value in zip(positional[len(positional) - len(given) :], given, strict=True)
    }
    defaults |= {a.arg: value for a, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)}
    generator = next((name for name in GENERATORS if name in defaults), "")
    level_names = {LEVELS[name]: name for name in defaults if name in LEVELS}
    keywords = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    takes_size = [a.arg for a in positional][1:2] == ["size"] or ("size", None) in ((a.arg, v) for a, v in keywords)
    others = {generator, *level_names.values()} | ({"size"} if takes_size else set())
    data = next((argument for argument in positional if argument.arg not in others), None)
    if data is None:
        raise ConfigurationError(f"{node.name}: takes no private data; expected a first parameter for it")
    doc = ast.get_docstring(node) or ""
    stated = {kind: _number(defaults[name]) for kind, name in level_names.items()}
    epsilon, delta, says = stated.get("epsilon"), stated.get("delta"), f"the parameters of {node.name}"
    if epsilon is None:
        epsilon, documented = _documented(doc)
        delta = documented if delta is None else delta
        says = f"the docstring of {node.name}" if epsilon is not None else ""
    return Signature(
        module=module,
        name=node.name,
        data=data.arg,
        annotation=ast.unparse(data.annotation) if data.annotation else "",
        generator=generator,
        takes_size=takes_size,
        level_names=level_names,
        required=tuple(name for name, value in defaults.items() if value is None and name not in {data.arg, *others}),
        epsilon=epsilon,
        delta=delta or 0.0,
        says=says,
    )


def _number(node: ast.expr | None) -> float | None:
    value = node.value if isinstance(node, ast.Constant) else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _documented(doc: str) -> tuple[float | None, float]:
    """Return ε and δ as a docstring states them, such as '(1, 1e-6)-DP', '2-LDP' or 'epsilon = 0.5'."""
    if (both := _BOTH.search(doc)) is not None:
        return float(both[1]), float(both[2])
    if (pure := _PURE.search(doc)) is not None:
        return float(pure[1] or pure[2]), 0.0
    return None, 0.0
