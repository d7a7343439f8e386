"""Writes a new component from the templates beside this file. No torch.

The templates are working components: their Python files are linted and type-checked with the rest of this package. To
make a new one of them, six words are replaced (:attr:`harness.authoring.names.Names.words`), and nothing else.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path

from harness.authoring.names import Names, checked
from harness.component import require_kind
from harness.errors import UserError
from harness.registry.catalog import Catalog

_TEMPLATES = Path(__file__).parent / "templates"
_PLUGINS_LINE = "plugins: [./new_component.py]\n"
_PACKAGE = {
    "pyproject.toml": "package/pyproject.toml.txt",
    "README.md": "package/README.md.txt",
    ".gitignore": "package/gitignore.txt",
    ".github/workflows/ci.yml": "package/ci.yml.txt",
    "bench_new_component/__init__.py": "package/init.py.txt",
    "tests/test_new_component.py": "package/test.py.txt",
}
"""File of a distribution -> template, beside the component and its suite."""


def names_of(kind: str, name: str, catalog: Catalog) -> Names:
    """The names of a new component.

    Raises:
        UserError: no such kind, or the name cannot be used.
    """
    return checked(require_kind(kind), name, _read(f"{kind}.py"), catalog)


def example(kind: str) -> str:
    """What the component that is written does, in a line: it is a method of its own, and to be changed."""
    return (ast.get_docstring(ast.parse(_read(f"{kind}.py"))) or "").partition("\n")[0]


def single_file(names: Names) -> dict[str, str]:
    """File name -> text: the component, and a suite that compares it."""
    texts = {"new_component.py": _read(f"{names.kind}.py"), "new_component.yaml": _read(f"{names.kind}.yaml")}
    return _filled(texts, names)


def distribution(names: Names) -> dict[str, str]:
    """File name -> text of a distribution: package with entry point, tests, continuous integration, suite."""
    texts = {file: _read(template) for file, template in _PACKAGE.items()}
    texts["bench_new_component/py.typed"] = ""
    texts["bench_new_component/new_component.py"] = _read(f"{names.kind}.py")
    suite = _read(f"{names.kind}.yaml").replace(_PLUGINS_LINE, "")
    # The component is found by its entry point, and the suite bears another name than a single file's.
    texts["suite.yaml"] = suite.replace(" --plugin new_component.py", "").replace("new_component.yaml", "suite.yaml")
    return _filled(texts, names)


def write(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write files below a folder, which is made where it is not there.

    Raises:
        UserError: one of them is there already (then none is written), or they cannot be written.
    """
    paths = {folder / name: text for name, text in texts.items()}
    there = [path for path in paths if path.exists() or path.is_symlink()]
    if there:
        raise UserError(f"{there[0]} is there already, and nothing was written; choose another name or --folder")
    try:
        for path, text in paths.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as stream:
                stream.write(text)
    except OSError as error:
        raise UserError(f"cannot write {error.filename or folder}: {error.strerror or error}") from None
    return list(paths)


def _read(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _filled(texts: Mapping[str, str], names: Names) -> dict[str, str]:
    """The same with the names of the new component in place of the template's."""
    words = names.words
    pattern = re.compile("|".join(map(re.escape, words)))

    def filled(text: str) -> str:
        return pattern.sub(lambda found: words[found[0]], text)

    return {filled(name): filled(text) for name, text in texts.items()}
