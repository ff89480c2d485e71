"""Ranks of vLLM's: tensor parallel in twos, pipeline parallel across. Run by test_vllm.py under colrun; prints what is wrong, or
"rank N good"."""

import os
import sys

import torch
import torch.distributed as dist
from vllm.distributed.parallel_state import GroupCoordinator, start
from vllm.platforms import current_platform

store = sys.argv[1]
rank, size = int(os.environ["COL_RANK"]), int(os.environ["COL_WORLD_SIZE"])
torch.set_num_threads(1)
os.environ["GLOO_SOCKET_IFNAME"] = "lo"
start(f"file://{store}", rank, size)
assert dist.get_backend() == "col", dist.get_backend()

tp = GroupCoordinator([list(range(first, first + 2)) for first in range(0, size, 2)], "tp")
pp = GroupCoordinator([list(range(first, size, 2)) for first in range(2)], "pp")
assert type(tp.device_communicator).__module__ == "col.vllm.communicator"
mine = torch.arange(12.0).view(2, 6) + 100 * tp.rank_in_group
theirs = torch.arange(12.0).view(2, 6) + 100 * (1 - tp.rank_in_group)
both = [mine, theirs] if tp.rank_in_group == 0 else [theirs, mine]

with torch.no_grad():
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.int64):
        x = mine.to(dtype, copy=True)
        assert tp.all_reduce(x) is x and torch.equal(x, (mine + theirs).to(dtype)), (dtype, x)
    for dim in (0, 1, -1, -2):
        assert torch.equal(tp.all_gather(mine, dim), torch.cat(both, dim)), dim
        found = tp.reduce_scatter(mine.t() if dim == 1 else mine, dim)
        whole = (mine + theirs).t() if dim == 1 else mine + theirs
        assert found.is_contiguous() and torch.equal(found, whole.chunk(2, dim)[tp.rank_in_group]), (dim, found)
    gathered = tp.device_communicator.gather(mine, dst=1)
    assert (gathered is None) == (tp.rank_in_group == 0) and (gathered is None or torch.equal(gathered, torch.cat(both, -1)))
    assert torch.equal(tp.device_communicator.broadcast(mine.clone(), 1), both[1])

    if size > 2:  # along the pipeline
        assert pp.device_communicator.supports_tensor_dict
        state = {"hidden": mine.bfloat16(), "residual": mine.t(), "none": torch.empty(0, 3), "step": 5}
        if pp.rank_in_group == 0:
            pp.device_communicator.send_tensor_dict(state, 1)
        else:
            found = pp.device_communicator.recv_tensor_dict(0)
            assert list(found) == list(state) and found["step"] == 5, found
            for name in ("hidden", "residual", "none"):
                assert found[name].dtype == state[name].dtype and torch.equal(found[name], state[name]), name

    if sys.argv[2:] == ["compile"]:
        def layers(x):
            for _ in range(3):
                x = tp.all_reduce(torch.relu(x) + 1)
            return tp.reduce_scatter(tp.all_gather(x * 2, 1), 1)

        wanted = layers(mine)
        for backend in ("eager", "aot_eager"):
            torch._dynamo.reset()
            assert torch.equal(torch.compile(layers, fullgraph=True, backend=backend)(mine), wanted), backend

dist.destroy_process_group()
print(f"rank {rank} good")
