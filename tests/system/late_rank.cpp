// A job of which one rank does not come to a call: shows whom colrun names when time is up.
//
//   late_rank RANK DIR   every rank makes two calls and creates DIR/<its rank>; then all but RANK make a third, for
//   which
//                        RANK, in no call, lets them wait
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

void run(int late, const std::string& directory) {
  col::Group world = col::init();
  std::vector<float> values(100, 1);
  world.allreduce(values);
  world.barrier();
  std::ofstream(directory + "/" + std::to_string(world.rank())) << ::getpid();
  if (world.rank() == late) std::this_thread::sleep_for(std::chrono::seconds(60));  // longer than the job is let live
  world.allreduce(values, {.timeout = std::chrono::seconds(60)});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    run(std::atoi(argv[1]), argv[2]);
    return 0;
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
