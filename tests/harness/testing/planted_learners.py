"""Learners with one known bug each; the conformance kit must find it."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from harness import Baseline, Decorrelator, hparam
from harness.nn import environment_mean


class Sound(Baseline):
    """No bug: ERM with the spread of the environments' risks, which is VREx."""

    name = "sound"
    needs = frozenset({"environments"})
    equals_erm = {"strength": 0.0}
    strength: float = hparam(1.0, low=0.0, weight_of="spread")

    def spread(self, risk, batch):
        return environment_mean(risk, batch.env).var(unbiased=False)

    def loss(self, batch):
        risk = self.risk(self(batch), batch)
        return {"erm": risk.mean(), "spread": self.spread(risk, batch)}


class DetachedPenalty(Sound):
    """The penalty is a number without gradient."""

    name = "detached-penalty"

    def spread(self, risk, batch):
        return super().spread(risk, batch).detach()


class RebuiltPenalty(Sound):
    """The penalty is a new leaf: it requires gradient, but is not connected to the network."""

    name = "rebuilt-penalty"

    def spread(self, risk, batch):
        return torch.tensor(float(super().spread(risk, batch).detach()), requires_grad=True)


class FixedWeight(Sound):
    """The penalty's weight is not the declared one."""

    name = "fixed-weight"
    equals_erm = {}

    def weight(self, term):
        return 1.0


class NotERM(Sound):
    """With weight zero the mean over environments is left instead of the mean over graphs."""

    name = "not-erm"

    def loss(self, batch):
        risk = self.risk(self(batch), batch)
        return {"erm": environment_mean(risk, batch.env).mean(), "spread": self.spread(risk, batch)}


class NotFinite(Sound):
    """The unbiased variance of a single environment's risk is 0/0."""

    name = "not-finite"

    def spread(self, risk, batch):
        means = environment_mean(risk, batch.env)
        return (means - means.mean()).square().sum() / (len(means) - 1)


class Masked(Baseline):
    """No bug: predicts from messages weighted by learned edge scores."""

    name = "masked"

    def build(self):
        super().build()
        self.scorer = nn.Linear(2 * self.info.node_features.sizes[0], 1)

    def mask(self, batch):
        source, target = batch.edge_index
        return self.scorer(torch.cat([batch.x[source], batch.x[target]], 1)).squeeze(1).sigmoid()

    def embed(self, batch):
        return self.pool(self.backbone(batch, edge_weight=self.mask(batch)), batch)


class LostMask(Masked):
    """The mask is computed, set as an attribute, and never reaches the messages (as under a PyG that ignores it)."""

    name = "lost-mask"

    def embed(self, batch):
        self.backbone.edge_mask = self.mask(batch).detach()
        return self.pool(self.backbone(batch), batch)


class HardMask(Masked):
    """A threshold cuts the gradient between the messages and the scorer."""

    name = "hard-mask"

    def mask(self, batch):
        return (super().mask(batch) > 0.5).float()


class DeadMode(Masked):
    """Another choice than the default cuts the gradient to the scorer."""

    name = "dead-mode"
    form: str = hparam("soft", choices=["soft", "hard"])

    def mask(self, batch):
        mask = super().mask(batch)
        return mask if self.form == "soft" else (mask > 0.5).float()


class HiddenVectors(Baseline):
    """Cross-entropy on the embedding instead of the logits."""

    name = "hidden-vectors"
    tasks = frozenset({"multiclass"})

    def loss(self, batch):
        return {"erm": F.cross_entropy(self.embed(batch), batch.y)}


class Reseeds(Baseline):
    """Seeds torch's global generator in each step."""

    name = "reseeds"

    def loss(self, batch):
        torch.manual_seed(0)
        return super().loss(batch)


class ReseedsAtStart(Baseline):
    """Seeds NumPy's global generator before training."""

    name = "reseeds-at-start"

    def on_fit_start(self, train):
        np.random.seed(0)


class ReseedsInBuild(Baseline):
    """Seeds while building, so that all extra modules start alike whatever the seed."""

    name = "reseeds-in-build"

    def build(self):
        super().build()
        torch.manual_seed(0)
        self.head = nn.Sequential(nn.Linear(self.backbone.out_dim, self.info.task.outputs))


class LowersPrecision(Sound):
    """Changes a switch of its process that other cells would see."""

    name = "lowers-precision"

    def on_fit_start(self, train):
        torch.set_float32_matmul_precision("high")


class DrawsGlobally(Baseline):
    """Noise from the global generator instead of ``self.rng``."""

    name = "draws-globally"

    def loss(self, batch):
        return {"erm": (self.risk(self(batch), batch) * torch.rand(batch.num_graphs)).mean()}


class FixedSeed(Baseline):
    """The networks' seed is not the cell's."""

    name = "fixed-seed"

    def setup(self, info, model, *, seed, lr=1e-3, weight_decay=0.0):
        super().setup(info, model, seed=0, lr=lr, weight_decay=weight_decay)


class Companions(Baseline):
    """Logits are centred over the batch."""

    name = "companions"

    def forward(self, batch):
        logits = super().forward(batch)
        return logits - logits.mean(0)


class ReadsLabels(Baseline):
    """Uses the label in the prediction where it is there."""

    name = "reads-labels"
    tasks = frozenset({"multiclass"})

    def forward(self, batch):
        logits = super().forward(batch)
        return logits if batch.y is None else logits + F.one_hot(batch.y, logits.size(1))


class ReadsVotes(Decorrelator):
    """Uses the spurious votes in the prediction where they are there."""

    name = "reads-votes"

    def forward(self, batch):
        logits = super().forward(batch)
        return logits if batch.spurious is None else logits + batch.spurious.mean(1)


class NeedsEnvironments(Baseline):
    """Cannot predict without environments."""

    name = "needs-environments"
    needs = frozenset({"environments"})

    def forward(self, batch):
        return super().forward(batch) + 0.0 * batch.env.clamp(min=0).unsqueeze(1)


class DeadHyperparameter(Baseline):
    """One hyperparameter is read by nobody, and one choice does what the default does."""

    name = "dead-hyperparameter"
    temperature: float = hparam(1.0, low=0.1)
    reduction: str = hparam("mean", choices=["mean", "sum", "average"])

    def loss(self, batch):
        risk = self.risk(self(batch), batch)
        return {"erm": risk.sum() if self.reduction == "sum" else risk.mean()}


class NotFiniteChoice(Baseline):
    """Not the default but another choice divides by zero."""

    name = "not-finite-choice"
    scale: str = hparam("one", choices=["one", "spread"])

    def loss(self, batch):
        risk = super().loss(batch)["erm"]
        return {"erm": risk if self.scale == "one" else risk / (risk - risk).detach()}


class NotInState(Baseline):
    """Predictions need a tensor that is neither a parameter nor a buffer."""

    name = "not-in-state"
    centre = 0.0

    def on_epoch_end(self, validation_score):
        self.centre = self.centre + 1.0

    def forward(self, batch):
        return super().forward(batch) * (1.0 + self.centre)


class RandomPrediction(Baseline):
    """Dropout that does not heed the mode."""

    name = "random-prediction"

    def forward(self, batch):
        return F.dropout(super().forward(batch), 0.5, training=True)


class NeedsEdges(Baseline):
    """Fails on a batch without edges."""

    name = "needs-edges"

    def loss(self, batch):
        return {"erm": super().loss(batch)["erm"] + 0.0 * batch.edge_index.float().max()}


class NeedsTwoClasses(Baseline):
    """Divides by the number of graphs of another class."""

    name = "needs-two-classes"
    tasks = frozenset({"multiclass"})

    def loss(self, batch):
        others = (batch.y != batch.y[0]).sum()
        risk = self.risk(self(batch), batch)
        return {"erm": risk.mean(), "others": (risk * (batch.y != batch.y[0])).sum() / others}


class Exits(Baseline):
    """Ends the process in the middle of training."""

    name = "exits"

    def loss(self, batch):
        raise SystemExit(7)


class OnTheCPU(Baseline):
    """A tensor is made where torch makes it by default."""

    name = "on-the-cpu"

    def loss(self, batch):
        risk = self.risk(self(batch), batch)
        return {"erm": (risk * torch.ones(len(risk))).mean()}


class OnTheCPUInOneMode(Baseline):
    """Draws of the learner's own generator are not moved, with one choice alone."""

    name = "on-the-cpu-in-one-mode"
    probes = {"noise": {"noise": "some"}}
    noise: str = hparam("none", choices=["none", "some"])

    def loss(self, batch):
        logits = self(batch)
        if self.noise == "some":
            logits = logits + torch.rand(logits.shape, generator=self.rng)
        return {"erm": self.risk(logits, batch).mean()}
