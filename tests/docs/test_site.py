"""What the site is assembled from, and, where the builder is installed, the site itself."""

import importlib.util
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
from tests.cli.conftest import fork_server, project  # noqa: F401 - fixtures

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
    items = nav.values() if isinstance(nav, dict) else nav
    return [page for item in items for page in listed(item)]


def navigation():
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    return listed(yaml.load(settings, _Loader)["nav"])


def own_pages():
    return {path.relative_to(PAGES).as_posix() for path in PAGES.rglob("*.md")}


def test_the_navigation_has_every_page_and_no_other():
    # Reports are reached from their ledgers.
    documents = {path for path in assembling.documents() if path.count("/") < 2}
    assert set(navigation()) == own_pages() | set(commands.pages()) | documents
    assert len(navigation()) == len(set(navigation()))


def test_every_option_of_every_command_is_on_its_page(project):  # noqa: F811
    pages = commands.pages()
    page = pages["commands/account.md"]
    options = set(re.findall(r"--[a-z][a-z-]+", project("account dp-sgd --help").out))
    assert {each for each in options if not re.search(f"(`|, ){each}", page)} == set()
    for name in ("run", "baseline", "bounds"):
        assert f"commands/{name}.md" in pages
        assert f"({name}.md)" in pages[commands.INDEX]


@pytest.mark.parametrize("group", ["", "account", "baseline", "config"])
def test_what_help_says_of_a_command_fits_its_line(project, group):  # noqa: F811
    shown = project(f"{group} --help", COLUMNS="80").out
    assert "Commands:" in shown
    cut = [line for line in shown.splitlines() if line.endswith("...")]
    assert all(line.startswith("Usage") for line in cut)


def test_choices_in_a_table_keep_their_bars():
    option = "`--fail-on <list[none|error|inconclusive|skipped|changed]>`"
    assert option in commands.pages()["commands/run.md"]


def test_a_page_takes_in_what_a_document_says_under_a_heading():
    nights = assembling.filled("<!-- from CI.md: Nights -->")
    assert nights.startswith("Without `--seed`")
    assert "`auditdp compare" not in nights
    assert assembling.section("README.md").startswith("auditdp answers one question")
    message = r"CI\.md has no section 'Mornings'; it has .*Nights"
    with pytest.raises(ConfigurationError, match=message):
        assembling.filled("<!-- from CI.md: Mornings -->")


def test_the_number_of_refuted_libraries_is_that_of_their_ledger():
    ledger = (ROOT / "reports" / "libraries.md").read_text(encoding="utf-8")
    many = re.search(r"(\d+) mechanisms of", ledger)[1]
    refuted = sum(map(int, re.findall(r"(\d+) VIOLATED", ledger)))
    page = (PAGES / "ledger.md").read_text(encoding="utf-8")
    assert f"{refuted} of {many} mechanisms were refuted" in page


def test_the_table_of_verdicts_has_all_of_them():
    rows = assembling.filled(assembling.VERDICTS).splitlines()[2:]
    assert [row.split("`")[1] for row in rows] == list(Verdict)


def test_files_that_documents_link_to_are_found():
    text = "[a](action.yml), [b](.pre-commit-hooks.yaml), [c](https://x.org/action.yml)"
    linked = assembling.linked([("CI.md", text)])
    assert linked == {"action.yml", ".pre-commit-hooks.yaml"}
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
    lines = peers.table().splitlines()[2:]
    rows = {line.split(" | ")[0].strip("| "): line for line in lines}
    assert len(rows) == 12
    assert rows["PrefixSum"].endswith("| 0.52, 79 | not run | 0.38, 46 |")
    assert rows["NoisyMax4"].endswith("| 0.14, 53 | 0.08, 122 | found none, 36 |")


def test_docstrings_are_read_as_markdown():
    pytest.importorskip("griffe")
    from docs.docstrings import as_markdown

    doctest = as_markdown("Text.\n\n>>> 1 + 1\n2\n\nMore.")
    assert doctest == "Text.\n\n```pycon\n>>> 1 + 1\n2\n```\n\nMore."
    stars = as_markdown("at level ε*, from ε* on; *Theorem.*")
    assert stars == "at level ε\\*, from ε\\* on; *Theorem.*"


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
    """A twelfth of the pages that are written by hand, or list options, here; all of them with ``--full``."""
    documents = "CI reports/claims/dpar reports/experiments reports/scale"
    written = {path.removesuffix(".md") + ".html" for path in own_pages()}
    alike = sorted({*screenshots.command_pages(), *written})
    full = pytestconfig.getoption("--full")
    step = 1 if full else 12
    pages = {f"{path}.html" for path in documents.split()} | {*alike[::step]}
    fits_and_is_dark(site, pages | {*screenshots.PAGES})
    if full:
        shots = [*screenshots.PAGES, "commands/run.html"]
        screenshots.take(site, shots, LOOKED_AT, widths=[TELEPHONE])


@needs_a_browser
@pytest.mark.full
def test_a_report_fits_a_telephone_and_has_a_dark_ground(tmp_path):
    pages = report_picture.report(tmp_path)
    fits_and_is_dark(tmp_path, set(pages))
    screenshots.take(tmp_path, pages, LOOKED_AT, widths=[TELEPHONE])


WIDE = """<meta name='color-scheme' content='light dark'>
<style>body {background: #fff}</style><div style='width: 700px'>x</div>"""
NARROW = """<style>body {background: #fff} @media (prefers-color-scheme: dark) {body {background: #000}}</style>
<div style='width: 100px; overflow: auto'>x</div>"""


def fits_and_is_dark(folder, pages):
    """Beside a page that is too wide and never dark, and one that is neither."""
    for name, text in (("wide.html", WIDE), ("narrow.html", NARROW)):
        (folder / name).write_text(text, encoding="utf-8")
    shown = [*sorted(pages), "wide.html", "narrow.html"]
    light, dark = (
        browser.looks(folder, shown, width=TELEPHONE, dark=dark)
        for dark in (False, True)
    )
    assert set(light) == set(dark) == set(shown)
    assert [page for page in shown if light[page].beyond > 0] == ["wide.html"]
    same = [page for page in shown if dark[page].ground == light[page].ground]
    assert same == ["wide.html"]
    assert light["wide.html"].beyond > 250
    assert light["narrow.html"].beyond == 0
    grounds = (light["wide.html"].ground, dark["narrow.html"].ground)
    assert grounds == ("rgb(255, 255, 255)", "rgb(0, 0, 0)")


def test_what_is_missing_is_said_with_the_remedy(tmp_path, monkeypatch):
    message = r"index\.html: no such page; make docs builds the site"
    with pytest.raises(ConfigurationError, match=message):
        screenshots.take(tmp_path, ["index.html"], tmp_path)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    message = r"none of chromium, .* is on the path; on Debian: apt-get install"
    with pytest.raises(ConfigurationError, match=message):
        browser.browser()


def test_the_picture_of_a_report_is_of_what_the_readme_shows():
    with Image.open(report_picture.PICTURE) as picture:
        assert untimed(picture.info["shown"]) == untimed(report_picture.example()[1]), (
            "python -m docs.report_picture"
        )
