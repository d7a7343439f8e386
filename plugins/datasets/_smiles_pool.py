"""Featurise many SMILES, in processes of their own, which share no state with this one and end when it ends.

They are plain subprocesses, not ``multiprocessing``: nothing of the main module is imported again, so that a script
or a notebook may build a dataset at its top level, and a process that dies takes no other along.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

from plugins.datasets._featurise import Wanted, featurise_each
from plugins.datasets._molecules import Molecule

_CHUNK = 200
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

    Args:
        smiles: one per molecule.
        wanted: what to find out.
        processes: how many processes; 0 is this one; chosen by the amount of work when absent.
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
    chunks = [list(smiles[start : start + _CHUNK]) for start in range(0, len(smiles), _CHUNK)]
    if not chunks:
        return []
    work = _Work(chunks)
    lanes = [_Lane(wanted) for _ in range(min(processes, len(chunks)))]
    with ThreadPoolExecutor(len(lanes)) as threads:
        futures = [threads.submit(lane.run, work) for lane in lanes]
        try:
            for future in futures:
                future.result()
        except BaseException:
            work.stopped = True
            for lane in lanes:
                lane.kill()
            raise
    return [result for number in range(len(chunks)) for result in work.done[number]]


class _Work:
    """Chunks to do and done; ``stopped`` once nobody waits for them any more."""

    def __init__(self, chunks: Sequence[list[str]]) -> None:
        self.chunks = chunks
        self.done: dict[int, Results] = {}
        self.stopped = False
        self._waiting = iter(range(len(chunks)))
        self._lock = threading.Lock()

    def next(self) -> int | None:
        """The number of a chunk that nobody has taken, or none."""
        with self._lock:
            return None if self.stopped else next(self._waiting, None)


class _ProcessDied(Exception):
    """The text says of what."""


class _Lane:
    """A thread of this process and the process that works for it, which is replaced when it dies."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, work: _Work) -> None:
        """Do chunks until none is left. A chunk on which the process dies is done molecule by molecule."""
        try:
            while (number := work.next()) is not None:
                try:
                    work.done[number] = self._ask(work.chunks[number])
                except _ProcessDied:
                    work.done[number] = [self._alone(smiles) for smiles in work.chunks[number] if not work.stopped]
        finally:
            self._end()

    def kill(self) -> None:
        """Stop what the process is doing; for another thread."""
        if (process := self._process) is not None:
            process.kill()

    def _alone(self, smiles: str) -> Molecule | str:
        try:
            return self._ask([smiles])[0]
        except _ProcessDied as death:
            return f"RDKit crashed ({death}) on the SMILES {smiles[:80]!r}"

    def _ask(self, smiles: list[str]) -> Results:
        process = self._process or self._start()
        if process is None:
            return featurise_each(smiles, self._wanted)
        try:
            answer: Results = _exchange(process, smiles)
        except (OSError, EOFError, pickle.UnpicklingError):
            raise _ProcessDied(self._end()) from None
        return answer

    def _start(self) -> subprocess.Popen[bytes] | None:
        """A process that is ready; none where the system does not let us have one."""
        try:
            # in its own session: Ctrl-C is for this process, and with its end the others end
            self._process = subprocess.Popen(
                _command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
            )
            _exchange(self._process, self._wanted)
        except (OSError, EOFError, pickle.UnpicklingError):
            self._end()
        return self._process

    def _end(self) -> str:
        """End the process; how it had ended, if it had."""
        process, self._process = self._process, None
        if process is None:
            return "no process"
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):  # what could not be written before it died
                _pipe(pipe).close()
        try:
            code = process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        with suppress(ValueError):
            return signal.Signals(-code).name
        return f"exit code {code}"


def _command() -> list[str]:
    """What starts a process that finds the same modules as this one."""
    path = [str(entry) for entry in sys.path]
    return [sys.executable, "-c", f"import sys; sys.path[:] = {path!r}; from {__name__} import serve; serve()"]


def _exchange(process: subprocess.Popen[bytes], question: object) -> Any:
    pickle.dump(question, _pipe(process.stdin), pickle.HIGHEST_PROTOCOL)
    _pipe(process.stdin).flush()
    return pickle.load(_pipe(process.stdout))


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise EOFError
    return pipe


def serve() -> None:
    """What such a process does: read chunks of SMILES from standard input until it closes, and answer each."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not get among the answers
    wanted: Wanted = pickle.load(sys.stdin.buffer)
    featurise_each(["C"], wanted)
    questions: queue.SimpleQueue[list[str]] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(questions,), daemon=True).start()
    result: Results | None = None
    while True:
        pickle.dump(result, answers, pickle.HIGHEST_PROTOCOL)
        answers.flush()
        result = featurise_each(questions.get(), wanted)


def _listen(questions: queue.SimpleQueue[list[str]]) -> None:
    """Pass questions on; when they end, because this process is no longer needed or its parent is gone, leave."""
    try:
        while True:
            questions.put(pickle.load(sys.stdin.buffer))
    finally:
        os._exit(0)
