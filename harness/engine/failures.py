"""From an exception to a :class:`~harness.store.stage.Failure`: the status, one line, a short traceback."""

from __future__ import annotations

import errno
import sysconfig
import traceback
from pathlib import Path
from typing import Final

from harness.engine.devices import DeviceError
from harness.errors import BenchError, ChangedError, DataError, DivergedError, FileError, bounded
from harness.registry.importing import lacking
from harness.safe_io import DISK_FULL
from harness.store import Failure, MissingArtifact

_HERE: Final = Path(__file__).parent
_CORE: Final = _HERE.parent
_LIBRARIES: Final = ("torch", "torch_geometric", "numpy", "scipy", "sklearn", "pandas", "safetensors", "rdkit")
"""In whose lines a plugin's fault often shows: the line that called them says more."""
_FULL_DEVICE: Final = ("CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED")
_DEVICE_MEMORY: Final = "fewer stages at a time on the device (--jobs-per-device) or smaller batches need less"
_FRAMES: Final = 6
_LONGEST: Final = 300  # characters of an exception's text
_DISK: Final = (*DISK_FULL, errno.EROFS, errno.EIO, errno.ESTALE, errno.ENOLCK)
"""A full disk, or a mount that is gone for a while: nothing that a stage is to blame for."""


def failure_of(error: BaseException) -> Failure:
    """Return the failure for an exception in a stage's body; one raised ``from`` another counts as that."""
    if isinstance(error, (DataError, ChangedError)):  # faults of files need no traceback
        return Failure("data" if isinstance(error, DataError) else "changed", str(error))
    status = next(filter(None, map(_status, _causes(error))), "failed")
    return Failure(status, reason_of(error), short_traceback(error))


def _causes(error: BaseException) -> list[BaseException]:
    """Return an exception, the one that it was raised from, and so on; ``raise error from error`` makes a circle."""
    chain = [error]
    while (cause := chain[-1].__cause__) is not None and cause not in chain:
        chain.append(cause)
    return chain


def _status(error: BaseException) -> str:
    """Return the status of one exception alone; empty for one of no special kind."""
    found = {
        "diverged": isinstance(error, DivergedError),
        "memory": _out_of_memory(error),
        "disk": _of_disk(error),
        "device": spoils_device(error),
        "import": isinstance(error, ImportError),
    }
    return next((status for status, holds in found.items() if holds), "")


def reason_of(error: BaseException) -> str:
    """``Type: message (file.py:LINE)`` on one line; the bare message for an error that is raised on purpose."""
    lines = str(error).strip().splitlines()
    text, where = lines[0].strip() if lines else "", ""
    if _of_device_memory(error):
        text, where = text.rstrip("."), f"{place_of(error)}; {_DEVICE_MEMORY}"
    elif not isinstance(error, BenchError):
        name, where = type(error).__name__[:_LONGEST], place_of(error) + lacking(error)
        text = f"{name}: {text}" if text else name
    return bounded(text, _LONGEST) + where


def place_of(error: BaseException) -> str:
    """`` (file.py:LINE)`` of the innermost line of a plugin, else of the harness, else of any; empty where unknown."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<")]
    outer = [frame for frame in frames if Path(frame.filename).parent != _HERE]
    own = [frame for frame in outer if not _of_library(frame.filename)]
    best = [frame for frame in frames if of_plugin(frame.filename)] or own or outer or frames
    return f" ({Path(best[-1].filename).name}:{best[-1].lineno})" if best else ""


def of_plugin(filename: str) -> bool:
    """Return True if a file is neither the harness's nor Python's nor of a library that the harness builds on."""
    return not (filename.startswith("<") or Path(filename).is_relative_to(_CORE) or _of_library(filename))


def _of_library(filename: str) -> bool:
    """Return True if a file belongs to Python itself or to a library that the harness builds on."""
    path = Path(filename)
    if "site-packages" in path.parts:
        return path.parts[path.parts.index("site-packages") + 1].removesuffix(".py") in _LIBRARIES
    return path.is_relative_to(sysconfig.get_path("stdlib"))


def short_traceback(error: BaseException) -> str:
    """Return the last frames outside this package, and the exception."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).parent != _HERE]
    shown = traceback.format_list(frames[-_FRAMES:])
    return "".join([*shown, *traceback.format_exception_only(error)]).rstrip()


def _out_of_memory(error: BaseException) -> bool:
    """Torch says it in a ``RuntimeError`` on the CPU and in a class of its own on a GPU."""
    if isinstance(error, MemoryError) or _of_device_memory(error):
        return True
    return isinstance(error, RuntimeError) and "can't allocate memory" in str(error)


def _of_device_memory(error: BaseException) -> bool:
    """Return True if a device's memory was full: torch's own class, or what CUDA's libraries say when they start."""
    if type(error).__name__ == "OutOfMemoryError":
        return True
    return isinstance(error, RuntimeError) and any(text in str(error) for text in _FULL_DEVICE)


def spoils_device(error: BaseException) -> bool:
    """Return True if a process can use its device no more: all later calls fail, also of the next stage."""
    if _of_device_memory(error):
        return False
    return isinstance(error, DeviceError) or type(error).__name__ == "AcceleratorError"


def _of_disk(error: BaseException) -> bool:
    """Libraries that write by other means than Python's (safetensors) pass the system's message on as text."""
    if isinstance(error, (FileError, MissingArtifact)):
        return True
    if isinstance(error, OSError):
        return error.errno in _DISK
    return "No space left on device" in str(error)
