"""Resume and caching: what runs again, what does not, and what ``plan`` says about it."""

from __future__ import annotations

import json

import pytest
from integration_kit import TOY, Workshop


@pytest.fixture(scope="module")
def ran(made: Workshop, tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """The suite, once run, in another folder; each test changes something else, so that they may share its store."""
    return made.copy(tmp_path_factory.mktemp("first") / "copy")


def test_a_second_run_in_another_folder_runs_nothing_and_gives_the_same_results(made, ran, values) -> None:
    second = ran.run()
    assert ran.ran() == []
    assert values(second.results) == values(made.run_of("toy"))


def test_reordering_comments_and_written_defaults_run_nothing(ran: Workshop) -> None:
    head, methods = TOY.split("methods:\n")
    lines = methods.splitlines(keepends=True)
    shuffled = (
        head.replace("seeds: [1, 2]\n", "") + "# a comment\nmethods:\n" + "".join(lines[2:] + lines[1:2] + lines[:1])
    )
    shuffled = shuffled.replace("{baseline: erm}", "{baseline: {use: erm}}").replace("1.0", "1") + "seeds: [1, 2]\n"
    shuffled = shuffled.replace("hidden: 8, layers: 2}", "layers: 2, hidden: 8, readout: sum}", 1)
    ran.run(ran.write(shuffled, "other.yaml"))
    assert ran.ran() == []


@pytest.mark.parametrize("change", ["gamma=0.3", "keep=1"])
def test_one_hyperparameter_reruns_only_what_depends_on_it(ran: Workshop, change: str) -> None:
    ran.run(sets=[f"methods.EQuAD.decorrelator.{change}"], seeds="1")
    assert {title.split()[0] for title in ran.ran()} == {"train", "score"}
    assert all("EQuAD" in title for title in ran.ran())


def test_a_new_seed_runs_its_own_stages_only(ran: Workshop) -> None:
    ran.run(seeds="1,2,3")
    assert ran.ran()
    assert all("seed 3" in title for title in ran.ran())


def test_editing_a_plugin_reruns_what_depends_on_it_and_plan_says_so(workshop: Workshop) -> None:
    mine = (
        "from harness import Baseline, hookimpl\n\n\nclass Mine(Baseline):\n    name = 'mine'\n\n"
        "    def loss(self, batch):\n        return {'erm': 1.0 * self.risk(self(batch), batch).mean()}\n\n\n"
        "@hookimpl\ndef bench_register(register):\n    register(Mine)\n"
    )
    plugin = workshop.write(mine, "mine.py")
    small = TOY.split("  IRM:")[0].replace("[toy_plugin.py]", "[toy_plugin.py, mine.py]").replace("[1, 2]", "[1]")
    suite = workshop.write(small + "  Mine: {baseline: mine}\n")
    workshop.run(suite)
    plugin.write_text(mine.replace("    name", "    # a comment\n    name"), encoding="utf-8")
    assert workshop.command("plan", "suite.yaml").stdout.count("nothing to run") == 1
    plugin.write_text(mine.replace("1.0 *", "2.0 *"), encoding="utf-8")
    told = workshop.command("plan", "suite.yaml").stdout
    assert "source of baseline mine changed" in told
    workshop.run(suite)
    assert workshop.ran() == ["train Mine on Toy, seed 1", "score Mine on Toy, seed 1"]


def test_editing_a_data_file_reruns_what_reads_it(workshop: Workshop) -> None:
    data = workshop.write("0.0", "shift.txt")
    suite = workshop.write(TOY.split("  EQuAD:")[0].replace("{use: toy}", f"{{use: toy, file: {data}}}"))
    workshop.run(suite)
    workshop.run(suite)
    assert workshop.ran() == []
    data.write_text("0.5", encoding="utf-8")
    told = json.loads(workshop.command("plan", "suite.yaml", "--json").stdout)
    stale = {stage["kind"]: stage["reason"] for stage in told["stages"] if stage["state"] == "stale"}
    assert "shift.txt" in stale["prepare"]
    workshop.run(suite)
    assert any(title.startswith("prepare") for title in workshop.ran())
    assert sum(title.startswith("train") for title in workshop.ran()) == 4


def test_order_of_methods_and_cache_hits_do_not_change_a_result(made: Workshop, workshop: Workshop, values) -> None:
    whole = values(made.run_of("toy"))
    only = values(workshop.run(methods=["IRM"]).results)
    assert only
    assert all(whole[key] == value for key, value in only.items())
