"""EIIL: IRM on inferred environments (Creager et al., ICML 2021)."""

from harness import Register, hookimpl, hparam
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
    penalty: float = hparam(
        10.0, low=0.0, search=[1.0, 10.0, 100.0], weight_of="invariance", help="weight of the gradient penalty"
    )
    erm_term: str = hparam(
        "environments", choices=["samples", "environments"], help="risk: mean over graphs, or over environments present"
    )


@hookimpl
def bench_register(register: Register) -> None:
    register(EIIL)
