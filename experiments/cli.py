"""The command line `clustergym`: names of commands, exit statuses, and one sentence for every mistake."""

from __future__ import annotations

import io
import os
import re
import shlex
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Annotated, Any

import typer

from ..simulator.base.errors import ClustergymError
from .commands import bench, communication, compare, evaluate, listing, render, reproduce, train, tune, warm, whatif
from .commands import option_files as files
from .commands import workload_commands as workloads
from .console import interrupt
from .console.terminal import BadArgument, json_alone, one_line, say, typed

FAILED, BAD_ARGUMENTS = 1, 2
SETTING = re.compile(r"[A-Za-z_][\w.]*=")  # how a KEY=VALUE begins
# click's UsageError, or that of the copy of click that newer versions of typer carry
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]
app = typer.Typer(
    name="clustergym",
    help="Scheduling of deep-learning jobs on GPU clusters: simulate, compare, inspect, draw.",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        from .. import __version__

        print(f"clustergym {__version__}")
        raise typer.Exit()


@app.callback(invoke_without_command=True)
def clustergym(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Scheduling of deep-learning jobs on GPU clusters: simulate, compare, inspect, draw."""
    if context.invoked_subcommand is None:
        print(context.get_help())


app.command()(listing.envs)
app.command()(listing.policies)
app.command()(listing.topologies)
app.command()(listing.networks)
app.command()(listing.workloads)
app.command()(listing.options)
app.command()(evaluate.evaluate)
app.command()(whatif.whatif)
app.command()(train.train)
app.command()(train.name_columns)
app.command()(tune.tune)
app.command()(compare.compare)
app.add_typer(workloads.app, name="workload")
app.add_typer(files.outages, name="outages")
app.add_typer(files.prices, name="prices")
app.command()(render.render)
app.command()(reproduce.reproduce)
app.command()(communication.communication)
app.command()(warm.warm)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(bench.bench)


def run(arguments: Sequence[str]) -> int:
    """Run one command of `clustergym`; returns the exit status."""
    return run_app(app, arguments)


def run_app(program: typer.Typer, arguments: Sequence[str], start: str = "clustergym") -> int:
    """Run `program`, typed after `start`; returns the exit status: 0, 1 failed, 2 bad arguments, 130 interrupted."""
    before = typed.set(f"{start} {shlex.join(map(str, arguments))}".rstrip())
    try:
        return _status(program, arguments)
    finally:
        typed.reset(before)


def _status(program: typer.Typer, arguments: Sequence[str]) -> int:
    # Python has no stream where the shell closed it (`>&-`).
    sys.stdout = sys.stdout or io.StringIO()
    sys.stderr = sys.stderr or io.StringIO()
    try:
        with json_alone() if "--json" in arguments and arguments[0] != "bench" else nullcontext():
            outcome = _command(program)(with_settings_apart(arguments), prog_name="clustergym", standalone_mode=False)
        sys.stdout.flush()
        if outcome == interrupt.INTERRUPTED:  # of newer versions of typer, after Ctrl-C
            interrupt.leave()
        return outcome if isinstance(outcome, int) else 0
    except BrokenPipeError:
        return _seen_enough()
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):  # typer makes this of it
            return _seen_enough()
        raise  # a benchmark's own
    except typer.Abort as stop:
        if isinstance(stop.__context__, EOFError):  # click takes that for a Ctrl-D at a question; we ask none
            raise stop.__context__ from None
        interrupt.leave()
        return interrupt.INTERRUPTED
    except KeyboardInterrupt:
        interrupt.leave()
        return interrupt.INTERRUPTED
    except BadArgument as error:
        say(error)
        return BAD_ARGUMENTS
    except _UsageError as error:
        say(_usage_sentence(error))
        return BAD_ARGUMENTS
    except ClustergymError as error:
        say(error)
    except OSError as error:
        place = f"{error.filename}: {error.strerror}; name a place that can be written to"
        say(place if error.filename is not None else error)
    except MemoryError:
        say("out of memory; a smaller workload or topology needs less")
    return FAILED


def _command(program: typer.Typer) -> Any:
    """The click command of `program`, without the `<bool>` that newer versions of typer show for a flag."""
    program_command: Any = typer.main.get_command(program)
    found = [(program_command, None)]
    for command, parent in found:  # grows meanwhile
        context: Any = typer.Context(command, parent=parent, **command.context_settings)
        found += [(child, context) for child in getattr(command, "commands", {}).values()]
        for option in command.get_params(context):
            if getattr(option, "is_flag", False) and option.metavar is None:
                option.metavar = ""
    return program_command


def with_settings_apart(arguments: Sequence[str]) -> list[str]:
    """`--set` before each of several KEY=VALUE that follow one: `--set a=1 b=2` is `--set a=1 --set b=2`."""
    found: list[str] = []
    follows = False  # the last word was a value of --set
    for word in map(str, arguments):
        if follows and SETTING.match(word):
            found.append("--set")
        follows = found[-1:] == ["--set"] or word.startswith("--set=")
        found.append(word)
    return found


def _seen_enough() -> int:
    """The reader has closed our output: this is no failure, and the rest of the buffer goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _usage_sentence(error: BaseException) -> str:
    text = one_line(error.format_message())  # type: ignore[attr-defined]
    context = getattr(error, "ctx", None)
    if "extra argument" in text:
        takes_lists = context is not None and any("--policies" in one.opts for one in context.command.params)
        hint = 'a list is one quoted value, as in --policies "fifo sjf"' if takes_lists else "leave it out"
        text = f"{text.rstrip('.')}; {hint}"
    if text.startswith("No such option") and context is not None and context.parent is None:
        text += "; options follow the command, as in clustergym evaluate Delay --seeds 0-4"
    return f"{text} (see {context.command_path} --help)" if context is not None else text


def main() -> None:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal that lacks a character is no reason to stop
    interrupt.watch()
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
