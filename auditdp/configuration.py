"""Settings of a project: ``[tool.auditdp]`` of its pyproject.toml, profiles of it, and the environment above both.

Of what is said of a setting in several places, the first of these counts: the command line, the environment
(``AUDITDP_SEED``), the profile that is chosen (``[tool.auditdp.profiles.ci]``), the table, the default.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from auditdp.errors import ConfigurationError, did_you_mean
from auditdp.files import MOST_SETTINGS, content_of, toml_of
from auditdp.record.budget import BUDGETS, EXPECTED, LONGEST, MOST_SEED, Budget

DATA_VARIABLE = "AUDITDP_DATA"
"""Environment variable with the folder of data files."""
PROFILE_VARIABLE = "AUDITDP_PROFILE"
"""Environment variable with the name of the profile, where none is given."""
IMPORTS_VARIABLE = "AUDITDP_IMPORTS"
"""Environment variable with folders, separated as in ``PATH``, from which processes of audits import.

No process that judges does: code of a folder on its path runs though nothing there is imported by name, as that of
``sitecustomize.py`` and of plugins of libraries.
"""
FILE = "pyproject.toml"
SANDBOXES = ("auto", "required", "off")
DEFAULT_LOG = Path(".auditdp") / "run.jsonl"
FAILURES = ("none", "error", "inconclusive", "skipped", "changed")
DEFAULT = "default"


class SettingKind(NamedTuple):
    """What a setting has to be."""

    expected: str
    """In words."""
    fits: Callable[[Any], bool]
    """Whether a value of the file is one."""
    read: Callable[[str], Any]
    """Reads a value of the environment."""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(item, str) and item for item in value
    )


def _is_budget(value: Any) -> bool:
    try:
        return (isinstance(value, str) or _is_whole(value)) and bool(
            Budget.read(str(value))
        )
    except ConfigurationError:
        return False


TEXT = SettingKind("a text", lambda value: isinstance(value, str), str)
SWITCH = SettingKind(
    "true or false",
    lambda value: isinstance(value, bool),
    {"true": True, "false": False}.get,
)
COUNT = SettingKind(
    "a number >= 1, or 'auto'",
    lambda v: v == "auto" or (_is_whole(v) and int(v) >= 1),
    str,
)
KINDS: dict[str, SettingKind] = {
    "paths": SettingKind(
        "a list of folders and files", _is_texts, lambda text: text.split(os.pathsep)
    ),
    "alpha": SettingKind(
        "a number strictly between 0 and 1",
        lambda v: _is_number(v) and 0 < v < 1,
        float,
    ),
    "budget": SettingKind(EXPECTED, _is_budget, str),
    "timeout": SettingKind(
        "seconds >= 0, 0 for no limit",
        lambda v: _is_number(v) and 0 <= v <= LONGEST,
        float,
    ),
    "seed": SettingKind(
        "an integer >= 0",
        lambda v: isinstance(v, int) and not isinstance(v, bool) and 0 <= v < MOST_SEED,
        int,
    ),
    "data": TEXT,
    "workers": COUNT,
    "max_memory": TEXT,
    "fail_on": SettingKind(
        f"a list of {', '.join(FAILURES)}",
        lambda v: _is_texts(v) and all(item in FAILURES for item in v),
        lambda text: [item.strip() for item in text.split(",")],
    ),
    "sandbox": SettingKind(
        f"one of {', '.join(SANDBOXES)}", lambda value: value in SANDBOXES, str
    ),
    "network": SWITCH,
    "trace": SWITCH,
    "baseline": SettingKind(
        "the path of a file", lambda value: isinstance(value, str) and bool(value), str
    ),
}
"""The settings by name."""
IN_FOLDERS = {"paths", "data", "baseline"}
"""Settings that are paths: those of the file are relative to its folder, those of the environment to the working folder."""


def _is_whole(value: Any) -> bool:
    if isinstance(value, str):
        return value.isascii() and value.isdigit() and len(value) < 19
    return isinstance(value, int) and not isinstance(value, bool)


@dataclass(frozen=True)
class Configuration:
    """What ``auditdp run`` does unless its options say otherwise."""

    paths: tuple[str, ...] = ("audits",)
    """Folders and files to collect audits from."""
    alpha: float = 0.05
    """Error probability of a whole run, shared by its audits."""
    budget: str = "standard"
    """Of each game, as ``Budget.read`` takes it."""
    timeout: float = 600.0
    """Seconds per audit; 0 for none."""
    seed: int | None = None
    """Root seed; None draws a fresh one and prints it."""
    data: str = ""
    """Folder of data files; empty for none."""
    workers: str = "1"
    """Audits that run at a time: a number, or 'auto'."""
    max_memory: str = ""
    """Memory that an audit may take, such as '2G'; empty for no limit."""
    fail_on: tuple[str, ...] = ()
    """What else makes a run fail."""
    sandbox: str = "auto"
    """Whether audits are shut off from what is not theirs: 'auto' as far as the kernel can, 'required' or 'off'."""
    network: bool = False
    """Whether the sandbox leaves the network open."""
    trace: bool = True
    """Whether the code is traced before its game, unless an audit says no."""
    baseline: str = "auditdp-baseline.toml"
    """File of the accepted results."""
    profile: str = ""
    """The profile that was chosen; empty for none."""
    folder: Path = field(default_factory=Path)
    """Folder of the file that was found, or where it was looked for."""
    sources: Mapping[str, str] = field(
        default_factory=lambda: dict.fromkeys(KINDS, DEFAULT)
    )
    """Where each setting comes from, by name."""


def project_folder(folder: Path) -> Path:
    """Return the nearest folder, from this one upward, whose pyproject.toml has ``[tool.auditdp]``; this one if none has.

    The search ends at the root of a git repository, so that the settings of one project are never those of another one
    that lies around it.

    Raises:
        ConfigurationError: If a file on the way is no TOML.
    """
    for candidate in (folder, *folder.parents):
        try:
            if "auditdp" in _tools(candidate / FILE):
                return candidate
            if (candidate / ".git").exists():
                break
        except PermissionError:  # a folder that nobody may look into is somebody else's
            break
    return folder


def load(
    folder: Path, profile: str = "", environment: Mapping[str, str] | None = None
) -> Configuration:
    """Return the configuration of the project in ``folder``, or above it; the defaults where there is none.

    The profile is that of ``AUDITDP_PROFILE`` unless given.

    Raises:
        ConfigurationError: If the file is no TOML, or a key, a value, a profile or a variable cannot be used.
    """
    environment = os.environ if environment is None else environment
    found = project_folder(folder)
    path = found / FILE
    table = _tools(path).get("auditdp", {})
    if not isinstance(table, dict):
        raise ConfigurationError(
            f"{path}: tool.auditdp = {table!r} is not a table; write [tool.auditdp] with keys below"
        )
    profiles = table.pop("profiles", {})
    values = _checked(table, path, "tool.auditdp")
    sources = dict.fromkeys(values, f"{path}, [tool.auditdp]")
    chosen = profile or environment.get(PROFILE_VARIABLE, "")
    for name, layer in _profiles(profiles, path).items():
        if name == chosen:
            values |= layer
            sources |= dict.fromkeys(layer, f"{path}, [tool.auditdp.profiles.{name}]")
    if chosen and chosen not in profiles:
        given = f"--profile {chosen}" if profile else f"{PROFILE_VARIABLE}={chosen}"
        where = f"write [tool.auditdp.profiles.{chosen}] in {path}"
        raise ConfigurationError(
            f"{given}: no such profile; {did_you_mean(chosen, profiles)}; or {where}"
        )
    from_environment = _variables(environment)
    for name in IN_FOLDERS & set(from_environment) if found != folder else ():
        value = from_environment[name]
        moved = [
            os.path.relpath(folder / item, found)
            for item in ([value] if isinstance(value, str) else value)
        ]
        from_environment[name] = moved[0] if isinstance(value, str) else moved
    values |= from_environment
    sources |= {name: f"the environment, {variable(name)}" for name in from_environment}
    for name in ("paths", "fail_on"):
        if name in values:
            values[name] = tuple(values[name])
    for name in ("workers", "budget"):
        if name in values:
            values[name] = str(values[name])
    whole = dict.fromkeys(KINDS, DEFAULT) | sources
    return replace(
        Configuration(), **values, profile=chosen, folder=found, sources=whole
    )


def variable(name: str) -> str:
    """Return the environment variable of a setting.

    >>> variable("max_memory")
    'AUDITDP_MAX_MEMORY'
    """
    return f"AUDITDP_{name.upper()}"


def _tools(path: Path) -> dict[str, Any]:
    """Return the table ``tool`` of a file; empty where there is no such file or table.

    Raises:
        ConfigurationError: If it is no TOML.
    """
    if not path.is_file():
        return {}
    try:
        tools = toml_of(content_of(path, MOST_SETTINGS)).get("tool", {})
    except ValueError as error:
        raise ConfigurationError(f"{path}: {error}") from error
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be read: {error.strerror}; make it readable, or remove it"
        ) from error
    return tools if isinstance(tools, dict) else {}


def _checked(table: Mapping[str, Any], path: Path, where: str) -> dict[str, Any]:
    for name, value in table.items():
        if name not in KINDS:
            raise ConfigurationError(
                f"{path}: unknown key {where}.{name}; {did_you_mean(name, KINDS)}"
            )
        if not KINDS[name].fits(value):
            raise ConfigurationError(
                f"{path}: {where}.{name} = {value!r:.200}; expected {_expected(name, value)}"
            )
        if name == "baseline" and (
            Path(value).is_absolute() or ".." in Path(value).parts
        ):
            raise ConfigurationError(
                f"{path}: {where}.{name} = {value!r}; expected a file below the project's folder, since settings must not "
                f"choose what is written elsewhere; give it with --file, or {variable(name)}"
            )
    return dict(table)


def _expected(name: str, value: Any) -> str:
    close = (
        did_you_mean(value, BUDGETS)
        if name == "budget" and isinstance(value, str)
        else ""
    )
    return KINDS[name].expected + (f"; {close}" if close.startswith("did") else "")


def _profiles(profiles: Any, path: Path) -> dict[str, dict[str, Any]]:
    """Return every profile; those that are not chosen are checked as well, before the run in which they are."""
    if not isinstance(profiles, dict) or not all(
        isinstance(layer, dict) for layer in profiles.values()
    ):
        raise ConfigurationError(
            f"{path}: tool.auditdp.profiles = {profiles!r}; expected tables such as [tool.auditdp.profiles.ci]"
        )
    return {
        name: _checked(layer, path, f"tool.auditdp.profiles.{name}")
        for name, layer in profiles.items()
    }


def _variables(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings of the environment; empty ones count as not given.

    Raises:
        ConfigurationError: If a value cannot be read, or a name is nearly that of a setting.
    """
    names = {variable(name): name for name in KINDS}
    found = {}
    for given, text in environment.items():
        if given in names and text:
            kind = KINDS[names[given]]
            try:
                value = kind.read(text)
            except ValueError:
                value = None
            if value is None or not kind.fits(value):
                raise ConfigurationError(
                    f"{given}={text}: expected {_expected(names[given], text)}"
                )
            found[names[given]] = value
        elif given.startswith("AUDITDP_") and given not in (
            PROFILE_VARIABLE,
            IMPORTS_VARIABLE,
            *names,
        ):
            close = difflib.get_close_matches(
                given, [*names, PROFILE_VARIABLE], n=1, cutoff=0.85
            )
            if close:
                raise ConfigurationError(
                    f"unknown environment variable {given}; did you mean {close[0]!r}?"
                )
    return found


def given_imports() -> list[str]:
    """Return the folders from which processes of audits import, beside those of their files."""
    return [
        folder
        for folder in os.environ.get(IMPORTS_VARIABLE, "").split(os.pathsep)
        if folder
    ]


def project_name(folder: Path) -> str:
    """Return what the project in ``folder`` calls itself in its pyproject.toml, or the name of the folder."""
    try:
        name = toml_of(content_of(folder / FILE, MOST_SETTINGS))["project"]["name"]
    except (OSError, ConfigurationError, ValueError, KeyError, TypeError):
        return folder.name
    return name if isinstance(name, str) and name else folder.name
