"""Featurise many SMILES, in processes of their own, which share no state with this one and end when it ends.

They are plain subprocesses, not ``multiprocessing``: nothing of the main module is imported again, so that a script
or a notebook may build a dataset at its top level, and a process that dies takes no other along.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from harness import DataError
from plugins.datasets._child import command
from plugins.datasets._featurise import Wanted, featurise_each
from plugins.datasets._molecules import Molecule

_SERVE = f"from {__name__} import serve; serve()"
_CHUNK = 2000
_MOST = 8
_WORTH = 150_000
"""Characters of SMILES from which on processes of their own are faster; about two seconds of work."""

Results = list[Molecule | str]


@dataclass(frozen=True)
class Featurised:
    """``molecules`` by row, and the ``failures``: row -> why it is not among them. Rows ascend in both."""

    molecules: dict[int, Molecule]
    failures: dict[int, str]


def featurise_smiles(smiles: Sequence[str], wanted: Wanted, processes: int | None = None) -> Featurised:
    """Featurise molecules, many of them in processes of their own.

    The result does not depend on the number of processes. In processes of their own, a molecule that ends the
    process (a crash in RDKit's native code) is one more failure; a small set is done here, where it would end this
    process.
    """
    if processes is None:
        work = sum(map(len, smiles)) * (10 if wanted.fragments else 1)
        processes = available_cores() if work >= _WORTH else 0
    found = in_processes(smiles, wanted, processes) if processes else featurise_each(smiles, wanted)
    return Featurised(
        {row: result for row, result in enumerate(found) if isinstance(result, Molecule)},
        {row: result for row, result in enumerate(found) if isinstance(result, str)},
    )


def available_cores() -> int:
    """Cores that this process may use, at most eight."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, _MOST)


def in_processes(smiles: Sequence[str], wanted: Wanted, processes: int) -> Results:
    """Like ``featurise_each``; a molecule on which a process dies gets a reason, too."""
    size = max(1, min(_CHUNK, -(-len(smiles) // processes)))
    chunks = [list(smiles[start : start + size]) for start in range(0, len(smiles), size)]
    children: list[subprocess.Popen[bytes]] = []
    with ThreadPoolExecutor(processes) as threads:
        futures = [threads.submit(_in_a_process, chunk, wanted, children) for chunk in chunks]
        try:
            return [result for future in futures for result in future.result()]
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            for child in children:
                child.kill()
            raise


def _in_a_process(smiles: list[str], wanted: Wanted, children: list[subprocess.Popen[bytes]]) -> Results:
    """Featurise in a new process; molecules on which it crashes are done in two halves."""
    child = subprocess.Popen(
        command(_SERVE),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for this process, and with its end the others end
    )
    children.append(child)
    answer = child.communicate(pickle.dumps((smiles, wanted), pickle.HIGHEST_PROTOCOL))[0]
    if child.returncode == 0:
        results: Results = pickle.loads(answer)
        return results
    if child.returncode in (1, -signal.SIGKILL):  # an error of Python, such as a missing part of RDKit; or too large
        raise DataError(f"the process that reads molecules with RDKit ended with code {child.returncode}")
    if len(smiles) > 1:
        half = len(smiles) // 2
        return _in_a_process(smiles[:half], wanted, children) + _in_a_process(smiles[half:], wanted, children)
    return [f"RDKit crashed (code {child.returncode}) on the SMILES {smiles[0][:80]!r}"]


def serve() -> None:
    """Answer one question in such a process: SMILES on standard input, results on standard output."""
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not get among the results
    smiles, wanted = pickle.load(sys.stdin.buffer)
    with answer:
        pickle.dump(featurise_each(smiles, wanted), answer, pickle.HIGHEST_PROTOCOL)
