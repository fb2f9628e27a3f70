"""CITATION.cff is the one list of papers: what else says where one appeared says the same (support/references.py)."""

from __future__ import annotations

import pytest

from clustergym.tests.support.paths import ROOT
from clustergym.tests.support.references import mentions, numbers, reference, references, told

PAGES = ("dally", "sjf-bsbf", "cassini", "mast", "harmony")


def test_every_venue_that_is_named_is_that_of_the_paper_named_before_it():
    found = {(file, one.venue, one.year) for file, text in told() for one in mentions(text) if not one.is_right}
    assert found == set()


def test_every_doi_and_arxiv_number_is_one_of_the_list():
    known = {number for one in references() for number in (one.doi, one.arxiv)}
    assert {(file, number) for file, text in told() for number in numbers(text) if number not in known} == set()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_of_a_paper_cites_it_as_listed_and_says_what_is_not_sure(page):
    line = f"| paper | {reference(page).cited()} |"
    assert line in (ROOT / "docs" / "policies" / f"{page}.md").read_text().splitlines(), line


def test_the_list_names_each_paper_once_and_says_where_each_can_be_found():
    """Facts that were wrong before: SJF-BSBF's venue and Harmony's; Dally's proceedings are not found."""
    assert len({name for one in references() for name in one.names}) == 1 + len(references())  # MAST and Tetris
    assert (reference("sjf-bsbf").short, reference("harmony").short) == ("IWQoS'24", "ICDCS'21")
    assert reference("tetris") == reference("mast")
    assert reference("dally").short == "Big Data'25" and "no DOI" in reference("dally").note


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("The sjf-bsbf paper (INFOCOM'24) lets", False),
        ("The sjf-bsbf paper (IWQoS'24) lets", True),
        ("Lee et al., Harmony,\n    # ICDE 2021;", False),
        ("Harmony, after CASSINI, ICDCS'21", False),  # the paper named last is another one
        ("Rajasekaran et al., HotNets'24", True),  # of two papers by that author one is of there
        ("Tetris (OSDI'24)", True),
        ("published in XYZW'24", False),  # of no paper
    ],
)
def test_a_venue_belongs_to_the_paper_named_last_before_it(text, right):
    (found,) = mentions(text)
    assert found.is_right == right
