"""A stage of a pipeline, made of numpy or of torch. Both have the same members.

forward() returns what goes to the next stage, and what backward() needs. finish() stands for the rest of the pipeline at its
end: from the output to the loss, and to what backward() needs instead.
"""

from __future__ import annotations

import sys
from typing import Any, Callable, Optional

import numpy as np

from ..errors import InvalidArgument
from .model import Arrays, model_of


def stage_of(stage: Any, loss: Callable[[Any, Any], Any], optimizer: Any, is_first: bool) -> Any:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(stage, torch.nn.Module):
        return TorchStage(stage, loss, optimizer, is_first)
    return NumpyStage(stage, loss, optimizer)


class NumpyStage:
    def __init__(self, stage: Any, loss: Callable[[Any, Any], Any], optimizer: Any) -> None:
        missing = [name for name in ("forward", "backward", "parameters", "gradients") if not hasattr(stage, name)]
        if missing:
            raise InvalidArgument(
                f"a stage is a torch module, or has forward(x), backward(saved, dy), parameters and gradients; this one, "
                f"{type(stage).__name__}, lacks {', '.join(missing)}"
            )
        self.model = Arrays(stage.parameters)
        self.model.gradients(stage.gradients)
        self.optimizer = self.model.optimizer(optimizer)
        self._stage, self._loss = stage, loss
        self.clear_gradients()

    def forward(self, x: Any) -> tuple[Any, Any]:
        y, saved = self._stage.forward(x)
        return np.ascontiguousarray(y), saved

    def finish(self, y: Any, saved: Any, target: Any, share: float) -> tuple[float, Any, Any]:
        loss, dy = self._loss(y, target)
        return float(loss) * share, saved, dy * np.asarray(share, dy.dtype)

    def backward(self, saved: Any, dy: Any) -> Any:
        return np.ascontiguousarray(self._stage.backward(saved, dy))

    def step(self) -> None:
        self.optimizer.step(self.model.gradients(self._stage.gradients))
        self.clear_gradients()

    def clear_gradients(self) -> None:
        for gradient in self._stage.gradients:
            gradient[...] = 0

    def split(self, batch: Any, count: int) -> list[Any]:
        return np.split(np.asarray(batch), count)

    def empty(self, shape: Any, dtype: str) -> Any:
        return np.empty(shape, dtype)

    def parameters(self) -> list[Any]:
        return self.model.state()

    def load(self, parameters: list[Any]) -> None:
        self.model.load(parameters)


class TorchStage:
    def __init__(self, module: Any, loss: Callable[[Any, Any], Any], optimizer: Any, is_first: bool) -> None:
        self._torch = sys.modules["torch"]
        self.model = model_of(module)
        self.optimizer = self.model.optimizer(optimizer)
        self._module, self._loss, self._is_first = module, loss, is_first
        self.clear_gradients()

    def forward(self, x: Any) -> tuple[Any, Any]:
        x = x.detach()
        if not self._is_first:
            x.requires_grad_()
        y = self._module(x)
        return y.detach().contiguous(), (x, y)

    def finish(self, y: Any, saved: Any, target: Any, share: float) -> tuple[float, Any, Any]:
        loss = self._loss(saved[1], target) * share
        return float(loss.detach()), (saved[0], loss), None

    def backward(self, saved: Any, dy: Optional[Any]) -> Any:
        x, y = saved
        y.backward(dy)
        return None if self._is_first else x.grad.contiguous()

    def step(self) -> None:
        self.optimizer.step()
        self.clear_gradients()

    def clear_gradients(self) -> None:
        self.model.clear_gradients()

    def split(self, batch: Any, count: int) -> list[Any]:
        return list(batch.split(len(batch) // count))

    def empty(self, shape: Any, dtype: str) -> Any:
        return self._torch.empty(shape, dtype=getattr(self._torch, dtype), device=self.model.device)

    def parameters(self) -> list[Any]:
        """And buffers, in the module's order: names differ when the layers are on other stages."""
        return list(self.model.state().values())

    def load(self, parameters: list[Any]) -> None:
        names = list(self._module.state_dict())
        if len(names) != len(parameters):
            raise InvalidArgument(f"the state is of another stage: it has {len(parameters)} tensors, and here are {len(names)}")
        self.model.load(dict(zip(names, parameters)))
