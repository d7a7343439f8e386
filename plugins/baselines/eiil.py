"""EIIL: IRM on inferred environments (Creager et al., ICML 2021)."""

from harness import deviation, hookimpl, hparam
from plugins.baselines.irm import IRM


class EIIL(IRM):
    """IRM on the two environments that maximise the penalty of a frozen reference model.

    The environment component ``eiil`` trains the reference and finds the split; here a fresh model is trained on it:

        L = 1/P sum_e mean_{i in e} l_i + penalty * 1/P sum_e (mean_e g)^2

    Any other environments may be named with ``envs``. Citation: Creager, Jacobsen and Zemel, *Environment Inference
    for Invariant Learning*, ICML 2021.
    """

    name = "eiil"
    default_environment = "eiil"
    equals_erm = {"penalty": 0.0, "erm_term": "samples"}
    deviations = (
        deviation(
            "environments",
            paper="inferred once from a frozen reference model",
            public="CIGA's and GALA's: inferred anew in every batch, from the model in training; what is kept of it is "
            "written to wrong places",
            ours="inferred once, by the environment component `eiil`",
        ),
        deviation(
            "penalty",
            paper="mean over the two environments of the squared gradient",
            public="CIGA's and GALA's: the product of the two environments' gradients",
            ours="mean of the squared gradients",
            switch="form: cross2, erm_term: samples",
        ),
        deviation(
            "weight and schedule",
            paper="large weight after a short start at weight 1",
            public="the authors' for coloured MNIST: 191257 after 190 of 501 full-batch steps, the loss then divided "
            "by it; Adam at 0.00049 goes on with its moments; 0.0011 times the squared weights",
            ours="a constant weight from {1, 10, 100}; with `anneal_steps` the optimizer starts afresh",
            switch="anneal_steps: 190, penalty: 191257, train: {epochs: 501, lr: 0.00049, weight_decay: 0.0022} (with "
            "batches as large as the training set)",
        ),
    )
    penalty: float = hparam(
        10.0, low=0.0, search=[1.0, 10.0, 100.0], weight_of="invariance", help="weight of the gradient penalty"
    )
    erm_term: str = hparam(
        "environments", choices=["samples", "environments"], help="risk: mean over graphs, or over environments present"
    )


@hookimpl
def bench_register(register):
    register(EIIL)
