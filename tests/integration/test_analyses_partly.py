"""One cell that cannot be measured leaves the others' findings."""

from integration_kit import TOY

PICKY = '''\
from harness import Analysis, Findings, hookimpl


class Picky(Analysis):
    """Cannot look at the second data set."""

    name = "picky"

    def measure(self, cell):
        if cell.task.num_classes == 3:
            raise RuntimeError("too many classes")
        return {"graphs": len(cell.labels("train"))}

    def present(self, study):
        return Findings(("dataset", "graphs"), tuple((c.dataset, c.values["graphs"]) for c in study.cells))


@hookimpl
def bench_register(register):
    register(Picky)
'''


def test_a_failed_measurement_loses_its_own_cells_alone(workshop):
    (workshop.folder / "picky.py").write_text(PICKY, encoding="utf-8")
    text = TOY.replace("[toy_plugin.py]", "[toy_plugin.py, picky.py]")
    text = text.replace("  Toy: {use: toy}\n", "  Toy: {use: toy}\n  Large: {use: toy, classes: 3}\n")
    suite = workshop.write(text + "analyses: {Picky: picky}\n")
    check(workshop.run(suite, seeds="1", methods=["ERM"]))
    again = workshop.run(suite, seeds="1", methods=["ERM"])
    check(again)
    assert workshop.ran() == [], "the failure is stored, like that of any stage"
    assert "; --retry-failed runs it again)" in again.findings[0].reason
    told = workshop.command("analyse", "suite.yaml", "--engine", "inline", "--retry-failed", check=False)
    assert "too many classes" in told.stdout
    assert "retry-failed" not in told.stdout + told.stderr


def check(outcome):
    (found,) = outcome.findings
    assert found.rows == (("Toy", 24),)
    assert found.status == "failed"
    assert "Large" in found.reason
    assert "too many classes" in found.reason
    assert outcome.exit_code == 1
