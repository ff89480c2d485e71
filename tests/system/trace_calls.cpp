// One rank of a job that makes calls of all kinds for a trace: small and large collectives, messages, one that it waits
// for later, in two groups, with and without a label.
//
//   trace_calls [ROUNDS]
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

#include <col/col.hpp>

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 3;
  try {
    col::Group world = col::init();
    const int rank = world.rank(), size = world.size();
    std::vector<float> small(8, 1), large(1 << 16, 1), received(8), sums(large.size());
    col::Group second = world.dup();
    for (int i = 0; i < rounds; ++i) {
      world.annotate("forward");
      world.allreduce(small);
      world.annotate("backward");
      world.allreduce(large, {.algorithm = "ring"});
      world.annotate("");
      col::Work later = second.iallreduce(large, sums);
      second.barrier();
      world.sendrecv(small, (rank + 1) % size, received, (rank + size - 1) % size, {.tag = 7});
      if (rank == 0) world.send(small, 1, {.tag = 3});
      if (rank == 1) world.recv(received, 0, {.tag = 3});
      later.wait();
    }
    col::finalize();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
