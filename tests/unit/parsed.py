"""The facts about a Python file that several tests look at, each file parsed once."""

import ast
from dataclasses import dataclass, field
from functools import cache


@dataclass
class Parsed:
    """The facts that are kept; the tree itself would take too much memory.

    Attributes:
        classes: Names of the classes at the top of the module.
        targets: The targets of assignments at the top, and whether a number is assigned.
        paragraphs: The first paragraph of every docstring.
        imports: Statements of import, and calls that import a module by its name.
    """

    classes: list = field(default_factory=list)
    targets: list = field(default_factory=list)
    paragraphs: list = field(default_factory=list)
    imports: list = field(default_factory=list)


def is_number(node):
    if isinstance(node, ast.UnaryOp):
        return is_number(node.operand)
    if isinstance(node, ast.BinOp):
        return is_number(node.left) and is_number(node.right)
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def is_import(node):
    if isinstance(node, ast.Call):
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        return name.endswith(("import_module", "importorskip"))
    return isinstance(node, ast.Import | ast.ImportFrom)


@cache
def parsed(path):
    tree, found = ast.parse(path.read_bytes()), Parsed()
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            found.classes.append(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            found.targets.append((target, is_number(node.value)))
    for node in ast.walk(tree):
        if is_import(node):
            found.imports.append(node)
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            text = ast.get_docstring(node)
            if text is not None:
                found.paragraphs.append(text.split("\n\n")[0].replace("\n", " "))
    return found
