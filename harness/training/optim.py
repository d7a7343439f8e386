"""Adam and AdamW for networks of many small tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn


class Adam(torch.optim.Optimizer):
    """Adam (Kingma and Ba, *Adam: A Method for Stochastic Optimization*, ICLR 2015), bit for bit torch's fused one.

    Weight decay is the L2 term of ``torch.optim.Adam``, or with ``decoupled`` that of ``torch.optim.AdamW``, which
    shrinks the weights by lr * weight_decay beside the step (Loshchilov and Hutter, *Decoupled Weight Decay
    Regularization*, ICLR 2019). On small graphs the bookkeeping around torch's fused kernel
    costs several times the kernel itself: it advances a counter tensor per parameter. Counters are plain numbers
    here, and parameters that have taken equally many steps share one tensor of it. A parameter without a gradient
    is left alone and does not advance.
    """

    def __init__(
        self,
        params: Iterable[nn.Parameter],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        decoupled: bool = False,
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "decoupled": decoupled}
        super().__init__(params, defaults)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients; they are never kept as zeros."""
        del set_to_none
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad = None

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """One update. ``closure`` is torch's argument for optimizers that evaluate several times; it must be None."""
        if closure is not None:
            raise ValueError("this Adam takes no closure")
        for group in self.param_groups:
            parameters = [parameter for parameter in group["params"] if parameter.grad is not None]
            if parameters:
                self._update(parameters, group)

    def _update(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        states = [self.state[parameter] or self._start(parameter) for parameter in parameters]
        for state in states:
            state["step"] += 1
        shared = {
            count: torch.full((), float(count), device=parameters[0].device)
            for count in {state["step"] for state in states}
        }
        fused = torch._fused_adamw_ if group["decoupled"] else torch._fused_adam_
        fused(
            parameters,
            [parameter.grad for parameter in parameters if parameter.grad is not None],
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [],
            [shared[state["step"]] for state in states],
            lr=group["lr"],
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            amsgrad=False,
            maximize=False,
        )

    def _start(self, parameter: Tensor) -> dict[str, Any]:
        moments = {name: torch.zeros_like(parameter) for name in ("exp_avg", "exp_avg_sq")}
        self.state[parameter].update({"step": 0, **moments})
        return self.state[parameter]  # type: ignore[no-any-return]
