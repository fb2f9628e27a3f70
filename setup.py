"""What pyproject.toml cannot say: the text for a package index, and a build that takes nothing from an earlier one."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class FreshBuild(build_py):
    """Modules that were renamed or removed since the last build are not in the next wheel, nor is this file."""

    def run(self) -> None:
        """Copy the modules into an empty folder."""
        if not self.editable_mode:
            shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        """As ever, less this file, which lies in the folder of the root package."""
        found = super().find_package_modules(package, package_dir)
        return [entry for entry in found if (entry[0], entry[1]) != ("clustergym", "setup")]


def for_an_index(readme: str) -> str:
    """The README without pictures, and with the words alone of links that only work beside the source tree."""
    without_pictures = re.sub(r"^!\[[^\]]*\]\((?!https?:)[^)]*\)\n+", "", readme, flags=re.MULTILINE)
    return re.sub(r"\[([^\]]*)\]\((?!https?:|#|mailto:)[^)]*\)", r"\1", without_pictures)


setup(
    long_description=for_an_index((Path(__file__).parent / "README.md").read_text(encoding="utf-8")),
    long_description_content_type="text/markdown",
    cmdclass={"build_py": FreshBuild},
)
