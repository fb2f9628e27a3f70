"""Words `py:...`: what a user's own file or module gives, and the one sentence where it gives nothing."""

import os
import sys

import pytest

from clustergym.simulator.base.errors import InputError
from clustergym.simulator.files.user_code import blamed, expect_trusted, is_user_code, own, parsed

MINE = """
from dataclasses import dataclass
import beside

class Plain:
    def __init__(self, margin=1.5, times: int = 2, *, deep: bool = False):
        self.given = (margin, times, deep)

@dataclass
class Held:
    size: "int" = 3

def scaled(before, after, weight=1.0):
    return weight * (after - before) + beside.OFFSET

class Called:
    def __init__(self, weight: float):
        self.weight = weight
    def __call__(self, value):
        return self.weight * value

def broken(times=1):
    raise ZeroDivisionError("no\\ntimes")

def anything(value, **more):
    return value, more

NUMBER = 7
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.delenv("CLUSTERGYM_TRUST_PY", raising=False)
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "beside.py").write_text("OFFSET = 10.0\n")
    yield tmp_path
    sys.modules.pop("beside", None)


def said(word, what="policy"):
    with pytest.raises(InputError) as caught:
        own(word, what).made()
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_parameters_take_the_types_of_their_annotations_or_of_their_defaults(folder):
    assert own("py:mine.py:Plain", "policy").made().given == (1.5, 2, False)
    assert own("py:mine.py:Plain,margin=2,times=5,deep=on", "policy").made().given == (2, 5, True)
    assert own("py:mine.py:Held,size=4", "policy").made().size == 4


def test_a_parameter_of_which_nothing_is_said_is_what_its_text_looks_like(folder):
    made = own("py:mine.py:anything,value=3,rate=0.5,name=x,none=none", "policy").made()
    assert made == (3, {"rate": 0.5, "name": "x", "none": None})


def test_a_function_takes_its_leading_arguments_from_the_place_and_the_rest_from_the_word(folder):
    assert own("py:mine.py:scaled", "reward").function(2)(1.0, 3.0) == 12.0
    assert own("py:mine.py:scaled,weight=3", "reward").function(2)(1.0, 3.0) == 16.0
    assert own("py:mine.py:Called,weight=3", "reward").function(1)(2.0) == 6.0


@pytest.mark.parametrize(
    ("word", "place"),
    [
        ("py:mine.py:Plain", "mine.py"),
        ("py:/a,b:c/mine.py:Plain", "/a,b:c/mine.py"),
        ("py:a.py:b.py:Plain", "a.py:b.py"),
        ("py:package.module:Plain", "package.module"),
    ],
)
def test_a_word_is_cut_where_a_name_follows(word, place):
    assert parsed(word, "policy") == (place, "Plain", {})
    assert parsed(f"{word},inner=py:c.py:Other", "policy") == (place, "Plain", {"inner": "py:c.py:Other"})


def test_a_folder_may_have_commas_and_colons_in_its_name(folder):
    odd = folder / "a,b:c d"
    odd.mkdir()
    (odd / "mine.py").write_text("class Plain:\n    pass\n")
    assert type(own(f"py:{odd}/mine.py:Plain", "policy").made()).__name__ == "Plain"


def test_a_module_in_the_present_folder_can_be_named(folder):
    (folder / "modulish.py").write_text("class Plain:\n    pass\n")
    found = own("py:modulish:Plain", "policy")
    assert type(found.made()).__name__ == "Plain"
    assert found.files == (folder / "modulish.py",)
    sys.modules.pop("modulish")


def test_files_are_the_file_and_what_it_imports_from_its_own_folder(folder):
    assert own("py:mine.py:Plain", "policy").files == (folder / "mine.py", folder / "beside.py")


@pytest.mark.parametrize(
    "source",
    [
        "from beside import OFFSET\nclass X:\n    pass\n",
        "class X:\n    def decide(self, view):\n        import beside\n",
        "from between import TWICE\nclass X:\n    pass\n",
        "class X:\n    def decide(self, view):\n        from between import TWICE\n",
        "from package.inner import OFFSET\nclass X:\n    pass\n",
    ],
)
def test_files_are_also_those_of_which_no_module_is_left_or_not_yet(folder, source):
    """Of `from beside import OFFSET` a number is left; `import` in a function is carried out when it is called."""
    (folder / "between.py").write_text("from beside import OFFSET\nTWICE = 2.0 * OFFSET\n")
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").write_text("")
    (folder / "package" / "inner.py").write_text("from beside import OFFSET\n")
    (folder / "uses.py").write_text(source)
    found = own("py:uses.py:X", "policy").files
    assert found[0] == folder / "uses.py" and folder / "beside.py" in found
    for name in ("between", "package.inner", "package"):
        sys.modules.pop(name, None)


def test_files_of_a_module_are_those_of_its_whole_package(folder):
    (folder / "lab" / "deep").mkdir(parents=True)
    for name in ("lab/__init__.py", "lab/deep/__init__.py"):
        (folder / name).write_text("")
    (folder / "lab" / "common.py").write_text("MARGIN = 1.5\n")
    (folder / "lab" / "deep" / "mine.py").write_text("from ..common import MARGIN\nclass X:\n    pass\n")
    found = own("py:lab.deep.mine:X", "policy").files
    assert found[0] == folder / "lab" / "deep" / "mine.py" and folder / "lab" / "common.py" in found
    for name in ("lab.deep.mine", "lab.deep", "lab.common", "lab"):
        sys.modules.pop(name)


def test_a_file_that_gets_the_neighbour_of_another_file_is_told_so(folder):
    """Both import `beside`; a process has one module of that name: that of the folder which came first."""
    other = folder / "other"
    other.mkdir()
    (other / "mine.py").write_text(MINE)
    (other / "beside.py").write_text("OFFSET = 20.0\n")
    own("py:mine.py:Plain", "policy")
    sentence = said("py:other/mine.py:Plain")
    assert (
        f"mine.py imports beside, which this process has from {folder}/beside.py already, not from {other}" in sentence
    )


def test_copies_of_a_neighbour_are_one(folder):
    """As where a folder is laid out anew for more files, with those of before among them."""
    other = folder / "other"
    other.mkdir()
    for name in ("mine.py", "beside.py"):
        (other / name).write_bytes((folder / name).read_bytes())
    own("py:mine.py:Plain", "policy")
    assert own("py:other/mine.py:Plain", "policy").files == (other / "mine.py", other / "beside.py")


def test_a_file_is_loaded_once_and_again_when_it_has_changed(folder):
    first = own("py:mine.py:Plain", "policy").factory
    assert own("py:mine.py:Plain", "policy").factory is first
    (folder / "mine.py").write_text("class Plain:\n    news = True\n")
    os.utime(folder / "mine.py", (1, 1))
    assert own("py:mine.py:Plain", "policy").factory.news


def test_what_is_neither_class_nor_function_is_taken_itself(folder):
    assert own("py:mine.py:NUMBER", "policy").made() == 7
    assert "takes no parameters" in said("py:mine.py:NUMBER,a=1")
    with pytest.raises(InputError, match="an int, which cannot be called"):
        own("py:mine.py:NUMBER", "reward").function(2)


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("py:", "policy 'py:': expected py:FILE.py:NAME or py:package.module:NAME"),
        ("py:mine.py", "policy 'py:mine.py': expected py:FILE.py:NAME or py:package.module:NAME"),
        ("py:no_network.py:Plain", "policy 'py:no_network.py:Plain': there is no file "),
        ("py:no.such.module:Plain", "there is no module 'no.such.module'"),
        ("py:mine.py:Plan", "mine.py has no 'Plan'; did you mean 'Plain'? it has Called, Held, Plain, anything"),
        ("py:mine.py:Plain,margins=2", "unknown parameter 'margins'; did you mean 'margin'? known: margin, times"),
        ("py:mine.py:Plain,times=two", "times = 'two': expected a whole number"),
        ("py:mine.py:Plain,times", "'times' is not key=value"),
        ("py:mine.py:Called", "parameter 'weight' is required"),
        ("py:mine.py:broken", "policy 'py:mine.py:broken': ZeroDivisionError: no times (mine.py, line 23)"),
    ],
)
def test_a_mistake_in_a_word_is_one_sentence(folder, word, sentence):
    assert sentence in said(word)


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("class X(\n", "SyntaxError: '(' was never closed (bad.py, line 1)"),
        ("x = 1\ny = 1 / 0\n", "ZeroDivisionError: division by zero (bad.py, line 2)"),
        ("import no_such_thing\n", "ModuleNotFoundError: No module named 'no_such_thing' (bad.py, line 1)"),
        ("raise SystemExit(3)\n", "SystemExit: 3 (bad.py, line 1)"),
        ("import broken_neighbour\n", "(bad.py, line 1)"),
    ],
)
def test_a_file_that_cannot_be_imported_says_why_and_where(folder, source, sentence):
    (folder / "broken_neighbour.py").write_text("def f(:\n")
    (folder / "bad.py").write_text(source)
    assert sentence in said("py:bad.py:X")
    (folder / "bad.py").write_text("class X:\n    pass\n# mended\n")
    own("py:bad.py:X", "policy").made()


def test_a_file_that_names_itself_while_it_is_imported_is_told_so(folder):
    (folder / "loop.py").write_text(
        "from clustergym.simulator.files.user_code import own\nown('py:loop.py:X', 'policy')\nclass X:\n    pass\n"
    )
    assert "names itself while it is imported" in said("py:loop.py:X")


def test_words_out_of_folders_are_refused_unless_they_are_trusted(folder, monkeypatch):
    with pytest.raises(InputError, match="--trust-py or CLUSTERGYM_TRUST_PY=1"):
        own("py:never_there.py:X", "policy", trusted=False)
    described = {"reward": "jct", "nested": [{"workload": "py:never_there.py:X"}]}
    with pytest.raises(InputError, match=r"agent\.json: it names 'py:never_there\.py:X'"):
        expect_trusted(described, "agent.json")
    monkeypatch.setenv("CLUSTERGYM_TRUST_PY", "1")
    expect_trusted(described, "agent.json")
    own("py:mine.py:Plain", "policy", trusted=False)


def test_an_exception_that_is_not_of_the_users_files_is_left_alone(folder):
    with pytest.raises(ZeroDivisionError), blamed("policy 'mine'", [folder / "mine.py"]):
        raise ZeroDivisionError


def test_only_words_that_begin_so_are_own():
    assert is_user_code("py:a.py:B") and not is_user_code("ppo:a.py:B") and not is_user_code(3)


def test_what_a_file_imports_is_not_loaded_again_so_its_edit_is_an_error(folder):
    own("py:mine.py:Plain", "policy")
    (folder / "beside.py").touch()
    own("py:mine.py:Plain", "policy")
    (folder / "beside.py").write_text("OFFSET = 11.0  # edited\n")
    with pytest.raises(InputError, match=r"beside\.py has changed since it was imported; start this process anew"):
        own("py:mine.py:Plain", "policy")
