"""The suites, bundles and fragments that come with the package, against the real components."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.data import Declaration, Features, Task
from harness.errors import DataError
from harness.plan.datasets import Declarations
from harness.registry.catalog import Catalog
from harness.registry.index import load_catalog
from harness.results.published import load_published
from harness.store import digest
from harness.suite import Overrides, find_suite, installed_suites, load_suite, suites_folder
from harness.suite.spec import ComponentSpec, Configuration, Suite

RESOLVED = Path(__file__).with_name("resolved")


@pytest.fixture(scope="module")
def real() -> Catalog:
    """The built-in components."""
    return load_catalog()


def load(path: Path, catalog: Catalog, overrides: Overrides | None = None) -> Suite:
    """A suite whose data need not be there."""
    facts = Declarations(catalog, None, lambda _: "")

    def declare(spec: ComponentSpec) -> Declaration:
        try:
            return facts.declare(spec)
        except DataError:
            own = 3 if spec.name == "drugood" else 0
            return Declaration(Task("binary", 2, metric="rocauc"), Features("categorical", (5,)), environments=own)

    return load_suite(path, catalog, declare, overrides=overrides)


@pytest.mark.parametrize("name", installed_suites())
def test_a_suite_resolves_to_what_is_recorded(name: str, real: Catalog) -> None:
    """``BENCH_GOLDEN=resolved`` writes the records anew, where a change of them is meant."""
    suite = load(find_suite(name), real)
    path = RESOLVED / f"{suite.name}.yaml"
    rows = {f"{row.method} on {row.dataset}": len(row.configurations) for row in suite.rows}
    values = digest([[configuration.values for configuration in row.configurations] for row in suite.rows])
    resolved = {**suite.resolved, "configurations": rows, "values": values}
    text = yaml.safe_dump(resolved, sort_keys=False, allow_unicode=True, width=120)
    if os.environ.get("BENCH_GOLDEN") == "resolved":
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


def test_every_fragment_is_used() -> None:
    texts = "".join((suites_folder() / f"{name}.yaml").read_text(encoding="utf-8") for name in installed_suites())
    for fragment in (suites_folder() / "common").glob("*.yaml"):
        assert f"common/{fragment.name}" in texts


def test_ablation_has_every_combination(real: Catalog) -> None:
    for name in ("ablation", "paper/ablation"):
        suite = load(find_suite(name), real)
        found = {
            (
                p.encoders[0].name,
                p.quantifier.name,
                p.decorrelator.name,
                p.decorrelator.params.get("weighting", "weighted"),
            )
            for row in suite.rows
            if (p := row.configurations[0].pipeline) is not None
        }
        for encoder in ("mvgrl", "graphcl"):
            for quantifier in ("svm", "mlp"):
                for decorrelator in ("eqn7", "reweighted-erm"):
                    assert (encoder, quantifier, decorrelator, "weighted") in found
        assert {weighting for *_, weighting in found} == {"weighted", "average", "single"}
        assert {"ERM", "IRM", "CIGAv1"} <= set(suite.methods)


@pytest.mark.parametrize("bundle", ["equad/official-multi", "equad/official-single"])
def test_a_baseline_under_a_bundle_shares_its_training(bundle: str, real: Catalog, tmp_path: Path) -> None:
    text = "bench: 1\ndatasets: {S: {use: spmotif}}\nmethods:\n"
    text += f"  A: {{bundle: {bundle}}}\n  ERM: {{bundle: {bundle}, baseline: erm}}\n"
    (tmp_path / "s.yaml").write_text(text)
    rows = load(tmp_path / "s.yaml", real).rows
    equad, erm = (row.configurations[0] for row in rows)
    assert erm.pipeline is None
    assert (erm.model, erm.train) == (equad.model, equad.train)


SEVENTEEN = {"erm", "irm", "vrex", "ib-irm", "eiil", "grea", "gsat", "ciga", "disc", "gil", "gala"}
SEVENTEEN |= {"coral", "mixup", "dir", "cal", "moleood", "imold"}


def test_all_methods_has_every_method_untuned_and_two_with_oracle_environments(real: Catalog) -> None:
    suite = load(find_suite("all-methods"), real)
    assert all(len(row.configurations) == 1 for row in suite.rows)
    learners = {row.configurations[0].learner.name for row in suite.rows}
    assert learners == SEVENTEEN | {"eqn7", "reweighted-erm"}
    environments = {row.method: row.configurations[0].environment for row in suite.rows}
    named = {method: spec.name for method, spec in environments.items() if spec is not None}
    inferred = {"EIIL": "eiil", "MoleOOD": "moleood"}
    oracle = {"IRM, base graphs": "base", "V-REx, base graphs": "base"}
    assert named == {**dict.fromkeys(("IRM", "V-REx", "IB-IRM", "Coral"), "random"), **inferred, **oracle}


@pytest.mark.parametrize(("name", "table"), [("paper/synthetic", "synthetic"), ("paper/realworld", "real")])
def test_the_papers_tables_have_the_published_rows(name: str, table: str, real: Catalog) -> None:
    suite = load(find_suite(name), real)
    tables = load_published(suite.report.published or "").tables
    printed = next(one for one in tables if one.name == table)
    assert set(suite.methods) == set(printed.rows)
    labels = {dataset.label for dataset in suite.datasets}
    assert labels == set(printed.columns)
    for row in suite.rows:
        assert {c.model.backbone.params["layers"] for c in row.configurations} == {3, 5}
        assert row.method == "ERM" or any(path.startswith(("baseline.", "decorrelator.")) for path in row.tuned)
        pipeline = row.configurations[0].pipeline
        if pipeline is not None:
            assert sum(len(spec.params["snapshots"]) for spec in pipeline.encoders) == 18


@pytest.mark.parametrize("name", ["ablation", "synthetic", "realworld", "table1", "table2"])
def test_a_row_of_the_papers_suites_tries_20_configurations_at_most_unless_asked(name: str, real: Catalog) -> None:
    """Else ERM tries 2 and CIGA 168."""
    for sets, most in (((), 20), (("budget=null",), 168)):
        suite = load(find_suite(f"paper/{name}"), real, Overrides(methods=("ERM", "CIGA*"), sets=sets))
        tried = [len(row.configurations) for row in suite.rows]
        assert (min(tried), max(tried)) == (2, most)


@pytest.mark.parametrize("name", ["all-methods", "paper/synthetic", "paper/realworld"])
def test_what_the_suites_make_is_comparable_with_the_papers_numbers(name: str, real: Catalog) -> None:
    """The publication's data and settings are those that the suites' rows have."""
    suite = load(find_suite(name), real, Overrides(methods=("ERM",)))
    publication = load_published(suite.report.published or "")
    for row in suite.rows:
        spec, expected = suite.dataset(row.dataset).component, publication.columns[row.dataset]
        changed = real.get("dataset", spec.name).changed(spec.params)
        assert expected.component == spec.name
        assert expected.values == {name: v for name, v in changed.items() if name not in publication.free}
        for path, value in expected.settings.items():
            assert settings_of(row.configurations[0], real)[path] == value, path


def settings_of(configuration: Configuration, catalog: Catalog) -> dict[str, Any]:
    """Training and network by path, as a run's results name them."""
    model = configuration.model
    found = {f"train.{name}": value for name, value in vars(configuration.train).items()}
    found |= {f"model.{name}": value for name, value in catalog.get("backbone", model.backbone.name).defaults.items()}
    found |= {f"model.{name}": value for name, value in model.backbone.params.items()}
    return {**found, "model.readout": model.readout, "model.head_layers": model.head_layers, "model.backbone": "gin"}
