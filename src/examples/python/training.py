"""colrun -n 4 python3 training.py: the tutorial's training in Python, with the losses of training.cpp"""

import numpy as np

import col

POINTS, EPOCHS, RATE = 1000, 200, 8.0

world = col.init()
i = np.arange(world.rank, POINTS, world.size)  # this rank's points
x, y = i * 0.754877666246693 % 1, i * 0.569840290998053 % 1
above = y > 0.2 + 0.5 * x
inputs = np.stack([x, y, np.ones_like(x)])

weights = np.zeros(3)  # of x, of y, and the bias
for epoch in range(1, EPOCHS + 1):
    probability = 1 / (1 + np.exp(-weights @ inputs))
    loss = -np.log(np.where(above, probability, 1 - probability)).sum()
    right = ((probability > 0.5) == above).sum()
    sums = np.array([*(inputs @ (probability - above)), loss, right])
    world.allreduce(sums)  # now over all points, on every rank
    weights -= RATE * sums[:3] / POINTS
    if world.rank == 0 and (epoch == 1 or epoch % 50 == 0):
        print(f"epoch {epoch:3d}  loss {sums[3] / POINTS:.6f}  right {sums[4]:4g} of {POINTS}")
col.finalize()
