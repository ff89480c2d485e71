// For binding_speed.py: calls one after the other for a third of a second, and how long one takes in the mean. The
// mean, because a rank without a processor for a few milliseconds is what it is to show. Prints one line of JSON on
// rank 0.
//
// usage: binding_loop_col (allreduce | gather | pingpong) BYTES
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include <col/col.hpp>

int main(int argc, char** argv) {
  using Clock = std::chrono::steady_clock;
  if (argc != 3) return 2;
  col::Group world = col::init();
  const std::string_view operation = argv[1];
  const bool gathers = operation == "gather";
  const std::size_t count = std::strtoull(argv[2], nullptr, 10) / sizeof(float);
  const auto ranks = static_cast<std::size_t>(world.size());
  // The size of a gather is that of what rank 0 gets.
  const std::vector<float> in(gathers ? count / ranks : count, 1);
  std::vector<float> out(count);
  const auto once = [&] {
    if (gathers) return world.gather(in, out);
    if (operation == "allreduce") return world.allreduce(in, out);
    const int peer = 1 - world.rank();
    if (world.rank() == 0) world.send(in, peer);
    world.recv(out, peer);
    if (world.rank() == 1) world.send(in, peer);
  };
  const auto many = [&](int calls) {
    for (int call = 0; call < calls; ++call) once();
  };
  many(20);
  world.barrier();
  const auto begin = Clock::now();
  double seconds = 0;
  long calls = 0;
  for (int goes_on = 1; goes_on != 0;) {
    constexpr int kBatch = 50;
    many(kBatch);
    calls += kBatch;
    seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    goes_on = seconds < 0.3 ? 1 : 0;
    world.broadcast(goes_on);
  }
  if (world.rank() == 0) std::printf("{\"us\": %.4f}\n", seconds / static_cast<double>(calls) * 1e6);
  col::finalize();
  return 0;
}
