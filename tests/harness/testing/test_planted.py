"""Each planted bug is found by the checks that are there for it, and by no other."""

import planted_learners as learners
import planted_others as others
import planted_statistics as statistics
import pytest

from harness.testing import check_component
from harness.testing.checks import run_check
from harness.testing.learner_predictions import statistics_follow_prediction
from harness.testing.learner_rig import LearnerRig

LEARNERS = [
    (learners.Sound, ""),
    (learners.Masked, ""),
    (learners.DetachedPenalty, "live_terms weights_matter"),
    (learners.RebuiltPenalty, "live_terms weights_matter another_device"),
    (learners.FixedWeight, "weights_matter"),
    (learners.NotERM, "equals_erm"),
    (learners.NotFinite, "one_environment batch_of_two"),
    (learners.LostMask, "every_module_learns"),
    (learners.HardMask, "every_module_learns"),
    (learners.DeadMode, "each_mode_learns"),
    (learners.LeftInEval, "training_mode"),
    (learners.HiddenVectors, "risk_on_logits every_module_learns"),
    (learners.HiddenVectorsOnTop, "risk_on_logits"),
    (statistics.MixedStatistics, "statistics_follow_prediction"),
    (learners.Reseeds, "global_state"),
    (learners.ReseedsAtStart, "global_state"),
    (learners.ReseedsInBuild, "global_state other_seed"),
    (learners.DrawsGlobally, "global_state another_device"),
    (learners.FixedSeed, "other_seed"),
    (learners.Companions, "companions"),
    (learners.ReadsLabels, "reads_no_labels"),
    (learners.ReadsVotes, "reads_no_labels hyperparameters_matter"),
    (learners.NeedsEnvironments, "trains"),
    (learners.DeadHyperparameter, "hyperparameters_matter"),
    (learners.NotFiniteChoice, "hyperparameters_matter"),
    (learners.NotInState, "state_round_trip"),
    (learners.MovesFrozen, "frozen_stays"),
    (
        learners.RandomPrediction,
        "evaluation_is_pure companions global_state reads_no_labels same_seed state_round_trip",
    ),
    (learners.NeedsEdges, "graphs_without_edges"),
    (learners.NeedsTwoClasses, "one_class batch_of_two"),
    (learners.OnTheCPU, "another_device"),
    (learners.OnTheCPUInOneMode, "another_device"),
]
OTHERS = [
    (others.SoundEncoder, ""),
    (others.LabelledEncoder, "sees_no_label"),
    (others.CompanionEncoder, "companions"),
    (others.ShuffledEncoder, "companions"),
    (others.LateEncoder, "snapshots_in_order weights_move"),
    (others.ListEncoder, "snapshots_in_order weights_move"),
    (others.ReseedingEncoder, "global_state"),
    (others.StillEncoder, "weights_move hyperparameters_matter"),
    (others.SoundQuantifier, ""),
    (others.UnnormalisedQuantifier, "rows_are_probabilities rare_class"),
    (others.FrequencyOrder, "columns_in_class_order"),
    (others.GlobalQuantifier, "global_state same_seed"),
    (others.SoundEnvironment, ""),
    (others.FloatIds, "one_id_each"),
    (others.GapInIds, "one_id_each"),
    (others.ForgetsToProvide, "provides_what_it_says"),
    (others.GlobalIds, "global_state"),
    (others.DeadGroups, "hyperparameters_matter"),
    (others.SoundDataset, ""),
    (others.LabelInFeatures, "sealed"),
    (others.TruthInFeatures, "sealed"),
    (others.SharedGraphs, "splits_disjoint"),
    (others.RepeatedSplit, "splits_disjoint"),
    (others.GlobalDataset, "fingerprint_stable"),
    (others.UnstableDataset, "fingerprint_stable"),
    (others.OtherDeclaration, "keeps_its_declaration"),
    (others.SoundBackbone, ""),
    (others.IgnoresWeights, "weight_zero_is_no_edge edge_weight_gradient"),
    (others.OneLayerHeeds, "weight_zero_is_no_edge"),
    (others.MixesBatch, "companions"),
    (others.CountsNodes, "order_of_nodes another_device"),
    (others.ReadsBatchX, "node_rows"),
    (others.DeadDropout, "hyperparameters_matter"),
]


@pytest.mark.parametrize(("component", "expected"), LEARNERS + OTHERS, ids=lambda value: getattr(value, "__name__", ""))
def test_planted(component, expected):
    report = check_component(component)
    assert {outcome.check for outcome in report.with_status("failed")} == set(expected.split()), report.text()


@pytest.mark.parametrize(
    ("learner", "told"),
    [
        (
            statistics.MixedStatistics,
            ["the running statistics of 'backbone.convs.0.mlp.1' and of 1 more follow another"],
        ),
        (statistics.MixedStatisticsInOneMode, ["with statistics=mixed: the running statistics of 'backbone.convs.0."]),
        (statistics.DeclaredStatistics, []),
        (statistics.MixedStatisticsOfItsOwn, ["the running statistics of 'head.0' follow another"]),
        (statistics.MovedByAHook, ["the running statistics of 'backbone.convs.0.mlp.1' and of 1 more follow another"]),
        (statistics.IdleStatistics, ["the running statistics of 'backbone.convs.0.mlp.1' and of 1 more never move"]),
    ],
)
def test_running_statistics_follow_the_prediction_or_the_learner_says_why_not(learner, told):
    found = run_check(statistics_follow_prediction, LearnerRig(learner)).problems
    assert len(found) == len(told)
    assert all(text.startswith(start) for text, start in zip(found, told, strict=True)), found


def test_a_component_that_ends_the_process_fails_its_checks_alone():
    report = check_component(learners.Exits)
    assert not report.passed
    assert "SystemExit: 7" in report.text()
