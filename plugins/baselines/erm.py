"""ERM: minimise the mean training loss (Vapnik, *The Nature of Statistical Learning Theory*, 1995)."""

from harness import Baseline, Register, hookimpl


class ERM(Baseline):
    """Empirical risk minimisation: the mean of the labels' losses, and nothing else."""

    name = "erm"


@hookimpl
def bench_register(register: Register) -> None:
    register(ERM)
