// A rank whose messages go from host to host until it is killed, loses a peer, or is told that it is enough.
//
//   wire_job BYTES READY [ENOUGH [SECONDS]]
//
// Allreduces of that size, until rank 0 finds the file ENOUGH; then each rank writes "well". Creates the file
// READY.RANK after the first one. Rank 0 then computes for SECONDS, without a call. A call that fails ends the rank: it
// has then written "CODE RANK MILLISECONDS MESSAGE" to stdout, with the time of the failure since 1970. It ends with 0
// always.
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <col/col.hpp>

namespace {

void compute(std::chrono::seconds time) {
  for (const auto end = std::chrono::steady_clock::now() + time; std::chrono::steady_clock::now() < end;) {
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 5) return 2;
  try {
    col::Group world = col::init();
    std::vector<float> data(std::strtoul(argv[1], nullptr, 10) / sizeof(float));
    for (int call = 0;; ++call) {
      const bool enough = argc > 3 && world.rank() == 0 && std::filesystem::exists(argv[3]);
      data.assign(data.size(), enough ? 1.0F : 0.0F);
      world.allreduce(data);
      if (call == 0) {
        std::ofstream(argv[2] + ("." + std::to_string(world.rank())));
        if (argc > 4 && world.rank() == 0) compute(std::chrono::seconds(std::strtol(argv[4], nullptr, 10)));
      }
      if (data.front() > 0) break;
    }
    col::finalize();
    std::puts("well");
  } catch (const col::Error& error) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    std::printf("%s %d %lld %s\n", std::string(col::to_string(error.code())).c_str(), error.rank(),
                static_cast<long long>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count()),
                error.what());
    std::fflush(stdout);
    try {
      col::finalize();
    } catch (const col::Error&) {  // the same once more
    }
  }
  std::fflush(stdout);
  std::_Exit(0);
}
