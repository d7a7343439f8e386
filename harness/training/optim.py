"""Adam and AdamW for networks of many small tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor


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
        params: Iterable[Tensor],
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
        """Make one update. ``closure`` is torch's, for optimizers that evaluate several times; it must be None."""
        if closure is not None:
            raise ValueError("this Adam takes no closure")
        for group in self.param_groups:
            self._update(group)

    def _update(self, group: dict[str, Any]) -> None:
        """Gather in one pass what the kernel takes: on small networks that costs as much as the kernel."""
        parameters: list[Tensor] = []
        gradients: list[Tensor] = []
        means: list[Tensor] = []
        squares: list[Tensor] = []
        steps: list[Tensor] = []
        shared: dict[int, Tensor] = {}
        for parameter in group["params"]:
            gradient = parameter.grad
            if gradient is None:
                continue
            if gradient.stride() != parameter.stride():  # the kernel would not notice
                gradient = torch.empty_like(parameter).copy_(gradient)
            state = self.state[parameter] or self._start(parameter)
            count = state["step"] = state["step"] + 1
            if count not in shared:
                shared[count] = torch.full((), float(count), device=parameter.device)
            parameters.append(parameter)
            gradients.append(gradient)
            means.append(state["exp_avg"])
            squares.append(state["exp_avg_sq"])
            steps.append(shared[count])
        if not parameters:
            return
        fused = torch._fused_adamw_ if group["decoupled"] else torch._fused_adam_
        fused(
            parameters,
            gradients,
            means,
            squares,
            [],
            steps,
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
