"""From a Python function to code: the passes that a kernel goes through, and what is kept of it on disk."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from copy import copy
from importlib import import_module
from operator import attrgetter
from typing import Any

import numba
from numba import _dynfunc, types
from numba.core import serialize, sigutils
from numba.core.compiler import CompilerBase, CompileResult, Flags, compile_result
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import LoweringPass, PassManager, register_pass
from numba.core.lowering import Environment
from numba.core.registry import CPUDispatcher
from numba.core.typed_passes import (
    AnnotateTypes,
    InlineOverloads,
    NoPythonBackend,
    NoPythonSupportedFeatureValidation,
    PreLowerStripPhis,
)
from numba.core.typing import signature
from numba.core.untyped_passes import (
    DeadBranchPrune,
    FixupArgs,
    GenericRewrites,
    IRProcessing,
    ReconstructSSA,
    RewriteSemanticConstants,
    TranslateByteCode,
)

from . import prebuilt
from .code_files import Store, key_of
from .compile_messages import waiting_message
from .extensions.bundle import Bundle, bundled, name_of
from .extensions.linking import PARTS, Library, Part
from .extensions.lowering import LowerKernel
from .extensions.record_outline import Outline, constants_of, outline_of
from .extensions.type_inference import InferTypes
from .extensions.type_queries import AnswerQuestions, questions_of
from .function_keys import made_from
from .interpreting import Interpreted

ENTRY = "_entry"  # ends the keys of what runs by itself
OPTIONS = {"nopython": True, "nogil": True, "error_model": "numpy", "_nrt": False, "boundscheck": None}


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


def _name_for(library: Library, fndesc: Any, environment: Any) -> Any:
    """What numba knows a kernel by that Python never calls: of the type that it wants, without code behind it."""
    return _dynfunc.make_function(
        fndesc.lookup_module(), fndesc.qualname.split(".")[-1], "", 0, environment, (library,)
    )


# Numba's, without those for what kernels have none of: closures, `with`, whole arrays, counted references.
PASSES = (
    TranslateByteCode,
    FixupArgs,
    IRProcessing,
    AnswerQuestions,
    RewriteSemanticConstants,
    DeadBranchPrune,
    GenericRewrites,
    ReconstructSSA,
    DeadBranchPrune,
    InferTypes,
    PreLowerStripPhis,
    InlineOverloads,
    NoPythonSupportedFeatureValidation,
    AnnotateTypes,
    LowerKernel,
)


class _Pipeline(CompilerBase):
    """Numba's, with our passes and libraries.

    Attributes:
        key: of what is compiled.
        runs: whether Python can call it.
        constants: see `Library`.
    """

    key: str
    runs: bool
    constants: dict[str, int]

    def define_pipelines(self) -> list[PassManager]:
        """The passes, in order."""
        state = self.state
        # Symbols are named by it: the parts that several processes have made must not have the same ones.
        state.func_id.unique_id = self.key
        state.func_id.unique_name = f"{state.func_id.func_qualname}${self.key}"
        codegen = state.targetctx.codegen()
        state.library = Library(codegen, state.func_id.func_qualname, self.key, self.runs, self.constants)
        state.flags.no_compile = not self.runs
        passes = PassManager("clustergym")
        passes._ENFORCING = False  # no second look after each pass: they are the same for all kernels, and tested
        for made in (*PASSES, *(() if self.runs else (_Offer,)), NoPythonBackend):
            passes.add_pass(made, made.__name__)
        passes.finalize()
        return [passes]


class _Compiled(CPUDispatcher):
    """A function that is compiled for each combination of types of arguments that it is called with.

    Attributes:
        runs: whether Python can call it.
        waits: whether Python may run it before there is code of it.
        python: what does so, once there was none.
    """

    runs: bool
    waits = False
    python: Interpreted | None = None

    def __init__(self, function: Any, store: Store, options: dict[str, Any]) -> None:
        super().__init__(py_func=function, locals={}, targetoptions=OPTIONS | options)
        self._store = store

    def __reduce__(self) -> tuple[Any, ...]:
        """It is copied and sent to other processes as the name that it has in its module."""
        return _named, (self.py_func.__module__, self.py_func.__qualname__)

    def compile(self, sig: Any) -> Any:
        """Numba's hook: something to call it by for these arguments."""
        arguments, _ = sigutils.normalize_signature(sig)
        known = self.overloads.get(tuple(arguments))
        if known is not None:
            return known.entry_point
        with global_compiler_lock:
            host = self.targetctx.codegen().magic_tuple()
            result, key = self._ready(host, arguments), self._key(host, arguments)
            if result is None:
                result = self._read(key, arguments, self._store)
            if result is None and self.runs:
                if self.waits:
                    self.python = self.python or Interpreted(self.py_func)
                    if self.python.may_wait:
                        return self.python.until(lambda: self.compile(arguments))
                prebuilt.say_if_unfit(host)
                with self._store.alone(key, waiting_message("waiting for another process that is compiling")):
                    result = self._read(key, arguments, self._store) or self._made(key, arguments)
            elif result is None:
                result = self._made(key, arguments)
            self.add_overload(result)
            return result.entry_point

    def _made(self, key: str, arguments: tuple[types.Type, ...]) -> CompileResult:
        self._cache_misses[arguments] += 1
        with waiting_message() if self.runs else nullcontext(), _patient():
            result = self._compile(key, arguments)
        self._keep(key, result)
        return result

    def _ready(self, host: tuple[str, str, str], arguments: tuple[types.Type, ...]) -> CompileResult | None:
        """What came with the package, for the best processor that this one is."""
        for processor in prebuilt.fitting(host) if self.runs and prebuilt.came() else ():
            result = self._read(self._key(processor, arguments), arguments, prebuilt.STORE)
            if result is not None:
                return result
        return None

    def _key(self, processor: tuple[str, str, str], arguments: tuple[types.Type, ...]) -> str:
        return key_of(made_from(self.py_func), *processor, *map(name_of, arguments)) + (ENTRY if self.runs else "")

    def _compile(self, key: str, arguments: tuple[types.Type, ...]) -> CompileResult:
        flags = Flags()
        self.targetdescr.options.parse_as_flags(flags, self.targetoptions)
        names = self.py_func.__code__.co_varnames
        wanted = {name: bundled(kind) for name, kind in zip(names, arguments, strict=False)}
        gathered = {name: kind for name, kind in wanted.items() if isinstance(kind, Bundle)}  # once, at the beginning
        pipeline = _Pipeline(self.typingctx, self.targetctx, None, arguments, None, flags, gathered)
        pipeline.key, pipeline.runs, pipeline.constants = key, self.runs, _constants_for(arguments)
        return pipeline.compile_extra(self.py_func)

    def _keep(self, key: str, result: CompileResult) -> None:
        if result.library.has_dynamic_globals:
            return
        fndesc = copy(result.fndesc)
        for name in ("argtypes", "typemap", "calltypes", "global_dict", "doc"):  # large, and known without being kept
            setattr(fndesc, name, None)
        needs = PARTS[key].needs
        kept = serialize.dumps((result.signature.return_type, fndesc, result.environment if self.runs else None))
        code = result.library.machine_code() if self.runs else (PARTS[key].bitcode, needs)
        for other in needs if not self.runs else ():
            if PARTS[other].is_numbas:
                self._store.write(other, pickle.dumps(((PARTS[other].bitcode, ()), None)))
        self._store.write(key, pickle.dumps((code, kept)))

    def _read(self, key: str, arguments: tuple[types.Type, ...], store: Store) -> CompileResult | None:
        data = store.read(key)
        if data is None:
            return None
        try:
            return self._taken(key, arguments, data)
        except Exception:  # it is what was written, but that cannot be used: whatever it is, it can be made anew
            store.discard(key)
            return None

    def _taken(self, key: str, arguments: tuple[types.Type, ...], data: bytes) -> CompileResult | None:
        code, kept = pickle.loads(data)
        if not self.runs and not all(_take_part(self._store, other) for other in code[1]):
            return None
        self._cache_hits[arguments] += 1
        returned, fndesc, environment = pickle.loads(kept)
        fndesc.argtypes, fndesc.doc = arguments, self.py_func.__doc__
        self.targetctx.refresh()
        library = Library(self.targetctx.codegen(), fndesc.qualname, key, self.runs, {})
        if self.runs:
            library.take_machine_code(*code)
            entry_point = self.targetctx.get_executable(library, fndesc, environment)
        else:
            PARTS[key] = Part(*code)
            library.take_part()
            environment = Environment.from_fndesc(fndesc)
            entry_point = _name_for(library, fndesc, environment)
            self.targetctx.insert_user_function(entry_point, fndesc, [library])
        return compile_result(
            target_context=self.targetctx,
            typing_context=self.typingctx,
            library=library,
            environment=environment,
            entry_point=entry_point,
            fndesc=fndesc,
            signature=signature(returned, *arguments),
            objectmode=False,
        )


class Kernel(_Compiled):
    """A function that only compiled code can call: once for records of all sizes, and for any whole number."""

    runs = False

    def __init__(self, function: Any, store: Store) -> None:
        super().__init__(function, store, {"no_cpython_wrapper": True, "no_cfunc_wrapper": True})

    def __call__(self, *_arguments: Any, **_named: Any) -> Any:
        """From Python it would be the end of the process."""
        raise TypeError(f"{self.py_func.__qualname__} is a kernel for other kernels; what Python calls is an @entry")

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Numba's hook: how it is called with arguments of these types."""
        return super().get_call_template(tuple(map(self._general, args)), {k: self._general(v) for k, v in kws.items()})

    def _general(self, kind: types.Type) -> types.Type:
        # Numba compiles a function anew for every constant that a call hands it; once for any integer is enough, and a
        # third less to compile.
        kind = types.unliteral(kind)
        if isinstance(kind, types.Record):
            return outline_of(kind, questions_of(self))
        if isinstance(kind, types.NestedArray):
            return types.Array(kind.dtype, kind.ndim, "C")
        return kind.asked(questions_of(self)) if isinstance(kind, Outline) else bundled(kind)


class Entry(_Compiled):
    """A function that Python can call as well.

    Attributes:
        kernel: what compiled code calls.
    """

    runs = waits = True

    def __init__(self, function: Any, store: Store) -> None:
        super().__init__(function, store, {"no_cfunc_wrapper": True})
        self.kernel = Kernel(function, store)
        self.kernel._cache_hits = self._cache_hits

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """What it returns; numba's look at the types of arguments takes longer than Python's run of most."""
        if self.python is not None and self.python.may_wait:
            return self.python(*arguments, **named)
        return super().__call__(*arguments, **named)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Numba's hook."""
        return self.kernel.get_call_template(args, kws)

    def get_overload(self, sig: Any) -> Any:
        """Numba's hook: what compiled code calls."""
        return self.kernel.get_overload(sig)

    def for_types_of(self, *examples: Any) -> Any:
        """Its machine code for arguments of exactly the types of `examples`."""
        return self.compile(tuple(numba.typeof(example) for example in examples))


class Search(Entry):
    """An entry that is compiled when it is first called."""

    waits = False


def _named(module: str, name: str) -> Any:
    return attrgetter(name)(import_module(module))


def _take_part(store: Store, key: str) -> bool:
    """Whether a part is known, and all that it needs; it may lie in the store."""
    if key in PARTS:
        return True
    data = store.read(key)
    if data is None:
        return False
    part = Part(*pickle.loads(data)[0])
    if not all(_take_part(store, other) for other in part.needs):
        return False
    PARTS[key] = part
    return True


def _constants_for(arguments: tuple[types.Type, ...]) -> dict[str, int]:
    """What the sizes of the records among the arguments, or in arrays there, come to."""
    constants: dict[str, int] = {}
    for kind in arguments:
        record = kind.dtype if isinstance(kind, types.Array) else kind
        if isinstance(record, types.Record):
            constants |= constants_of(record)
    return constants


@contextmanager
def _patient() -> Iterator[None]:
    """Look for garbage rarely meanwhile: there is much that is new and little that goes."""
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], 200_000), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
