"""A program of MPICH, without its headers: says what world it is in. Two arguments: a rank, and the code to abort with.

With MPICH_WORLD_LEAVES in the environment, it ends without MPI_Finalize.
"""
import ctypes
import os
import sys

WORLD, INT, SUM, SHARED, NO_INFO = 0x44000000, 0x4C000405, 0x58000003, 1, 0x1C000000  # as in MPICH's mpi.h
mpi = ctypes.CDLL("libmpich.so.12")
mpi.MPI_Init(None, None)
rank, size, total, here, node = (ctypes.c_int() for _ in range(5))
mpi.MPI_Comm_rank(WORLD, ctypes.byref(rank))
mpi.MPI_Comm_size(WORLD, ctypes.byref(size))
mpi.MPI_Allreduce(ctypes.byref(rank), ctypes.byref(total), 1, INT, SUM, WORLD)
mpi.MPI_Comm_split_type(WORLD, SHARED, 0, NO_INFO, ctypes.byref(node))
mpi.MPI_Comm_size(node, ctypes.byref(here))
print(f"rank {rank.value} of {size.value}: the sum is {total.value}, {here.value} ranks on this node", flush=True)
if len(sys.argv) > 1 and rank.value == int(sys.argv[1]):
    mpi.MPI_Abort(WORLD, int(sys.argv[2]))
mpi.MPI_Barrier(WORLD)
if "MPICH_WORLD_LEAVES" in os.environ:
    os._exit(0)
mpi.MPI_Finalize()
