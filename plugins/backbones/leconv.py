"""LEConv: local extremum network (Ranjan, Sanyal and Talukdar, *ASAP*, AAAI 2020)."""

from torch import nn

from harness import Register, hookimpl
from harness.nn import LEConv
from plugins.backbones._stack import Stack


class LEConvStack(Stack):
    """Convolutions that compare a node with its neighbours; the network of DIR's experiments on SPMotif.

    Layers are convolution, ReLU (not after the last), dropout. Flavour ``equad`` feeds numeric features to the first
    convolution directly; ``ogb`` puts a linear front before it and a BatchNorm after each convolution. Categorical
    features are embedded first. An edge weight scales the whole comparison, and edge features, where switched on and
    present, are part of it by a map per layer. Wu et al., *Discovering Invariant Rationales for Graph Neural Networks*,
    ICLR 2022, use it; sums over neighbours are not normalised, so large degrees give large values.
    """

    name = "leconv"

    @property
    def conv(self) -> type[nn.Module]:
        return LEConv


@hookimpl
def bench_register(register: Register) -> None:
    register(LEConvStack)
