"""What reaches the terminal: nothing that it would obey, and nothing at all of progress where quiet is asked for."""

from __future__ import annotations

import time

from rich.text import Text

from clustergym.experiments.cli import run
from clustergym.experiments.console.terminal import out, plain_table, progress, shown, warnings_on_one_line
from clustergym.simulator.compiler import compile_messages

TRACE = "job_id,arrival_s,gpus,duration_s\na,0,1,5\n"


def test_what_a_terminal_obeys_is_shown_as_python_writes_it():
    assert shown("a\x1b[31m\x9b\u202eb\u2066\x07 ü🙂\n\tc") == "a\\x1b[31m\\x9b\\u202eb\\u2066\\x07 ü🙂\n\tc"


def test_cells_of_tables_are_shown_so_too(capsys):
    table = plain_table()
    table.add_column("n\x1b[1mame")
    table.add_row("ro\x1b[2Jw")
    out().print(table)
    out().print("li\x1b[2Jne", markup=False)
    said = capsys.readouterr().out
    assert "\x1b" not in said and "n\\x1b[1mame" in said and "ro\\x1b[2Jw" in said and "li\\x1b[2Jne" in said


def test_texts_are_shown_so_in_cells_and_lines_of_their_own(capsys):
    """What a table calls policies is text of its own; another user's folder may say how they are called."""
    table = plain_table()
    table.add_column(Text("na\x1b[1mme"))
    table.add_row(Text("ro\x1b]0;title\x07w\u202e"))
    out().print(table, Text("li\x1b[2Jne"))
    said = capsys.readouterr().out
    assert not {"\x1b", "\x07", "\u202e"} & set(said)
    assert "na\\x1b[1mme" in said and "ro\\x1b]" in said and "li\\x1b[2Jne" in said


def test_the_name_of_a_file_is_not_obeyed(capsys, tmp_path):
    path = tmp_path / "e\x1b[31mvil.csv"
    path.write_text(TRACE)
    assert run(["workload", "inspect", str(path)]) == 0
    said = capsys.readouterr()
    assert "\x1b" not in said.out + said.err and "e\\x1b[31mvil" in said.out
    assert run(["workload", "inspect", str(tmp_path / "no\x1b[31mne.csv")]) == 2
    assert "no\\x1b[31mne.csv: there is no such file" in capsys.readouterr().err


def test_quiet_says_nothing_of_compiling(capsys, monkeypatch):
    monkeypatch.setattr(compile_messages, "PATIENCE_S", 0.0)
    for quiet, says in ((True, False), (False, True)):
        with progress("playing", 1.0, quiet), compile_messages.waiting_message("compiling"):
            time.sleep(0.1)
            said, until_s = capsys.readouterr().err, time.monotonic() + 30.0
            while says and "compiling" not in said and time.monotonic() < until_s:  # a busy machine takes its time
                time.sleep(0.01)
                said += capsys.readouterr().err
        assert ("compiling" in said) == says


def test_quiet_says_nothing_of_compiling_before_anything_is_played(capsys):
    """As where a setting is opened, or an agent is loaded; without `quiet` it is said."""
    for quiet in (True, False):
        with warnings_on_one_line(quiet):
            compile_messages._messages[-1].say(f"compiling while quiet is {quiet}", 1.0)
    assert capsys.readouterr().err == "clustergym: compiling while quiet is False (once) ...\n"
