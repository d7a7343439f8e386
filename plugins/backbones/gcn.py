"""GCN: graph convolutional network (Kipf and Welling, *Semi-Supervised Classification with GCNs*, ICLR 2017)."""

from harness import GCNConv, hookimpl
from plugins.backbones._stack import Stack


class GCN(Stack):
    """Graph convolutional network with symmetric normalisation by in-degrees, self loops included.

    Layers are convolution, ReLU (not after the last), dropout. Flavour ``equad`` feeds numeric features to the first
    convolution directly; ``ogb`` puts a linear front before it and a BatchNorm after each convolution, as OGB's
    baselines do (Hu et al., *Open Graph Benchmark*, NeurIPS 2020). Unlike a GIN's, these convolutions hold no MLP, so
    both flavours need the ReLU. Categorical features are embedded first. An edge weight enters the degrees, and edge
    features, where switched on and present, are added to the message by a map per layer.
    """

    name = "gcn"
    conv = GCNConv


@hookimpl
def bench_register(register):
    register(GCN)
