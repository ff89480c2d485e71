"""What DDP may call in place of its own allreduce. DDP looks at the annotations of a hook, so they are no strings here."""

from typing import Any

import torch
import torch.distributed as dist

from .process_group import needed


def allreduce_hook(state: Any, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """model.register_comm_hook(None, col.torch.allreduce_hook): averages each bucket at once, while backward() waits.

    Nothing is hidden then, and nothing lost to a second thread: faster where every processor computes. state: the model's
    process group, of backend "col"; None for the default group. Tensors on the CPU. Errors come out of backward().
    """
    group = needed(state, "allreduce_hook")
    buffer = bucket.buffer()
    group.allreduce(buffer, op="avg")
    future: Any = torch.futures.Future()
    future.set_result(buffer)
    return future
