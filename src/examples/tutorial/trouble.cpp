// Three mistakes to learn from: trouble mismatch, trouble lost, trouble hang.
#include <csignal>
#include <cstdio>
#include <string_view>
#include <vector>

#include <unistd.h>

#include <col/col.hpp>

// Rank 2 has another number of elements than the others.
void mismatch(col::Group& world) {
  std::vector<float> values(world.rank() == 2 ? 999 : 1000);
  world.allreduce(values);
}

// Rank 2 dies. The others go on without it.
void lost(col::Group& world) {
  if (world.rank() == 2) ::raise(SIGKILL);
  std::vector<float> values(1000, 1.0F);
  try {
    world.allreduce(values);
  } catch (const col::Error& error) {
    if (error.code() != col::ErrorCode::peer_lost || error.rank() < 0) throw;
    const int without[] = {error.rank()};
    world = world.shrink(without);
    values.assign(1000, 1.0F);  // after an error, a buffer that was an output holds anything
    world.allreduce(values);
    if (world.rank() == 0)
      std::printf("%s\ngone on with %d ranks: the sum is %g\n", error.what(), world.size(), values[0]);
  }
}

// Rank 2 waits for something else than the others, and never comes.
void hang(col::Group& world) {
  if (world.rank() == 2) ::pause();
  world.barrier();
}

int main(int argc, char** argv) {
  const std::string_view which = argc == 2 ? argv[1] : "";
  try {
    col::Group world = col::init();
    if (which == "mismatch")
      mismatch(world);
    else if (which == "lost")
      lost(world);
    else if (which == "hang")
      hang(world);
    else
      throw col::Error(col::ErrorCode::invalid_argument, "say mismatch, lost or hang");
    col::finalize();
  } catch (const col::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
