"""Settings of a project: ``[tool.auditdp]`` of its pyproject.toml, and the environment.

If several places state a setting, the first of these counts:

1. the command line,
2. the environment, such as ``AUDITDP_SEED``,
3. the chosen profile, such as ``[tool.auditdp.profiles.ci]``,
4. the table ``[tool.auditdp]``,
5. the default in ``Configuration``.

``load`` applies all but the first; ``KINDS`` has the valid values.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from auditdp.errors import ConfigurationError, did_you_mean
from auditdp.files import FileLimits, content_of, toml_of
from auditdp.record.budget import BUDGETS, EXPECTED, LONGEST, MOST_SEED, Budget

DATA_VARIABLE = "AUDITDP_DATA"
"""Environment variable with the folder of data files."""
PROFILE_VARIABLE = "AUDITDP_PROFILE"
"""Environment variable with the name of the profile, if the command gives none."""
IMPORTS_VARIABLE = "AUDITDP_IMPORTS"
"""Environment variable with folders from which processes of audits import, separated as
in ``PATH``. The judging process does not use these folders: they may have code that
Python or a library imports by itself, such as ``sitecustomize.py`` or a plugin."""
FILE = "pyproject.toml"
SANDBOXES = ("auto", "required", "off")
DEFAULT_LOG = Path(".auditdp") / "run.jsonl"
FAILURES = ("none", "error", "inconclusive", "skipped", "changed")
DEFAULT = "default"


class SettingKind(NamedTuple):
    """The type of a setting: its valid values, and how to read them from text."""

    expected: str
    """Phrase for valid values, for messages of errors."""
    fits: Callable[[Any], bool]
    """Function that returns True for a valid value."""
    read: Callable[[str], Any]
    """Function that converts the text of an environment variable to a value. For an
    invalid text it raises ValueError or returns a value that does not fit."""


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
"""The type of each setting, by its name."""
IN_FOLDERS = {"paths", "data", "baseline"}
"""Settings that are paths. Paths in the file are relative to the folder of the file.
Paths in the environment are relative to the folder for which ``load`` is called."""


def _is_whole(value: Any) -> bool:
    if isinstance(value, str):
        return value.isascii() and value.isdigit() and len(value) < 19
    return isinstance(value, int) and not isinstance(value, bool)


@dataclass(frozen=True)
class Configuration:
    """The settings of a project; options of a command replace them."""

    paths: tuple[str, ...] = ("audits",)
    """Folders and files to collect audits from."""
    alpha: float = 0.05
    """Error probability of a whole run, shared by its audits."""
    budget: str = "standard"
    """Budget of each game, as text for ``Budget.read``."""
    timeout: float = 600.0
    """Time limit of an audit that states none, in seconds; 0 for no limit."""
    seed: int | None = None
    """Root seed. With None, a run draws a fresh seed and prints it."""
    data: str = ""
    """Folder of data files; empty for none."""
    workers: str = "1"
    """Number of audits that run at the same time; 'auto' is the number of CPUs."""
    max_memory: str = ""
    """Memory that an audit may use, such as '2G'; empty for no limit."""
    fail_on: tuple[str, ...] = ()
    """Outcomes that make a run fail in addition to findings and errors: 'inconclusive',
    'skipped' or 'changed'. 'none' and 'error' are valid and add nothing."""
    sandbox: str = "auto"
    """Isolation of audits from other files and processes: 'auto' (as far as the kernel
    allows), 'required' or 'off'."""
    network: bool = False
    """True if audits in the sandbox may use the network."""
    trace: bool = True
    """True to trace the code of each audit before its game, except audits with
    ``trace=False``."""
    baseline: str = "auditdp-baseline.toml"
    """File of the baseline (``auditdp.record.baseline``)."""
    profile: str = ""
    """Name of the chosen profile; empty for none."""
    folder: Path = field(default_factory=Path)
    """Folder of the file with the settings. Without one, the folder in which the search
    for it began."""
    sources: Mapping[str, str] = field(
        default_factory=lambda: dict.fromkeys(KINDS, DEFAULT)
    )
    """Phrase for the place that states each setting, by the setting's name; 'default'
    if no place does."""


def project_folder(folder: Path) -> Path:
    """Return the folder whose pyproject.toml has the settings ``[tool.auditdp]``.

    It is the nearest one among ``folder`` and the folders that contain it. The search
    ends at the root of a git repository: settings of a project around it do not count.

    Returns:
        The folder, or ``folder`` itself if there is none.

    Raises:
        ConfigurationError: If a searched pyproject.toml is not TOML or cannot be read.
    """
    for candidate in (folder, *folder.parents):
        try:
            if "auditdp" in _tools(candidate / FILE):
                return candidate
            if (candidate / ".git").exists():
                break
        except PermissionError:
            # A folder that nobody may look into is somebody else's.
            break
    return folder


def load(
    folder: Path, profile: str = "", environment: Mapping[str, str] | None = None
) -> Configuration:
    """Return the configuration of the project that contains ``folder``.

    Args:
        folder: A folder in the project.
        profile: Name of the profile. If it is empty, ``AUDITDP_PROFILE`` names the
            profile; without this variable there is none.
        environment: Environment variables; by default those of this process.

    Returns:
        The configuration; without a file, that of the environment and the defaults.

    Raises:
        ConfigurationError: If the file cannot be read or is not TOML, or a key, a
            value, a profile or a variable is invalid.
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
    # A variable names paths from this folder, and the settings from the project's.
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
    """Return the table ``tool`` of a TOML file; empty without such a file or table.

    Raises:
        ConfigurationError: If the file is not TOML or cannot be read.
    """
    if not path.is_file():
        return {}
    try:
        tools = toml_of(content_of(path, FileLimits.settings_bytes)).get("tool", {})
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
    """Return the settings of every profile by its name, after checking them.

    Profiles that are not chosen are checked as well.

    Raises:
        ConfigurationError: If a profile is no table, or has an unknown key or an
            invalid value.
    """
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
    """Return the settings in environment variables, each value by the setting's name.

    Empty variables are ignored.

    Raises:
        ConfigurationError: If a value is invalid, or the name of an unknown variable is
            similar to that of a setting, as by a typing error.
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
    """Return the folders in the variable ``AUDITDP_IMPORTS``, [] if it is not set."""
    return [
        folder
        for folder in os.environ.get(IMPORTS_VARIABLE, "").split(os.pathsep)
        if folder
    ]


def project_name(folder: Path) -> str:
    """Return the project's name in pyproject.toml, or else the name of the folder."""
    try:
        name = toml_of(content_of(folder / FILE, FileLimits.settings_bytes))["project"][
            "name"
        ]
    except (OSError, ConfigurationError, ValueError, KeyError, TypeError):
        return folder.name
    return name if isinstance(name, str) and name else folder.name
