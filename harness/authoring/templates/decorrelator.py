"""Learn most from graphs whose label the spurious features do not explain."""

from harness import Batch, Decorrelator, Register, hookimpl, hparam
from torch import Tensor


class NewComponent(Decorrelator):
    """Mean risk, weighted by how little the spurious votes explain a graph's label.

    A decorrelator is a learner whose training batches carry `batch.spurious`, the class
    probabilities that the kept quantifiers give to each graph: (graphs, quantifiers,
    classes). `self.model_weights` (quantifiers,) sums to one. Say in this docstring
    what the method does, with its formula and the paper it comes from.
    """

    name = "new-component"

    floor: float = hparam(0.1, low=0.01, search=[0.1, 0.5], help="least weight")

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """The loss terms, raw: the harness adds them up and logs each."""
        # The probability of every class by all quantifiers together: (graphs, classes).
        votes = (batch.spurious * self.model_weights.reshape(1, -1, 1)).sum(1)
        explained = votes.gather(1, batch.y.unsqueeze(1)).squeeze(1)
        weight = (1 - explained).clamp(min=self.floor)
        risk = self.risk(self(batch), batch)  # (graphs,)
        return {"erm": (weight * risk).sum() / weight.sum()}


@hookimpl
def bench_register(register: Register) -> None:
    register(NewComponent)
