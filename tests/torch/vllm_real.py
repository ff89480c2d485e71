"""The calls of vLLM's layers over col, on the vLLM that is installed, without a model. scripts/dev vllm-try runs it under colrun, with
VLLM_PLUGINS=col; prints the versions, the platform, and "rank N good"."""

import os
import sys

import torch
import torch.distributed as dist
import vllm
from vllm.config import VllmConfig, set_current_vllm_config
from vllm.distributed import parallel_state
from vllm.distributed import communication_op as op
from vllm.platforms import current_platform

rank, size = int(os.environ["COL_RANK"]), int(os.environ["COL_WORLD_SIZE"])
torch.set_num_threads(1)
os.environ.update(VLLM_DIST_IDENT="vllm-try", GLOO_SOCKET_IFNAME="lo")
if rank == 0:
    kind = type(current_platform)
    print(f"vLLM {vllm.__version__}, torch {torch.__version__}, {kind.__module__}.{kind.__name__} over {kind.__mro__[1].__name__}, "
          f"dist_backend {current_platform.dist_backend}", flush=True)
with set_current_vllm_config(VllmConfig()), torch.no_grad():
    parallel_state.init_distributed_environment(size, rank, f"file://{sys.argv[1]}", rank, current_platform.dist_backend)
    parallel_state.initialize_model_parallel(2, size // 2)
    tp, pp = parallel_state.get_tp_group(), parallel_state.get_pp_group()
    assert dist.get_backend() == "col" and type(tp.device_communicator).__module__ == "col.vllm.communicator"
    mine = torch.arange(12.0).view(2, 6) + 100 * tp.rank_in_group
    both = [torch.arange(12.0).view(2, 6) + 100 * each for each in range(2)]
    assert torch.equal(op.tensor_model_parallel_all_reduce(mine.clone()), sum(both))
    for dim in (0, 1, -1):
        assert torch.equal(op.tensor_model_parallel_all_gather(mine, dim), torch.cat(both, dim))
    assert torch.equal(op.tensor_model_parallel_reduce_scatter(mine, 1), sum(both).chunk(2, 1)[tp.rank_in_group])
    found = op.tensor_model_parallel_gather(mine)
    assert tp.rank_in_group or torch.equal(found, torch.cat(both, -1))
    if size > 2:
        state = {"hidden_states": mine.bfloat16(), "residual": mine}
        if pp.is_first_rank:
            pp.send_tensor_dict(dict(state))
        else:
            found = pp.recv_tensor_dict()
            assert list(found) == list(state) and all(torch.equal(found[name], state[name]) for name in state)

    def layers(x):
        for _ in range(3):
            x = op.tensor_model_parallel_all_reduce(torch.relu(x) + 1)
        return op.tensor_model_parallel_all_gather(x * 2, 1)

    wanted = layers(mine.clone())
    assert torch.equal(torch.compile(layers, fullgraph=True, backend="aot_eager")(mine.clone()), wanted)
    parallel_state.destroy_model_parallel()
    parallel_state.destroy_distributed_environment()
print(f"rank {rank} good", flush=True)
