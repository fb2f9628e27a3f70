"""Interference: the presets' numbers, a user's table, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from clustergym.simulator.base.errors import InputError
from clustergym.simulator.jobs.job_kinds import Load
from clustergym.simulator.sharing.interference import LUCID_STEPS, LUCID_UTILISATION, Interference

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


def test_gavel_is_by_gpu_and_quantile():
    """`measured` is the median on V100; the medians of the 36 pairs are 1.66 (V100), 1.85 (P100), 1.96 (K80)."""
    measured = Interference()
    assert np.array_equal(measured.matrix(MODELS), Interference("gavel:gpu=v100,quantile=p50").matrix(MODELS))
    assert np.array_equal(measured.matrix(MODELS), Interference("gavel").matrix(MODELS))
    low, high = (Interference(f"gavel:quantile={quantile}") for quantile in ("p10", "p90"))
    assert (low.xi("ncf", "imagenet"), high.xi("ncf", "imagenet")) == measured.percentiles("ncf", "imagenet")
    medians = [np.median(Interference(f"gavel:gpu={gpu}").matrix(MODELS)) for gpu in ("v100", "p100", "k80")]
    assert medians == pytest.approx([1.659, 1.852, 1.9575])
    for gpu in ("v100", "p100", "k80"):
        tables = [Interference(f"gavel:gpu={gpu},quantile={at}").matrix(MODELS) for at in ("p10", "p50", "p90")]
        assert (tables[0] >= 1).all() and (tables[0] <= tables[1]).all() and (tables[1] <= tables[2]).all()


def test_lucid_is_1_38_for_25_of_36_pairs_and_was_called_light():
    lucid = Interference("lucid").matrix(MODELS)
    assert (lucid == 1.38).sum() == 25
    assert np.array_equal(lucid, Interference("light").matrix(MODELS))


def test_lucid_is_the_table_of_utilisations():
    """ncf with deepspeech2: 10.5 + 76.2 % = 86.7, so 1.03; ncf twice 21 %, 1; all others above 150 %, 1.38."""
    light = Interference("lucid")
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


@pytest.mark.parametrize("word", ["measured", "gavel:gpu=k80", "light", "lucid"])
def test_an_unknown_model_is_named_or_takes_the_default(word):
    with pytest.raises(InputError, match=f"{word!r} does not know model 'vgg16'; known: bert.*default=X"):
        Interference(word).matrix(["bert", "vgg16"])
    with pytest.raises(InputError, match="model '\\(empty\\)'"):
        Interference(word).matrix([""])
    filled = Interference(f"{word}{',' if ':' in word else ':'}default=1.47")
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
        ("gavel:gpu=a100", "unknown value of interference gavel: gpu 'a100'.*k80, p100, v100"),
        ("gavel:quantile=p99", "quantile 'p99'.*known: p10, p50, p90"),
        ("mig", "'slices' is required"),
        ("mig:slices=4", "slices = 4: expected 2, 3, 7"),
        ("nowhere.csv", "there is no such file"),
        ("csv:nowhere.csv", "there is no such file"),
        ("csv:nowhere.csv,moed=mps", "unknown parameter 'moed'; did you mean 'mode'"),
        ("csv:", "expected the path of the file, csv:PATH"),
        ("csv", "expected the path of the file, csv:PATH"),
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
        ("victim,with,xi,gpus\na,a,1,two\n", "line 2, column gpus: 'two'; expected a whole number of at least 1"),
        ("victim,with,xi,with_batch\na,a,1,0\n", "line 2, column with_batch: '0'; expected a whole number"),
        ("victim,with,xi,sub_batch\na,a,1,1.5\n", "line 2, column sub_batch: '1.5'"),
        ("victim,with,xi,gpus,gpus\na,a,1,1,1\n", "column 'gpus' is given twice"),
        ("victim,with,xi,gpus\na,a,1,2\na,a,2,2\n", "line 3: 'a' with 'a', the same numbers is there twice"),
        ("victim,with,xi,mode\na,a,1,\n", "line 2, column mode: ''; expected a word"),
        ("victim,with,xi,mode\na,a,1,mps\na,a,2,mps\n", "line 3: .* is there twice in mode 'mps'"),
        ("victim,with,xi,mode\na,a,1,mps\na,a,2,time-slicing\n", "several modes: mps, time-slicing; choose one"),
        ("", "is empty"),
    ],
)
def test_a_bad_table_is_one_sentence(tmp_path, text, said):
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(InputError, match=said) as caught:
        Interference(str(tmp_path / "bad.csv"))
    assert "bad.csv" in str(caught.value) and "\n" not in str(caught.value)


def loads(*rows):
    return [Load("a", *row) for row in rows]


def table_of(tmp_path, text):
    path = tmp_path / "table.csv"
    path.write_text(text)
    return Interference(str(path))


def test_the_most_specific_row_whose_numbers_fit_wins(tmp_path):
    """8 GPUs take the row without numbers, 4 their own, 4 with sub-batch 16 the one that has both."""
    table = table_of(tmp_path, "victim,with,xi,gpus,sub_batch\na,a,1.1,,\na,a,1.2,4,\na,a,1.3,4,16\n")
    assert table.tells_apart == ("gpus", "sub_batch")
    found = table.load_matrix(loads((8, 1, 16), (4, 1, 8), (4, 1, 16), (1, 1, 1)))
    assert found[:, 3].tolist() == [1.1, 1.2, 1.3, 1.1]
    assert found[2].tolist() == [1.3] * 4  # nothing is asked of the partner
    with pytest.raises(InputError, match="tells jobs of a model apart by gpus, sub_batch"):
        table.matrix(["a"])


def test_where_no_row_fits_the_nearest_by_ratio_holds(tmp_path):
    """8 is 2 times 4 and a quarter of 32; 12 is 3 times 4 and 2.67 times below 32; 2 is as far from 1 as from 4.

    With two numbers the product of ratios counts: 16 beside 1 is 1 x 4 from the first row, 4 x 1 from the other.
    """
    table = table_of(tmp_path, "victim,with,xi,sub_batch\na,a,1.1,32\na,a,1.2,4\na,a,1.3,1\n")
    found = table.load_matrix(loads((0, 0, 8), (0, 0, 12), (0, 0, 2), (0, 0, 100)))
    assert found[:, 0].tolist() == [1.2, 1.1, 1.3, 1.1]
    both = table_of(tmp_path, "victim,with,xi,sub_batch,with_sub_batch\na,a,2,16,4\na,a,3,4,1\n")
    found = both.load_matrix(loads((0, 0, 16), (0, 0, 1)))
    assert found.tolist() == [[2.0, 3.0], [3.0, 3.0]]  # a tie goes to the smaller sub-batch of the victim


def test_a_file_with_modes_has_a_table_for_each(tmp_path):
    path = tmp_path / "two,modes.csv"
    path.write_text("victim,with,xi,mode\na,a,1.5,time-slicing\na,a,1.2,mps\n")
    assert Interference(f"csv:{path},mode=mps").xi("a", "a") == 1.2
    filled = Interference(f"csv:{path},mode=time-slicing,default=2")
    assert (filled.xi("a", "a"), filled.xi("a", "b")) == (1.5, 2.0)
    with pytest.raises(InputError, match="several modes: mps, time-slicing; choose one as csv:PATH,mode=MODE"):
        Interference(str(path))
    with pytest.raises(InputError, match="no mode 'mig'; its modes: mps, time-slicing"):
        Interference(f"csv:{path},mode=mig")
    path.write_text("victim,with,xi\na,a,1.5\n")
    with pytest.raises(InputError, match="no mode 'mps'; it has no column 'mode'"):
        Interference(f"csv:{path},mode=mps")
    path.write_text("victim,with,xi,mode\na,a,1.5,mps\n")
    assert Interference(str(path)).xi("a", "a") == 1.5  # one mode needs no choice
