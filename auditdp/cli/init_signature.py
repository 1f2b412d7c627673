"""Read the data for an audit from the source of a function; nothing is imported."""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from auditdp.cli.init_discovery import GENERATORS, functions_of, tree_of
from auditdp.cli.init_domains import columns_read, neighbours_of
from auditdp.errors import ConfigurationError, did_you_mean

LEVELS = {"epsilon": "epsilon", "eps": "epsilon", "delta": "delta"}
"""Names of parameters that state a claim, with the part of the claim."""
_NUMBER = r"(\d+(?:\.\d*)?(?:e-?\d+)?|\.\d+)"
_BOTH = re.compile(
    rf"\(\s*{_NUMBER}\s*,\s*{_NUMBER}\s*\)[- ]?(?:DP|LDP|differential)", re.I
)
_PURE = re.compile(
    rf"{_NUMBER}[- ](?:DP|LDP|differential)|(?:epsilon|eps|ε)\s*=\s*{_NUMBER}", re.I
)


@dataclass(frozen=True)
class Signature:
    """A function or method that is to be audited, as its source describes it.

    Attributes:
        module: The name of its module.
        name: The name of the function, or of the class of the method.
        method: The name of the method; empty for a function.
        data: The name of the parameter that takes the private data.
        pairs: Neighbours of the data, as source; empty if the type of the data is
            unknown.
        classes: The classes of the module that ``pairs`` names.
        generator: The name of the parameter for the generator; empty if it has none.
        takes_size: True if it has a parameter ``size``, for many outputs at once.
        level_names: The names of the parameters that state the claim, by 'epsilon' and
            'delta'.
        required: All other parameters without a default, also of the constructor.
        made_with: All parameters of the constructor; empty for a function.
        epsilon: The claimed ε, from the default of a parameter or from the docstring;
            None if unknown.
        delta: The claimed δ; 0 if none is stated.
        says: Where the claim is stated, in words; empty if it is not.
    """

    module: str
    name: str
    method: str
    data: str
    pairs: str
    classes: tuple[str, ...]
    generator: str
    takes_size: bool
    level_names: dict[str, str]
    required: tuple[str, ...]
    made_with: tuple[str, ...]
    epsilon: float | None
    delta: float
    says: str

    @property
    def called(self) -> str:
        """The function's name, or 'class_method' in lower case; it names the audit."""
        return f"{self.name}_{self.method}".lower() if self.method else self.name


def read_signature(
    target: str, root: Path, columns: Mapping[str, str] | None = None
) -> Signature:
    """Return the signature of ``path/to/module.py::function`` or ``::Class.method``.

    Args:
        target: The file, relative to the root, and the function.
        root: The folder from which modules are imported.
        columns: Hypothesis strategies, as source, by the columns of the data. By
            default they are derived from the code.

    Raises:
        ConfigurationError: If there is no such file or function, if the file is not
            Python or cannot be imported from the root, or if the function has no
            parameter for data.
    """
    path_text, separator, name = target.partition("::")
    path = root / path_text
    if not separator or not name or path.suffix != ".py":
        raise ConfigurationError(
            f"{target}: expected a function of a file, such as package/counts.py::noisy_count"
        )
    if not path.is_file():
        raise ConfigurationError(f"{path_text}: no such file; give a path from {root}")
    tree = tree_of(path, path_text)
    functions = functions_of(tree)
    if name not in functions:
        kind = next(
            (node for node in tree.body if getattr(node, "name", None) == name), None
        )
        if kind is not None:
            raise ConfigurationError(
                f"{target}: is not a plain function; name a method, such as {name}.release"
            )
        raise ConfigurationError(
            f"{path_text} has no function {name!r}; {did_you_mean(name, functions)}"
        )
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    bound = [node for node in tree.body if isinstance(node, ast.Assign)]
    constants = {
        each.id: node.value
        for node in bound
        for each in node.targets
        if isinstance(each, ast.Name)
    }
    return _signature(
        _module(path.resolve(), root),
        name,
        functions,
        classes,
        constants,
        columns or {},
    )


def _module(path: Path, root: Path) -> str:
    if not path.is_relative_to(root):
        raise ConfigurationError(
            f"{path} is not below {root}; go to the folder of its project"
        )
    parts = path.relative_to(root).with_suffix("").parts
    parts = parts[1:] if parts[0] == "src" and len(parts) > 1 else parts
    parts = parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts
    for part in parts:
        if not part.isidentifier() or keyword.iskeyword(part):
            raise ConfigurationError(
                f"{path.relative_to(root)} cannot be imported: {part!r} is not a module name"
            )
    return ".".join(parts)


def _signature(
    module: str,
    name: str,
    functions: Mapping[str, ast.FunctionDef],
    classes: Mapping[str, ast.ClassDef],
    constants: Mapping[str, ast.expr],
    columns: Mapping[str, str],
) -> Signature:
    node, owner = functions[name], name.rpartition(".")[0]
    positional, defaults = _parameters(node, bound=bool(owner))
    made = functions.get(f"{owner}.__init__")
    of_class = _fields(classes[owner]) if owner and made is None else {}
    of_class |= _parameters(made, bound=True)[1] if made is not None else {}
    generator = next((each for each in GENERATORS if each in defaults), "")
    level_names = {
        LEVELS[each]: each for each in (*defaults, *of_class) if each in LEVELS
    }
    keywords = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
    takes_size = [a.arg for a in positional][1:2] == ["size"] or ("size", None) in (
        (a.arg, v) for a, v in keywords
    )
    # The data is the first parameter that has no other role.
    others = {generator, *level_names.values()} | ({"size"} if takes_size else set())
    data = next(
        (argument for argument in positional if argument.arg not in others), None
    )
    if data is None:
        raise ConfigurationError(
            f"{name}: takes no private data; expected a first parameter for it"
        )
    doc = (
        ast.get_docstring(node)
        or (ast.get_docstring(classes[owner]) if owner else "")
        or ""
    )
    stated = {
        kind: _number((defaults | of_class)[each]) for kind, each in level_names.items()
    }
    epsilon, delta, says = (
        stated.get("epsilon"),
        stated.get("delta"),
        f"the parameters of {name}",
    )
    # A default of a parameter is a clearer claim than a docstring.
    if epsilon is None:
        epsilon, documented = _documented(doc)
        delta = documented if delta is None else delta
        says = f"the docstring of {name}" if epsilon is not None else ""
    pairs = neighbours_of(
        ast.unparse(data.annotation) if data.annotation else "",
        columns or columns_read(node, data.arg, constants),
        classes,
    )
    known = {data.arg, *others}
    return Signature(
        module=module,
        name=owner or name,
        method=node.name if owner else "",
        data=data.arg,
        pairs=pairs,
        classes=tuple(each for each in classes if f"builds({each}," in pairs),
        generator=generator,
        takes_size=takes_size,
        level_names=level_names,
        required=tuple(
            each
            for each, value in (defaults | of_class).items()
            if value is None and each not in known
        ),
        made_with=tuple(of_class),
        epsilon=epsilon,
        delta=delta or 0.0,
        says=says,
    )


def _parameters(
    node: ast.FunctionDef, *, bound: bool
) -> tuple[list[ast.arg], dict[str, ast.expr | None]]:
    """Return the positional parameters, and the default of every parameter by name.

    The default is None for a parameter without one. With ``bound`` the first parameter,
    ``self``, is omitted, unless the method is static.
    """
    arguments = node.args
    static = any(ast.unparse(each) == "staticmethod" for each in node.decorator_list)
    positional = [*arguments.posonlyargs, *arguments.args][bound and not static :]
    defaults: dict[str, ast.expr | None] = dict.fromkeys(
        argument.arg for argument in positional
    )
    given = arguments.defaults
    defaults |= {
        argument.arg: value
        for argument, value in zip(
            positional[len(positional) - len(given) :], given, strict=True
        )
    }
    return positional, defaults | {
        a.arg: value
        for a, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    }


def _fields(owner: ast.ClassDef) -> dict[str, ast.expr | None]:
    """Return the fields of a dataclass with their defaults; {} for another class."""
    if not any("dataclass" in ast.unparse(each) for each in owner.decorator_list):
        return {}
    fields = (node for node in owner.body if isinstance(node, ast.AnnAssign))
    return {
        node.target.id: node.value
        for node in fields
        if isinstance(node.target, ast.Name)
    }


def _number(node: ast.expr | None) -> float | None:
    value = node.value if isinstance(node, ast.Constant) else None
    return (
        float(value)
        if isinstance(value, int | float) and not isinstance(value, bool)
        else None
    )


def _documented(doc: str) -> tuple[float | None, float]:
    """Return the ε and δ that a docstring states, or (None, 0.0) if it states none.

    Examples are '(1, 1e-6)-DP', '2-LDP' and 'epsilon = 0.5'.
    """
    if (both := _BOTH.search(doc)) is not None:
        return float(both[1]), float(both[2])
    if (pure := _PURE.search(doc)) is not None:
        return float(pure[1] or pure[2]), 0.0
    return None, 0.0
