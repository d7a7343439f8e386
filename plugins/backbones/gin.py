"""GIN: graph isomorphism network (Xu et al., *How Powerful are Graph Neural Networks?*, ICLR 2019)."""

from torch import nn

from harness import Register, hookimpl
from harness.nn import GINConv
from plugins.backbones._stack import Stack


class GIN(Stack):
    """Graph isomorphism network with a ReLU on the message, in the two flavours of the graph-OOD literature.

    ``equad`` (Yao et al., *Empowering Graph Invariance Learning with Deep Spurious Infomax*, ICML 2024): the first
    convolution reads numeric features directly, and between convolutions there is dropout only. ``ogb`` (Hu et al.,
    *Open Graph Benchmark*, NeurIPS 2020; CIGA and GALA use it): a linear front, then convolution, BatchNorm, ReLU
    (not after the last), dropout. Categorical features are embedded first in both. Edge features, where switched on
    and present, have a map per layer.
    """

    name = "gin"

    @property
    def conv(self) -> type[nn.Module]:
        return GINConv

    @property
    def activates(self) -> bool:
        return self.flavour == "ogb"


@hookimpl
def bench_register(register: Register) -> None:
    register(GIN)
