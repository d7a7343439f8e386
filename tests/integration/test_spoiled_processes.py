"""A method that changes the state of its process changes no other cell's bits."""

from __future__ import annotations

import pytest
from integration_kit import TOY, Workshop, stored

from harness.engine import EngineOptions

SPOILER = '''
import os, sys, time, torch
from harness import Baseline, hookimpl, hparam

class Spoiler(Baseline):
    """ERM that spoils its process."""

    name = "spoiler"
    how: str = hparam("", help="code that spoils")

    def on_epoch_end(self, validation_score):
        exec(self.how)

    def loss(self, batch):
        return {"erm": self.risk(self(batch), batch).mean()}

@hookimpl
def bench_register(register):
    register(Spoiler)
'''
WAYS = (
    "torch.set_default_dtype(torch.float64); torch.set_float32_matmul_precision('medium')",
    "torch.inference_mode().__enter__(); torch.autocast('cpu', torch.bfloat16).__enter__()",
    "torch.set_grad_enabled(False); torch.set_default_device('meta'); torch.manual_seed = torch.Generator.manual_seed",
    "torch.nn.functional.relu = torch.relu = torch.tanh; torch.nn.init.uniform_ = torch.nn.init.zeros_",
    "sys.path.clear(); os.chdir('/'); os.environ.clear(); os.umask(0o777); sys.setrecursionlimit(80)",
)


def suite(methods: str) -> str:
    head = TOY.split("datasets:")[0].replace("toy_plugin.py", "toy_plugin.py, spoiler.py")
    head = head.replace("[1, 2]", "[1]").replace("epochs: 2", "epochs: 1")
    return f"{head}datasets:\n  Toy: {{use: toy}}\nmethods:\n{methods}"


@pytest.mark.parametrize(("engine", "ways"), [("processes", WAYS), ("inline", WAYS[:1])])
def test_no_other_cell_changes(workshop: Workshop, engine: str, ways: tuple[str, ...]) -> None:
    workshop.write(SPOILER, "spoiler.py")
    ours = [f"  ERM {number}: {{baseline: erm, train: {{batch_size: {number + 4}}}}}\n" for number in range(len(ways))]
    spoilers = [
        f'  Spoiler {number}: {{baseline: {{use: spoiler, how: "{way}"}}}}\n' for number, way in enumerate(ways)
    ]
    plain = workshop.write(suite("".join(ours)), "plain.yaml")
    workshop.run(plain, EngineOptions("inline"))
    alone = stored(workshop.open(plain))
    workshop.place = workshop.folder / "another"
    each = "".join(spoiler + our for spoiler, our in zip(spoilers, ours, strict=True))
    workshop.run(workshop.write(suite(each)), EngineOptions(engine, jobs=1))
    assert len(alone) == 2 * len(ways) + 3
    assert stored(workshop.open(plain)) == alone
