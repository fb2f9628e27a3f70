"""The code of kernels: kept in parts of LLVM bitcode, linked, optimised and translated once for every entry.

Numba makes each compiled function ready to run: it optimises it together with a copy of all that it calls, and
translates that. Kernels that only kernels call do not need this: as many levels deep as a kernel lies, as often its
code would be optimised anew. So of these only the intermediate code is kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from llvmlite import binding as llvm
from numba.core.codegen import JITCodeLibrary

from .record_outline import PREFIX


@dataclass(frozen=True)
class Part:
    """The bitcode of one function, and the keys of the parts that it needs; numba's own are of several."""

    bitcode: bytes
    needs: tuple[str, ...]
    is_numbas: bool = False


PARTS: dict[str, Part] = {}


def needed_by(roots: tuple[str, ...]) -> list[str]:
    """Keys of the parts that those of `roots` need, with these: a caller comes before what it calls."""
    found: dict[str, None] = {}

    def visit(key: str) -> None:
        if key not in found:
            for other in PARTS[key].needs:
                visit(other)
            found[key] = None

    for root in roots:
        visit(root)
    return list(reversed(found))


class Library(JITCodeLibrary):
    """The code of one kernel; with all that it calls if Python can call it.

    Attributes:
        key: of its part.
        runs: whether Python can call it.
        constants: what it knows of the records that it is for, see record_outline.py.
    """

    _final_module: Any
    _shared_module: Any

    def __init__(self, codegen: Any, name: str, key: str, runs: bool, constants: Mapping[str, int]) -> None:
        super().__init__(codegen, name)
        self.key, self.runs, self.constants = key, runs, constants
        self.enable_object_caching()

    def finalize(self) -> None:
        """Numba's hook: all code of its own and all libraries that it calls have been added."""
        self._raise_if_finalized()
        needs: dict[str, None] = {}
        for library in self._linking_libraries:
            needs[library.key if isinstance(library, Library) else _part_of(library)] = None
        PARTS[self.key] = Part(_linkable(self._final_module), tuple(needs))
        if self.runs:
            own = {function.name for function in self.get_defined_functions()}
            self._link(self._final_module)
            for function in self.get_defined_functions():
                if function.name not in own:  # another entry may have it too, for records of another size
                    function.linkage = llvm.Linkage.internal
            self._optimize_final_module()
            self._final_module.verify()
            self._finalize_final_module()
        else:
            self._finalize_dynamic_globals()
            self._finalized = True

    def _optimize_final_module(self) -> None:
        """Numba's, but for its first round, which is for counting references."""
        passes, builder = self._codegen._module_pass_manager()
        with self._recorded_timings.record("Module passes", builder):
            passes.run(self._final_module, builder)

    def _link(self, module: Any) -> None:
        """Modify the module: with all parts that it needs, and with the constants that these name."""
        for key in needed_by((self.key,))[1:]:  # callers first: LLVM takes only what is called already
            module.link_in(llvm.parse_bitcode(PARTS[key].bitcode))
        named = [v.name for v in module.global_variables if v.is_declaration and v.name.startswith(PREFIX)]
        unknown = [name for name in named if name not in self.constants]
        if unknown:
            raise TypeError(f"{self.name}: {unknown[0]}: records go to kernels through an @entry, in arrays")
        lines = [f'@"{name}" = linkonce_odr constant i64 {self.constants[name]}' for name in named]
        module.link_in(llvm.parse_assembly("\n".join([f'target triple = "{module.triple}"', *lines])))
        for name in named:
            module.get_global_variable(name).linkage = llvm.Linkage.internal

    def _get_module_for_linking(self) -> Any:
        """Numba's hook: for callers that are no kernels."""
        self._ensure_finalized()
        if self._shared_module is None:
            self._shared_module = llvm.parse_bitcode(PARTS[self.key].bitcode)
            self._link(self._shared_module)
        return self._shared_module

    def machine_code(self) -> tuple[tuple[str, ...], bytes]:
        """What it defines and what that is, once it runs."""
        return tuple(function.name for function in self.get_defined_functions()), self._get_compiled_object()

    def take_machine_code(self, names: tuple[str, ...], code: bytes) -> None:
        """Become what `machine_code` gave."""
        self._set_compiled_object(code)
        self._finalize_final_module()
        self._codegen._engine._defined_symbols.update(names)

    def take_part(self) -> None:
        """Become the kernel whose part is known already."""
        self._finalized = True


def _part_of(library: Any) -> str:
    """Key of a part with the code of a library of numba's own, and of all that it calls."""
    bitcode = library._get_module_for_linking().as_bitcode()
    key = hashlib.sha256(bitcode).hexdigest()[:32]
    PARTS[key] = Part(bitcode, (), is_numbas=True)
    return key


def _linkable(module: Any) -> bytes:
    """A copy that can be linked several times."""
    copied = module.clone()
    for function in copied.functions:
        if not function.is_declaration and function.linkage == llvm.Linkage.external:
            function.linkage = "linkonce_odr"
    return copied.as_bitcode()
