"""A fake device: its tensors claim to be on it, while they are computed on the CPU.

On it the rules of a GPU hold, so that code that breaks them is found without one: the tensors of an operation
are all on one device, numbers are drawn on the generator's device, and NumPy reads the CPU only.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final
from unittest.mock import patch

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

ELSEWHERE: Final = "meta"
"""The name of the device: the one of torch's that needs no hardware."""
_DEVICE: Final = torch.device(ELSEWHERE)
_MOVES: Final = ("copy_", "_to_copy")
_INDEXING: Final = ("index", "index_put", "index_put_", "_index_put_impl_")
"""A GPU's tensor may be indexed by one of the CPU."""


class _Away(Tensor):
    """A tensor that says it is on the device; ``held`` is the tensor on the CPU."""

    held: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> _Away:
        tensor: _Away = Tensor._make_wrapper_subclass(
            cls,
            inner.size(),
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=_DEVICE,
        )
        tensor.held = inner
        return tensor

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Called where no :class:`_Rules` are active."""
        raise RuntimeError("a tensor was used outside the block in which its device exists")


class _Rules(TorchDispatchMode):
    """Runs every operation on the CPU and enforces the device's rules."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = dict(kwargs or {})
        if _Away not in types and named.get("device") is None:
            return func(*args, **named)
        name = func.overloadpacket.__name__
        tensors = [value for value in _leaves((*args, *named.values())) if isinstance(value, Tensor)]
        away = _Away in types
        if named.get("device") is not None:
            to = torch.device(named["device"]) == _DEVICE
            away, named["device"] = to, torch.device("cpu") if to else named["device"]
        elif away and name not in _MOVES:
            _check_devices(name, tensors)
        if name == "copy_":
            away = isinstance(tensors[0], _Away)
        if away and any(isinstance(value, torch.Generator) for value in (*args, named.get("generator"))):
            raise RuntimeError(f"'{name}' draws on another device than its generator's, which is on the CPU")
        result = func(*map(_inside, args), **{key: _inside(value) for key, value in named.items()})
        written = _written(func, args, named)
        return written if written is not None else _outside(result) if away else result


class _Python(TorchFunctionMode):
    """Converts between tensors and Python's numbers, which torch does on the CPU before an operation is dispatched."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = dict(kwargs or {})
        if func in (torch.tensor, torch.as_tensor) and named.get("device") is not None:
            device = named.pop("device")
            return func(*args, **named).to(device)
        if func is Tensor.tolist and isinstance(args[0], _Away):
            return args[0].cpu().tolist()
        return func(*args, **named)


def _check_devices(name: str, tensors: Sequence[Tensor]) -> None:
    """Refuse a mixture; a number from the CPU, and an index from there, may go with the device's tensors."""
    if name in _INDEXING:
        tensors = [tensors[0], *(tensors[-1:] if name != "index" else ())]
    allowed = 0 if name not in ("cat", "stack") else -1
    if any(not isinstance(tensor, _Away) and tensor.dim() > allowed for tensor in tensors):
        raise RuntimeError(f"Expected all tensors to be on the same device, but '{name}' got some of the CPU")


def _written(func: Any, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """The argument that an operation writes to and returns; None where it returns something new."""
    returned = func._schema.returns
    if not returned or returned[0].alias_info is None or not returned[0].alias_info.is_write:
        return None
    for place, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            return args[place] if place < len(args) else named[argument.name]
    return None


def _leaves(values: Sequence[Any]) -> Iterator[Any]:
    """Yield the arguments of an operation, of lists each item; torch's own trees take most of the time."""
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _leaves(value)
        else:
            yield value


def _inside(value: Any) -> Any:
    """An argument with the tensors on the CPU in place of the device's; of lists and tuples each item."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(_inside, value))
    return value.held if isinstance(value, _Away) else value


def _outside(value: Any) -> Any:
    """A result with the device's tensors; of lists and tuples each item."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(_outside, value))
    return _Away(value) if isinstance(value, Tensor) and not isinstance(value, _Away) else value


@contextmanager
def elsewhere() -> Iterator[None]:
    """Let the device :data:`ELSEWHERE` exist inside the block: ``module.to(ELSEWHERE)``, ``graphs.to(ELSEWHERE)``."""
    with _Rules(), _Python(), _fused_there(), warnings.catch_warnings():  # type: ignore[no-untyped-call]
        # Of torch's own such tensors, which hold nothing, it would be true.
        warnings.filterwarnings("ignore", message="for .*: copying from a non-meta parameter")
        yield


@contextmanager
def _fused_there() -> Iterator[None]:
    """Torch's fused optimizers run on the devices of a list, on which this one is not."""
    module = import_module("torch.optim.optimizer")
    known: Callable[[], list[str]] = module._get_fused_kernels_supported_devices
    with patch.object(module, known.__name__, lambda: [*known(), ELSEWHERE]):
        yield
