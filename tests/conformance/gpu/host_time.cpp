// What a call on a GPU takes of the host, over libraries whose functions return at once. Each figure is the shortest of
// many short rounds: what else the machine does only makes others longer. Exit code 1 beyond the limit.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>

#include <col/col.hpp>

namespace {

constexpr double kLimit_us = 10;
constexpr int kRounds = 300, kCalls = 100;

double shortest_us(const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = Clock::now();
    for (int i = 0; i < kCalls; ++i) call();
    best = std::min(best, std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / kCalls);
  }
  return best;
}

}  // namespace

int main() {
  col::Context& context = col::Context::current();
  col::Group group = context.init_group({.name = "g", .rank = 0, .world_size = 1, .backend = col::Backend::nccl});
  static float memory[8];
  static char stream;
  const col::TensorView data(memory, 8, col::DType::float32, {col::Device::Type::cuda, 0});
  bool good = true;
  const auto show = [&](const char* what, const std::function<void()>& call) {
    const double us = shortest_us(call);
    std::printf("%-36s %.3f us\n", what, us);
    good = good && us <= kLimit_us;
  };
  for (const col::Options& options : {col::Options(), col::Options{.stream = {&stream}}}) {
    std::printf("%s:\n", options.stream.handle == nullptr ? "without a stream" : "in a stream");
    show("allreduce", [&] { group.allreduce(data, options); });
    show("iallreduce, wait()", [&] { group.iallreduce(data, data, options).wait(); });
    show("iallreduce, wait(stream)", [&] { group.iallreduce(data, data, options).wait(col::Stream{&stream}); });
  }
  context.destroy_group("g");
  return good ? 0 : 1;
}
