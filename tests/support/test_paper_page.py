"""docs/papers.md is what the tags in docstrings say, and a paper's algorithm is in few files: support/paper_page.py."""

from __future__ import annotations

import pytest

from clustergym.tests.support.paper_page import ALGORITHM, PAGE, PAPERS, Tag, files, page, tags, tags_of

MOST = 3  # files to read against a paper
MORE = {"mast": 4, "tetris": 4}


@pytest.fixture(scope="module")
def found() -> list[Tag]:
    return tags()


def test_the_page_is_what_the_tags_give(found):
    assert PAGE.read_text() == page(found), "python tests/support/paper_page.py --write"


def test_every_tag_names_a_paper_that_the_page_knows(found):
    assert [tag for tag in found if tag.paper not in PAPERS or not tag.place] == []


@pytest.mark.parametrize("paper", PAPERS)
def test_a_paper_is_read_in_few_files(found, paper):
    count = len(files(found, paper))
    assert 1 <= count <= MORE.get(paper, MOST)


def test_a_tag_ends_a_docstring_and_tells_paper_places_file_and_function(tmp_path):
    """Of a method, with two places; of a module, as a setting, after other text; a comment is none."""
    path = tmp_path / "policies" / "own.py"
    path.parent.mkdir()
    path.write_text(
        '"""Own. Setting: mast, Figure 2."""\n\n# Paper: dally, Sec. V.\n\n\nclass A:\n    """A."""\n\n'
        '    def f(self):\n        """F.\n\n        Paper: dally, Algorithm 1, line 4; Sec. IV-B2.\n        """\n'
    )
    assert list(tags_of(path, tmp_path)) == [
        Tag("Setting", "mast", "Figure 2", "policies/own.py", ""),
        Tag(ALGORITHM, "dally", "Algorithm 1, line 4", "policies/own.py", "A.f"),
        Tag(ALGORITHM, "dally", "Sec. IV-B2", "policies/own.py", "A.f"),
    ]
