"""What is trained, if it is a torch module. Only this file imports torch; model.py imports it when it is given a module."""

from __future__ import annotations

import weakref
from typing import Any, Callable, Optional, Sequence

import torch

from ..errors import InvalidArgument
from .model import Flats


class TorchOptimizer:
    """An optimizer of torch.optim, with the members that strategies use of optimizers.Optimizer."""

    def __init__(self, optimizer: Any, parameters: Sequence[Any]) -> None:
        self.optimizer, self._parameters = optimizer, parameters

    def step(self, gradients: Optional[Sequence[Any]] = None) -> None:
        """Without gradients: those that the parameters have."""
        for parameter, gradient in zip(self._parameters, gradients or ()):
            parameter.grad = gradient
        self.optimizer.step()

    def state(self) -> dict[str, Any]:
        """Copies, in torch's own form."""
        found = self.optimizer.state_dict()
        state = {i: {name: _copy(value) for name, value in own.items()} for i, own in found["state"].items()}
        return {"state": state, "param_groups": found["param_groups"]}

    def load(self, state: dict[str, Any]) -> None:
        try:
            self.optimizer.load_state_dict(state)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidArgument(f"the state is of another optimizer: {error}") from None

    @property
    def state_bytes(self) -> int:
        """Of the state of parameters; a counter of steps is none."""
        values = [value for own in self.optimizer.state.values() for value in own.values()]
        return sum(value.numel() * value.element_size() for value in values if torch.is_tensor(value) and value.dim())


class Module(Flats):
    """The parameters of a torch module that require a gradient, on one device, of one dtype."""

    kind = "torch"

    def __init__(self, module: torch.nn.Module) -> None:
        self.module = module
        self.parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
        if not self.parameters:
            raise InvalidArgument("no parameter of the module requires a gradient")
        self.dtype, self.device = self.parameters[0].dtype, self.parameters[0].device
        for name, parameter in module.named_parameters():
            if parameter.requires_grad and (parameter.dtype, parameter.device) != (self.dtype, self.device):
                raise InvalidArgument(
                    f"parameter {name} is {parameter.dtype} on {parameter.device}, and the first one {self.dtype} on "
                    f"{self.device}: all that require a gradient must be alike"
                )
            if not parameter.is_contiguous():
                raise InvalidArgument(f"parameter {name} is not contiguous: call its contiguous()")
        self.flats = [parameter.detach().view(-1) for parameter in self.parameters]
        self.sizes = [flat.numel() for flat in self.flats]
        self.size = sum(self.sizes)
        self.itemsize = self.flats[0].element_size()
        self._nodes: list[Any] = []

    def new(self, size: int) -> Any:
        return torch.zeros(size, dtype=self.dtype, device=self.device)

    def whole(self) -> list[Any]:
        """Parameters, and buffers such as the running means of a batch normalisation."""
        return [tensor.detach() for tensor in (*self.module.parameters(), *self.module.buffers())]

    def gradient(self, i: int, gradient: Any = None) -> Any:
        """What backward() has left, as a flat tensor; zeros for a parameter that had no part in the loss."""
        found = self.parameters[i].grad
        return self.new(self.sizes[i]) if found is None else found.detach().reshape(-1)

    def gradients(self, given: Any = None) -> list[Any]:
        if given is not None:
            raise InvalidArgument("for a torch module, pass no gradients: those of its parameters count")
        return [self.gradient(i) for i in range(len(self.parameters))]

    def clear_gradients(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None

    def show_gradient(self, i: int, flat: Any) -> None:
        """From now on, the parameter's gradient is this memory."""
        self.parameters[i].grad = flat.view(self.parameters[i].shape)

    def on_gradient(self, function: Callable[[int], None]) -> None:
        """Calls the method in each backward(), with i when the gradient of parameter i is complete, as long as its object
        lives."""
        alive = weakref.WeakMethod(function)

        def call(i: int) -> None:
            method = alive()
            if method is not None:
                method(i)

        for i, parameter in enumerate(self.parameters):
            with torch.enable_grad():
                # The node that adds to .grad. Later versions of torch have a method for this, 1.13 does not.
                node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
            node.register_hook(lambda *unused, i=i: call(i))
            self._nodes.append(node)  # torch holds it only as long as somebody does

    def optimizer(self, given: Any, parameters: Optional[Sequence[Any]] = None) -> TorchOptimizer:
        """Over the module's parameters, or over the given flat vectors."""
        if isinstance(given, torch.optim.Optimizer) and parameters is None:
            return TorchOptimizer(given, self.parameters)
        if isinstance(given, torch.optim.Optimizer) or not callable(given):
            raise InvalidArgument(
                "for a torch module, the optimizer is a function that makes one of parameters, such as "
                f"functools.partial(torch.optim.SGD, lr=0.1); got {type(given).__name__}"
            )
        parts = self.parameters if parameters is None else [torch.nn.Parameter(vector) for vector in parameters]
        return TorchOptimizer(given(parts), parts)

    def state(self) -> dict[str, Any]:
        return {name: _copy(value) for name, value in self.module.state_dict().items()}

    def load(self, state: Any) -> None:
        try:
            self.module.load_state_dict(state)
        except (RuntimeError, TypeError, AttributeError) as error:
            raise InvalidArgument(f"the state is of another model: {error}") from None


def _copy(value: Any) -> Any:
    return value.detach().clone() if torch.is_tensor(value) else value
