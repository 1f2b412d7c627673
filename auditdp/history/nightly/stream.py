"""The state of a stream of nights, as a small file keeps it, and what a night's run makes of it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from auditdp.doors import MOST_SETTINGS, content_of, json_of
from auditdp.errors import ConfigurationError
from auditdp.history.claimed import Claimed
from auditdp.history.nightly.control import after_night, alarm_at
from auditdp.numerics.randomness import stream as random_stream
from auditdp.record.budgets import MOST_SEED
from auditdp.record.results import AuditResult, RunRecord, Verdict
from auditdp.record.rows import Count

VERSION = 2
READABLE = (1, VERSION)
"""In version 1 the digest is of the claim, too; its capital is left behind."""
MOST_NIGHTS = 1_000_000
STRICT = ConfigDict(extra="forbid", strict=True)


@dataclass(frozen=True, config=STRICT)
class Account:
    """What an audit carries over.

    Attributes:
        sources: Digest of what it is made of.
        log_capital: Logarithm of its capital; None for none.
        since: The first night with these sources.
        alarm: The night on which it was reported; 0 where it was not.
        claimed: What it is about; that may be computed, so it is no part of the digest.
    """

    sources: str
    log_capital: Annotated[float, Field(allow_inf_nan=False)] | None
    since: Count
    alarm: Count = 0
    claimed: Claimed = field(default_factory=Claimed)


@dataclass(frozen=True, config=STRICT)
class Stream:
    """A stream of nights.

    Attributes:
        alpha: Error probability of all nights together.
        root_seed: From which the seed of each night is derived.
        night: How many nights are finished.
        accounts: By the ids of audits.
        version: Of this file.
    """

    alpha: Annotated[float, Field(gt=0, lt=1)]
    root_seed: Annotated[int, Field(ge=0, lt=MOST_SEED)]
    night: Annotated[int, Field(ge=0, le=MOST_NIGHTS)] = 0
    accounts: dict[str, Account] = field(default_factory=dict)
    version: int = VERSION

    def seed(self) -> int:
        """Return the root seed of the night to come: the same one however often that night is tried."""
        return int(random_stream(self.root_seed, "night", self.night + 1).integers(2**32))

    def to_json(self) -> str:
        """Return the text of the file."""
        return json.dumps(_STREAM.dump_python(self), indent=1, sort_keys=True) + "\n"

    def after(self, record: RunRecord, sources: Mapping[str, str]) -> Stream:
        """Return the stream after the run of the night to come.

        Args:
            record: The run, complete.
            sources: Digest of what each audit is made of; one that is not named has sources of its own this night.
        """
        night, audits = self.night + 1, max(record.planned, 1)
        accounts = {}
        for result in record.results:
            before = self.accounts.get(result.id)
            digest = sources.get(result.id) or f"not known, night {night}"
            claimed = Claimed.of(result.claim)
            same = before is not None and before.sources == digest and before.claimed.same(claimed)
            capital = before.log_capital if before is not None and before.log_capital is not None else -math.inf
            new = float(after_night(capital, log_e_value(result), same=same, night=night, audits=audits))
            alarm = before.alarm if same and before is not None else 0
            accounts[result.id] = Account(
                digest,
                new if math.isfinite(new) else None,
                before.since if same and before is not None else night,
                alarm or (night if new >= alarm_at(self.alpha) else 0),
                claimed,
            )
        return replace(self, night=night, accounts=accounts, version=VERSION)


_STREAM: TypeAdapter[Stream] = TypeAdapter(Stream)


def log_e_value(result: AuditResult) -> float:
    """Return the logarithm of what a night's game multiplies capital with.

    That is the wealth of the game. Where the audit crashed, or the game refuted the claim and fresh randomness did not
    confirm it, it is nothing: whether that happens may depend on what was drawn. Where nothing was played, it is 1.
    """
    if result.verdict is Verdict.ERROR:
        return -math.inf
    game = result.game
    if game is None or game.log_e_value is None:
        return 0.0
    unconfirmed = game.verdict is Verdict.INCONCLUSIVE or math.isnan(game.log_e_value)
    return -math.inf if unconfirmed else float(game.log_e_value)


def read_stream(path: Path) -> Stream | None:
    """Return the stream of a file; None where there is no file.

    Raises:
        ConfigurationError: If it is none, or another version wrote it.
    """
    try:
        text = content_of(path, MOST_SETTINGS)
        content = json_of(text)
        version = content.get("version") if isinstance(content, dict) else None
        if version not in READABLE:
            raise ConfigurationError(
                f"{path} has version {version!r}, and this auditdp reads versions 1 and {VERSION}; use the auditdp that "
                "wrote it, or remove it to begin a new stream, with an α of its own"
            )
        found = _STREAM.validate_json(text)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ConfigurationError(f"{path}: {where}: {first['msg']}; restore it from where it was kept") from error
    except ValueError as error:  # no JSON, such as one with conflict markers
        raise ConfigurationError(
            f"{path} is no stream of nights ({error}); of a merge, keep the side with the larger night"
        ) from error
    return found
