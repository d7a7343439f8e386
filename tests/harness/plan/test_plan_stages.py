"""Stages and keys: training settings at their defaults, environments per batch, stages that others build on."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, cast

import pytest
from plan_kit import Facts
from plugin_kit import entry

from harness import upstream
from harness.errors import UserError
from harness.hparams import HParam
from harness.plan.components import Components
from harness.plan.datasets import Declarations
from harness.plan.factory import RowStages, planned_data
from harness.registry.catalog import Catalog, Entry
from harness.store import Stage
from harness.suite.spec import (
    ComponentSpec,
    Configuration,
    DatasetSpec,
    ModelSettings,
    Row,
    SelectSettings,
    TrainSettings,
)

FIRST = ("epochs", "batch_size", "eval_batch_size", "lr", "weight_decay", "patience", "warmup")
NEW: dict[str, Any] = {
    "optimizer": "adamw",
    "lr_drop_epoch": 3,
    "groups_per_batch": 4,
    "drop_last": True,
    "max_batch_nodes": 9,
    "average_over": "graphs",
}
GROUPED: dict[str, Any] = {"groups_per_batch": 4}


MODE = HParam("mode", "str", "assisted", choices=("assisted", "probed", "alone"))
RULE = HParam("rule", "str", "best-val", choices=("best-val", "last"))
EPOCHS = HParam("assistant_epochs", "int", None, optional=True)
CATALOG = Catalog(
    [
        entry("dataset", "data"),
        entry("backbone", "gin"),
        entry("environment", "fixed"),
        entry("environment", "drawn", per_batch=True),
        entry("environment", "trained", trains_networks=True),
        entry("baseline", "erm"),
        entry("baseline", "irm", needs=["environments"]),
        entry(
            "baseline",
            "student",
            MODE,
            RULE,
            EPOCHS,
            HParam("depth", "int", 1, active={"mode": ("assisted", "probed")}),
            upstream={
                "assistant": upstream(
                    "baseline",
                    "erm",
                    train={"epochs": "$assistant_epochs"},
                    when={"mode": ["assisted", "probed"]},
                    checkpoint="$rule",
                ),
                "groups": upstream("environment", "fixed", when={"mode": ["probed"]}),
            },
        ),
        entry("baseline", "plain-student", upstream={"assistant": upstream("baseline", "erm")}),
    ]
)


def chain(learner: str, *, environment: str | None = None, train: dict[str, Any] | None = None, **params: Any) -> Any:
    """The stages of a cell without its score; the last is its training."""
    configuration = Configuration(
        "-",
        {},
        ComponentSpec("baseline", learner, params),
        None,
        None if environment is None else ComponentSpec("environment", environment),
        ModelSettings(ComponentSpec("backbone", "gin")),
        TrainSettings(**(train or {})),
    )
    components = Components(CATALOG)
    dataset = DatasetSpec("D", ComponentSpec("dataset", "data"))
    row = Row("M", "D", (configuration,), SelectSettings())
    data = planned_data(dataset, components, cast("Declarations", Facts()))
    return RowStages(components, data, row, [1]).cells(configuration)[0][:-1]


def key(learner: str, **more: Any) -> str:
    return str(chain(learner, **more)[-1].key)


def of_kind(stages: list[Stage], kind: str) -> list[Stage]:
    return [stage for stage in stages if stage.kind == kind]


class TestTrainingSettings:
    """What of them enters a key."""

    def test_the_first_settings_are_all_and_the_others_only_where_they_differ(self) -> None:
        train = chain("erm")[-1].preimage["train"]
        assert train == {name: asdict(TrainSettings())[name] for name in FIRST}
        changed = chain("irm", environment="fixed", train=NEW)[-1].preimage["train"]
        assert {name: changed[name] for name in NEW} == NEW

    @pytest.mark.parametrize("name", NEW)
    def test_each_changes_the_key(self, name: str) -> None:
        assert key("irm", environment="fixed", train={name: NEW[name]}) != key("irm", environment="fixed")

    def test_a_factor_without_a_drop_changes_nothing(self) -> None:
        assert key("erm", train={"lr_drop_factor": 0.5}) == key("erm")
        dropped = {"lr_drop_epoch": 3}
        assert key("erm", train={**dropped, "lr_drop_factor": 0.5}) != key("erm", train=dropped)

    @pytest.mark.parametrize(
        "train",
        [{"warmup": 5}, {"patience": 50, "warmup": 5}, {"lr_drop_epoch": 50, "lr_drop_factor": 0.5}, GROUPED],
    )
    def test_what_has_no_effect_changes_nothing(self, train: dict[str, Any]) -> None:
        assert key("erm", train=train) == key("erm")
        stage = chain("erm", train=train)[-1]
        assert {name: getattr(stage.payload.networks.settings, name) for name in train} == {
            name: getattr(TrainSettings, name) for name in train
        }

    def test_what_has_no_effect_on_a_shorter_upstream_changes_nothing_of_it(self) -> None:
        train = {"lr_drop_epoch": 30}
        changed, plain = (chain("student", train=given, assistant_epochs=30) for given in (train, None))
        assert changed[-2].key == plain[-2].key
        assert changed[-1].key != plain[-1].key

    def test_a_hyperparameter_without_effect_reaches_neither_key_nor_worker(self) -> None:
        assert key("student", mode="alone", depth=2) == key("student", mode="alone")
        assert key("student", mode="probed", depth=2) != key("student", mode="probed")
        assert chain("student", mode="alone", depth=2)[-1].payload.learner["params"] == {"mode": "alone"}

    def test_all_reach_the_worker(self) -> None:
        payload = chain("irm", environment="fixed", train=NEW)[-1].payload
        given = vars(payload.networks.settings)
        assert {name: given[name] for name in NEW} == NEW
        assert set(given) == set(asdict(TrainSettings()))

    def test_of_an_environment_that_trains_networks_only_optimizer_and_node_bound_are_new(self) -> None:
        used = ("optimizer", "max_batch_nodes")

        def annotate(**train: Any) -> str:
            (stage,) = of_kind(chain("irm", environment="trained", train=train), "annotate")
            return stage.key

        assert all(annotate(**{name: NEW[name]}) != annotate() for name in used)
        assert all(annotate(**{name: NEW[name]}) == annotate() for name in NEW if name not in used)


class TestEnvironmentsPerBatch:
    """They concern trainings with fixed environments alone."""

    @pytest.mark.parametrize(("learner", "environment"), [("erm", None), ("irm", "drawn"), ("erm", "fixed")])
    def test_others_shuffle_plainly_and_share_their_training(self, learner: str, environment: str | None) -> None:
        stage = chain(learner, environment=environment, train=GROUPED)[-1]
        assert stage.payload.networks.settings.groups_per_batch == 0
        assert stage.key == key(learner, environment=environment)

    def test_what_they_build_on_shuffles_plainly_too(self) -> None:
        stages = of_kind(chain("plain-student", train=GROUPED), "train")
        assert [stage.payload.networks.settings.groups_per_batch for stage in stages] == [0, 0]
        assert stages[0].key == key("erm")

    def test_fixed_environments_are_grouped(self) -> None:
        stage = chain("irm", environment="fixed", train=GROUPED)[-1]
        assert stage.payload.networks.settings.groups_per_batch == 4


class TestUpstream:
    """``when`` and ``checkpoint``."""

    @pytest.mark.parametrize(
        ("mode", "roles"), [("assisted", ["assistant"]), ("probed", ["assistant", "groups"]), ("alone", [])]
    )
    def test_stages_are_planned_only_where_they_are_needed(self, mode: str, roles: list[str]) -> None:
        stages = chain("student", mode=mode)
        last = stages[-1]
        assert sorted(last.payload.upstream) == sorted(last.preimage["upstream"]) == roles
        below = [stage.key for stage in stages[1:-1]]
        assert sorted(below) == sorted(item.key for item in last.payload.upstream.values())
        assert set(below) <= set(last.inputs)

    def test_the_default_of_the_hyperparameter_counts(self) -> None:
        assert "assistant" in chain("student")[-1].payload.upstream

    def test_a_checkpoint_may_be_a_hyperparameter(self) -> None:
        for rule in ("best-val", "last"):
            assert chain("student", rule=rule)[-1].payload.upstream["assistant"].checkpoint == rule
        assert chain("plain-student")[-1].payload.upstream["assistant"].checkpoint == "best-val"

    def test_another_checkpoint_is_another_training_on_the_same_assistant(self) -> None:
        best, last = chain("student", rule="best-val"), chain("student", rule="last")
        assert best[-2].key == last[-2].key
        assert best[-1].preimage["upstream"] != last[-1].preimage["upstream"]
        assert best[-1].preimage["upstream"] == {"assistant": best[-2].key}, "the default leaves no trace"

    def test_the_suites_training_settings_hold_but_for_overrides(self) -> None:
        train: dict[str, Any] = {"optimizer": "adamw", "epochs": 9}
        own, other = chain("student", train=train), chain("student", train=train, assistant_epochs=2)
        assert [
            (s.payload.networks.settings.epochs, s.payload.networks.settings.optimizer) for s in (own[-2], other[-2])
        ] == [
            (9, "adamw"),
            (2, "adamw"),
        ]
        assert other[-1].payload.networks.settings.epochs == 9
        assert own[-2].key == key("erm", train=train)

    @pytest.mark.parametrize(
        ("options", "fault"),
        [
            ({"train": {"epoch": 3}}, "there is no 'epoch' (did you mean 'epochs'?)"),
            ({"train": {"epochs": 0}}, "'epochs': expected at least 1, found 0"),
            ({"train": {"epochs": "$mood"}}, "it has no hyperparameter 'mood' (did you mean 'mode'?)"),
            ({"when": {"mood": ["x"]}}, "it has no hyperparameter 'mood' (did you mean 'mode'?)"),
            ({"checkpoint": "best"}, "'checkpoint': expected one of best-val, last, found 'best'"),
            ({"weight": 3}, "there is no 'weight'"),
        ],
    )
    def test_what_cannot_be_is_told_as_the_class_s_fault(
        self, options: dict[str, Any], fault: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A name that is none was an internal error, or a stage that was never made."""
        odd = entry("baseline", "odd", MODE, upstream={"assistant": upstream("baseline", "erm", **options)})
        monkeypatch.setitem(globals(), "CATALOG", Catalog([*CATALOG, odd]))
        with pytest.raises(UserError) as caught:
            chain("odd")
        assert str(caught.value) == f"baseline 'odd', upstream 'assistant': {fault}"

    @pytest.mark.parametrize(
        "circular",
        [
            entry("baseline", "circular", upstream={"self": upstream("baseline", "circular")}),
            entry("environment", "circular", upstream={"self": upstream("environment", "circular")}),
        ],
        ids=lambda found: found.kind,
    )
    def test_a_component_that_builds_on_itself_is_refused(self, circular: Entry, monkeypatch: Any) -> None:
        found = [CATALOG.get(*name) for name in (("backbone", "gin"), ("dataset", "data"), ("baseline", "irm"))]
        monkeypatch.setitem(globals(), "CATALOG", Catalog([circular, *found]))
        learner, environment = ("circular", None) if circular.kind == "baseline" else ("irm", "circular")
        with pytest.raises(UserError, match="'circular' builds on stages that build on it"):
            chain(learner, environment=environment)
