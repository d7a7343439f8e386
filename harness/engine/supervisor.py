"""Child processes: started, talked to, watched and ended. Workers, the plugin index and the kit are such children.

A child may hang, crash or take all memory without harm to this process. It ignores Ctrl-C, which is its parent's
business, and ends when its parent does.
"""

from __future__ import annotations

import ctypes
import faulthandler
import math
import multiprocessing
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from multiprocessing import connection, forkserver
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any, Final

import psutil

from harness.engine.failures import of_plugin
from harness.engine.process_state import interrupts_held_back, limit_threads, without_current_folder

_PROGRAM: Final = """
import sys
from multiprocessing.connection import Connection
line, stacks = (Connection(int(number)) for number in sys.argv[1:])
sys.path[:] = line.recv()
from harness.engine.supervisor import serve
serve(line, stacks, *line.recv())
"""
_FRAME: Final = re.compile(r'File "(.+)", line (\d+)')
_STARTS: Final = 3  # tries to start a process, as the fork server may be killed
_GRACE: Final = 5.0  # seconds that a process has to leave once its work is done
_LOOK: Final = 0.5  # seconds between two looks whether a silent process is there
_STACK_WAIT: Final = 0.5  # seconds for a stack to come: none does from a stopped process
_STACK_PAUSE: Final = 0.05  # seconds without more of it
_STACK_BYTES: Final = 1 << 16
_LOG_BYTES: Final = 64 << 20  # of a log; half of them are kept when it is longer
_LOG_CHECK: Final = 0.5  # seconds between two checks of its length
_MESSAGE_BYTES: Final = 64 << 20  # of what a child may send
_PR_SET_CHILD_SUBREAPER: Final = 36
_LOST: Final = 255  # what the fork server's client says of a process whose exit code was lost
_PREPARED: Final[list[float]] = []  # when it was chosen what the fork server loads


class Child:
    """A child process.

    Attributes:
        line: both ways, for what the function in the child and its parent agree on; ends when the process ends.
    """

    def __init__(self, process: BaseProcess | subprocess.Popen[bytes], line: Connection, stacks: Connection) -> None:
        self._process, self.line, self._stacks = process, line, stacks
        self._lock = threading.Lock()  # the exit code can be read once

    @classmethod
    def fork(cls, function: Callable[..., None], *arguments: Any, log: Path | None = None) -> Child:
        """Start a process from the fork server.

        Args:
            function: called in the child with its end of the line and the arguments.
            arguments: what can be pickled.
            log: a file to which the child appends what is printed in it.
        """
        context = multiprocessing.get_context("forkserver")
        line, theirs = context.Pipe()
        stacks, stacks_end = context.Pipe(duplex=False)
        process = context.Process(target=serve, args=(theirs, stacks_end, function, arguments, log))
        try:
            with theirs, stacks_end:
                _start(process)
        except KeyboardInterrupt:
            _kill_fork_server()
            raise
        return cls(process, line, stacks)

    @classmethod
    def spawn(
        cls,
        function: Callable[..., None],
        *arguments: Any,
        log: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Child:
        """Start a fresh Python; the arguments are those of :meth:`fork`.

        Args:
            environment: its variables; those of this process where absent.
        """
        line, theirs = multiprocessing.Pipe()
        stacks, stacks_end = multiprocessing.Pipe(duplex=False)
        with theirs, stacks_end:
            descriptors = theirs.fileno(), stacks_end.fileno()
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, *map(str, descriptors)],
                pass_fds=descriptors,
                stdin=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
            )
        with suppress(OSError):  # it ended before it read; `line` will say so
            line.send(list(sys.path))
            line.send((function, arguments, log))
        return cls(process, line, stacks)

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid or 0

    @property
    def alive(self) -> bool:
        """Return True while the process runs."""
        return self.wait(0)

    def wait(self, seconds: float) -> bool:
        """Wait for the end of the process; True where it still runs."""
        if isinstance(self._process, BaseProcess):
            connection.wait([self._process.sentinel], seconds)
            with self._lock:
                return self._process.is_alive()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self._process.poll() is None

    def receive(self, seconds: float | None = None) -> Any:
        """Return the next message.

        Raises:
            TimeoutError: none came in time.
            EOFError: the process has ended, or was killed for what it sent; one that it started may hold the line open.
        """
        end = math.inf if seconds is None else time.monotonic() + seconds
        try:
            while not self.line.poll(max(0.0, min(_LOOK, end - time.monotonic()))):
                if time.monotonic() >= end:
                    raise TimeoutError
                if not self.alive and not self.line.poll(0):
                    raise EOFError
            message = self.line.recv_bytes(_MESSAGE_BYTES)
        except TimeoutError:
            raise
        except OSError:
            self.kill()  # a plugin has written to the line what claims to be longer, or has closed it
            raise EOFError from None
        return ForkingPickler.loads(message)

    def memory(self) -> int:
        """Return the bytes of resident memory of the process and of those that it started; 0 where it is gone.

        What a fork shares with its parent is counted once: each page by the number of processes that map it.
        """
        try:
            process = psutil.Process(self.pid)
            alone = int(process.memory_info().rss)
        except psutil.Error:
            return 0
        below = _below(self.pid)
        return max(alone, sum(map(_share, [process, *below]))) if below else alone

    def place(self, file: str = "") -> str:
        """Return ``file.py:LINE``, the innermost line of a plugin where the process is; empty where it does not tell.

        The process may end of it, where a plugin has unset the signal's handler.

        Args:
            file: a file whose lines go before those of other plugins.
        """
        text, wait = b"", _STACK_WAIT
        with suppress(OSError):
            os.kill(self.pid, signal.SIGUSR1)
            while len(text) < _STACK_BYTES and self._stacks.poll(wait):
                more = os.read(self._stacks.fileno(), _STACK_BYTES)
                if not more:
                    break
                text, wait = text + more, _STACK_PAUSE
        frames = _FRAME.findall(text.decode("utf-8", "replace"))
        chosen = [frame for frame in frames if frame[0] == file] or [frame for frame in frames if of_plugin(frame[0])]
        return f"{Path(chosen[0][0]).name}:{chosen[0][1]}" if chosen else ""

    def kill(self) -> None:
        """Kill the process and everything that it started; does not wait."""
        started = _below(self.pid)
        with suppress(ProcessLookupError, ValueError):
            self._process.kill()  # first: it must not end well when it waits for one of them
        _kill(started)

    def ending(self) -> str:
        """Say how the process ended; its exit code is at hand a moment after its line has ended."""
        self.wait(1)
        with self._lock:
            code = self._process.exitcode if isinstance(self._process, BaseProcess) else self._process.returncode
        if code is None or code == _LOST:
            return "died"
        if code < 0:
            with suppress(ValueError):
                return f"died of {signal.Signals(-code).name}"
            return f"died of signal {-code}"
        return f"left with exit code {code} (something calls os._exit, or crashed)"


def serve(
    line: Connection, stacks: Connection, function: Callable[..., None], arguments: Sequence[Any], log: Path | None
) -> None:
    """Run a function in a child process, see :class:`Child`; the end of the line is no error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    limit_threads()
    path = None if log is None else log.absolute()  # a plugin may change the folder
    threading.Thread(target=_watch, args=(stacks.fileno(), path), name="bench-parent-watch", daemon=True).start()
    if path is not None:
        target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(target, 1)
        os.dup2(target, 2)
        os.close(target)
    faulthandler.register(signal.SIGUSR1, file=stacks.fileno(), all_threads=False)  # also from within native code
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})  # held back until now: it would have ended the process
    with suppress(OSError, AttributeError):  # Linux: what a process below leaves behind counts here, and can be ended
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        with suppress(EOFError, BrokenPipeError, ConnectionResetError):
            function(line, *arguments)
    finally:
        _kill(_below(os.getpid()))
        threading.Thread(target=_end_late, name="bench-end", daemon=True).start()


def _end_late() -> None:
    """End the process, for which threads that a plugin has left would keep it: Python waits for them."""
    time.sleep(_GRACE)
    os._exit(1)


def _below(pid: int) -> list[psutil.Process]:
    """Return its children and theirs; psutil, for other systems than Linux, looks at every process."""
    lists: list[Path] = []
    with suppress(OSError):  # it may end while it is looked at
        lists = list(Path(f"/proc/{pid}/task").glob("*/children"))
    below: list[psutil.Process] = []
    if not lists:
        with suppress(psutil.Error):
            below = psutil.Process(pid).children(recursive=True)
    children: list[int] = []
    for path in lists:  # one of each thread
        with suppress(OSError):
            children += map(int, path.read_text(encoding="ascii").split())
    for child in children:
        with suppress(psutil.Error):
            below += [psutil.Process(child), *_below(child)]
    return below


def _kill(processes: Iterable[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.Error):
            process.kill()


def _watch(stacks: int, log: Path | None) -> None:
    """Keep the log short, and end with the parent: when it is gone, nobody reads the pipe for stacks."""
    parent = select.poll()
    parent.register(stacks, 0)  # errors alone: the other end is closed
    while not parent.poll(None if log is None else 1000 * _LOG_CHECK):
        if log is not None:
            _shorten(log)
    _kill(_below(os.getpid()))
    os._exit(1)


def _shorten(log: Path) -> None:
    """Cut a log that would fill the disk, whoever writes to it: the first lines stay, and new ones are added."""
    with suppress(OSError):
        if log.stat().st_size > _LOG_BYTES:
            os.truncate(log, _LOG_BYTES // 2)
            notice = f"[bench: over {_LOG_BYTES >> 20} MiB were printed; some of it was dropped here]"
            with log.open("ab") as file:
                file.write(f"\n{notice}\n".encode())


def _start(process: BaseProcess) -> None:
    """Start a process from the fork server; a server that was killed is started again."""
    for left in reversed(range(_STARTS)):
        with interrupts_held_back(), without_current_folder():
            forkserver.ensure_running()
        try:
            process.start()  # waits until the fork server has loaded its modules
            break
        except (EOFError, OSError):
            if not left:
                raise
            time.sleep(_LOOK)  # until the system knows that it is gone


def prepare_fork_server(modules: Sequence[str]) -> None:
    """Choose what the fork server loads before it forks; without effect once it runs."""
    forkserver.set_forkserver_preload(list(modules))
    _PREPARED.append(time.time())


def forks_have_loaded(files: Iterable[Path]) -> bool:
    """Return True where the fork server was prepared and these files have not been written since."""
    return bool(_PREPARED) and all(file.stat().st_mtime < _PREPARED[0] for file in files)


def _kill_fork_server() -> None:
    """Keep it from forking, after its parent has gone, a child that was asked for before."""
    for child in psutil.Process().children():
        with suppress(psutil.Error):
            if "multiprocessing.forkserver" in " ".join(child.cmdline()):
                child.kill()


def _share(process: psutil.Process) -> int:
    """Return what a process adds: a page that two map counts half. Slow, it asks for every page."""
    try:
        facts = process.memory_full_info()
    except psutil.Error:
        return 0
    return int(getattr(facts, "pss", facts.uss))
