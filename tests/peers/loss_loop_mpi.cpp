// As loss_loop_col.cpp, for an MPI with ULFM: revoke and shrink.
#include <mpi.h>

#include <mpi-ext.h>

#include "loss_loop.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return 64;
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm world = MPI_COMM_WORLD;
  MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
  const auto sum = [&](const std::vector<float>& in, std::vector<float>& out) {
    return MPI_Allreduce(in.data(), out.data(), static_cast<int>(in.size()), MPI_FLOAT, MPI_SUM, world) == MPI_SUCCESS;
  };
  const auto recover = [&] {
    MPIX_Comm_revoke(world);
    MPI_Comm next = MPI_COMM_NULL;
    if (MPIX_Comm_shrink(world, &next) != MPI_SUCCESS) return;
    MPI_Comm_set_errhandler(next, MPI_ERRORS_RETURN);
    world = next;
  };
  const int code = contest::lose_the_last(argv[1], rank, size, sum, recover);
  MPI_Finalize();
  return code;
}
