"""Resume and caching: what runs again, what does not, and what ``plan`` says about it."""

from __future__ import annotations

import json
import shutil

from integration_kit import TOY, Workshop


def test_a_second_run_runs_nothing_and_gives_the_same_results(workshop: Workshop, values) -> None:
    first = workshop.run()
    assert first.exit_code == 0
    assert len(workshop.ran()) > 10
    second = workshop.run()
    assert workshop.ran() == []
    assert values(first.results) == values(second.results)


def test_reordering_comments_and_written_defaults_run_nothing(workshop: Workshop) -> None:
    workshop.run()
    head, methods = TOY.split("methods:\n")
    lines = methods.splitlines(keepends=True)
    shuffled = (
        head.replace("seeds: [1, 2]\n", "") + "# a comment\nmethods:\n" + "".join(lines[2:] + lines[1:2] + lines[:1])
    )
    shuffled = shuffled.replace("{baseline: erm}", "{baseline: {use: erm}}").replace("1.0", "1") + "seeds: [1, 2]\n"
    shuffled = shuffled.replace("hidden: 8, layers: 2}", "layers: 2, hidden: 8, readout: sum}", 1)
    workshop.run(workshop.write(shuffled, "other.yaml"))
    assert workshop.ran() == []


def test_moving_the_folder_runs_nothing(workshop: Workshop, tmp_path_factory) -> None:
    workshop.run()
    target = tmp_path_factory.mktemp("elsewhere") / "moved"
    shutil.move(workshop.folder, target)
    moved = Workshop(target)
    moved.run()
    assert moved.ran() == []


def test_one_hyperparameter_reruns_only_what_depends_on_it(workshop: Workshop) -> None:
    workshop.run()
    workshop.run(sets=["methods.EQuAD.decorrelator.gamma=0.3"])
    assert {title.split()[0] for title in workshop.ran()} == {"train", "score"}
    assert all("EQuAD" in title for title in workshop.ran())


def test_keep_and_tau_reuse_every_quantifier(workshop: Workshop) -> None:
    workshop.run()
    for change in ("keep=1", "tau=1.0"):
        workshop.run(sets=[f"methods.EQuAD.decorrelator.{change}"])
        assert {title.split()[0] for title in workshop.ran()} == {"train", "score"}


def test_a_new_seed_runs_its_own_stages_only(workshop: Workshop) -> None:
    workshop.run()
    workshop.run(seeds="1,2,3")
    assert workshop.ran()
    assert all("seed 3" in title for title in workshop.ran())


def test_editing_a_plugin_reruns_what_depends_on_it_and_plan_says_so(workshop: Workshop) -> None:
    mine = (
        "from harness import Baseline, hookimpl\n\n\nclass Mine(Baseline):\n    name = 'mine'\n\n"
        "    def loss(self, batch):\n        return {'erm': 1.0 * self.risk(self(batch), batch).mean()}\n\n\n"
        "@hookimpl\ndef bench_register(register):\n    register(Mine)\n"
    )
    plugin = workshop.write(mine, "mine.py")
    small = TOY.split("  EQuAD:")[0].replace("[toy_plugin.py]", "[toy_plugin.py, mine.py]")
    suite = workshop.write(small + "  Mine: {baseline: mine}\n")
    workshop.run(suite)
    plugin.write_text(mine.replace("    name", "    # a comment\n    name"), encoding="utf-8")
    assert workshop.command("plan", "suite.yaml").stdout.count("nothing to run") == 1
    plugin.write_text(mine.replace("1.0 *", "2.0 *"), encoding="utf-8")
    told = workshop.command("plan", "suite.yaml").stdout
    assert "source of baseline mine changed" in told
    done = workshop.command("run", "suite.yaml", "--engine", "inline", apart=True)
    assert done.stderr.count("finished train") == 2
    assert done.stderr.count("finished train Mine") == 2


def test_editing_a_data_file_reruns_what_reads_it(workshop: Workshop) -> None:
    data = workshop.write("0.0", "shift.txt")
    suite = workshop.write(TOY.replace("{use: toy}", f"{{use: toy, file: {data}}}"))
    workshop.run(suite)
    workshop.run(suite)
    assert workshop.ran() == []
    data.write_text("0.5", encoding="utf-8")
    told = json.loads(workshop.command("plan", "suite.yaml", "--json").stdout)
    stale = {stage["kind"]: stage["reason"] for stage in told["stages"] if stage["state"] == "stale"}
    assert "shift.txt" in stale["prepare"]
    workshop.run(suite)
    assert any(title.startswith("prepare") for title in workshop.ran())
    assert sum(title.startswith("train") for title in workshop.ran()) == 6


def test_order_of_methods_and_cache_hits_do_not_change_a_result(workshop: Workshop, values) -> None:
    whole = values(workshop.run().results)
    alone = Workshop(workshop.folder / "alone")
    alone.folder.mkdir()
    shutil.copy(workshop.folder / "toy_plugin.py", alone.folder)
    suite = alone.write(TOY)
    only = values(alone.run(suite, methods=["IRM"]).results)
    assert only
    assert all(whole[key] == value for key, value in only.items())
