"""What pyproject.toml cannot say: the text for a package index, and the contents of a wheel.

A build uses nothing of an earlier build. CLUSTERGYM_PREBUILT=1 in the environment adds the compiled kernels of all
environments and policies (some minutes; the wheel is then for this platform and Python). That needs the package's own
dependencies beside setuptools: `pip wheel --no-build-isolation`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

PREBUILT = os.environ.get("CLUSTERGYM_PREBUILT") == "1"
# What the package that is built is asked, in a process of its own.
PROCESSORS = "print(*(name for _, name, _ in prebuilt.fitting(codegen.magic_tuple())))"
ASK = """
import json
from numba.core.registry import cpu_target
from clustergym.simulator.compiler import prebuilt
codegen = cpu_target.target_context.codegen()
"""
FINISH = "prebuilt.MADE_BY.write_text(json.dumps(prebuilt.maker()))"


class Platform(Distribution):
    """A wheel with compiled kernels fits this platform only."""

    def has_ext_modules(self) -> bool:
        """Setuptools' hook."""
        return PREBUILT or bool(super().has_ext_modules())


def compile_kernels(package: Path) -> None:
    """Put the entries of all environments and policies into the package below `package`, for each processor."""
    ready = package / "clustergym" / "simulator" / "compiler" / "ready"
    path = os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")])

    def python(*words: str, **environ: str) -> str:
        known = {key: value for key, value in os.environ.items() if not key.startswith(("NUMBA_", "CLUSTERGYM_"))}
        with tempfile.TemporaryDirectory() as folder:  # the source tree would be imported from its own
            made = [sys.executable, *words]
            env = {**known, "PYTHONPATH": path, **environ}
            return subprocess.run(made, check=True, stdout=subprocess.PIPE, text=True, cwd=folder, env=env).stdout

    for processor in python("-c", ASK + PROCESSORS).split():
        with tempfile.TemporaryDirectory() as cache:
            as_one = {"NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": cache}
            python("-m", "clustergym", "warm", "--large", "--quiet", "--jobs", str(os.cpu_count() or 1), **as_one)
            for code in Path(cache).glob("*/*/*_entry.code"):
                place = ready / code.relative_to(cache)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(code, place)
    python("-c", ASK + FINISH)


class FreshBuild(build_py):
    """Build without this file, and without modules that were renamed or removed since the last build."""

    def run(self) -> None:
        """Copy the modules into an empty folder."""
        if not self.editable_mode:
            shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        if PREBUILT and not self.editable_mode:
            compile_kernels(Path(self.build_lib).resolve())

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        """The modules of a package, without this file in the folder of the root package."""
        found = super().find_package_modules(package, package_dir)
        return [entry for entry in found if (entry[0], entry[1]) != ("clustergym", "setup")]


def for_an_index(readme: str) -> str:
    """The README without pictures; links that only work beside the source tree become plain words."""
    without_pictures = re.sub(r"^!\[[^\]]*\]\((?!https?:)[^)]*\)\n+", "", readme, flags=re.MULTILINE)
    return re.sub(r"\[([^\]]*)\]\((?!https?:|#|mailto:)[^)]*\)", r"\1", without_pictures)


setup(
    long_description=for_an_index((Path(__file__).parent / "README.md").read_text(encoding="utf-8")),
    long_description_content_type="text/markdown",
    cmdclass={"build_py": FreshBuild},
    distclass=Platform,
)
