// As split_loop_col.cpp, for Open MPI or MPICH.
#include <mpi.h>

#include "split_loop.hpp"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm part = MPI_COMM_NULL;
  const int code = contest::loop_splits(
      argc, argv, rank, size, [&](int color) { MPI_Comm_split(MPI_COMM_WORLD, color, 0, &part); },
      [&](const float& in, float& out) { MPI_Allreduce(&in, &out, 1, MPI_FLOAT, MPI_SUM, part); },
      [&] { MPI_Comm_free(&part); }, [&] { MPI_Barrier(MPI_COMM_WORLD); });
  MPI_Finalize();
  return code;
}
