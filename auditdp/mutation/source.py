"""Broken code: one expression of a mechanism's source changed, compiled, and put in place while the mechanism runs.

The functions that may be changed are those that a call of the mechanism executes and that lie in the folders of its own
classes or of the objects that it holds. For the time of a call the function's code object is exchanged, so that methods,
properties, helpers and closures are all reached in the same way, and nothing else sees the change. The mechanism itself is
copied, without the values that it has cached.
"""

from __future__ import annotations
import __future__

import ast
import copy
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from auditdp.mechanism.protocol import Array, as_mechanism
from auditdp.mutation.reach import definitions, fresh

SPENT = re.compile(r"(^|_)(eps|epsilon|delta|budget)_?\d*($|_)")
NOISE = re.compile(r"(^|_)(scale|sigma|sensitivity|std|stddev|noise_multiplier|rho|nu)_?\d*($|_)")
CLIPS = ("clip", "minimum", "maximum", "min", "max")
TERMS = (ast.Add, ast.Sub, ast.BitXor, ast.BitAnd, ast.BitOr)
FACTORS = (ast.Mult, ast.Div)
ONE_SIDED = (ast.Sub, ast.Div)


@dataclass(frozen=True)
class SourceChange:
    """One change of one function."""

    operator: str
    function: str
    before: str
    after: str
    """What it is changed to; empty where it is left out."""
    functions: Sequence[FunctionType]
    """The functions that have this code."""
    code: CodeType
    id: str = ""
    """The change as it is called whatever the function's own variables are called."""

    @property
    def name(self) -> str:
        """The change as reports call it."""
        return _called(self.operator, self.function, self.before, self.after)


def _called(operator: str, function: str, before: str, after: str) -> str:
    return f"{operator} in {function}: {before} → {after or 'nothing'}"


def changes(mechanism: Any, codes: Sequence[CodeType]) -> tuple[list[SourceChange], list[str]]:
    """Return all changes of the mechanism's functions with these codes, and the names of those that are left alone.

    Left alone are functions without source, and those behind ``functools.cache``, whose values would outlive the change.
    What is defined inside a function is changed with it.
    """
    holders: dict[CodeType, list[FunctionType]] = {code: [] for code in codes}
    for function in definitions(mechanism):
        if isinstance(function, FunctionType) and function.__code__ in holders:
            holders[function.__code__].append(function)
    found: list[SourceChange] = []
    unread: list[str] = []
    for code, functions in holders.items():
        if not functions and any(code in outer.co_consts for outer in codes):
            continue
        tree = _parsed(code) if functions else None
        if tree is None:
            unread.append(code.co_qualname)
        else:
            found += _changes_of(code, functions, tree)
    return found, unread


def _parsed(code: CodeType) -> ast.FunctionDef | None:
    """Return the syntax tree of a function; None where its source is not at hand, as for a lambda."""
    try:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(code))).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    return tree if isinstance(tree, ast.FunctionDef) and tree.name == code.co_name else None


def _changes_of(code: CodeType, functions: Sequence[FunctionType], tree: ast.FunctionDef) -> Iterator[SourceChange]:
    nameless = _Nameless(tree)
    for number, node in enumerate(_nodes(tree)):
        for variant, (operator, new) in enumerate(variants(node)):
            changed = copy.deepcopy(tree)
            old = list(_nodes(changed))[number]
            replacement = list(variants(old))[variant][1]
            broken = _compiled(code, _Replacing(old, replacement).visit(changed))
            if broken.co_freevars == code.co_freevars:
                function = code.co_qualname.rpartition("<locals>.")[2]
                before, after = _text(node), _text(new)
                identity = _called(operator, function, nameless.text(node), nameless.text(new))
                yield SourceChange(operator, function, before, after, functions, broken, identity)


def _text(node: ast.AST | None) -> str:
    """An expression on one line; of a conditional step, its condition."""
    if node is None:
        return ""
    text = ast.unparse(ast.fix_missing_locations(node.test if isinstance(node, ast.If) else node))
    return ("if " if isinstance(node, ast.If) else "") + " ".join(text.split())


class _Nameless(ast.NodeTransformer):
    """Calls the variables of a function, its arguments among them, _1, _2, … in the order of their first appearance.

    What is defined elsewhere, such as functions, modules and attributes, keeps its name: another of it is another code.
    """

    def __init__(self, tree: ast.FunctionDef) -> None:
        arguments = [node.arg for node in ast.walk(tree.args) if isinstance(node, ast.arg)]
        bound = [node for node in ast.walk(tree) if isinstance(node, ast.arg) or _is_bound(node)]
        bound.sort(key=lambda node: (node.lineno, node.col_offset))  # type: ignore[attr-defined]
        names = [node.arg if isinstance(node, ast.arg) else node.id for node in bound]  # type: ignore[attr-defined]
        own = [name for name in dict.fromkeys([*arguments, *names]) if name not in ("self", "cls")]
        self._places = {name: f"_{number}" for number, name in enumerate(own, start=1)}

    def text(self, node: ast.AST | None) -> str:
        """Return an expression on one line."""
        return _text(node if node is None else self.visit(copy.deepcopy(node)))

    def visit_Name(self, node: ast.Name) -> ast.Name:  # as ast calls it
        """Rename a variable."""
        return ast.copy_location(ast.Name(self._places.get(node.id, node.id), node.ctx), node)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        """Rename an argument of a function inside."""
        return ast.copy_location(ast.arg(self._places.get(node.arg, node.arg)), node)


def _is_bound(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


class _Replacing(ast.NodeTransformer):
    """Puts one node in the place of another; a statement that is left out becomes ``pass``."""

    def __init__(self, old: ast.AST, new: ast.AST | None) -> None:
        self.old = old
        self.new = ast.Pass() if new is None else new

    def visit(self, node: ast.AST) -> Any:
        return self.new if node is self.old else self.generic_visit(node)


def _compiled(code: CodeType, tree: ast.FunctionDef) -> CodeType:
    """Compile a function as if it stood where it was: in its class, and inside the functions whose variables it uses."""
    owner = code.co_qualname.split(".")[-2:-1]
    if code.co_freevars:  # a variable that is no longer used has to stay one of the closure's
        tree.body.insert(0, ast.parse(f"lambda: ({', '.join(code.co_freevars)},)").body[0])
    tree.decorator_list = []
    tree.returns = None
    inner: ast.stmt = tree
    if owner and owner != ["<locals>"]:  # for private names, and for super()
        inner = ast.ClassDef(owner[0], [], [], [tree], [])
    scope = ast.parse(f"def scope({', '.join(name for name in code.co_freevars if name != '__class__')}): pass")
    scope.body[0].body = [inner]  # type: ignore[attr-defined]
    flags = code.co_flags & __future__.annotations.compiler_flag
    compiled: CodeType = compile(
        ast.fix_missing_locations(scope), code.co_filename, "exec", flags=flags, dont_inherit=True
    )
    for name in ["scope", *([owner[0]] if inner is not tree else []), code.co_name]:
        compiled = next(c for c in compiled.co_consts if isinstance(c, CodeType) and c.co_name == name)
    return compiled.replace(co_firstlineno=code.co_firstlineno, co_qualname=code.co_qualname)


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield what may be changed of a function: no annotations, defaults, indices, messages or refusals."""
    body = tree.body if isinstance(tree, ast.FunctionDef) else [tree]
    waiting: list[ast.AST] = list(reversed(body))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom):
            continue
        yield node
        fields = dict(ast.iter_fields(node))
        for name in ("annotation", "returns", "decorator_list", "slice"):
            fields.pop(name, None)
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            del fields["args"]
        if isinstance(node, ast.Call):  # the name of a function is no parameter
            fields["func"] = getattr(node.func, "value", None)
        inner = [child for value in fields.values() for child in (value if isinstance(value, list) else [value])]
        waiting += reversed([child for child in inner if isinstance(child, ast.AST)])


def variants(node: ast.AST) -> Iterator[tuple[str, ast.AST | None]]:
    """Yield (operator, replacement) for every way to break a node; None leaves a statement out."""
    match node:
        case ast.Call(func=ast.Attribute(attr=called) | ast.Name(id=called), args=arguments) if called in CLIPS:
            if called == "clip":
                owner = node.func.value if isinstance(node.func, ast.Attribute) else None
                module = isinstance(owner, ast.Name) and owner.id in ("np", "numpy")
                kept = [arguments[0] if module and arguments else owner]
            else:
                kept = list(arguments) if len(arguments) > 1 else []
            yield from (("clip left out", a) for a in kept if a is not None and not isinstance(a, ast.Constant))
        case ast.Call(args=[first, _, *_]) if _parameter(first, SPENT):
            yield "split left out", first
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, TERMS + FACTORS):
            operator = "term left out" if isinstance(op, TERMS) else "factor left out"
            yield operator, left
            if not isinstance(op, ONE_SIDED):
                yield operator, right
        case ast.AugAssign(op=op) if isinstance(op, TERMS + FACTORS):
            yield "step left out", None
        case ast.If(body=body, orelse=other) if not all(isinstance(statement, ast.Raise) for statement in body):
            yield "step left out", ast.If(ast.Constant(False), body, other)
        case ast.IfExp(body=first, orelse=second):
            yield "condition ignored", first
            yield "condition ignored", second
        case ast.Attribute(ctx=ast.Load()) | ast.Name(ctx=ast.Load()) if _parameter(node, SPENT):
            yield "parameter doubled", ast.BinOp(ast.Constant(2), ast.Mult(), node)
        case ast.Attribute(ctx=ast.Load()) | ast.Name(ctx=ast.Load()) if _parameter(node, NOISE):
            yield "parameter halved", ast.BinOp(node, ast.Div(), ast.Constant(2))


def _parameter(node: ast.AST, names: re.Pattern[str]) -> bool:
    """Whether an expression is a variable or attribute with such a name."""
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return names.search(name) is not None


@contextmanager
def exchanged(functions: Sequence[FunctionType], code: CodeType) -> Iterator[None]:
    """Give functions another code for the time of the block; not for use by several threads at once."""
    before = [function.__code__ for function in functions]
    for function in functions:
        function.__code__ = code
    try:
        yield
    finally:
        for function, original in zip(functions, before, strict=True):
            function.__code__ = original


class Rewritten:
    """A mechanism that runs with one change of its code, and says of itself what the changed code says."""

    def __init__(self, mechanism: Any, change: SourceChange) -> None:
        self.mechanism = mechanism
        self.change = change

    @cached_property
    def twin(self) -> Any:
        """The copy that runs with the change, so that nothing it caches reaches the mechanism."""
        return fresh(self.mechanism)

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Return ``size`` outputs of the changed code."""
        with exchanged(self.change.functions, self.change.code):
            return as_mechanism(self.twin)(data, size, rng=rng)

    def __getattr__(self, attribute: str) -> Any:
        """Offer what the mechanism offers: its query and laws, as the changed code computes them."""
        if attribute.startswith("__") or attribute in ("mechanism", "change"):  # while a copy is being made
            raise AttributeError(attribute)
        try:
            with exchanged(self.change.functions, self.change.code):
                value = getattr(self.twin, attribute)
        except Exception as error:
            raise AttributeError(f"{attribute}: {error}") from error  # broken code may not even get that far
        return self._changed(value) if callable(value) else value

    def _changed(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **keywords: Any) -> Any:
            with exchanged(self.change.functions, self.change.code):
                return method(*arguments, **keywords)

        return run
