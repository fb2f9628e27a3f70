"""How kernels become machine code: lowered one by one, linked, optimised and translated once for every entry.

Numba makes each compiled function ready to run: it optimises it together with a copy of all that it calls, and
translates that. Of kernels that only kernels call nobody needs this: as many levels deep as a kernel lies, as often its
code would be optimised anew. So of these only the intermediate code is kept.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from llvmlite import binding as llvm
from numba import _dynfunc, types
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, CompileResult, DefaultPassBuilder
from numba.core.compiler_machinery import LoweringPass, PassManager, register_pass
from numba.core.typed_passes import NativeLowering
from numba.core.untyped_passes import WithLifting

from .known import AnswerQuestions

# A record of 200 fields takes a millisecond, and numba writes the types of arguments out at every step: with kernels an
# eighth of the time to compile. They never change.
types.Record.__repr__ = cache(types.Record.__repr__)


class _Library(JITCodeLibrary):
    """The code of one kernel and of all that it calls, in parts: LLVM bitcode, a module a kernel."""

    parts: dict[bytes, None]  # an ordered set
    runs: bool  # whether Python can call it
    _final_module: Any
    _shared_module: Any

    @classmethod
    def of(cls, codegen: Any, name: str, runs: bool) -> _Library:
        """An empty one."""
        library = cls(codegen, name)
        library.parts = {}
        library.runs = runs
        library.enable_object_caching()
        return library

    def finalize(self) -> None:
        """Numba's hook: all code of its own and all libraries that it calls have been added."""
        self._raise_if_finalized()
        for library in self._linking_libraries:
            self._reload_init.update(library._reload_init)
            if isinstance(library, _Library):
                self.parts.update(library.parts)
            else:
                self.parts[library._get_module_for_linking().as_bitcode()] = None
        own = _linkable(self._final_module)
        if self.runs:
            self._final_module = self._linked(self._final_module)
            self._optimize_final_module()
            self._final_module.verify()
            self._finalize_final_module()
        else:
            self._finalize_dynamic_globals()
            self._finalized = True
        self.parts[own] = None

    def _linked(self, module: Any) -> Any:
        """The module, with all parts that it needs."""
        for part in reversed(self.parts):  # callers first: LLVM takes only what is called already
            module.link_in(llvm.parse_bitcode(part))
        return module

    def _get_module_for_linking(self) -> Any:
        """Numba's hook: for callers that are no kernels."""
        self._ensure_finalized()
        if self._shared_module is None:
            own = next(reversed(self.parts))
            self._shared_module = self._linked(llvm.parse_bitcode(own))
        return self._shared_module

    def serialize_using_object_code(self) -> tuple[Any, ...]:
        """Numba's hook: what a cache file holds."""
        self._ensure_finalized()
        names = tuple(function.name for function in self.get_defined_functions())
        return self.name, tuple(self.parts), (names, self._get_compiled_object()) if self.runs else None

    @classmethod
    def from_cache(cls, codegen: Any, state: tuple[Any, ...]) -> _Library:
        """What `serialize_using_object_code` was given."""
        name, parts, translated = state
        library = cls.of(codegen, name, translated is not None)
        library.parts = dict.fromkeys(parts)
        if translated is None:
            library._finalized = True
            return library
        names, machine_code = translated
        library._set_compiled_object(machine_code)
        library._finalize_final_module()
        codegen._engine._defined_symbols.update(names)
        return library


def _linkable(module: Any) -> bytes:
    """A copy that can be linked several times."""
    copied = module.clone()
    for function in copied.functions:
        if not function.is_declaration and function.linkage == llvm.Linkage.external:
            function.linkage = "linkonce_odr"
    return copied.as_bitcode()


def _name_for(library: _Library, fndesc: Any, environment: Any) -> Any:
    """What numba knows a kernel by that Python never calls: of the type that it wants, without code behind it."""
    return _dynfunc.make_function(
        fndesc.lookup_module(), fndesc.qualname.split(".")[-1], "", 0, environment, (library,)
    )


@register_pass(mutates_CFG=False, analysis_only=False)
class _Offer(LoweringPass):
    """Let other kernels call one that has not been made ready to run."""

    _name = "clustergym_offer"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        """Numba's hook."""
        lowered = state.cr
        name = _name_for(state.library, lowered.fndesc, lowered.env)
        state.targetctx.insert_user_function(name, lowered.fndesc, [state.library])
        state.cr = lowered._replace(cfunc=name)
        return True


class _Compiler(CompilerBase):
    """Numba's, with answers before it drops dead branches, and with libraries of ours."""

    runs: bool

    def define_pipelines(self) -> list[PassManager]:
        """The passes, in order."""
        state = self.state
        state.library = _Library.of(state.targetctx.codegen(), state.func_id.func_qualname, self.runs)
        state.flags.no_compile = not self.runs
        passes = DefaultPassBuilder.define_nopython_pipeline(state)
        passes.add_pass_after(AnswerQuestions, WithLifting)
        if not self.runs:
            passes.add_pass_after(_Offer, NativeLowering)
        passes.finalize()
        return [passes]


class KernelCompiler(_Compiler):
    """For what only kernels call."""

    runs = False


class EntryCompiler(_Compiler):
    """For what Python calls as well."""

    runs = True


class _Cached(CompileResultCacheImpl):
    """How `KernelCache` writes and reads."""

    def reduce(self, cres: Any) -> tuple[Any, ...]:
        """What a file holds."""
        cres = cres._replace(type_annotation="")  # the types of all variables, written out: longer than the code
        return cres._reduce()

    def rebuild(self, target_context: Any, payload: tuple[Any, ...]) -> CompileResult:
        """What `reduce` was given."""
        code, fndesc, environment, signature, _, lifted, annotation, reload_init, _ = payload
        library = _Library.from_cache(target_context.codegen(), code)
        named = target_context.get_executable if library.runs else _name_for
        return CompileResult(
            target_context=target_context,
            typing_context=target_context.typing_context,
            library=library,
            environment=environment,
            entry_point=named(library, fndesc, environment),
            fndesc=fndesc,
            type_annotation=annotation,
            signature=signature,
            objectmode=False,
            lifted=lifted,
            typing_error=None,
            call_helper=None,
            metadata=None,
            reload_init=reload_init,
            referenced_envs=(),
        )


class KernelCache(FunctionCache):
    """Numba's, for libraries of ours."""

    _impl_class = _Cached
