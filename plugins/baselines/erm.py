"""ERM: minimise the mean training loss (Vapnik, *The Nature of Statistical Learning Theory*, 1995)."""

from harness import Baseline, deviation, hookimpl


class ERM(Baseline):
    """Empirical risk minimisation: the mean of the graphs' losses, and nothing else."""

    name = "erm"
    deviations = (
        deviation(
            "what is averaged",
            paper="the graphs of a batch",
            public="GOOD's, CIGA's and GALA's: the same; DomainBed's and DrugOOD's with environments: their means",
            ours="the graphs; methods with environments say which in their own rows",
        ),
        deviation(
            "batches of one graph, graphs of one node",
            paper="not stated",
            public="a last batch of one graph stops batch normalisation with an error; DrugOOD's leaves graphs of "
            "one node out of its evaluation",
            ours="a training batch of one graph is dropped; every graph is evaluated",
        ),
        deviation(
            "metric on DrugOOD",
            paper="ROC-AUC in the tables of all methods",
            public="DrugOOD's: accuracy, unless told otherwise",
            ours="the metric that the dataset declares",
        ),
    )


@hookimpl
def bench_register(register):
    register(ERM)
