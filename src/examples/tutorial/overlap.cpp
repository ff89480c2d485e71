// Overlap: gradients are added while the next layer is computed. Prints what that hides.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <span>
#include <thread>
#include <vector>

#include <col/col.hpp>

using Clock = std::chrono::steady_clock;

constexpr int kLayers = 8;
constexpr std::size_t kCount = 50'000;  // gradients of a layer

// Stands for the time that a GPU or a disk takes. It is long for one rank at a time: in real jobs, ranks are never
// even.
void compute(int layer, const col::Group& group, std::span<float> gradients) {
  const bool slow = layer % group.size() == group.rank();
  std::this_thread::sleep_for(std::chrono::milliseconds(slow ? 20 : 2));
  std::fill(gradients.begin(), gradients.end(), float(layer + group.rank()));
}

// Milliseconds that all layers took, on the slowest rank. `start` begins the sum of a layer, `finish` ends all of them.
template <class Start, class Finish>
double milliseconds(col::Group& group, Start start, Finish finish) {
  group.barrier();
  const auto begin = Clock::now();
  for (int layer = kLayers - 1; layer >= 0; --layer) start(layer);  // backwards, as gradients come
  finish();
  double passed = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  group.allreduce(std::span(&passed, 1), {.op = col::ReduceOp::max});
  return passed;
}

int main() {
  col::Group world = col::init();
  using Layers = std::vector<std::vector<float>>;
  Layers gradients(kLayers, std::vector<float>(kCount)), waited = gradients, overlapped = gradients;

  const double one_by_one = milliseconds(
      world,
      [&](int layer) {
        compute(layer, world, gradients[layer]);
        world.allreduce(gradients[layer], waited[layer]);  // waits for the slowest rank, at every layer
      },
      [] {});

  std::vector<col::Work> works;
  const double together = milliseconds(
      world,
      [&](int layer) {
        compute(layer, world, gradients[layer]);
        works.push_back(world.iallreduce(gradients[layer], overlapped[layer]));  // goes on while the next is computed
      },
      [&] { col::wait_all(works); });

  if (world.rank() == 0) {
    std::printf("one by one %.0f ms, overlapped %.0f ms: hides %.0f ms\n", one_by_one, together, one_by_one - together);
    std::printf("the sums are %s\n", waited == overlapped ? "the same" : "NOT THE SAME");
  }
  col::finalize();
}
