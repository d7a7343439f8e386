"""Components that show what they were handed: an upstream training's outputs, and what an environment provides."""

import torch

from harness import Baseline, Environment, hookimpl, hparam, upstream


class Student(Baseline):
    """ERM that keeps its assistant's outputs among its weights."""

    name = "student"
    mode: str = hparam("assisted", choices=["assisted", "alone"], help="with or without the assistant")
    rule: str = hparam("best-val", choices=["best-val", "last"], help="the assistant's weights")
    upstream = {  # noqa: RUF012
        "assistant": upstream("baseline", "erm", train={"epochs": 6}, when={"mode": ["assisted"]}, checkpoint="$rule")
    }

    def build(self):
        super().build()
        outputs = self.info.task.outputs
        self.register_buffer("seen", torch.zeros(self.info.num_train, outputs))

    def on_fit_start(self, train):  # noqa: ARG002
        if "assistant" in self.upstream_outputs:
            self.seen.copy_(self.upstream_outputs["assistant"].logits)


class Halves(Environment):
    """Two halves with a number for each graph; ``wrong`` breaks the contract in a chosen way."""

    name = "halves"
    provides = frozenset({"weight", "rows"})
    wrong: str = hparam("", choices=["", "missing", "more", "short", "ids"], help="what is wrong")

    def assign(self, train, oracle, upstream):  # noqa: ARG002
        n = len(train)
        ids, given = torch.arange(n) * 2 // n, {"weight": torch.arange(n) / 2, "rows": torch.eye(n)}
        if self.wrong == "missing":
            del given["rows"]
        if self.wrong == "more":
            given["else"] = torch.zeros(n)
        if self.wrong == "short":
            given["rows"] = given["rows"][1:]
        return ids if self.wrong == "ids" else (ids, given)


class Weighing(Baseline):
    """ERM that keeps what its environment provides among its weights, looked up by each batch."""

    name = "weighing"
    needs = frozenset({"environments", "weight"})
    default_environment = "halves"

    def build(self):
        super().build()
        self.register_buffer("seen", torch.full((self.info.num_train, 2), -1.0))
        self.register_buffer("sizes", torch.zeros(2, dtype=torch.int64))
        self.register_buffer("steps", torch.tensor(0))

    def loss(self, batch):
        self.seen[batch.index, 0] = self.annotations["weight"][batch.index]
        self.seen[batch.index, 1] = batch.env.float()
        self.sizes, self.steps = batch.env.bincount(minlength=2), torch.tensor(self.total_steps)
        return super().loss(batch)


@hookimpl
def bench_register(register):
    register(Student)
    register(Halves)
    register(Weighing)
