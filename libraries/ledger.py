"""The ledger of libraries: per mechanism its verdict, ε_L/ε, calls and seconds, from the record of a run.

Run as ``python -m libraries.ledger RECORD ... --confirmed FILE -o reports``, as ``make libraries`` does: of several records,
each audit counts as it was run last.
"""

import argparse
import json
import re
from collections import Counter
from pathlib import Path

from auditdp.record.details import AccountingDetails, GameDetails
from auditdp.record.results import Verdict, details
from auditdp.report.numbers import bound, number
from auditdp.report.plain_text import markdown, table
from audits.ledger.command import merged
from libraries.written import LEFT_OUT, WRITTEN

SHOWN = (
    Verdict.VIOLATED,
    Verdict.CERTIFIED,
    Verdict.NOT_REFUTED,
    Verdict.INCONCLUSIVE,
    Verdict.ERROR,
)
LISTED = "pairs as given"
"""Name of the adjacency of listed pairs."""
SHORT = 40
"""Number of characters of a printed pair."""
COLUMNS = ("mechanism", "claim", "neighbours", "verdict", "ε\\_L/ε", "calls", "CPU s")


def kind(result):
    """Return the table of a result: accountants, old versions, or a library."""
    if result.id.startswith("libraries/old/"):
        return "old"
    return (
        "accountant"
        if all(evidence.kind == "accounting" for evidence in result.evidence)
        else "mechanism"
    )


def library(result):
    """Return the name and the version of the library that an audit is about."""
    return result.published.row if result.published else "?"


def ratio(result):
    """Return the lower bound over the claimed level, ε_L/ε or ρ_L/ρ, to two digits and rounded down; a dash without one."""
    level = getattr(result.claim, result.claim.parameter) if result.claim else None
    if not level or result.epsilon_lower is None:
        return "–"
    share = int(100 * result.epsilon_lower / level) / 100
    return f"{share:,.2f}"


def name(result):
    """Return the name of a mechanism, with a link where its violation is written up."""
    text = markdown(result.published.reading if result.published else result.id)
    page = (
        WRITTEN.get(result.id.partition("::")[2], "")
        if result.verdict is Verdict.VIOLATED
        else ""
    )
    return f"[{text}](libraries/{page}.md)" if page else text


def neighbours(result):
    """Return a short phrase for the neighbours."""
    adjacency = result.claim.adjacency if result.claim else "–"
    if not adjacency.startswith(LISTED):
        return markdown(re.sub(r" \(.*\)$", "", adjacency))
    said = re.search(
        r"[;,] (?:of which )?([^;,]*\b(?:replaced|removed|apart|neighbours|move)\b[^;,]*)\.$",
        result.description.partition("\n")[0],
    )
    played = next(
        (
            game.pairs[0].pair
            for game in details(result.evidence, GameDetails)
            if game.pairs
        ),
        "",
    )
    return markdown(
        said.group(1) if said else played if 0 < len(played) <= SHORT else adjacency
    )


def verdict(result, confirmed):
    """Return the verdict, and whether it was found again."""
    if result.verdict is not Verdict.VIOLATED or result.id not in confirmed:
        return str(result.verdict)
    return (
        f"{result.verdict}, {'confirmed' if confirmed[result.id] else 'not confirmed'}"
    )


def row(result, confirmed):
    """Return the cells of a mechanism."""
    claim = markdown(result.claim.text) if result.claim else "–"
    shown = [
        name(result),
        claim,
        neighbours(result),
        verdict(result, confirmed),
        ratio(result),
    ]
    return [
        *shown,
        number(result.calls) if result.calls else "–",
        f"{result.cpu_seconds:.1f}",
    ]


def accountant_row(result, confirmed):
    """Return the cells of an accountant: its claim, and the proved bounds."""
    del confirmed
    proved = f"{bound(result.epsilon_lower, up=False)} ≤ ε ≤ {bound(result.epsilon_upper, up=True)}"
    findings = "; ".join(
        text
        for found in details(result.evidence, AccountingDetails)
        for text in found.findings
    )
    shown = result.published.reading.removeprefix("accountant: ").removeprefix(
        "noise: "
    )
    return [
        markdown(f"{library(result)}, {shown}"),
        markdown(result.claim.text),
        str(result.verdict),
        proved,
        markdown(findings),
    ]


def tally(results):
    """Return the number of results by outcome, as a short phrase."""
    ended = Counter(result.verdict for result in results)
    return ", ".join(f"{ended[one]} {one}" for one in SHOWN if ended[one])


def ledger(record, confirmed):
    """Return the ledger as Markdown.

    Args:
        record: The record of a run over ``libraries``.
        confirmed: Whether a violation was found again, by the id of its audit.
    """
    mechanisms = [result for result in record.results if kind(result) == "mechanism"]
    names = sorted({library(result) for result in mechanisms})
    lines = [
        "# Other people's libraries",
        "",
        f"{len(mechanisms)} mechanisms of {len(names)} libraries, each at the ε (δ, ρ) that the library claims and with the "
        f"neighbours for which it is calibrated; root seed `{record.root_seed}`. A run refutes any true claim by chance "
        "with probability at most α, .05 by default. NOT\\_REFUTED is no evidence of privacy. VIOLATED is about the listed "
        "neighbours and parameters; `confirmed` means found again on a fresh seed with α/1000. A linked name leads to what "
        "the maintainers would be told, with a script that needs the library alone.",
        "",
        *table(
            ("library", "mechanisms", "ended"),
            (
                [
                    markdown(one),
                    str(len(of := [r for r in mechanisms if library(r) == one])),
                    tally(of),
                ]
                for one in names
            ),
        ),
    ]
    for one in names:
        lines += ["", f"## {one}", ""]
        lines += table(
            COLUMNS,
            (row(result, confirmed) for result in mechanisms if library(result) == one),
        )
    accountants = [result for result in record.results if kind(result) == "accountant"]
    lines += [
        "",
        "## Accountants",
        "",
        "The claim is the library's number for the same noise and δ.",
        "",
    ]
    lines += table(
        (
            "accountant",
            "claim",
            "verdict",
            "what is proved of the truth",
            "findings about accountants",
        ),
        (accountant_row(result, confirmed) for result in accountants),
    )
    old = [result for result in record.results if kind(result) == "old"]
    lines += [
        "",
        "## Old versions with known defects",
        "",
        "Whether the tool finds them, and in how many calls.",
        "",
    ]
    lines += table(
        ("version", "known from", *COLUMNS[:2], *COLUMNS[3:]),
        (
            [
                markdown(library(r)),
                markdown(r.claim.source),
                *row(r, confirmed)[:2],
                *row(r, confirmed)[3:],
            ]
            if r.evidence[0].kind != "accounting"
            else [
                markdown(library(r)),
                markdown(r.claim.source),
                name(r),
                markdown(r.claim.text),
                *accountant_row(r, {})[4:],
                "–",
                "–",
                "–",
            ]
            for r in old
        ),
    )
    lines += ["", "## Not audited", ""]
    lines += table(
        ("library", "why"),
        ([markdown(library), markdown(why)] for library, why in LEFT_OUT.items()),
    )
    return "\n".join(lines) + "\n"


def main():
    """Read a record and write the ledger, libraries.md."""
    parser = argparse.ArgumentParser(
        prog="python -m libraries.ledger", description=main.__doc__
    )
    parser.add_argument(
        "records",
        nargs="+",
        type=Path,
        help="records written by auditdp run --report json=PATH",
    )
    parser.add_argument(
        "--confirmed", type=Path, help="file written by python -m libraries.confirm"
    )
    parser.add_argument("-o", "--out", type=Path, default=Path("reports"))
    given = parser.parse_args()
    record = merged(given.records)
    lines = (
        given.confirmed.read_text(encoding="utf-8").splitlines()
        if given.confirmed
        else []
    )
    confirmed = {entry["audit"]: entry["confirmed"] for entry in map(json.loads, lines)}
    (given.out / "libraries.md").write_text(ledger(record, confirmed), encoding="utf-8")


if __name__ == "__main__":
    main()
