"""Source digests: what makes a component stale, and what does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.registry.source_digest import (
    HARNESS,
    component_digest,
    core_digest,
    core_files,
    read_code,
    tree_digest,
)

GIN = '''"""GIN."""
from harness import Backbone, hparam

class GIN(Backbone):
    """Text."""

    name = "gin"
    eps: float = hparam(0.0, help="self weight", search=[0.0, 1.0])

    def forward(self, batch):
        """Text."""
        return batch.x * (1 + self.eps)  # a comment
'''
FILES = {
    "plugins/__init__.py": "",
    "plugins/backbones/__init__.py": "",
    "plugins/backbones/gin.py": GIN,
    "plugins/backbones/gcn.py": "WEIGHT = 1\n",
    "plugins/encoders/__init__.py": "",
    "plugins/encoders/_common.py": "from plugins.backbones.gin import GIN\n",
    "plugins/encoders/mvgrl.py": "from . import _common\n",
    "plugins/baselines/erm.py": "import torch\nfrom harness import Baseline\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small ``plugins`` package, and a core of as many files as ours with next to nothing in them."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for file in HARNESS.rglob("*.py"):
        path = tmp_path / "harness" / file.relative_to(HARNESS)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"NAME = {file.name!r}\n")
    return tmp_path


COMPONENTS = {
    "gin": ("backbone", "plugins/backbones/gin.py"),
    "gcn": ("backbone", "plugins/backbones/gcn.py"),
    "mvgrl": ("encoder", "plugins/encoders/mvgrl.py"),
    "erm": ("baseline", "plugins/baselines/erm.py"),
    "data": ("dataset", "plugins/backbones/gcn.py"),
}


def digests(tree: Path) -> dict[str, str]:
    roots = {"plugins": tree}
    return {
        name: component_digest(read_code(tree / file, roots).digest, core_digest(kind, tree / "harness"))
        for name, (kind, file) in COMPONENTS.items()
    }


def digest_of(file: Path) -> str:
    return tree_digest(file, file.read_bytes())


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def changed_by(tree: Path, file: str, old: str = "", new: str = "EDITED = 1\n") -> set[str]:
    """The components whose digest an edit changes; by default a statement is appended."""
    before = digests(tree)
    if old:
        edit(tree / file, old, new)
    else:
        with (tree / file).open("a") as stream:
            stream.write(f"\n{new}")
    after = digests(tree)
    return {name for name in before if before[name] != after[name]}


@pytest.mark.parametrize(
    "file",
    [
        "cli/main.py",
        "report/table.py",
        "registry/discovery.py",
        "store/store.py",
        "errors.py",
        "stages/score.py",
        "plan/build.py",
    ],
)
def test_editing_what_computes_nothing_makes_nothing_stale(tree: Path, file: str) -> None:
    assert changed_by(tree, f"harness/{file}") == set()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# a comment", "# another"),
        ('"""Text."""', '"""Other text."""'),
        ('        """Text."""\n', ""),
        ('"""GIN."""', ""),
        ('help="self weight"', 'help="weight of self"'),
        ("search=[0.0, 1.0]", "search=[0.0, 0.5, 1.0]"),
        ("return batch.x * (1 + self.eps)", "return (\n            batch.x * (1 + self.eps)\n        )"),
        ('    name = "gin"\n', '    name = "gin"\n    """A documented attribute."""\n'),
        ('    name = "gin"\n', '    name = "gin"\n    probes = {"*": {"eps": 1.0}}\n'),
        ("import Backbone, hparam", "import Backbone, Download, hparam"),
        ('    name = "gin"\n', '    name = "gin"\n    listed = ({"eps": 1.0},)\n'),
        ("    def forward", "    def downloads(self, _):\n        import plugins.backbones.gcn\n\n    def forward"),
    ],
)
def test_text_and_layout_make_nothing_stale(tree: Path, old: str, new: str) -> None:
    assert changed_by(tree, "plugins/backbones/gin.py", old, new) == set()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(1 + self.eps)", "(2 + self.eps)"),
        ("(1 + self.eps)", "(1.0 + self.eps)"),
        ("hparam(0.0", "hparam(0.1"),
        ("batch.x", "batch.y"),
        ('"gin"', "'Gin'"),
        ('    name = "gin"\n', '    name = "gin"\n    probed = {"*": {"eps": 1.0}}\n'),
        ("return batch.x", "probes = batch.x\n        return probes"),
        ("# a comment", "\n\n\ndef downloads():\n    pass"),
    ],
)
def test_editing_a_module_makes_it_and_its_importers_stale(tree: Path, old: str, new: str) -> None:
    assert changed_by(tree, "plugins/backbones/gin.py", old, new) == {"gin", "mvgrl"}


def test_an_edit_reaches_through_a_helper_and_no_further(tree: Path) -> None:
    assert changed_by(tree, "plugins/encoders/_common.py") == {"mvgrl"}
    assert changed_by(tree, "plugins/encoders/__init__.py") == {"mvgrl"}
    assert changed_by(tree, "plugins/backbones/gcn.py") == {"gcn", "data"}


@pytest.mark.parametrize(
    "file", ["nn/layers.py", "training/bases.py", "training/loop.py", "randomness.py", "stages/train.py"]
)
def test_editing_a_numerics_room_makes_everything_but_datasets_stale(tree: Path, file: str) -> None:
    assert changed_by(tree, f"harness/{file}") == {"gin", "gcn", "mvgrl", "erm"}


def test_editing_how_graphs_are_packed_makes_everything_stale(tree: Path) -> None:
    assert changed_by(tree, "harness/graphs/packed.py") == set(COMPONENTS)
    assert changed_by(tree, "harness/stages/prepare.py") == {"data"}


def test_a_new_file_in_a_room_counts(tree: Path) -> None:
    (tree / "harness/nn/brand_new.py").touch()
    assert changed_by(tree, "harness/nn/brand_new.py") == {"gin", "gcn", "mvgrl", "erm"}


def test_every_room_exists() -> None:
    assert {file.name for file in core_files("baseline")} > {
        "packed.py",
        "layers.py",
        "loop.py",
        "randomness.py",
        "train.py",
    }
    assert [file.name for file in core_files("dataset")] == ["packed.py", "batch.py", "checks.py", "prepare.py"]


def test_moving_or_renaming_a_plugin_file_makes_nothing_stale(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two" / "deep"
    for folder, name in ((one, "x.py"), (two, "renamed.py")):
        folder.mkdir(parents=True)
        (folder / name).write_text("from helper import A\nimport absent\n")
        (folder / "helper.py").write_text("A = 1\n")
    first = read_code(one / "x.py", {"helper": one, "x": one}).digest
    assert first == read_code(two / "renamed.py", {"helper": two, "renamed": two}).digest
    (two / "helper.py").write_text("A = 2\n")
    assert first != read_code(two / "renamed.py", {"helper": two, "renamed": two}).digest


def test_dotted_relative_and_cyclic_imports(tmp_path: Path) -> None:
    texts = {
        "pkg/__init__.py": "",
        "pkg/plugin.py": "import pkg.sub.deep\nfrom .other import x\n",
        "pkg/other.py": "from pkg import plugin\n",
        "pkg/sub/__init__.py": "from ..third import y\n",
        "pkg/sub/deep.py": "",
        "pkg/third.py": "",
        "pkg/unused.py": "",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = read_code(tmp_path / "pkg/plugin.py", {"pkg": tmp_path}).contents
    assert {path.relative_to(tmp_path).as_posix() for path in found} == set(texts) - {"pkg/unused.py"}


def test_a_function_of_pass_is_a_function_of_a_docstring(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f():\n    pass\n")
    (tmp_path / "b.py").write_text('def f():\n    """Text."""\n')
    (tmp_path / "c.py").write_text("def f():\n    return 1\n")
    assert digest_of(tmp_path / "a.py") == digest_of(tmp_path / "b.py") != digest_of(tmp_path / "c.py")


def test_values_of_equal_text_differ_by_type(tmp_path: Path) -> None:
    sources = [
        "A = 1",
        "A = '1'",
        "A = b'1'",
        "A = 1.0",
        "A = True",
        "A = None",
        "A = 1j",
        "B = 1",
        "A = -1",
        "A = ...",
        "A: int = 1",
    ]
    for number, text in enumerate(sources):
        (tmp_path / f"{number}.py").write_text(text)
    assert len({digest_of(tmp_path / f"{number}.py") for number in range(len(sources))}) == len(sources)


LOCAL = """
def f(a, *, b=1):
    total = a + b
    for item in a:
        total += g(item)
    return total
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("total", "result"),
        ("item", "graph"),
        ("def f", "from harness.nn import g\n\ndef f"),
    ],
)
def test_names_of_variables_and_imports_from_the_core_do_not_enter(tmp_path: Path, old: str, new: str) -> None:
    file = tmp_path / "x.py"
    file.write_text(LOCAL)
    before = digest_of(file)
    edit(file, old, new)
    assert digest_of(file) == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return total", "return item"),
        ("total += g(item)", "total += g(total)"),
        ("*, b=1", "*, total=1"),
        ("a, *", "c, *"),
        ("g(item)", "h(item)"),
        ("    total = a + b\n", "    global total\n    total = a + b\n"),
        ("def f", "from torch import g\n\ndef f"),
        ("def f", "from harness.nn import h as g\n\ndef f"),
    ],
)
def test_another_use_of_a_name_enters(tmp_path: Path, old: str, new: str) -> None:
    file = tmp_path / "x.py"
    file.write_text(LOCAL)
    before = digest_of(file)
    edit(file, old, new)
    assert digest_of(file) != before


def test_a_parameter_within_is_not_the_variable_outside(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    digests = set()
    for name in ("x", "y"):
        file.write_text(f"def f():\n    {name} = 1\n    def g(x):\n        return {name}\n    return g\n")
        digests.add(digest_of(file))
    assert len(digests) == 2


def test_a_core_file_may_move(tree: Path) -> None:
    before = digests(tree)
    (tree / "harness/nn/layers.py").rename(tree / "harness/nn/zzz.py")
    assert digests(tree) == before


TOLD = """
class Mine:
    listed = 1

    def downloads(self):
        return [1]

    def loss(self):
        return READ
"""


@pytest.mark.parametrize(("old", "new"), [("listed = 1", "listed = 2"), ("return [1]", "return [2]")])
@pytest.mark.parametrize("where", ["the class", "another file"])
def test_what_is_for_people_enters_where_a_method_reads_it(tmp_path: Path, old: str, new: str, where: str) -> None:
    file, other = tmp_path / "mine.py", tmp_path / "other.py"

    def digest(reads: str, text: str) -> str:
        here, there = (reads, "0") if where == "the class" else ("0", reads)
        file.write_text("import other\n" + text.replace("READ", here))
        other.write_text(f"def f(self):\n    return {there}\n")
        return read_code(file, {"mine": tmp_path, "other": tmp_path}).digest

    for reads in ("self.listed, self.downloads()", "getattr(self, 'listed'), getattr(self, 'downloads')"):
        assert digest(reads, TOLD) != digest(reads, TOLD.replace(old, new))
    assert digest("0", TOLD) == digest("0", TOLD.replace(old, new))
