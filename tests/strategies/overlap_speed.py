"""What overlap costs or gains here: steps of AllReduce without, with, and with "auto", in turns in the same processes. By hand:

    colrun -n 2 python3 overlap_speed.py --width 2048 --rows 64
"""

import argparse
import statistics
import time

import torch

import col
from col.strategies import AllReduce
from col.strategies.overlap import ROUNDS, WARM_UP

parser = argparse.ArgumentParser()
parser.add_argument("--width", type=int, default=1024, help="of each of four layers; the model has 4 width² parameters")
parser.add_argument("--rows", type=int, default=64, help="of a batch, on each rank")
parser.add_argument("--blocks", type=int, default=12, help="of each kind, of 5 steps")
options = parser.parse_args()

world = col.init()
torch.set_num_threads(1)
kinds = {}
for overlap in False, True, "auto":
    layers = [part for _ in range(4) for part in (torch.nn.Linear(options.width, options.width), torch.nn.ReLU())]
    module = torch.nn.Sequential(*layers)
    kinds[overlap] = module, AllReduce(world, module, torch.optim.SGD(module.parameters(), lr=0.01), overlap=overlap)
x = torch.randn(options.rows, options.width)


def steps(overlap, count):
    module, strategy = kinds[overlap]
    began = time.perf_counter()
    for _ in range(count):
        module(x).square().mean().backward()
        strategy.step()
    return (time.perf_counter() - began) / count


for overlap in kinds:
    steps(overlap, WARM_UP + 2 * ROUNDS)  # auto has chosen
times = {overlap: [] for overlap in kinds}
for block in range(options.blocks):
    order = list(kinds)
    for overlap in order[block % 3 :] + order[: block % 3]:
        world.barrier()
        times[overlap].append(1e3 * steps(overlap, 5))
if world.rank == 0:
    for overlap, (_, strategy) in kinds.items():
        stats = strategy.stats()
        median, base = statistics.median(times[overlap]), statistics.median(times[False])
        low, _, high = statistics.quantiles(times[overlap], n=4)
        chosen = f", chose {stats['overlap']}" if overlap == "auto" else ""
        print(f"overlap {overlap!s:5}  {median:7.2f} ms a step ({low:.2f}-{high:.2f}), {median / base:.2f} of that without; "
              f"{100 * stats['hidden']:.0f} % of communication hidden{chosen}")  # fmt: skip
col.finalize()
