"""Calls of torch.ops.col in a compiled graph, run by test_ops.py under colrun: prints "good"."""

import sys

import torch
import torch.distributed as dist

import col
import col.torch

torch.set_num_threads(1)
dist.init_process_group("col")
name = col.torch.ops_name(None)
rank = dist.get_rank()
graphs = []


def counting(graph, inputs):
    graphs.append(graph)
    return graph


def layer(x, weight):
    hidden = torch.relu(x @ weight)
    torch.ops.col.all_reduce_(hidden, name)
    other = torch.ops.col.all_reduce(hidden * 2, name, "max")
    parts = torch.ops.col.all_gather(hidden + other, name)
    own = torch.ops.col.reduce_scatter(parts, name)
    torch.ops.col.broadcast_(own, name, 1)
    return own + hidden


with torch.no_grad():
    weight = torch.full((4, 4), 0.5) + rank
    compiled = torch.compile(layer, fullgraph=True, backend=counting if sys.argv[1] == "eager" else sys.argv[1], dynamic=True)
    for rows in (6, 8, 10):
        x = torch.arange(rows * 4.0).view(rows, 4) / 8 + rank
        kept = x.clone()
        assert torch.equal(compiled(x, weight), layer(kept, weight)) and torch.equal(x, kept), rows
    assert len(graphs) <= 1, graphs

try:
    torch.compile(layer, fullgraph=True, backend="aot_eager")(x.requires_grad_(), weight)
except Exception as error:  # torch puts its own around it
    assert "have no gradients" in str(error), error
else:
    raise AssertionError("a graph that would need gradients was compiled")

dist.destroy_process_group()
print("good")
