// Jacobi's method on a ring: which temperatures does a metal ring reach that a flame heats in one place and air cools?
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include <col/col.hpp>

constexpr std::size_t kPoints = 100;
constexpr double kConduction = 100;  // to each neighbour; the air takes 1
constexpr double kEnough = 1e-10;

// At every point: (1 + 2 * conduction) * t[i] = heat[i] + conduction * (t[i - 1] + t[i + 1]).
// Returns this rank's points, from kPoints * rank / size to kPoints * (rank + 1) / size.
std::vector<double> solve(col::Group& group, int& iterations) {
  const auto rank = std::size_t(group.rank()), size = std::size_t(group.size());
  const std::size_t begin = kPoints * rank / size, count = kPoints * (rank + 1) / size - begin;
  const int left = (group.rank() + group.size() - 1) % group.size(), right = (group.rank() + 1) % group.size();

  // One more point on each side: copies of the neighbours' points.
  std::vector<double> now(count + 2), next(count + 2);
  double residual = 0;
  iterations = 0;
  do {
    const std::span<double> t(now);
    group.sendrecv(t.subspan(1, 1), left, t.subspan(count + 1, 1), right);
    group.sendrecv(t.subspan(count, 1), right, t.subspan(0, 1), left);
    residual = 0;
    for (std::size_t i = 1; i <= count; ++i) {
      const double heat = begin + i - 1 == 0 ? 1000 : 0;  // the flame is at point 0
      next[i] = (heat + kConduction * (t[i - 1] + t[i + 1])) / (1 + 2 * kConduction);
      residual = std::max(residual, std::abs(next[i] - t[i]));
    }
    std::swap(now, next);
    // The largest of all ranks: all of them see the same number, so all leave the loop together.
    group.allreduce(std::span(&residual, 1), {.op = col::ReduceOp::max});
    ++iterations;
  } while (residual > kEnough);
  return {now.begin() + 1, now.end() - 1};
}

int main() {
  col::Group world = col::init();
  int iterations = 0;
  const std::vector<double> mine = solve(world, iterations);

  // Rank 0 puts the ring together. The parts may differ by one point.
  const std::vector<std::size_t> counts = world.allgather_object(mine.size());
  std::vector<double> ring(world.rank() == 0 ? kPoints : 0);
  world.gatherv(mine, ring, counts);

  // And compares it with what it finds alone: a group of one rank runs the same code.
  col::Group alone = world.split(world.rank() == 0 ? 0 : -1);
  if (world.rank() == 0) {
    int iterations_alone = 0;
    const std::vector<double> expected = solve(alone, iterations_alone);
    double lost = 0, difference = 0;
    for (std::size_t i = 0; i < kPoints; ++i) {
      lost += ring[i];
      difference = std::max(difference, std::abs(ring[i] - expected[i]));
    }
    std::printf("ranks: %d, over %s, iterations: %d, alone: %d\n", world.size(), std::string(world.backend()).c_str(),
                iterations, iterations_alone);
    std::printf("at the flame %.4f, opposite of it %.4f\n", ring[0], ring[kPoints / 2]);
    std::printf("heat in 1000, heat out %.4f\n", lost);
    std::printf("largest difference from one rank: %g\n", difference);
  }
  col::finalize();
}
