"""Random environments drawn anew for each batch, as several public code bases do under the name of IRM."""

import torch
from torch import Tensor

from harness import Batch, Environment, Register, hookimpl, hparam


class RandomBatch(Environment):
    """Each graph of each batch goes to one of ``k`` environments with equal probability, independent of all before.

    This is what the public code of CIGA (Chen et al., NeurIPS 2022) and GALA (Chen et al., NeurIPS 2023) gives to
    its environment-based baselines, with k = 2. All environments then have the same distribution.
    """

    name = "random-batch"
    positional = counted_by = "k"
    per_batch = True
    k: int = hparam(2, low=1, help="number of environments")

    def num_environments(self) -> int:
        return self.k

    def assign_batch(self, batch: Batch) -> Tensor:
        return torch.randint(self.k, (batch.num_graphs,), generator=self.rng).to(batch.ptr.device)


@hookimpl
def bench_register(register: Register) -> None:
    register(RandomBatch)
