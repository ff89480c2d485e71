"""vLLM's communicator on CPUs: kernels of its own where all ranks name one segment, else torch.distributed."""

import torch
import torch.distributed as dist


class CpuCommunicator:
    def __init__(self, cpu_group, device=None, device_group=None, unique_name="", use_all2all=False):
        self.cpu_group, self.device, self.device_group, self.unique_name = cpu_group, device, device_group, unique_name
        self.world_size, self.rank_in_group = dist.get_world_size(cpu_group), dist.get_rank(cpu_group)
        self.ranks = dist.get_process_group_ranks(cpu_group)
        self.dist_module = dist
        if unique_name.startswith(("tp", "pp")) and self._all_group_ranks_share_shm_group_name():
            raise AssertionError("vLLM would make its own shared memory")
        self.supports_tensor_dict = False

    def _all_group_ranks_share_shm_group_name(self):
        return True

    def all_reduce(self, input_):
        self.dist_module.all_reduce(input_, group=self.device_group)
        return input_

    def gather(self, input_, dst=0, dim=-1):
        parts = [torch.empty_like(input_) for _ in self.ranks] if self.rank_in_group == dst else None
        self.dist_module.gather(input_, parts, dst=self.ranks[dst], group=self.device_group)
        return torch.cat(parts, dim) if parts else None

    def broadcast(self, tensor, src=0):
        dist.broadcast(tensor, self.ranks[src], self.device_group)
        return tensor
