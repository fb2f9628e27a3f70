"""What the documentation shows works: its commands, its Python, its notebook, and the README as a newcomer reads it."""

from __future__ import annotations

import re
import runpy
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer

from clustergym.experiments.cli import app, run, with_settings_apart
from clustergym.simulator.engine.metric_registry import METRICS, SECTIONS
from clustergym.tests.support.docs_blocks import PAGES, ROOT, SHELL, blocks, commands, mentions, name_of

DOCS = [page for page in PAGES if page.name != "README.md"]
EVALUATIONS = ("evaluate", "render")
LISTS = ("envs", "options", "policies", "topologies", "networks", "workloads")
OWN_TRACE = "job_id,arrival_s,gpus,duration_s,user\na,0,1,100,ann\nb,0,8,50,bob\nc,10,4,25,ann\n"
AGENT = re.compile(r"[a-z-]+:runs/|sb3:|py:agent\.py:")  # words of a user's own, which a page has trained before
EXITS = ("MissingParameter", "NoArgsIsHelpError", "BadOptionUsage", "Exit")  # left out, or an option that ends it


def block(page: str, language: str, holds: str = "") -> str:
    """The last block of a page in this language that holds the words."""
    return [each.text for each in blocks(ROOT / "docs" / page) if each.language == language and holds in each.text][-1]


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A working folder with the files that the pages name, each as its page shows it."""
    (tmp_path / "my-trace.csv").write_text(OWN_TRACE)
    (tmp_path / "my-cluster.yaml").write_text(block("concepts/topologies.md", "yaml", "name: my-cluster"))
    (tmp_path / "tiers.yaml").write_text(block("concepts/communication.md", "yaml", "tiers:"))
    (tmp_path / "layers.csv").write_text(block("concepts/communication.md", "csv", "model,layer"))
    (tmp_path / "mysched.py").write_text(block("tutorials/write-a-policy.md", "python", "class SmallestGangFirst"))
    (tmp_path / "mine.py").write_text(block("concepts/workloads.md", "python", "def bursts"))
    artist = (ROOT / "tests" / "data" / "workloads" / "synthetic_artist_sim.csv").read_text()
    (tmp_path / "batch_500.csv").write_text(artist)
    (tmp_path / "faults.json").write_text(block("concepts/failures.md", "json", "node_id"))
    (tmp_path / "drains.csv").write_text(block("concepts/failures.md", "csv", "start,end"))
    (tmp_path / "es.csv").write_text(block("concepts/regions.md", "csv", "EUR/MWh"))
    (tmp_path / "es-carbon.csv").write_text(block("concepts/regions.md", "csv", "Carbon Intensity"), encoding="utf-8")
    (tmp_path / "slurm-log.txt").write_text((ROOT / "docs" / "examples" / "slurm-log.txt").read_text())
    (tmp_path / "my-log.csv").write_text("job_id,arrival_s,gpus,duration_s,start_s\na,0,1,100,5\nb,0,8,50,9\n")
    hosts = "".join(f"host{i},G6,P{i // 8},S{i // 4}\n" for i in range(16))
    (tmp_path / "topo.csv").write_text("ip,DSW,PSW,ASW\n" + hosts)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("CLUSTERGYM_TRUST_SB3_ZIP", "0")  # parsing an option must not change what is trusted
    return tmp_path


def parsed(words: list[str]) -> tuple[str, dict[str, Any]]:
    """The command that the words name, and what its options are; raises as the command line would."""
    program = typer.main.get_command(app)
    context = program.make_context("clustergym", with_settings_apart(words))
    while hasattr(context.command, "resolve_command"):
        name, command, rest = context.command.resolve_command(context, [*context._protected_args, *context.args])
        context = command.make_context(name, rest, parent=context)
    return context.command_path.partition(" ")[2], dict(context.params)


def expect_known(name: str, options: dict[str, Any]) -> None:
    """Environments, policies, workloads, keys of --set ... that a command names exist."""
    from clustergym.experiments.commands.bench import _programs
    from clustergym.experiments.commands.options import chosen_policies, described_setting, open_setting
    from clustergym.experiments.reproduce.reproductions import reproductions

    if name in EVALUATIONS:
        words = [*(options.get("policies") or ()), *filter(None, [options.get("policy")])]
        made = {key: options.get(key) for key in ("workload", "topology", "network")}
        setting = described_setting(options["env"], **made, assignments=options.get("set_") or ())
        known = [word for word in " ".join(words).split() if not AGENT.match(word)]
        if known or not words:
            config = setting.config
            terms = (setting.environment, config.semantics.describe(), config.estimates.describe())
            chosen_policies(known, *terms, labels=name == "evaluate")
        open_setting(setting)
    elif name == "train":
        from clustergym.agents.training.config import assign, default_config, make_config
        from clustergym.experiments.commands.options import pairs

        values = default_config(options["env"])
        for key, text in pairs(options["set_"] or ()).items():
            assign(values, key, text)
        make_config(values, "configuration")
    elif name == "reproduce" and options["name"]:
        assert options["name"] in reproductions()
    elif name == "bench" and options["name"]:
        assert options["name"] in _programs()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_of_a_page_parses_and_names_what_there_is(page, folder):
    for words in commands(page):
        try:
            name, options = parsed(words)
            expect_known(name, options)
        except Exception as error:
            pytest.fail(f"{page.name}: clustergym {shlex.join(words)}: {error}")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_in_the_text_exists_with_its_options(page, folder):
    """Arguments may be left out in running text; what is said must be right."""
    program = typer.main.get_command(app)
    own = {"--help", *(name for option in program.params for name in option.opts)}
    for words in mentions(page):
        if words[0].startswith("--"):  # parsing these does what they say: --install-completion edits a shell's profile
            assert words[0] in own
            continue
        try:
            parsed(words)
        except Exception as error:
            assert type(error).__name__ in EXITS, f"{page.name}: clustergym {shlex.join(words)}: {error}"


def test_short_commands_of_the_docs_run(folder, capsys):
    """Lists, workloads and placements: whatever takes seconds, as it stands."""
    for page in PAGES:
        for words in commands(page):
            short = words[0] in (*LISTS, "communication", "outages", "prices") or (
                words[0] == "workload" and "fit-profile" not in words
            )
            if short or words == ["reproduce", "--list"]:
                assert run(words) == 0, f"{page.name}: clustergym {shlex.join(words)}: {capsys.readouterr().err}"
                capsys.readouterr()


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_evaluation_of_a_page_runs(page, folder, capsys):
    """Each with its first seed only; an agent that the page trains before is not there."""
    for words in commands(page):
        if words[0] == "evaluate" and not any(AGENT.search(word) for word in words):
            first = [] if "--seed" in words else ["--seeds", "0"]
            assert run([*words, *first, "--quiet"]) == 0, f"{shlex.join(words)}: {capsys.readouterr().err}"


def run_python(page: Path, folder: Path) -> None:
    """The Python of a page, one block after the other in one file, as a reader would paste it."""
    parts = [each.text for each in blocks(page) if each.language == "python" and each.runs]
    if parts:
        script = folder / "pasted.py"
        script.write_text("\n".join(parts))
        runpy.run_path(str(script), run_name="__main__")


def test_the_python_of_the_readme_and_the_first_pages_runs(folder):
    for name in ("README.md", "docs/start/tour.md", "docs/tutorials/write-a-policy.md"):
        run_python(ROOT / name, folder)


@pytest.mark.slow
@pytest.mark.parametrize("page", DOCS, ids=name_of)
def test_the_python_of_every_page_runs(page, folder):
    if page.name == "evaluating.md":  # it reads what its command above wrote
        words = ["evaluate", "Delay", "--policies", "greedy dally", "--seeds", "0-2", "--logdir", "results", "--quiet"]
        assert run(words) == 0
    if page.name == "models.md":
        (folder / "measured.csv").write_text(block("concepts/models.md", "", "model,gpu,placement"))
        assert run(["workload", "fit-profile", "measured.csv", "--to", "my-models.json"]) == 0
    run_python(page, folder)


@pytest.mark.slow
def test_every_command_of_the_readme_runs_in_its_order(folder, capsys):
    """Cut to two seeds and 4,000 steps of training; `pip` and `make` have tests of their own."""
    pytest.importorskip("sb3_contrib")
    pytest.importorskip("PIL")
    less = {
        "train": ["--timesteps", "4000", "--set", "evaluations=1", "validation_seeds=2"],
        "evaluate": ["--seeds", "0-1"],
    }
    (folder / "my-trace.csv").unlink()  # a command makes it
    for words in commands(ROOT / "README.md"):
        assert run([*words, *less.get(words[0], [])]) == 0, f"{shlex.join(words)}: {capsys.readouterr().err}"


def test_the_trace_of_the_readme_plays_in_sharing_at_the_first_try(folder, capsys):
    """Its models and batches are those of Sharing-v0's network, interference and memory; nothing is assumed."""
    (made,) = [words for words in commands(ROOT / "README.md") if words[:2] == ["workload", "generate"]]
    assert made[made.index("--to") + 1] == "my-trace.csv"
    assert run([*made, "--jobs", "20"]) == 0
    played = ["evaluate", "Sharing", "--workload", "my-trace.csv", "--topology", "flat:machines=16"]
    assert run([*played, "--policies", "fifo", "--seeds", "0"]) == 0
    assert "assumed" not in capsys.readouterr().err


def test_every_other_line_of_the_readme_is_pip_or_a_target_of_make():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for each in blocks(ROOT / "README.md"):
        if each.language in SHELL:
            for line in each.text.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                if words and words[0] == "make":
                    assert words[1] in targets
                elif words and words[0] == "pip":
                    wanted = re.fullmatch(r"\.(?:\[([\w,]+)\])?", words[2])
                    assert words[1] == "install" and wanted, line
                    assert set((wanted[1] or "all").split(",")) <= set(extras), line
                else:
                    assert not words or words[0] == "clustergym", line


def test_help_of_make_lists_every_target():
    outcome = subprocess.run(
        ["make", "--no-print-directory", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    targets = re.findall(r"^\.PHONY: (help .*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[0].split()
    assert [line.split()[0] for line in outcome.stdout.splitlines()] == targets
    assert "train a small agent" in outcome.stdout


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_nothing_points_outside_the_repository(page):
    text = page.read_text()
    assert "../shared" not in text
    for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#]*)(?:#[^)]*)?\)", text):
        made = Path("start/first_hour.md")  # of the notebook, by docs/hooks.py
        path = (page.parent / target).resolve()
        assert path.exists() or path == ROOT / "docs" / made, f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_that_a_page_names_exist(page):
    rooms = "simulator|policies|envs|agents|experiments|benchmarks|tests|docs"
    named = re.findall(rf"`((?:{rooms})/[\w/.*-]+)`", page.read_text())
    assert [name for name in named if not list(ROOT.glob(name))] == []


def test_pages_that_the_code_names_exist():
    rooms = ("simulator", "policies", "envs", "agents", "experiments")
    files = [ROOT / "pyproject.toml", *(path for room in rooms for path in (ROOT / room).rglob("*.py"))]
    named = {name for path in files for name in re.findall(r"\bdocs/[\w/-]+\.md", path.read_text())}
    assert "docs/tutorials/write-a-policy.md" in named
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_every_metric_has_a_tag_of_its_own_and_a_table_on_a_page():
    assert len({metric.tag for metric in METRICS.values()}) == len(METRICS) == sum(map(len, SECTIONS.values()))
    shown = re.findall(r"^<!-- metrics: (\w+) -->$", "".join(page.read_text() for page in DOCS), re.MULTILINE)
    assert sorted(shown) == sorted(SECTIONS)


def test_every_page_is_in_the_navigation():
    listed = set(re.findall(r"(\w[\w/-]*\.md)\s*$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert listed == {name_of(page) for page in DOCS} | {"start/first_hour.md"}


ENVIRONMENTS = sorted((ROOT / "docs" / "environments").glob("[!i]*.md"))
SHAPE = ("An episode", "Action", "Observation", "Reward", "Playing a policy", "Training", "Pictures", "Parameters")


@pytest.mark.parametrize("page", ENVIRONMENTS, ids=name_of)
def test_pages_of_environments_have_one_shape(page):
    """These headings in this order, its own between Reward and Playing; the columns come from columns.py."""
    text = page.read_text()
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert [heading for heading in headings if heading in SHAPE] == list(SHAPE)
    assert headings[:4] == list(SHAPE[:4]) and headings[-4:] == list(SHAPE[-4:])
    folder = re.findall(r"^<!-- columns: (\w+) -->$", text, re.MULTILINE)
    assert len(folder) == 1 and (ROOT / "envs" / folder[0] / "columns.py").exists()


def test_the_picture_at_the_top_is_a_film_of_at_most_a_megabyte():
    pillow = pytest.importorskip("PIL.Image")
    path = ROOT / re.findall(r"!\[[^\]]*\]\(([^)]*)\)", (ROOT / "README.md").read_text())[0]
    assert path.stat().st_size <= 1_000_000
    with pillow.open(path) as picture:
        assert picture.n_frames > 20


def test_the_notebook_runs_and_prints_what_the_page_shows(tmp_path):
    """But for the agent's figure: training differs between versions of torch."""
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    for extra in ("ipykernel", "sb3_contrib", "PIL"):
        pytest.importorskip(extra)
    stored = nbformat.read(ROOT / "docs" / "examples" / "first_hour.ipynb", as_version=4)
    fresh = nbformat.reads(nbformat.writes(stored), as_version=4)
    nbclient.NotebookClient(
        fresh, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()

    def printed(notebook: Any) -> list[str]:
        cells = [cell for cell in notebook.cells if "varies" not in cell.metadata.get("tags", [])]
        return [out["text"] for cell in cells for out in cell.get("outputs", []) if out.get("name") == "stdout"]

    assert printed(fresh) == printed(stored) != []
