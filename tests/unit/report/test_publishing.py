import re
from dataclasses import replace
from pathlib import Path

import pytest

from auditdp.record.results import RunRecord, Verdict
from auditdp.report.formats import report_files


def written(record, path, **options):
    for file, text in report_files(record, "html", path, **options).items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["json", "terminal", "claims", "claims-json"])
def test_a_report_of_one_file_is_that_file(clean_record, name):
    assert list(report_files(clean_record, name, Path("a/b.txt"))) == [Path("a/b.txt")]


def test_every_link_of_every_page_leads_to_a_file_or_a_place(clean_record, tmp_path):
    written(clean_record, tmp_path / "out.html")
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) == 1 + len(clean_record.results)
    for page in pages:
        text = page.read_text(encoding="utf-8")
        places = set(re.findall(r' id="([^"]+)"', text))
        for link in re.findall(r'href="([^"]+)"', text):
            assert (
                (link[1:] in places)
                if link.startswith("#")
                else (page.parent / link).is_file()
            ), link


def test_the_index_comes_last(clean_record):
    assert list(report_files(clean_record, "html", Path("out.html")))[-1] == Path(
        "out.html"
    )


@pytest.mark.full
def test_what_changed_since_the_last_report_in_its_place(clean_record, tmp_path):
    first = replace(clean_record, started="2026-11-20T10:00:00+00:00")
    assert "What changed" not in written(first, tmp_path / "out.html")
    results = [replace(first.results[0], verdict=Verdict.ERROR), *first.results[2:]]
    second = replace(
        first, results=results, started="2026-11-21T10:00:00+00:00", alpha_ledger=[]
    )
    text = written(second, tmp_path / "out.html")
    assert "The last report is of 20 November 2026, 10:00 UTC" in text
    rows = re.findall(
        r"<tr><th scope=\"row\">.*?</tr>",
        text[text.index('id="changes"') : text.index('id="verdicts"')],
    )
    assert len(rows) == 2
    assert "<td>CERTIFIED</td><td><strong>ERROR</strong></td>" in rows[0]
    assert "not in the report" in rows[1]
    # The record of the last report is now the second: made again, the page is of it and of nothing before.
    assert "What changed" not in written(second, tmp_path / "out.html")
    assert "No verdict changed" in written(
        replace(second, started="2026-11-22T10:00:00+00:00"), tmp_path / "out.html"
    )


@pytest.mark.dear
@pytest.mark.parametrize("content", ["", "{", '{"root_seed": 1}', "[]"])
def test_a_record_that_cannot_be_read_is_no_last_report(
    clean_record, tmp_path, content
):
    (tmp_path / "out_audits").mkdir()
    (tmp_path / "out_audits" / "record.json").write_text(content)
    assert "What changed" not in written(clean_record, tmp_path / "out.html")


def test_the_record_beside_the_pages_is_whole(clean_record, tmp_path):
    written(clean_record, tmp_path / "out.html")
    assert (
        RunRecord.from_json((tmp_path / "out_audits" / "record.json").read_bytes())
        == clean_record
    )
