"""Questions to a record that its type answers: answered before a kernel is compiled, so that branches on them vanish.

In a record without links `if has_links(s): ...` is never taken. LLVM would find that out as well, but only when every
kernel below has been compiled: a quarter of the time that the first use takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from numba import types
from numba.core import ir
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.dispatcher import Dispatcher
from numba.core.ir_utils import build_definitions, get_definition, guard

from ..function_keys import named_by
from .record_outline import Outline, outline_of

ANSWER = "answer_by_type"  # attribute of a compiled question: the Python function
_QUESTIONS: WeakKeyDictionary[Any, dict[str, Callable[[Any], bool]]] = WeakKeyDictionary()  # by kernel


def questions_of(kernel: Any) -> dict[str, Callable[[Any], bool]]:
    """The questions that a kernel asks, or one that it calls, by name."""
    known = _QUESTIONS.get(kernel)
    if known is None:
        known = _QUESTIONS[kernel] = {}
        function = kernel.py_func
        question = getattr(kernel, ANSWER, None)
        if question is not None:
            known[function.__name__] = question
        for called in named_by(function).values():
            if isinstance(called, Dispatcher):
                known.update(questions_of(called))
    return known


@register_pass(mutates_CFG=False, analysis_only=False)
class AnswerQuestions(FunctionPass):
    """Put constants in place of the questions that are asked of a kernel's own arguments."""

    _name = "clustergym_answer_questions"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        """Numba's hook."""
        answered = False
        for block in state.func_ir.blocks.values():
            for statement in block.find_insts(ir.Assign):
                answer = _answer(state, statement.value)
                if answer is not None:
                    statement.value = ir.Const(answer, statement.loc)
                    answered = True
        if answered:
            state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        return answered


def _answer(state: Any, value: Any) -> bool | None:
    if not isinstance(value, ir.Expr) or value.op != "call" or len(value.args) != 1:
        return None
    asked = getattr(guard(get_definition, state.func_ir, value.func), "value", None)
    about = guard(get_definition, state.func_ir, value.args[0])
    if not hasattr(asked, ANSWER) or not isinstance(about, ir.Arg):
        return None
    record = state.args[about.index]
    if isinstance(record, types.Record):
        record = outline_of(record, questions_of(asked))
    name = asked.py_func.__name__  # type: ignore[union-attr]  # what has an answer is a kernel
    return record.answers.get(name) if isinstance(record, Outline) else None
