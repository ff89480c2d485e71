// As first_barrier_col.cpp, for Open MPI or MPICH.
#include <mpi.h>

#include "first_barrier.hpp"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Barrier(MPI_COMM_WORLD);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const bool left = rank != 0 || argc < 2 || contest::leave_time(argv[1]);
  MPI_Finalize();
  return left ? 0 : 1;
}
