"""Write a new component from the templates beside this file. No torch.

The templates are working components: their Python files are linted and type-checked with the rest of this package. A
new one is made by replacing six words (:attr:`Names.words`).
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.component import require_kind
from harness.errors import UserError
from harness.registry.catalog import Catalog
from harness.registry.importing import find_spec
from harness.safe_io import writing

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
LONGEST = 40
"""Characters of a name: lines that hold it stay short enough for every formatter."""
_KEBAB = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


@dataclass(frozen=True)
class Names:
    """One component's kind, and its name in suites, such as ``my-method``."""

    kind: str
    name: str

    @property
    def module(self) -> str:
        """``my_method``."""
        return self.name.replace("-", "_")

    @property
    def words(self) -> dict[str, str]:
        """Return the words of a template with their replacements."""
        return {
            "new-component": self.name,
            "new_component": self.module,
            "NewComponent": self.name.title().replace("-", ""),
            "New component": self.name.replace("-", " ").capitalize(),
            "new component": self.name.replace("-", " "),
            "component-kind": self.kind,
        }


def names_of(kind: str, name: str, catalog: Catalog) -> Names:
    """Return the names of a new component.

    Args:
        catalog: the components that exist.

    Raises:
        UserError: no such kind; or the name is not in kebab case, is taken, or is a module's, a word of Python's or a
            name in the example.
    """
    names = Names(require_kind(kind), name)
    if not _KEBAB.fullmatch(name) or len(name) > LONGEST:
        raise UserError(
            f"'{name}' is not a name for a component: lower-case letters, digits and single dashes, a letter first, "
            f"at most {LONGEST} characters"
        )
    taken = catalog.find(kind, name)
    if taken is not None:
        raise UserError(
            f"the {kind} '{name}' is there already ({taken.file}); choose another name, such as 'my-{name}'"
        )
    spec = find_spec(names.module)
    elsewhere = spec is not None and Path(spec.origin or "").resolve().parent != Path.cwd()
    if elsewhere or any(map(keyword.iskeyword, names.words.values())):
        raise UserError(f"'{name}' is the name of another Python module or a word of Python's; write 'my-{name}'")
    used = {node.id for node in ast.walk(ast.parse(_read(f"{kind}.py"))) if isinstance(node, ast.Name)}
    if names.words["NewComponent"] in used - {"NewComponent"}:
        raise UserError(f"'{name}' is a name in the example that the file starts from; write 'my-{name}'")
    return names


def example(kind: str) -> str:
    """Return a line on what the example component does."""
    return (ast.get_docstring(ast.parse(_read(f"{kind}.py"))) or "").partition("\n")[0]


def single_file(names: Names) -> dict[str, str]:
    """Return the texts of the component and of a suite that compares it, by file name."""
    texts = {"new_component.py": _read(f"{names.kind}.py"), "new_component.yaml": _read(f"{names.kind}.yaml")}
    return _filled(texts, names)


def distribution(names: Names) -> dict[str, str]:
    """Return the texts of a distribution by file name: package with entry point, tests, CI, suite."""
    texts = {file: _read(template) for file, template in _PACKAGE.items()}
    texts["bench_new_component/py.typed"] = ""
    texts["bench_new_component/new_component.py"] = _read(f"{names.kind}.py")
    suite = _read(f"{names.kind}.yaml").replace(_PLUGINS_LINE, "")
    # The component is found by its entry point, and the suite bears another name than a single file's.
    texts["suite.yaml"] = suite.replace(" --plugin new_component.py", "").replace("new_component.yaml", "suite.yaml")
    return _filled(texts, names)


def write(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write files below a folder, which is created if it does not exist.

    Raises:
        UserError: one of them exists (then none is written), or they cannot be written.
    """
    paths = {folder / name: text for name, text in texts.items()}
    existing = [path for path in paths if path.exists() or path.is_symlink()]
    if existing:
        raise UserError(f"{existing[0]} is there already, and nothing was written; choose another name or --folder")
    for path, text in paths.items():
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as stream:
                stream.write(text)
    return list(paths)


def _read(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _filled(texts: Mapping[str, str], names: Names) -> dict[str, str]:
    """Replace the names of the template by those of the new component."""
    words = names.words
    pattern = re.compile("|".join(map(re.escape, words)))

    def filled(text: str) -> str:
        return pattern.sub(lambda match: words[match[0]], text)

    return {filled(name): filled(text) for name, text in texts.items()}
