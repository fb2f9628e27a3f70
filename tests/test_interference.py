"""Interference: the presets' numbers, a user's table, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from clustergym.simulator.errors import InputError
from clustergym.simulator.profiles.interference import LUCID_STEPS, LUCID_UTILISATION, Interference

MODELS = ["bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3"]


def test_measured_has_the_v100_medians():
    """To two digits; rows are victims, so it is not symmetric."""
    table = np.array(
        [
            [1.42, 1.83, 1.22, 3.63, 1.26, 1.70],
            [1.29, 1.28, 1.00, 1.62, 1.00, 1.24],
            [1.45, 1.75, 1.60, 2.30, 1.21, 1.71],
            [2.45, 1.40, 2.31, 2.56, 1.98, 1.98],
            [1.57, 1.83, 1.44, 6.04, 3.59, 3.20],
            [1.58, 2.12, 1.38, 3.94, 2.00, 1.60],
        ]
    )
    measured = Interference()
    assert measured.matrix(MODELS) == pytest.approx(table, abs=0.0051)
    assert measured.xi("ncf", "imagenet") == 6.043 != measured.xi("imagenet", "ncf")
    assert measured.percentiles("ncf", "imagenet") == (2.658, 8.519)
    for victim in MODELS:
        for partner in MODELS:
            low, high = measured.percentiles(victim, partner)
            assert 1 <= low <= measured.xi(victim, partner) <= high


def test_rows_and_columns_follow_the_models_that_are_asked_for():
    whole, some = Interference().matrix(MODELS), Interference().matrix(["ncf", "BERT", "ncf"])
    assert some[0, 1] == whole[4, 0] and some[1, 0] == whole[0, 4]
    assert some[0, 2] == whole[4, 4] == some[0, 0]
    assert Interference().matrix([]).shape == (0, 0)


def test_light_is_the_table_of_utilisations():
    """ncf with deepspeech2: 10.5 + 76.2 % = 86.7, so 1.03; ncf twice 21 %, 1; all others above 150 %, 1.38."""
    light = Interference("light")
    assert light.xi("ncf", "deepspeech2") == light.xi("deepspeech2", "ncf") == 1.03
    assert light.xi("ncf", "ncf") == 1.0
    assert light.xi("ncf", "cifar10") == 1.07
    assert light.xi("imagenet", "yolov3") == 1.38
    matrix = light.matrix(MODELS)
    assert np.array_equal(matrix, matrix.T)
    assert set(np.unique(matrix)) <= {factor for _, factor in LUCID_STEPS}
    assert sorted(LUCID_UTILISATION) == MODELS
    with pytest.raises(InputError, match="no percentiles"):
        light.percentiles("bert", "bert")


def test_a_constant_holds_for_every_model():
    constant = Interference("constant:xi=1.5")
    assert constant.matrix(["bert", "", "anything"]).tolist() == [[1.5] * 3] * 3
    assert constant.models == []


def test_a_users_table(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("# measured here\nvictim,with,xi,note\na,a,1.2,x\na,B,1.3,\nB,a,1,\nB,B,2,\n")
    mine = Interference(str(path))
    assert mine.matrix(["a", "b"]).tolist() == [[1.2, 1.3], [1.0, 2.0]]
    assert mine.models == ["a", "B"]
    path.write_text("victim,with,xi\na,a,1.25\n")
    assert Interference(str(path)).xi("a", "a") == 1.25  # a changed file is read again
    filled = Interference(str(path), default=3.0)
    assert filled.matrix(["a", "c"]).tolist() == [[1.25, 3.0], [3.0, 3.0]]


@pytest.mark.parametrize("word", ["measured", "light"])
def test_an_unknown_model_is_named_or_takes_the_default(word):
    with pytest.raises(InputError, match=f"{word!r} does not know model 'vgg16'; known: bert.*default=X"):
        Interference(word).matrix(["bert", "vgg16"])
    with pytest.raises(InputError, match="model '\\(empty\\)'"):
        Interference(word).matrix([""])
    filled = Interference(f"{word}:default=1.47")
    assert filled.matrix(["bert", "vgg16"])[0, 1] == filled.matrix(["bert", "vgg16"])[1, 1] == 1.47
    assert filled.xi("bert", "bert") == Interference(word).xi("bert", "bert")
    assert Interference(word, default=1.47).xi("x", "y") == 1.47


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("mesured", "did you mean 'measured'.*path of a csv"),
        ("constant", "parameter 'xi' is required"),
        ("constant:xi=0.9", "xi = 0.9: expected a slowdown from 1"),
        ("constant:xi=inf", "expected a slowdown"),
        ("constant:xi=nan", "expected a number"),
        ("measured:xi=2", "unknown parameter 'xi'"),
        ("light:default=0", "default = 0: expected a slowdown"),
        ("nowhere.csv", "there is no such file"),
        ("", "empty"),
    ],
)
def test_a_bad_word_is_one_sentence(word, said):
    with pytest.raises(InputError, match=said) as caught:
        Interference(word)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("victim,with\na,a\n", "line 1: column 'xi' is missing"),
        ("victim,with,xi,xi\na,a,1,1\n", "'xi' is given twice"),
        ("victim,with,xi\n", "a header and no rows"),
        ("victim,with,xi\na,a\n", "line 2: expected 3 values"),
        ("#\nvictim,with,xi\na,a,0.5\n", "line 3, column xi: '0.5'; expected a slowdown from 1"),
        ("victim,with,xi\na,a,fast\n", "line 2, column xi: 'fast'"),
        ("victim,with,xi\na,a,nan\n", "line 2, column xi: 'nan'"),
        ("victim,with,xi\na,,1\n", "line 2, column with: ''; expected a model's name"),
        ("victim,with,xi\na,a,1\nA,a,2\n", "line 3: 'A' with 'a' is there twice"),
        ("victim,with,xi\na,b,1\n", "the pair 'a' with 'a' is missing"),
        ('victim,with,xi\n"a,a,1\n', "not readable as csv"),
        ("", "is empty"),
    ],
)
def test_a_bad_table_is_one_sentence(tmp_path, text, said):
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(InputError, match=said) as caught:
        Interference(str(tmp_path / "bad.csv"))
    assert "bad.csv" in str(caught.value) and "\n" not in str(caught.value)
