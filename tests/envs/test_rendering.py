"""Pictures: they show what the record says, the same each time, at any size, in every kind of file."""

from __future__ import annotations

import json
import re
import sys

import numpy as np
import pytest

from clustergym.envs.rendering import film
from clustergym.envs.rendering.ansi import SYMBOLS, draw_ansi
from clustergym.envs.rendering.drawing import palette
from clustergym.envs.rendering.drawing.picture_words import clock, cut, span
from clustergym.envs.rendering.human_window import Window
from clustergym.envs.rendering.pictures.floor import plan_floor
from clustergym.envs.rendering.pictures.picture import draw_rgb, stage_of
from clustergym.envs.rendering.scenes.scene import ClusterShape, read_scene
from clustergym.experiments import cli
from clustergym.policies import make
from clustergym.simulator.base import codes
from clustergym.simulator.base.decisions import Hold, Start
from clustergym.simulator.base.errors import InputError, MissingExtra
from clustergym.simulator.cluster.topology import Topology
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.events.initialise import Failures
from clustergym.simulator.rules.rule import Rule
from clustergym.simulator.workloads import Workload, open_workload

pytest.importorskip("PIL")


def tiny() -> Simulator:
    """Two racks of one machine of 2 + 2 GPUs; at 50 s, a runs across racks, b on one GPU, c is held, d waits."""
    workload = Workload.from_arrays(
        "tiny",
        np.array([0.0, 0.0, 0.0, 50.0]),
        np.array([4, 1, 2, 8]),
        np.array([200.0, 100.0, 30.0, 10.0]),
        job_id=np.array(["a", "b", "c", "long-name-d"], object),
        model=np.array(["vgg16", "bert", "", "gpt"], object),
    )
    simulator = Simulator("dally:racks=2,machines=1,gpus_per_machine=4,slots=2")
    simulator.reset(workload)
    simulator.apply(Start(0, (0, 1, 2, 5)))
    simulator.apply(Start(1, (4,)))
    simulator.apply(Hold(2, 1000.0))
    simulator.advance()
    return simulator


def played(topology: str, workload: str, steps: int, failures: Failures | None = None) -> Simulator:
    """A simulator after so many decision points."""
    simulator = Simulator(topology, rule=Rule("srtf"), failures=failures)
    simulator.reset(open_workload(workload, cluster_gpus=simulator.topology.num_gpus))
    for _ in range(steps):
        simulator.schedule()
        simulator.advance()
    simulator.schedule()
    return simulator


@pytest.fixture(scope="module")
def busy() -> Simulator:
    failures = Failures(mtbf_s=50_000.0, mttr_s=50_000.0)
    return played("dally:racks=2,machines=4", "poisson:jobs=128,backlog=48", 100, failures)


GOLDEN = """\
t = 00:00:50 | GPUs 5/8 used, 3 free | jobs 2 running, 1 waiting, 1 held, 0/4 done

   rack 0      rack 1
 0 00 0.     0 10 ..

   job  model  GPUs  tier     progress               left
0  a    vgg16     4  network  [==        ]  25 %  2.5 min
1  b    bert      1  slot     [=====     ]  50 %     50 s

queue        model  GPUs  waited
long-name-d  gpt       8     0 s
c                      2    50 s  held"""


def test_text_of_a_tiny_cluster():
    assert draw_ansi(tiny()) == GOLDEN


def test_scene_of_a_tiny_cluster():
    scene = read_scene(tiny())
    assert scene.owner.tolist() == [0, 0, 0, codes.FREE, 1, 0, codes.FREE, codes.FREE]
    assert scene.tier.tolist() == [3, 3, 3, -1, 0, 3, -1, -1]
    assert [(slot.start, slot.stop) for slot in scene.racks()[1].machines[0].slots] == [(4, 6), (6, 8)]
    first = scene.running[0]
    assert (first.name, first.gpus, first.progress, first.remaining_s) == ("a", 4, 0.25, 150.0)
    assert [(job.label, job.waited_s) for job in scene.queue] == [("#3", 0.0)]
    assert [(job.label, job.waited_s, job.is_held) for job in scene.held] == [("c", 50.0, True)]


def test_scene_counts_equal_the_record(busy):
    """Every GPU is used, free or down, once; every job holds as many as its gang."""
    scene, s = read_scene(busy), busy.state
    assert scene.used + scene.free + scene.down == scene.gpus == s.n_gpus
    assert (scene.free, scene.down) == (s.free_gpus, s.down_gpus)
    assert scene.down > 0
    assert [np.count_nonzero(scene.owner == job.job) for job in scene.running] == [job.gpus for job in scene.running]
    assert sum(job.gpus for job in scene.running) == scene.used
    assert (len(scene.running), scene.waiting, scene.done) == (s.running, s.waiting, s.done)
    assert [job.job for job in scene.queue] == busy.view.queue[: len(scene.queue)].tolist()
    gpus = [gpu for rack in scene.racks() for machine in rack.machines for gpu in machine.gpus]
    assert gpus == list(range(scene.gpus))


def test_pixels_are_the_same_each_time_and_fresh(busy):
    before = busy.snapshot().tobytes()
    one, two = draw_rgb(busy), draw_rgb(busy)
    assert (one.shape, one.dtype) == ((640, 960, 3), np.uint8)
    assert np.array_equal(one, two)
    one[:] = 0
    assert two.any() and draw_rgb(busy).any()
    assert busy.snapshot().tobytes() == before, "drawing changed the record"


@pytest.mark.parametrize("size", [(640, 420), (641, 487), (1920, 1280)])
def test_pixels_of_other_sizes(busy, size):
    assert draw_rgb(busy, size).shape == (size[1], size[0], 3)


def test_a_size_out_of_range_is_an_input_error(busy):
    with pytest.raises(InputError, match="100x100: expected 640x420"):
        draw_rgb(busy, (100, 100))


def test_every_gpu_has_the_colour_of_its_job():
    simulator = tiny()
    scene, frame = read_scene(simulator), draw_rgb(simulator)
    plan = stage_of(scene.shape, scene.name, (960, 640)).plan
    for gpu, box in enumerate(plan.items):
        job = int(scene.owner[gpu])
        expected = palette.job_colour(job) if job >= 0 else palette.GPU_FREE
        assert tuple(frame[box[1] + 3, box[0] + 3]) == expected, gpu
        if job >= 0:
            assert tuple(frame[box[3] - 2, (box[0] + box[2]) // 2]) == palette.TIER_COLOURS[scene.tier[gpu]]


def test_a_job_keeps_its_colour_and_neighbours_differ():
    assert [palette.job_colour(job) for job in range(40)] == list(palette.JOB_COLOURS)
    assert len(set(palette.JOB_COLOURS)) == 40
    assert palette.job_colour(7) == palette.job_colour(7 + 40) != palette.job_colour(8)


@pytest.mark.parametrize(
    ("topology", "by_machine"),
    [
        ("flat:machines=1,gpus_per_machine=1", False),
        ("flat:machines=3,gpus_per_machine=64", False),
        ("flat:machines=100,gpus_per_machine=4", False),
        ("dally:racks=100", False),
        ("dally:racks=1600", True),
    ],
)
def test_every_gpu_or_machine_has_its_own_pixels_inside_the_area(topology, by_machine):
    loaded = Topology.load(topology)
    slots = np.bincount(loaded.slot_machine)
    shape = ClusterShape(tuple(loaded.slot_gpus), tuple(slots), tuple(loaded.rack_machines))
    plan = plan_floor(shape, (20, 80, 680, 600), 1.0)
    assert plan.by_machine == by_machine
    assert len(plan.items) == (loaded.num_machines if by_machine else loaded.num_gpus)
    drawn = np.zeros((640, 960), np.int64)
    for left, top, right, bottom in plan.items:
        drawn[top:bottom, left:right] += 1
    assert drawn.max() == 1, "two share a pixel"
    assert drawn[80:600, 20:680].sum() == drawn.sum() and min(box[2] - box[0] for box in plan.items) > 0


@pytest.mark.parametrize("racks", [8, pytest.param(100, marks=pytest.mark.slow)])
def test_a_cluster_of_many_gpus(racks):
    simulator = played(f"dally:racks={racks}", f"poisson:jobs=400,gpus=8/16/64,cluster_gpus={64 * racks}", 50)
    text = draw_ansi(simulator)
    assert len(text.splitlines()) < 70 and max(map(len, text.splitlines())) <= 100
    assert draw_rgb(simulator).shape == (640, 960, 3)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_text_keeps_to_its_width_and_is_printable(busy, width):
    lines = draw_ansi(busy, width).splitlines()
    assert max(map(len, lines)) <= width
    assert all(line.isprintable() for line in lines)


def test_text_names_each_job_by_its_own_character(busy):
    scene, lines = read_scene(busy), draw_ansi(busy).splitlines()
    start = next(i for i, line in enumerate(lines) if "rack 0" in line)
    grid = "".join(re.sub(r"(?:^|   ) ?\d+ ", " ", line) for line in lines[start + 1 : lines.index("", start)])
    assert grid.count("x") == scene.down
    assert grid.count(".") == scene.free
    used = {mark for mark in grid if mark in SYMBOLS}
    assert len(used) == len(scene.running)


def test_times_in_words():
    assert [clock(0), clock(3661.9), clock(90_000)] == ["00:00:00", "01:01:01", "1 d 01:00:00"]
    assert [span(0.0), span(9.94), span(59.0), span(240.0), span(86_400.0), span(864_000.0), span(np.inf)] == [
        "0 s", "9.9 s", "59 s", "4.0 min", "24 h", "10 d", "-",
    ]  # fmt: skip
    assert [cut("abc", 3), cut("abcdef", 4)] == ["abc", "ab.."]


def test_a_window_shows_frames_until_it_is_closed(monkeypatch, busy):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    pygame = pytest.importorskip("pygame")
    window = Window(fps=0)
    assert window.show(draw_rgb(busy))
    assert window.show(draw_rgb(busy, (640, 420)))
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    assert not window.show(draw_rgb(busy))
    assert not window.is_open and not window.show(draw_rgb(busy))
    window.close()


def test_without_a_display_a_window_says_so(monkeypatch, busy):
    monkeypatch.setenv("SDL_VIDEODRIVER", "nonsense")
    pytest.importorskip("pygame").display.quit()
    with pytest.raises(InputError, match="cannot open a window"):
        Window().show(draw_rgb(busy))


RUN = ["--workload", "poisson:jobs=20,backlog=5,cluster_gpus=64", "--frames", "5", "--policy", "fifo"]


def rendered(capsys, path, *more: str) -> dict:
    assert cli.run(["render", "Delay", "--out", str(path), "--json", *RUN, *more]) == 0
    return json.loads(capsys.readouterr().out)


def test_render_png(capsys, tmp_path):
    """Without --at the moment with the longest queue; with it the decision point at or before."""
    from PIL import Image

    told = rendered(capsys, tmp_path / "a.png")
    assert Image.open(tmp_path / "a.png").size == (960, 640)
    assert told["kind"] == "png" and "longest queue" in told["sentence"]
    told = rendered(capsys, tmp_path / "b.png", "--at", "2000", "--size", "800x600")
    assert Image.open(tmp_path / "b.png").size == (800, 600)
    assert 0.0 < told["time_s"] <= 2000.0


@pytest.mark.parametrize("kind", ["svg", "pdf"])
def test_render_charts_for_a_paper(capsys, tmp_path, kind):
    """Which job held what when, what was in use, the queue; they have their own size, and show no single moment."""
    told = rendered(capsys, tmp_path / f"a.{kind}")
    content = (tmp_path / f"a.{kind}").read_bytes()
    assert content.startswith(b"<svg" if kind == "svg" else b"%PDF") and told["metrics"]["jct_mean"] > 0.0
    if kind == "svg":
        assert all(words in content for words in (b"job held which GPU", b"GPUs in use over time", b"Queue over time"))
    for more, says in ((("--at", "5"), ".png"), (("--size", "800x600"), "size of their own")):
        assert cli.run(["render", "Delay", "--out", str(tmp_path / f"b.{kind}"), *RUN, *more]) == 2
        assert says in capsys.readouterr().err


def test_render_gif(capsys, tmp_path):
    from PIL import Image

    assert rendered(capsys, tmp_path / "a.gif")["frames"] == 5
    with Image.open(tmp_path / "a.gif") as image:
        assert (image.n_frames, image.size, image.info["loop"]) == (5, (960, 640), 0)


def test_render_mp4(capsys, tmp_path):
    ffmpeg = pytest.importorskip("imageio_ffmpeg")
    rendered(capsys, tmp_path / "a.mp4", "--size", "641x421")
    assert ffmpeg.count_frames_and_secs(str(tmp_path / "a.mp4"))[0] == 5
    assert next(ffmpeg.read_frames(str(tmp_path / "a.mp4")))["size"] == (640, 420)


def test_render_html_loads_nothing(capsys, tmp_path):
    rendered(capsys, tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text()
    assert not re.search(r"https?://|//cdn|@import|<link", page)
    assert len(json.loads(re.search(r"const pictures = (\[.*?\]);", page)[1])) == 5
    assert "color-scheme: light dark" in page


def test_render_plays_what_the_simulator_plays(capsys, tmp_path):
    told = rendered(capsys, tmp_path / "a.png", "--network", "none", "--policy", "las")
    simulator = Simulator("dally:racks=2,machines=4", rule=make("las").rule)
    simulator.reset(open_workload("poisson:jobs=20,backlog=5,cluster_gpus=64", seed=0, cluster_gpus=64))
    expected = simulator.run()
    assert {name: value for name, value in told["metrics"].items() if value is not None} == {
        name: value for name, value in expected.items() if np.isfinite(value)
    }


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--out", "a.webp"], "expected one of .png, .gif, .mp4, .html"),
        (["--out", "a"], "expected one of .png, .gif, .mp4, .html"),
        (["--out", "a.gif", "--at", "3"], "--at 3"),
        (["--out", "a.png", "--at", "nan"], "--at nan"),
        (["--out", "a.png", "--size", "9x9"], "WIDTHxHEIGHT"),
        (["--out", "a.png", "--policy", "nobody"], "unknown policy"),
    ],
)
def test_render_refuses_in_one_sentence(capsys, tmp_path, monkeypatch, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    assert cli.run(["render", "Delay", "--policy", "fifo", *arguments]) == 2
    told = capsys.readouterr().err
    assert sentence in told and told.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_missing_writer_is_named_with_the_command_that_installs_it(monkeypatch):
    """Also where Pillow is missing: the extra [video] brings both, [render] only one."""
    film.pillow.cache_clear()
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingExtra, match=r'imageio-ffmpeg; install it with: pip install "clustergym\[video\]"'):
        film.expect_writer("mp4")
