"""The ledger of the papers that this repository audits: an overview, a page a paper, and everything as JSON.

Run as ``python -m audits.ledger reports/run.json -o reports``: of several records, each audit counts as it
was run last.
"""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from auditdp.record.results import RunRecord
from audits.ledger.entries import entries, tally, without_statement
from audits.ledger.html import overview_html, page_html
from audits.ledger.letters import MARKDOWN, NO_LINK, PLAIN, SENDER, letter
from audits.ledger.pages import TITLE, overview, page, to_json
from audits.papers import NEWER, PAPERS


def merged(paths):
    """Return the records of several runs as one: of an audit that ran twice, the later result.

    Ends the program if the last of them has not run to its end.
    """
    records = [RunRecord.from_json(path.read_text(encoding="utf-8")) for path in paths]
    results = {result.id: result for record in records for result in record.results}
    shares = {entry.audit: entry for record in records for entry in record.alpha_ledger}
    record = replace(
        records[-1], results=list(results.values()), alpha_ledger=list(shares.values())
    )
    if record.status != "complete" or record.missing:
        sys.exit(
            f"the last record is {record.status}, and {len(record.missing)} of its audits have no result: a ledger of a "
            "part would pass for the whole; finish the run with auditdp run --resume"
        )
    return record


def write(record, out, papers=PAPERS, *, sender=SENDER, link=""):
    """Write claims, claims-newer (code reviews), claims.json, a page a paper below claims/, and letters/.

    Pages are Markdown, and the same as HTML; letters, to the authors of papers that were read, are Markdown and plain text.
    """
    for folder in ("claims", "letters"):
        (out / folder).mkdir(parents=True, exist_ok=True)
    newer = [paper for paper in papers if paper in NEWER]
    read = [paper for paper in papers if paper not in newer]
    for name, title, some in (
        ("claims", TITLE, read),
        ("claims-newer", "Code reviews of newer papers", newer),
    ):
        (out / f"{name}.md").write_text(
            overview(record, some, title=title), encoding="utf-8"
        )
        (out / f"{name}.html").write_text(
            overview_html(record, some, title=title), encoding="utf-8"
        )
    for paper in read:
        if not paper.answers:
            continue
        for suffix, style in ((".md", MARKDOWN), (".txt", PLAIN)):
            text = letter(record, paper, style, sender=sender, link=link)
            name = f"{paper.key}{suffix}"
            (out / "letters" / name).write_text(text, encoding="utf-8")
    (out / "claims.json").write_text(to_json(record, papers), encoding="utf-8")
    for paper in papers:
        (out / "claims" / f"{paper.key}.md").write_text(
            page(record, paper), encoding="utf-8"
        )
        back = f"../{'claims-newer' if paper in newer else 'claims'}.html"
        (out / "claims" / f"{paper.key}.html").write_text(
            page_html(record, paper, back=back), encoding="utf-8"
        )


def counts(record, papers=PAPERS):
    """Yield a line of text for every paper: how many statements it has, of what kind, and how they ended."""
    for paper in papers:
        for kind, counter in tally(entries(record, paper)).items():
            ended = ", ".join(
                f"{number} {outcome}" for outcome, number in counter.items()
            )
            yield f"{paper.key:10} {kind:22} {sum(counter.values()):3}: {ended}"
    for line in without_statement(record, papers):
        yield f"no statement names {line.audit}"


def main():
    """Read records, write the ledger, and print how many statements each paper has."""
    parser = argparse.ArgumentParser(
        prog="python -m audits.ledger", description=main.__doc__
    )
    parser.add_argument(
        "records",
        nargs="+",
        type=Path,
        help="records written by auditdp run --report json=PATH",
    )
    parser.add_argument("-o", "--out", type=Path, default=Path("reports"))
    parser.add_argument("--sender", default=SENDER, help="who signs the letters")
    parser.add_argument(
        "--link", default="", help="address of the repository, for the letters"
    )
    given = parser.parse_args()
    record = merged(given.records)
    write(record, given.out, sender=given.sender, link=given.link)
    if not given.link:
        sys.stderr.write(f"the letters have {NO_LINK}; give it with --link\n")
    sys.stdout.writelines(f"{line}\n" for line in counts(record))
