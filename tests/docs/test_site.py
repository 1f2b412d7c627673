"""What the site is assembled from, and, where the builder is installed, the site itself."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from xml.etree import ElementTree

import pytest
import yaml
from PIL import Image

from auditdp.errors import ConfigurationError
from auditdp.record.results import Verdict
from docs import (
    assembling,
    browser,
    commands,
    peers,
    pictures,
    report_picture,
    screenshots,
)
from docs.assembling import PAGES, ROOT
from docs.blocks import RUN, Command, blocks, play, rewritten, untimed

needs_the_builder = pytest.mark.skipif(
    any(
        importlib.util.find_spec(name) is None for name in ("zensical", "mkdocstrings")
    ),
    reason="needs the docs group: pip install --group docs",
)
needs_a_browser = pytest.mark.skipif(
    not any(map(shutil.which, browser.NAMES)),
    reason=f"needs a browser: one of {', '.join(browser.NAMES)}",
)
TELEPHONE = 420
LOOKED_AT = ROOT / "build" / "screenshots" / "telephone"
"""What the tests of the site leave to be looked at."""
ELSEWHERE = re.compile(
    r'<(?:script|link|img|iframe|source)\b[^>]*?(?:src|href)="(?:https?:)?//[^"]+"'
)


class _Loader(yaml.SafeLoader):
    """Reads the settings of the site without what they name of Python."""


_Loader.add_multi_constructor(
    "tag:yaml.org,2002:python/", lambda loader, suffix, node: suffix
)


def listed(nav):
    """The pages of the navigation."""
    if isinstance(nav, str):
        return [nav]
    return [
        page
        for item in (nav.values() if isinstance(nav, dict) else nav)
        for page in listed(item)
    ]


def navigation():
    return listed(
        yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), _Loader)["nav"]
    )


def own_pages():
    return {path.relative_to(PAGES).as_posix() for path in PAGES.rglob("*.md")}


def test_the_navigation_has_every_page_and_no_other():
    reports = {
        path for path in assembling.documents() if path.count("/") > 1
    }  # reached from their ledgers
    known = own_pages() | set(commands.pages()) | set(assembling.documents()) - reports
    assert sorted(navigation()) == sorted(known)


def test_every_option_of_every_command_is_on_its_page():
    pages = commands.pages()
    shown = subprocess.run(
        [sys.executable, "-m", "auditdp", "account", "dp-sgd", "--help"],
        capture_output=True,
        text=True,
    )
    for option in re.findall(r"--[a-z][a-z-]+", shown.stdout):
        assert (
            f"`{option}" in pages["commands/account.md"]
            or f", {option}" in pages["commands/account.md"]
        ), option
    for name in ("run", "baseline", "bounds"):
        assert f"commands/{name}.md" in pages
        assert f"({name}.md)" in pages[commands.INDEX]


@pytest.mark.parametrize(
    "group", [[], ["account"], ["baseline"], ["config"]], ids=" ".join
)
def test_what_help_says_of_a_command_fits_its_line(group):
    command = [sys.executable, "-m", "auditdp", *group, "--help"]
    shown = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"COLUMNS": "80"},
    )
    assert "Commands:" in shown.stdout
    assert [
        line
        for line in shown.stdout.splitlines()
        if line.endswith("...") and not line.startswith("Usage")
    ] == []


def test_choices_in_a_table_keep_their_bars():
    assert (
        "`--fail-on <list[none|error|inconclusive|skipped|changed]>`"
        in commands.pages()["commands/run.md"]
    )


def test_a_page_takes_in_what_a_document_says_under_a_heading():
    assert assembling.filled("<!-- from CI.md: Nights -->").startswith(
        "Without `--seed`"
    )
    assert "`auditdp compare" not in assembling.filled("<!-- from CI.md: Nights -->")
    assert assembling.section("README.md").startswith("auditdp answers one question")


def test_an_unknown_heading_is_refused_with_those_that_there_are():
    with pytest.raises(
        ConfigurationError, match=r"CI\.md has no section 'Mornings'; it has .*Nights"
    ):
        assembling.filled("<!-- from CI.md: Mornings -->")


def test_the_number_of_refuted_libraries_is_that_of_their_ledger():
    ledger = (ROOT / "reports" / "libraries.md").read_text(encoding="utf-8")
    many = re.search(r"(\d+) mechanisms of", ledger)[1]
    refuted = sum(map(int, re.findall(r"(\d+) VIOLATED", ledger)))
    assert f"{refuted} of {many} mechanisms were refuted" in (
        PAGES / "ledger.md"
    ).read_text(encoding="utf-8")


def test_the_table_of_verdicts_has_all_of_them():
    filled = assembling.filled(assembling.VERDICTS)
    assert [row.split("`")[1] for row in filled.splitlines()[2:]] == [
        verdict.value for verdict in Verdict
    ]


def test_files_that_documents_link_to_are_found():
    assert assembling.linked(
        [
            (
                "CI.md",
                "[a](action.yml), [b](.pre-commit-hooks.yaml), [c](https://x.org/action.yml)",
            )
        ]
    ) == {
        "action.yml",
        ".pre-commit-hooks.yaml",
    }
    assert "reports/claims/dpar.md" in assembling.documents()


@pytest.mark.parametrize(
    "draw", [pictures.claims, pictures.guesses], ids=lambda draw: draw.__name__
)
def test_a_picture_is_the_same_whenever_it_is_drawn(draw):
    once, again = pictures.svg(draw), pictures.svg(draw)
    assert once == again
    assert ElementTree.fromstring(once).tag.endswith("svg")


PAGE = """# A page

```python title="two.py"
TWO = 2
```

```console
$ auditdp --version
auditdp 0.0.0
$ auditdp list
{}
$ echo $?
1
```

```pycon
>>> from two import TWO
>>> TWO
2
```
"""


def played(text, folder, outputs):
    return list(play(text, folder, lambda words: outputs[words[1]]))


def test_a_page_that_shows_something_else_is_found_out_and_can_be_written_anew(
    tmp_path, monkeypatch
):
    monkeypatch.syspath_prepend(str(tmp_path))
    outputs = {"--version": (0, "auditdp 1.0.0\n"), "list": (1, "a\nb\n")}
    page = PAGE.format("a\n…")
    version, listing, code = played(page, tmp_path, outputs)
    assert not version.agrees
    assert listing.agrees
    assert code.agrees
    assert rewritten(page, [version, listing, code]) == page.replace("0.0.0", "1.0.0")
    assert not Command("auditdp list", "a\n", "a\nb\n").agrees
    assert Command("auditdp list", "a 1.2 s\n", "a  3 ms\n").agrees


def test_a_wrong_doctest_and_a_block_that_nobody_runs_are_refused(tmp_path):
    with pytest.raises(AssertionError, match="1 \\+ 1"):
        played("```pycon\n>>> 1 + 1\n3\n```", tmp_path, {})
    with pytest.raises(AssertionError, match="a block of yaml without a title"):
        played("```yaml\na: 1\n```", tmp_path, {})


def test_every_page_with_code_has_only_blocks_that_are_run_written_or_plain_text():
    for path in sorted(PAGES.rglob("*.md")):
        for block in blocks(path.read_text(encoding="utf-8")):
            assert block.title or block.language in (*RUN, "text"), f"{path}: {block}"


def test_nested_lists_and_their_commands_are_indented_for_the_builder():
    text = "- a\n  - b\n\n    auditdp run x\n"
    assert assembling.deeper(text) == "- a\n    - b\n\n        `auditdp run x`\n"
    assert assembling.deeper("- a\n  goes on\n") == "- a\n  goes on\n"


def test_the_table_of_other_tools_says_what_was_not_run_and_what_found_nothing():
    rows = {
        line.split(" | ")[0].strip("| "): line
        for line in peers.table().splitlines()[2:]
    }
    assert len(rows) == 12
    assert rows["PrefixSum"].endswith("| 0.52, 79 | not run | 0.38, 46 |")
    assert rows["NoisyMax4"].endswith("| 0.14, 53 | 0.08, 122 | found none, 36 |")


def test_docstrings_are_read_as_markdown():
    pytest.importorskip("griffe")
    from docs.docstrings import as_markdown

    assert (
        as_markdown("Text.\n\n>>> 1 + 1\n2\n\nMore.")
        == "Text.\n\n```pycon\n>>> 1 + 1\n2\n```\n\nMore."
    )
    assert (
        as_markdown("at level ε*, from ε* on; *Theorem.*")
        == "at level ε\\*, from ε\\* on; *Theorem.*"
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site; its warnings are errors."""
    root = tmp_path_factory.mktemp("built")
    assembling.assemble(root / "build" / "docs")
    shutil.copy(ROOT / "mkdocs.yml", root)  # whose folder is that of the site
    for name in ("docs", "auditdp"):
        (root / name).symlink_to(ROOT / name)
    built = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"],
        cwd=root,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return root / "build" / "site"


def html_of(site):
    return {path.relative_to(site).as_posix(): path for path in site.rglob("*.html")}


@needs_the_builder
def test_the_site_has_every_page_and_loads_nothing_from_elsewhere(site):
    pages = html_of(site)
    assert set(pages) >= {path.replace(".md", ".html") for path in navigation()}
    for path in pages.values():
        assert not ELSEWHERE.findall(path.read_text(encoding="utf-8")), path


@needs_the_builder
@needs_a_browser
def test_every_kind_of_page_fits_a_telephone_and_has_a_dark_ground(site, pytestconfig):
    """A quarter of the pages that are written by hand, or list options, here; all of them with ``--full``."""
    documents = [
        "CI.html",
        "reports/claims/dpar.html",
        "reports/experiments.html",
        "reports/scale.html",
    ]
    alike = sorted(
        [
            *screenshots.command_pages(),
            *(path.replace(".md", ".html") for path in own_pages()),
        ]
    )
    looked_at = alike if pytestconfig.getoption("--full") else alike[::4]
    fits_and_is_dark(site, {*screenshots.PAGES, *looked_at, *documents})
    screenshots.take(
        site, [*screenshots.PAGES, "commands/run.html"], LOOKED_AT, widths=[TELEPHONE]
    )


@needs_a_browser
@pytest.mark.full
def test_a_report_fits_a_telephone_and_has_a_dark_ground(tmp_path):
    pages = report_picture.report(tmp_path)
    fits_and_is_dark(tmp_path, set(pages))
    screenshots.take(tmp_path, pages, LOOKED_AT, widths=[TELEPHONE])


def fits_and_is_dark(folder, pages):
    light, dark = (
        browser.looks(folder, sorted(pages), width=TELEPHONE, dark=dark)
        for dark in (False, True)
    )
    assert set(light) == set(dark) == pages
    assert {page: look.beyond for page, look in light.items() if look.beyond > 0} == {}
    assert {
        page: look.ground
        for page, look in dark.items()
        if look.ground == light[page].ground
    } == {}


@needs_a_browser
def test_a_page_that_is_too_wide_or_never_dark_is_found(tmp_path):
    ground = "<meta name='color-scheme' content='light dark'><style>body {background: #fff}</style>"
    (tmp_path / "wide.html").write_text(
        f"{ground}<div style='width: 700px'>x</div>", encoding="utf-8"
    )
    (tmp_path / "narrow.html").write_text(
        "<style>body {background: #fff} @media (prefers-color-scheme: dark) {body {background: #000}}</style>"
        "<div style='width: 100px; overflow: auto'>x</div>",
        encoding="utf-8",
    )
    light, dark = (
        browser.looks(tmp_path, ["wide.html", "narrow.html"], width=420, dark=dark)
        for dark in (False, True)
    )
    assert light["wide.html"].beyond > 250
    assert light["narrow.html"].beyond == 0
    assert (light["wide.html"].ground, dark["wide.html"].ground) == (
        "rgb(255, 255, 255)",
    ) * 2
    assert (light["narrow.html"].ground, dark["narrow.html"].ground) == (
        "rgb(255, 255, 255)",
        "rgb(0, 0, 0)",
    )


def test_without_a_browser_the_remedy_is_said(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(
        ConfigurationError,
        match=r"none of chromium, .* is on the path; on Debian: apt-get install",
    ):
        browser.browser()


def test_a_site_that_is_not_built_is_said_to_be(tmp_path):
    with pytest.raises(
        ConfigurationError,
        match=r"index\.html: no such page; make docs builds the site",
    ):
        screenshots.take(tmp_path, ["index.html"], tmp_path)


def test_the_picture_of_a_report_is_of_what_the_readme_shows():
    with Image.open(report_picture.PICTURE) as picture:
        assert untimed(picture.info["shown"]) == untimed(report_picture.example()[1]), (
            "python -m docs.report_picture"
        )
