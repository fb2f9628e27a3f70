"""What can go wrong, as one small family of exceptions. The command line prints their message and nothing else."""


class ClustergymError(Exception):
    """Base of every error that clustergym raises on purpose; the message is one sentence for a person."""


class InputError(ClustergymError, ValueError):
    """A user's mistake in a file, a specification, a name or an argument; names the place, the value and the rule."""


class InvalidDecision(ClustergymError, ValueError):
    """A decision that cannot be carried out now; the simulator's state is exactly as it was before."""


class Stalled(ClustergymError, RuntimeError):
    """Jobs are waiting, but no event is left to come and nothing was started."""


class Endless(Stalled):
    """Time passes, but nothing gets done, and nothing ever will."""


class MissingExtra(ClustergymError, ImportError):
    """An optional dependency is not installed; the message says which command installs it."""
