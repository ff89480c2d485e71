// Joins the job, passes one barrier, and says on rank 0 when that was: nanoseconds of the monotonic clock, into the
// file that is its argument.
#include <cstdio>
#include <exception>

#include <col/col.hpp>

#include "first_barrier.hpp"

int main(int argc, char** argv) {
  try {
    col::init();
    col::barrier();
    if (col::get_rank() == 0 && argc > 1 && !contest::leave_time(argv[1])) return 1;
    col::finalize();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "first_barrier: %s\n", error.what());
    return 1;
  }
}
