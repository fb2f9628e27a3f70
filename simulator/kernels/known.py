"""Questions to a record that its type answers: settled before a kernel is compiled, so that branches on them vanish.

In a record without links `if has_links(s): ...` is never taken. LLVM would find that out as well, but only when every
kernel below has been compiled for such records: a quarter of the time that the first use of a size class takes.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from types import SimpleNamespace
from typing import Any

from numba.core import ir, types
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.ir_utils import build_definitions, get_definition, guard

ANSWER = "answer_by_type"  # attribute of a compiled question: the Python function


class _Sizes:
    """What a question may look at: `s.FIELD.size` of a record type."""

    def __init__(self, record: types.Record) -> None:
        self._record: Any = record

    def __getattr__(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(size=prod(self._record.typeof(name).shape))


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
    asked = guard(get_definition, state.func_ir, value.func)
    question: Callable[[Any], bool] | None = getattr(getattr(asked, "value", None), ANSWER, None)
    about = guard(get_definition, state.func_ir, value.args[0])
    if question is None or not isinstance(about, ir.Arg):
        return None
    record = state.args[about.index]
    return bool(question(_Sizes(record))) if isinstance(record, types.Record) else None
