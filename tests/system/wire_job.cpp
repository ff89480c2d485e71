// A rank whose messages go from host to host until it is killed, or loses a peer.
//
//   wire_job BYTES READY   allreduces of that size without end. Creates the file READY.RANK after the first, and ends
//                          with 0 when a call fails; then it has written "CODE RANK MILLISECONDS MESSAGE" to stdout,
//                          with the time of the failure since 1970.
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <col/col.hpp>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    col::Group world = col::init();
    std::vector<float> data(std::strtoul(argv[1], nullptr, 10) / sizeof(float), 1.0F);
    for (int call = 0;; ++call) {
      world.allreduce(data);
      if (call == 0) std::ofstream(argv[2] + ("." + std::to_string(world.rank())));
    }
  } catch (const col::Error& error) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    std::printf("%s %d %lld %s\n", std::string(col::to_string(error.code())).c_str(), error.rank(),
                static_cast<long long>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count()),
                error.what());
  }
  // Nothing is left to be said to the others.
  std::fflush(stdout);
  std::_Exit(0);
}
