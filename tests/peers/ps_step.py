"""One launch of torch_speed.py: ps_step.py BACKEND SERVERS PARAMETERS… Prints a line of JSON for each size on rank 0.

A parameter server over send and recv of torch.distributed. Each round, every worker pushes its gradient, cut over the servers,
and gets parameters back; a server adds what comes in the order in which it comes, and answers all. Nothing is computed besides.
"""

import json
import statistics
import sys
import time

import torch
import torch.distributed as dist

ROUNDS = 10


def serve(shard, workers, learning_rate):
    arrived = torch.empty_like(shard)
    total = torch.zeros_like(shard)
    for _ in workers:
        dist.recv(arrived)
        total += arrived
    shard -= learning_rate * total
    for work in [dist.isend(shard, worker) for worker in workers]:
        work.wait()


def work(parameters, gradient, servers):
    cuts, parts = parameters.chunk(servers), gradient.chunk(servers)
    works = [dist.isend(part, server) for server, part in enumerate(parts)]
    works += [dist.irecv(cut, server) for server, cut in enumerate(cuts)]
    for one in works:
        one.wait()


def measured(count, servers):
    rank, size = dist.get_rank(), dist.get_world_size()
    parameters, gradient = torch.zeros(count), torch.ones(count)
    shard = parameters.chunk(servers)[rank].clone() if rank < servers else None
    workers = range(servers, size)
    seconds = []
    for turn in range(ROUNDS + 2):
        dist.barrier()
        begin = time.perf_counter()
        if rank < servers:
            serve(shard, workers, 0.5)
        else:
            work(parameters, gradient, servers)
        slowest = torch.tensor([time.perf_counter() - begin], dtype=torch.float64)
        dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
        if turn >= 2:
            seconds.append(slowest.item())
    held = parameters if shard is None else shard
    right = torch.tensor([float((held == -0.5 * len(workers) * (ROUNDS + 2)).all())])
    dist.all_reduce(right, op=dist.ReduceOp.MIN)
    return {"parameters": count, "ms": statistics.median(seconds) * 1e3, "right": bool(right.item())}


def main():
    backend, servers, *sizes = sys.argv[1:]
    if backend == "col":
        import col.torch  # noqa: F401
    torch.set_num_threads(1)
    dist.init_process_group(backend)
    for size in sizes:
        result = measured(int(float(size) * 1e6), int(servers))
        if dist.get_rank() == 0:
            print(json.dumps(result), flush=True)
    dist.destroy_process_group()


main()
