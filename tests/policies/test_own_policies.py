"""A user's own policy is one among all: by a word, as an object, from a package; killed, edited, failing."""

import json
import os
import subprocess
import sys

import pytest

from clustergym import policies
from clustergym.experiments.cli import run
from clustergym.experiments.playing.evaluation import evaluate, play
from clustergym.experiments.settings.evaluation_setting import Setting
from clustergym.experiments.storing import store
from clustergym.policies import own as own_policies
from clustergym.simulator.base.decisions import Advance, Start
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.base.said_once import SettingWarning
from clustergym.simulator.engine import base_simulator

SETTING = Setting.of("clustergym/Delay-v0", "dally:racks=2,machines=4", "poisson:jobs=30,backlog=24", "none")
WORKLOAD = ["--workload", SETTING.workload, "--network", "none"]
MINE = """
from clustergym.simulator.base.decisions import Advance, Hold, Preempt, Start


class Widest:
    def __init__(self, narrow=False):
        self.sign = 1 if narrow else -1

    def decide(self, view):
        for job in sorted(view.queue, key=lambda job: (self.sign * view.gpus(job), job)):
            if (gpus := view.find_gpus(job, "tier")) is not None:
                return Start(job, gpus)
        return Advance()
"""
SHOTS = (
    MINE
    + """

class Shot(Widest):
    def decide(self, view):
        import os, pathlib, signal
        if view._simulator.state.seed == 2 and not pathlib.Path("shot").exists():
            pathlib.Path("shot").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().decide(view)


class Raises(Widest):
    def decide(self, view):
        if view._simulator.state.seed == 1 and len(view.running):
            raise KeyError("no such job")
        return super().decide(view)


class Wrong(Widest):
    def decide(self, view):
        return Start(view.queue[0], [])


class Idle:
    def decide(self, view):
        return Advance()


class Flips:
    def decide(self, view):
        for job in view.running:
            return Preempt(job)
        for job in view.queue:
            return Start(job, view.find_gpus(job, "tier"))


class Soon:
    def decide(self, view):
        return Hold(view.queue[0], "soon")


ONE = Widest()


def the_same():
    return ONE


class NoView:
    def decide(self):
        return Advance()


class Nothing:
    environments = "Geo"
"""
)


class Widest:
    """As that of the file; it counts on how many decisions it has been asked."""

    def __init__(self, narrow=False):
        self.sign, self.asked, self.most = 1 if narrow else -1, 0, []

    def decide(self, view):
        self.asked += 1
        self.most.append(self.asked)
        for job in sorted(view.queue, key=lambda job: (self.sign * view.gpus(job), job)):
            if (gpus := view.find_gpus(job, "tier")) is not None:
                return Start(job, gpus)
        return Advance()


class Forgetful(Widest):
    """Decides by how often it was asked: a copy that had played before would decide otherwise."""

    def decide(self, view):
        self.sign = -1 if self.asked % 2 else 1
        return super().decide(view)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "shots.py").write_text(SHOTS)
    return tmp_path


def command(capsys, *words):
    """Exit status, stdout and stderr of a command."""
    status = run(list(map(str, words)))
    said = capsys.readouterr()
    return status, said.out, said.err


def compared(capsys, words, seeds="0-2", *more):
    status, out, err = command(
        capsys, "evaluate", "Delay", *WORKLOAD, "--policies", words, "--seeds", seeds, "--json", *more
    )
    assert status == 0, err
    return {(row["policy"], row["seed"]): row["metrics"]["jct_mean"] for row in json.loads(out)}, err


def test_a_policy_in_a_file_is_in_one_table_with_the_built_in_ones(folder, capsys):
    found, _ = compared(capsys, "greedy py:mine.py:Widest py:mine.py:Widest,narrow=on")
    assert len(found) == 9
    assert found == compared(capsys, "greedy py:mine.py:Widest py:mine.py:Widest,narrow=on", "0-2", "-j", "2")[0]
    assert found["py:mine.py:Widest", 0] == play(SETTING, Widest(), 0).metrics["jct_mean"]
    assert found["py:mine.py:Widest,narrow=on", 1] == play(SETTING, Widest(narrow=True), 1).metrics["jct_mean"]


def test_what_a_file_prints_is_not_among_the_json(folder):
    """Neither while it is loaded nor while it plays, in this process or in others."""
    loud = MINE.replace("        for job", "        print('deciding')\n        for job") + "print('loaded')\n"
    (folder / "loud.py").write_text(loud)
    words = ["evaluate", "Delay", *WORKLOAD, "--policies", "py:loud.py:Widest", "--seeds", "0-1", "--json"]
    for processes in ("1", "2"):
        call = [sys.executable, "-m", "clustergym", *words, "-j", processes]
        said = subprocess.run(call, capture_output=True, text=True, check=True)
        assert len(json.loads(said.stdout)) == 2
        assert "loaded\n" in said.stderr and "deciding\n" in said.stderr


def test_it_is_in_logs_decisions_the_report_and_pictures(folder, capsys):
    words = ("evaluate", "Delay", *WORKLOAD, "--policies", "fifo py:mine.py:Widest", "--seeds", "0-1")
    status, out, err = command(
        capsys, *words, "--logdir", "out", "--baseline", "fifo", "--decisions", "made.csv", "--quiet"
    )
    assert (status, err) == (0, "")
    assert "decides in Python" in out and "against fifo" in out
    assert "py:mine.py:Widest,1," in (folder / "made.csv").read_text()
    assert list(folder.glob("out/py*/events.out.tfevents.*"))
    status, _, err = command(
        capsys, "render", "Delay", *WORKLOAD, "--policy", "py:mine.py:Widest", "--out", "a.png", "--quiet"
    )
    assert (status, err) == (0, "") and (folder / "a.png").stat().st_size > 1000


def test_readers_of_a_folder_import_nothing_that_it_names(folder, capsys):
    (folder / "gone.py").write_text(MINE.replace("Widest", "Gone"))
    compared(capsys, "fifo py:gone.py:Gone", "0-1", "--logdir", "out")
    (folder / "gone.py").write_text("raise RuntimeError('imported')\n")
    status, out, err = command(capsys, "compare", "out")
    assert (status, err) == (0, "") and "py:gone.py:Gone" in out
    assert store.read(folder / "out").policies == ["fifo", "py:gone.py:Gone"]


def test_an_evaluation_that_was_killed_goes_on(folder):
    """Seed 2 of the policy kills its process once, as `kill -9` would: what had ended is read, not played."""
    words = ["evaluate", "Delay", *WORKLOAD, "--policies", "py:shots.py:Shot", "--seeds", "0-3", "--logdir", "out"]
    call = [sys.executable, "-c", "from clustergym.experiments.cli import main; main()", *words]
    assert subprocess.run(call, cwd=folder, check=False, capture_output=True).returncode == -9
    runs = {path.name: path.stat().st_mtime_ns for path in folder.glob("out/runs/*.parquet")}
    assert len(runs) == 2
    assert subprocess.run(call, cwd=folder, check=False, capture_output=True).returncode == 0
    after = {path.name: path.stat().st_mtime_ns for path in folder.glob("out/runs/*.parquet")}
    assert len(after) == 4 and runs.items() <= after.items()


def test_an_edited_file_is_played_anew_and_nothing_else(folder, capsys):
    words = "fifo py:mine.py:Widest"
    first, _ = compared(capsys, words, "0-1", "--logdir", "out")
    assert compared(capsys, words, "0-1", "--logdir", "out") == (first, "")
    (folder / "mine.py").write_text(MINE.replace("else -1", "else 1"))
    os.utime(folder / "mine.py", (1, 1))
    second, err = compared(capsys, words, "0-1", "--logdir", "out")
    assert "py:mine.py:Widest has changed; earlier results are not used" in err and "fifo" not in err
    assert second["py:mine.py:Widest", 0] == compared(capsys, "py:mine.py:Widest,narrow=on", "0")[0].popitem()[1]


def test_what_a_policy_raises_names_it_its_run_and_its_line_and_the_other_runs_are_kept(folder, capsys):
    words = ("evaluate", "Delay", *WORKLOAD, "--policies", "py:shots.py:Raises fifo", "--seeds", "0-2")
    line = 1 + SHOTS.splitlines().index('            raise KeyError("no such job")')
    sentence = f"policy 'py:shots.py:Raises', seed 1: KeyError: 'no such job' (shots.py, line {line})"
    assert command(capsys, *words) == (1, "", f"clustergym: {sentence}\n")
    for more in ((), ("-j", "2")):
        status, out, err = command(capsys, *words, "--logdir", f"out{len(more)}", *more)
        assert (status, out) == (1, "")
        assert err == f"clustergym: {sentence}; the runs that ended, 5, are in out{len(more)}\n"
        assert len(list(folder.glob(f"out{len(more)}/runs/*.parquet"))) == 5


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("Wrong", "policy 'py:shots.py:Wrong', seed 0: start job 0 (0): 0 GPUs given"),
        ("Idle", "policy 'py:shots.py:Idle', seed 0: 30 jobs wait"),
        ("Flips", "policy 'py:shots.py:Flips', seed 0: 1,600 decisions at 0 s and no Advance()"),
        ("Soon", "policy 'py:shots.py:Soon', seed 0: ValueError: could not convert string to float: 'soon' (shots.py"),
        ("the_same", "it gives the same object each time, and every run needs one of its own"),
        ("NoView", "policy 'py:shots.py:NoView': decide is to take one argument, the view"),
        ("Nothing", "policy 'py:shots.py:Nothing' does not play in clustergym/Delay-v0"),
        ("Shots", "shots.py has no 'Shots'; did you mean 'Shot'?"),
        ("SHOTS", "it has Flips, Idle, NoView, Nothing, Raises, Shot, Soon, Widest, Wrong"),
    ],
)
def test_a_policy_that_is_none_is_one_sentence(folder, capsys, monkeypatch, name, sentence):
    monkeypatch.setattr(base_simulator, "MOST_AT_ONCE", 1000)  # all of them take half a minute
    status, out, err = command(
        capsys, "evaluate", "Delay", *WORKLOAD, "--policies", f"py:shots.py:{name}", "--seeds", "0"
    )
    assert status != 0 and out == ""
    said = [line for line in err.splitlines() if "compiling" not in line]  # where it takes long
    assert len(said) == 1 and sentence in said[0]


def test_where_it_cannot_decide_it_is_no_policy(folder):
    with pytest.raises(InputError, match=r"Nothing has no decide\(view\); expected a policy"):
        policies.make("py:shots.py:Nothing")


def test_a_word_that_forgets_py_is_told_so(capsys):
    status, _, err = command(capsys, "evaluate", "Delay", "--policies", "greedy mysched:ShortestWidest")
    assert status == 2 and "unknown policy of clustergym/Delay-v0 'mysched'" in err
    assert "one of your own: py:FILE.py:NAME or py:package.module:NAME" in err


def test_a_path_with_spaces_is_written_in_quotes(folder, capsys):
    (folder / "my policies").mkdir()
    (folder / "my policies" / "mine.py").write_text(MINE)
    found, _ = compared(capsys, "fifo 'py:my policies/mine.py:Widest'", "0")
    assert ("py:my policies/mine.py:Widest", 0) in found


def test_objects_that_decide_are_handed_over_as_they_are():
    runs = evaluate(SETTING, ["fifo", Widest()], [0, 1])
    assert [(one.policy, one.seed) for one in runs] == [("fifo", 0), ("fifo", 1), ("Widest", 0), ("Widest", 1)]
    assert runs[2].knows_run_times == "no"
    by_class = evaluate(SETTING, [Widest], [0, 1])
    assert [one.metrics for one in by_class] == [one.metrics for one in runs[2:]]


def test_each_run_has_a_copy_of_the_object_so_results_hang_on_no_order():
    mine = Forgetful()
    alone = evaluate(SETTING, [mine], [1])[0]
    later = evaluate(SETTING, [mine], [0, 1])[1]
    python_state = evaluate(SETTING, [mine], [0, 1], processes=2)[1]
    assert alone.metrics == later.metrics == python_state.metrics
    assert mine.asked == 0


def test_objects_of_one_name_must_be_told_apart():
    with pytest.raises(InputError, match="two are called 'Widest'; give each a `name` of its own"):
        evaluate(SETTING, [Widest(), Widest(narrow=True)], [0])
    narrow = Widest(narrow=True)
    narrow.name = "narrow"
    assert [one.policy for one in evaluate(SETTING, [Widest(), narrow], [0])] == ["Widest", "narrow"]


def test_what_is_no_policy_is_one_sentence():
    with pytest.raises(InputError, match=r"policy 'int': int has no decide\(view\)"):
        evaluate(SETTING, ["fifo", 3], [0])


def test_an_object_that_other_processes_cannot_be_given_is_told_so():
    mine = policies.Policy()
    mine.decide = (number for number in ())
    with pytest.raises(InputError, match="every run needs a copy of its own"):
        evaluate(SETTING, [mine], [0, 1], processes=2)


def test_a_folder_tells_objects_apart_by_what_they_hold(tmp_path):
    def played(policy):
        opened = store.open_store(tmp_path, SETTING, [policy])
        return evaluate(SETTING, [policy], [0], store=opened)[0].metrics["jct_mean"]

    wide = played(Widest())
    assert played(Widest()) == wide
    with pytest.warns(UserWarning, match="Widest has changed"):
        assert played(Widest(narrow=True)) != wide


class Installed:
    """What `importlib.metadata` would find, with packages that declare policies."""

    def __init__(self, **points):
        self.points = points

    def __call__(self, group):
        assert group == "clustergym.policies"
        return [own_policies.metadata.EntryPoint(name, value, group) for name, value in self.points.items()]


@pytest.fixture
def installed(folder, monkeypatch):
    (folder / "a_package.py").write_text(
        MINE.replace("class Widest:", 'class Widest:\n    """The widest first."""\n    environments = ("Delay",)')
        + "\nclass Anywhere(Widest):\n    environments = ()\n"
    )
    points = Installed(
        widest="a_package:Widest", anywhere="a_package:Anywhere", fifo="a_package:Widest", broken="no_package:Thing"
    )
    monkeypatch.setattr(own_policies.metadata, "entry_points", points)
    own_policies.installed.cache_clear()
    yield
    own_policies.installed.cache_clear()
    sys.modules.pop("a_package", None)


def test_policies_of_installed_packages_are_listed_after_ours_and_play(installed, capsys):
    with pytest.warns(SettingWarning, match="policy 'fifo' of the package a_package is left out: there is another"):
        names = policies.list()
    assert names[-3:] == ["anywhere", "broken", "widest"] and names.index("fifo") < 10
    with pytest.warns(SettingWarning, match="there is no module 'no_package'"):
        assert policies.list("Delay")[-1] == "widest"
    found, _ = compared(capsys, "fifo widest widest:narrow=on anywhere", "0")
    assert found["widest", 0] == found["anywhere", 0] == play(SETTING, Widest(), 0).metrics["jct_mean"]
    assert found["widest:narrow=on", 0] == play(SETTING, Widest(narrow=True), 0).metrics["jct_mean"]


def test_the_listing_tells_where_each_plays_and_what_cannot_be_loaded(installed, capsys):
    _, out, _ = command(capsys, "policies", "--json", "--quiet")
    rows = {row["name"]: row for row in json.loads(out)}
    assert rows["widest"]["environments"] == ["clustergym/Delay-v0"]
    assert rows["widest"]["parameters"] == {"narrow": False}
    assert rows["widest"]["summary"] == "The widest first. (of the package a_package)"
    assert len(rows["anywhere"]["environments"]) == 6
    assert "there is no module 'no_package'" in rows["broken"]["summary"]
    assert "_name" not in rows["las"]["parameters"]
    status, out, _ = command(capsys, "policies", "Geo", "--json", "--quiet")
    assert status == 0 and {row["name"] for row in json.loads(out)} == {
        *(
            "random",
            "random-start",
            "greedy",
            "sjf",
            "srtf",
            "srsf",
            "mast",
            "federated",
            "global",
            "scope",
            "everywhere",
            "bring",
            "anywhere",
            "zoo:Geo",
        )
    }
    _, out, _ = command(capsys, "policies", "--quiet")
    assert "plays in" in out


WRAP = """
from clustergym import policies


def built(name):
    return policies.make(name)


class Wrapped:
    def __init__(self, name):
        self.inner = policies.make(name)
        self.clock, self.tunes_workers = self.inner.clock or self.inner.rule, self.inner.tunes_workers

    def decide(self, view):
        return self.inner.decide(view)

    def following(self, view):
        return self.inner.following(view)
"""


@pytest.mark.parametrize(
    ("env", "name", "workload"),
    [
        ("Sharing", "sjf-bsbf", "bsbf-physical:jobs=20"),
        ("TimeShift", "themis+cassini", "cassini-poisson:hours=0.5"),
        ("Grouping", "harmony", "harmony-like:jobs=8"),
    ],
)
def test_one_that_hands_on_what_a_built_in_one_decides_plays_as_it_does(folder, env, name, workload):
    (folder / "wrap.py").write_text(WRAP)
    setting = Setting.of(env, workload=workload)
    players = [name, f"py:wrap.py:built,name={name}", f"py:wrap.py:Wrapped,name={name}"]
    first, second, third = (run.jct_s.tolist() for run in evaluate(setting, players, [3]))
    assert first == second == third


ODD = """
from dataclasses import dataclass
from clustergym.policies import Policy, RulePolicy
from clustergym.simulator.base.decisions import Advance
from clustergym.simulator.rules.rule import Rule


@dataclass(frozen=True)
class Frozen(Policy):
    margin: float = 1.0
    files = "numbers.txt"

    def decide(self, view):
        return Advance()


class Named(Policy):
    name = property(lambda self: "mine")

    def decide(self, view):
        return Advance()


def shortest(head="skip"):
    return RulePolicy("shortest", Rule("sjf", head=head))


READY = shortest()
"""


def test_policies_of_odd_kinds(folder):
    (folder / "odd.py").write_text(ODD)
    frozen = policies.make("py:odd.py:Frozen,margin=2")
    assert (frozen.name, frozen.margin) == ("py:odd.py:Frozen,margin=2", 2.0)
    assert [path.name for path in frozen.files] == ["odd.py", "numbers.txt"]
    with pytest.raises(InputError, match="name of Named cannot be set"):
        policies.make("py:odd.py:Named")
    with pytest.raises(InputError, match=r"numbers\.txt: No such file"):
        store.open_store(folder / "out", SETTING, ["py:odd.py:Frozen"])
    words = ["sjf:head=strict", "py:odd.py:shortest,head=strict", "sjf", "py:odd.py:READY"]
    strict, own_strict, plain, ready = (run.jct_s.tolist() for run in evaluate(SETTING, words, [0]))
    assert strict == own_strict and plain == ready
