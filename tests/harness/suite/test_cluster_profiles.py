"""``cluster`` in suites and profile files: what is read, what is refused and where, and that no key knows of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
import yaml
from suite_kit import DATA, HEAD, Load

from harness.engine.cluster import Profile
from harness.errors import SuiteError, UserError
from harness.registry.catalog import Catalog
from harness.suite import json_schema
from harness.suite.cluster import named_cluster

FULL = """
kind: slurm
adapt: {minimum: 1, maximum: 8}
store: /scratch/store
data: /scratch/data
resources: {train: {GPU: 1}, encode: {memory: 4e9}}
offers: {GPU: 1, memory: 16e9}
retries: 5
wait: 600
options: {queue: short, cores: 4, memory: 16GB, job_extra_directives: ["--gres=gpu:1"]}
"""


def read(text: str, folder: Path) -> Profile:
    file = folder / "profile.yaml"
    file.write_text(text)
    return named_cluster(str(file))


def test_a_profile_with_everything(tmp_path: Path) -> None:
    expected = Profile(
        kind="slurm",
        adapt=(1, 8),
        store="/scratch/store",
        data="/scratch/data",
        resources={"train": {"GPU": 1.0}, "encode": {"memory": 4e9}},
        offers={"GPU": 1.0, "memory": 16e9},
        retries=5,
        wait=600.0,
        options={"queue": "short", "cores": 4, "memory": "16GB", "job_extra_directives": ["--gres=gpu:1"]},
    )
    assert read(FULL, tmp_path) == expected
    assert read(f"cluster: {json.dumps(yaml.safe_load(FULL.replace('e9', '.0e+9')))}", tmp_path) == expected


def test_the_short_forms(tmp_path: Path) -> None:
    assert named_cluster("local") == Profile("local")
    assert named_cluster("tcp://host:8786") == Profile("address", address="tcp://host:8786")
    assert read("address: tls://host:1", tmp_path) == Profile("address", address="tls://host:1")
    assert (Profile("lsf").patience, Profile("local").patience, Profile(wait=5).patience) == (3600, 60, 5)


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("kind: slrum", "1:7", "found 'slrum' (did you mean 'slurm'?)"),
        ("{kind: local, worker: 2}", "1:15", "unknown key 'worker' in 'cluster' (did you mean 'workers'?)"),
        ("{kind: local, workers: 0}", "1:24", "expected at least 1, found 0"),
        ("{kind: local, adapt: {minimum: 3, maximum: 2}}", "1:22", "'adapt' takes the fewest and the most workers"),
        ("{kind: local, adapt: {minimum: 3}}", "1:22", "'adapt' takes the fewest and the most workers"),
        ("{kind: local, workers: 2, adapt: {maximum: 2}}", "1:15", "give either 'workers' or 'adapt'"),
        ("{resources: {trian: {GPU: 1}}}", "1:14", "unknown key 'trian' in 'resources' (did you mean 'train'?)"),
        ("{resources: {train: {GPU: many}}}", "1:27", "'resource': expected float, found 'many'"),
        ("{resources: {train: 1}}", "1:21", "'train' is a table, found 1"),
        ("kind: address", "1:1", "'' is no scheduler's address"),
        ("{address: 'tcp://h:1', workers: 2}", "1:24", "'workers' has no meaning with 'kind: address'"),
        ("{address: 'tcp://h:1', retries: 2}", "1:24", "'retries' has no meaning with 'kind: address'"),
        ("{kind: local, address: 'tcp://h:1'}", "1:15", "'address' has no meaning with 'kind: local'"),
        ("address: tcp://h", "1:10", "'tcp://h' is no scheduler's address; write tcp://HOST:PORT or tls://HOST:PORT"),
        ("{kind: address, address: h}", "1:26", "'h' is no scheduler's address"),
        ("kind: pbs", "1:1", "'kind: pbs' needs 'workers', or 'adapt'"),
        ("[1]", "1:1", "'cluster' is a table such as"),
    ],
)
def test_faults_have_their_place(text: str, place: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(SuiteError) as refused:
        read(text, tmp_path)
    assert f"profile.yaml:{place}: " in str(refused.value)
    assert message in str(refused.value)


def test_what_is_no_profile(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"--cluster locla: there is no such file, .* \(did you mean 'local'\?\)"):
        named_cluster("locla")
    with pytest.raises(UserError, match="the file is empty"):
        read("", tmp_path)


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "node-7.site"])
@pytest.mark.parametrize("port", [1, 8786, 65535])
def test_addresses_of_schedulers(host: str, port: int) -> None:
    assert named_cluster(f"tls://{host}:{port}").address == f"tls://{host}:{port}"


@pytest.mark.parametrize("rest", ["127.0.0.1", "h:", ":1", "h:0", "h:65536", "h:123456", "h:-1", "h:1/x"])
def test_an_address_that_no_scheduler_can_have(rest: str) -> None:
    """Dask would be asked in vain, and for minutes."""
    with pytest.raises(UserError, match=r"that is no scheduler's address; write "):
        named_cluster(f"tcp://{rest}")


def test_an_address_of_an_unknown_kind() -> None:
    with pytest.raises(UserError, match=r"--cluster http://h:1: .* that is no scheduler's address"):
        named_cluster("http://h:1")


def test_the_schema_takes_what_is_read_and_knows_every_key(catalog: Catalog) -> None:
    suite = json_schema(catalog)
    schema = {"$ref": "#/$defs/cluster", "$defs": suite["$defs"]}
    full = yaml.safe_load(FULL.replace("e9", ".0e+9"))
    jsonschema.validate(full, schema)
    assert set(suite["$defs"]["cluster"]["properties"]) == set(vars(Profile()))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"kind": "slrum"}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"resources": {"trian": {}}}, schema)


def test_a_suite_may_say_where_it_runs(load: Load) -> None:
    suite = load(f"{HEAD}{DATA}methods: {{ERM: {{baseline: erm}}}}\ncluster: {{kind: local, workers: 2}}\n")
    assert suite.cluster == Profile("local", workers=2)
    assert "cluster" not in suite.resolved, "it says nothing of the results"
    text = f"{HEAD}{DATA}methods: {{ERM: {{baseline: erm}}}}\n"
    assert load(text).cluster is None
    assert load(text, sets=["cluster.workers=3"]).cluster == Profile("local", workers=3)


def test_a_fault_in_a_suite_has_its_place(faults: Callable[..., list[str]]) -> None:
    found = faults(f"cluster: {{kind: lcoal}}\n{HEAD}{DATA}methods: {{ERM: {{baseline: erm}}}}\n")
    assert len(found) == 1
    assert found[0].startswith("1:17: 'kind': expected one of local, address, slurm, pbs, lsf, found 'lcoal'")


def test_options_and_included_files_complete_a_cluster(load: Load, faults: Callable[..., list[str]]) -> None:
    """Each table was judged by itself: ``--set cluster.kind=slurm`` was refused for want of the file's workers."""
    text = f"include: site.yaml\n{HEAD}{DATA}methods: {{ERM: {{baseline: erm}}}}\ncluster: {{adapt: {{maximum: 8}}}}\n"
    files = {"site.yaml": "cluster: {kind: slurm, options: {queue: short}}\n"}
    expected = Profile("slurm", adapt=(2, 8), options={"queue": "short"})
    assert load(text, files=files, sets=["cluster.adapt.minimum=2"]).cluster == expected
    assert faults(text.replace("{adapt: {maximum: 8}}", "{wait: 5}"), files=files) == [
        "site.yaml:1:10: 'kind: slurm' needs 'workers', or 'adapt' with the most workers"
    ]


def test_a_cluster_of_nothing_is_none(load: Load) -> None:
    text = f"{HEAD}{DATA}methods: {{ERM: {{baseline: erm}}}}\ncluster:"
    assert load(f"{text}\n").cluster is None
    assert load(f"{text} {{kind: local}}\n", sets=["cluster=null"]).cluster is None
