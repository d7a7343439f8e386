"""Methods that a dataset of the suite does not support: ``n/a`` unless the suite is strict."""

from __future__ import annotations

from collections.abc import Callable

from suite_kit import IRM, Load, methods

from harness.suite.spec import Unsupported

BOTH = "datasets:\n  SP: {use: spmotif}\n  T: {use: toxic}\n"
TASKS = "supports binary, multiclass tasks; dataset 'T' is multitask"
STRICT = "strict: true\n"


def test_a_method_on_a_dataset_that_it_does_not_support_has_no_row_but_a_reason(load: Load) -> None:
    suite = load(methods(IRM + "  CIGA: {baseline: ciga}\n", BOTH))
    assert [(row.dataset, row.method) for row in suite.rows] == [("SP", "IRM"), ("SP", "CIGA"), ("T", "IRM")]
    assert suite.unsupported == (Unsupported("T", "CIGA", "baseline 'ciga'", TASKS),)
    assert "strict" not in suite.resolved


def test_fields_that_the_dataset_lacks_count_too(load: Load) -> None:
    suite = load(
        methods(IRM.replace("random(2)", "base") + "  B: {baseline: irm, envs: domain}\n  ERM: {baseline: erm}\n", BOTH)
    )
    assert {
        (one.dataset, one.method): f"{one.component} {one.reason}".partition(";")[0] for one in suite.unsupported
    } == {
        ("T", "IRM"): "environment 'base' reads the oracle field base, which dataset 'T' lacks",
        ("SP", "B"): "environment 'domain' reads the dataset's own environments",
        ("T", "B"): "environment 'domain' reads the dataset's own environments",
    }


def test_values_without_effect_are_refused_beside_them_too(faults: Callable[..., list[str]]) -> None:
    text = methods("  CIGA: {baseline: {use: ciga, hinge: 2}}\n  ERM: {baseline: erm}\n", BOTH)
    assert [fault.partition(":")[0] for fault in faults(text)] == ["7"]


def test_strict_refuses_at_the_line_of_the_user(faults: Callable[..., list[str]]) -> None:
    text = methods(IRM + "  CIGA: {baseline: ciga}\n", BOTH)
    assert faults(text + STRICT) == [f"8:20: method 'CIGA': baseline 'ciga' {TASKS}"]
    assert faults(text, sets=["strict=true"]) == faults(text + STRICT)


def test_no_line_of_a_bundle_or_of_another_file_is_named(faults: Callable[..., list[str]]) -> None:
    bundle = methods(IRM + "  EQuAD: {bundle: equad/paper}\n", BOTH)
    assert faults(bundle + STRICT) == [f"8:3: method 'EQuAD': decorrelator 'eqn7' {TASKS}"]
    like = "include: [part.yaml]\n" + methods("  B: {like: CIGA}\n", BOTH) + STRICT
    found = faults(like, files={"part.yaml": "methods:\n  CIGA: {baseline: ciga}\n"})
    assert [fault.partition(": ")[0] for fault in found] == ["part.yaml:2:3", "8:3"]


def test_a_suite_with_nothing_to_run_is_refused(faults: Callable[..., list[str]]) -> None:
    text = methods("  CIGA: {baseline: ciga}\n  ERM: {baseline: erm}\n", BOTH)
    assert faults(text, datasets=["T"], methods=["CIGA"]) == [f"7:20: method 'CIGA': baseline 'ciga' {TASKS}"]
