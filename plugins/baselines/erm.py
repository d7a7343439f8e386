"""ERM: minimise the mean training loss (Vapnik, *The Nature of Statistical Learning Theory*, 1995)."""

from harness import Baseline, deviation, hookimpl


class ERM(Baseline):
    """Empirical risk minimisation: the mean of the labels' losses, and nothing else."""

    name = "erm"
    deviations = (
        deviation(
            "what is averaged",
            paper="the graphs of a batch",
            public="OGB's, GOOD's, CIGA's and GALA's: the labels of a batch; of one task, its graphs",
            ours="the labels; methods with environments say in their own rows where they average over those first",
            switch="train.average_over: graphs",
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
