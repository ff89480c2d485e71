// A job of which one rank does not come to a call: shows whom colrun names when time is up.
//
//   late_rank RANK DIR        every rank makes two calls and creates DIR/<its rank>; then all but RANK make a third,
//   for
//                             which RANK, in no call, lets them wait
//   late_rank RANK DIR MS     the same, but that all have started an asynchronous call before, wait for so many
//                             milliseconds at most, and catch what comes of it
//   late_rank none DIR MS     no rank comes late: all make one small call after the other, without an end, which wait
//                             for so many milliseconds at most
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <col/col.hpp>

namespace {

constexpr int kNone = -1;

void call_for_ever(col::Group& world, col::Duration patience) {
  const std::vector<float> values(2, 1);
  std::vector<float> sums(2);
  for (;;) world.allreduce(values, sums, {.timeout = patience});
}

void run(int late, const std::string& directory, int patience_ms) {
  col::Group world = col::init();
  std::vector<float> values(100, 1);
  world.allreduce(values);
  world.barrier();
  std::ofstream(directory + "/" + std::to_string(world.rank())) << ::getpid();
  if (late == kNone) call_for_ever(world, std::chrono::milliseconds(patience_ms));
  col::Work work;
  std::vector<float> sums(100);
  if (patience_ms > 0) work = world.iallreduce(values, sums);
  if (world.rank() == late) std::this_thread::sleep_for(std::chrono::seconds(60));  // longer than the job is let live
  const col::Duration patience = std::chrono::milliseconds(patience_ms > 0 ? patience_ms : 60'000);
  world.allreduce(values, {.timeout = patience});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return 2;
  try {
    const int late = argv[1] == std::string("none") ? kNone : std::atoi(argv[1]);
    run(late, argv[2], argc == 4 ? std::atoi(argv[3]) : 0);
    return 0;
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
