#include <cstdio>
#include <vector>

#include <col/col.hpp>

int main() {
  col::Group world = col::init();
  std::vector<float> values(1000, float(world.rank() + 1));
  world.allreduce(values);  // every rank now holds the sum over all ranks
  std::printf("rank %d of %d: the sum is %g\n", world.rank(), world.size(), values[0]);
  col::finalize();
}
