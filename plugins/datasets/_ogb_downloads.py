"""Addresses of OGB's molecule sets, and digests of the copies with which this code was tested."""

from __future__ import annotations

from collections.abc import Mapping

from harness import Download
from plugins.datasets._ogb_sets import MOLECULENET_ADDRESS, OGB_ADDRESS

CITATION = "Hu et al., Open Graph Benchmark, NeurIPS 2020; Wu et al., MoleculeNet, Chemical Science 2018"
TABLES: Mapping[str, str] = {
    "bace": "bace.csv",
    "bbbp": "BBBP.csv",
    "clintox": "clintox.csv.gz",
    "hiv": "HIV.csv",
    "muv": "muv.csv.gz",
    "pcba": "pcba.csv.gz",
    "sider": "sider.csv.gz",
    "tox21": "tox21.csv.gz",
    "toxcast": "toxcast_data.csv.gz",
}
"""MoleculeNet's names of the tables."""
TESTED: Mapping[str, Mapping[str, str]] = {
    "bace": {
        "mapping/mol.csv.gz": "7a7aed697887bbd1ddcca1aa9e83d069d39e09d800e5961d20b80f1704ba86b5",
        "raw/edge-feat.csv.gz": "089c1ee7c5561a0e81623780d0808e10feb2aa789a48b1fef260ad3f3494013b",
        "raw/edge.csv.gz": "014e9475134c9c20300fda5d8115bd0c5f192185cd74c6f8921afc28f6359ce7",
        "raw/graph-label.csv.gz": "a93fed4e7bf6ef1fe8b6bd79e5a4eb984d9a5ccaa4f51d6cb1accecff836b632",
        "raw/node-feat.csv.gz": "bd031b6fd3d699c2ee4527e778e298bc0ae52439b9b720311789f83803a6025a",
        "raw/num-edge-list.csv.gz": "78e201ed1abfd581096a3e5ba32a18ccca8e872f89c05bec1f9e52f25a7a5f76",
        "raw/num-node-list.csv.gz": "ca6e661f0d4323c90543e9539971ba8695a763aac0df2e8e1c6d141985a9a2fa",
        "split/scaffold/test.csv.gz": "8e6ede054b28f5953912996c1d59c0d8b0c7ef252b3f2679c251d205c8438755",
        "split/scaffold/train.csv.gz": "5f20fb296650872fc91d8af37ed3afdd6d4cd32b52e53763d543bf1b6aa89b26",
        "split/scaffold/valid.csv.gz": "f06cb03da9a5f5609c4600f1e01148eb54779351086aede3305643335657bd66",
    },
    "bbbp": {
        "mapping/mol.csv.gz": "7ec2b3b15450d30547e0f9ce2e17d1ba88f43f71e2a5a4e9df69bbb03c34c5c7",
        "raw/edge-feat.csv.gz": "63c88ff2aa95429411dce45f9cba68a7e06bbc793524a9bc4ec13179a5cea125",
        "raw/edge.csv.gz": "1b5843cd8221fda188809da6e60c1c27b4831cc01c568ecbe362e3532b1ccb25",
        "raw/graph-label.csv.gz": "99ae33f3f36ac7fed4a755c4912a170c0f1810e0688e6fba76d75831d4686f4f",
        "raw/node-feat.csv.gz": "90b47004f3ce80a6495c8add546ae360d4c6e7356f5360664c0b041eac07df34",
        "raw/num-edge-list.csv.gz": "552429af844e8d806155bb5e8bd59308528dc8d7d34d6a3f19a27e0d910fc87f",
        "raw/num-node-list.csv.gz": "859b4d14247fc8d03b50661d17b453a23d966e3bfa22b66edb46d2e54acf36d6",
        "split/scaffold/test.csv.gz": "2561d4164f8e33163d6484bcce005578b7a3de3b00b4630c072bf56219a21451",
        "split/scaffold/train.csv.gz": "e1ae77b817d05b63af3ec5aa7ab1e170ebebc0849cb7712fe11b29a48999cc75",
        "split/scaffold/valid.csv.gz": "0b20d30453c99a703a672e0c023bea9e198315db3c92c094cfc610b9853b8ca6",
    },
}
"""Set -> file in OGB's folder -> SHA-256. OGB publishes none."""


def folder_download(name: str, folder: str) -> Download:
    """OGB's archive of a set; its folder is renamed."""
    return Download(
        path=folder,
        url=f"{OGB_ADDRESS}/{name}.zip",
        unpack=name,
        tested={f"{folder}/{file}": digest for file, digest in TESTED.get(name, {}).items()},
        licence="MIT",
        citation=CITATION,
    )


def table_download(name: str, path: str) -> Download:
    """MoleculeNet's table of a set."""
    return Download(path=path, url=f"{MOLECULENET_ADDRESS}/{TABLES[name]}", licence="MIT", citation=CITATION)
