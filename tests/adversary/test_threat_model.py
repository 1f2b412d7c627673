"""The pages on who is trusted with what: every sentence names a test that there is, and no answer is left out."""

import re
from pathlib import Path

import pytest

from auditdp.auditing.serving import Served
from tests.adversary.attacks import ATTACKS

ROOT = Path(__file__).parents[2]
PAGES = {
    "SECURITY.md": ("What to report", "Versions"),
    "docs/pages/threat-model.md": (),
}
"""The pages, and their sections that state nothing that could be tested."""
TESTS = {
    *(
        name
        for path in ROOT.glob("tests/**/test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(), re.M)
    ),
    *(str(path.relative_to(ROOT)) for path in ROOT.glob("tests/**/test_*.py")),
}
NAMED = re.compile(r"\btest_\w+\b(?!\.py)|\btests/[\w/]+\.py\b")
ADVICE = (
    "Run audits of code",
    "Read audit files",
    "The [threat model]",
    "Audit files and mechanisms are code",
)
"""Beginnings of sentences that ask for something, or say where something stands."""
SAID = {
    ("told", "build", "gather"): "Claim, pairs, kinds of evidence",
    ("pairs", "exhaustive"): "pairs",
    ("figure",): "figures",
    ("calls", "anew", "of_calls", "look", "rows", "runs"): "its outputs are made",
    ("evidence",): "Evidence that is computed",
    ("propose", "can_search", "smaller"): "the search for pairs, and for a smaller one",
    (
        "trace",
        "reads",
        "read",
        "traced",
        "odds",
    ): "what a trace proposes, and the odds that it reads off the code",
    (
        "law",
        "log_probs",
        "score",
        "possible",
    ): "the odds, scores and impossible outputs that a mechanism states",
    ("numbers", "python"): "the numbers of an input and a pair as Python to paste",
    ("repeated",): "whether a seed gives the same outputs again",
    ("untouched", "in_untouched"): "calls in a process that made none",
    ("mutants",): "the mutation score",
    ("compare",): "what `--compare` says of another revision",
}
"""What ``SECURITY.md`` says of the questions that the process of an audit answers."""


def sentences(page):
    """The sentences of a page's sections, and rows of its tables."""
    for section in (ROOT / page).read_text().split("\n## ")[1:]:
        title, _, text = section.partition("\n")
        if title in PAGES[page]:
            continue
        for block in re.split(r"\n\s*\n|\n(?=[-|])", text.strip()):
            if not block.startswith("|"):
                yield from re.split(
                    r"(?<=\.)\s+(?=[A-Z`])", " ".join(block.removeprefix("- ").split())
                )
            elif not re.match(r"\| (who|an audit cannot) \||\|---", block):
                yield block


@pytest.mark.parametrize("page", PAGES)
def test_every_test_that_a_page_names_is_there(page):
    assert set(NAMED.findall((ROOT / page).read_text())) - TESTS == set()


@pytest.mark.parametrize("page", PAGES)
def test_every_sentence_names_the_test_that_shows_it(page):
    attacks = {f"`{attack.name}`" for attack in ATTACKS} | {"`parent_…`"}
    bare = []
    for sentence in sentences(page):
        trusted = sentence.startswith("|") and "everything" in sentence
        shown = NAMED.search(sentence) or any(name in sentence for name in attacks)
        bare += [] if trusted or shown or sentence.startswith(ADVICE) else [sentence]
    assert not bare, "\n".join(bare)


def test_what_the_process_of_an_audit_answers_is_stated():
    page = " ".join((ROOT / "SECURITY.md").read_text().split())
    answers = {
        name
        for name, method in vars(Served).items()
        if callable(method) and not name.startswith("_")
    }
    assert {question for several in SAID for question in several} == answers - {
        "answered"
    }
    assert [phrase for phrase in SAID.values() if phrase not in page] == []
