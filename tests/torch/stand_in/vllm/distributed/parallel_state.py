"""A group of ranks, made and called as vLLM does it."""

import importlib

import torch
import torch.distributed as dist


class GroupCoordinator:
    def __init__(self, group_ranks, name):
        from vllm.platforms import current_platform

        self.device_communicator = None
        for ranks in group_ranks:
            device_group = dist.new_group(ranks, backend=current_platform.dist_backend)
            cpu_group = dist.new_group(ranks, backend="gloo")
            if dist.get_rank() in ranks:
                self.ranks, self.rank_in_group = ranks, ranks.index(dist.get_rank())
                self.device_group, self.cpu_group = device_group, cpu_group
        module, _, kind = current_platform.get_device_communicator_cls().rpartition(".")
        if len(self.ranks) > 1:
            self.device_communicator = getattr(importlib.import_module(module), kind)(
                cpu_group=self.cpu_group, device=torch.device("cpu"), device_group=self.device_group, unique_name=f"{name}:0",
                use_all2all=False)

    def all_reduce(self, input_):
        return input_ if len(self.ranks) == 1 else self.device_communicator.all_reduce(input_)

    def all_gather(self, input_, dim=-1):
        return input_ if len(self.ranks) == 1 else self.device_communicator.all_gather(input_, dim)

    def reduce_scatter(self, input_, dim=-1):
        return input_ if len(self.ranks) == 1 else self.device_communicator.reduce_scatter(input_, dim)


def start(init_method, rank, size):
    from vllm.platforms import current_platform

    backend = current_platform.dist_backend
    if not getattr(dist, "is_backend_available", lambda name: True)(backend):  # torch 1 has no such question
        backend = "gloo"
    dist.init_process_group(backend, init_method=init_method, rank=rank, world_size=size)
