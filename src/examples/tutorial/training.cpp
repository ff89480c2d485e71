// Data-parallel training: a logistic regression learns on which side of a line a point lies.
#include <cmath>
#include <cstdio>
#include <vector>

#include <col/col.hpp>

constexpr int kPoints = 1000;
constexpr int kEpochs = 200;
constexpr double kRate = 8;

struct Point {
  double x, y;
  bool above;
};

// The same points on every machine: they fill the square evenly.
Point point(int i) {
  const double x = std::fmod(i * 0.754877666246693, 1), y = std::fmod(i * 0.569840290998053, 1);
  return {x, y, y > 0.2 + 0.5 * x};
}

int main() {
  col::Group world = col::init();
  std::vector<double> weights(3);  // of x, of y, and the bias
  for (int epoch = 1; epoch <= kEpochs; ++epoch) {
    // Sums over this rank's points: the gradient of each weight, the loss, and how many it got right.
    std::vector<double> sums(5);
    for (int i = world.rank(); i < kPoints; i += world.size()) {
      const Point p = point(i);
      const double score = weights[0] * p.x + weights[1] * p.y + weights[2];
      const double probability = 1 / (1 + std::exp(-score));
      const double error = probability - p.above;
      sums[0] += error * p.x;
      sums[1] += error * p.y;
      sums[2] += error;
      sums[3] -= std::log(p.above ? probability : 1 - probability);
      sums[4] += (probability > 0.5) == p.above;
    }
    world.allreduce(sums);  // now over all points, on every rank
    for (std::size_t k = 0; k < weights.size(); ++k) weights[k] -= kRate * sums[k] / kPoints;
    if (world.rank() == 0 && (epoch == 1 || epoch % 50 == 0))
      std::printf("epoch %3d  loss %.6f  right %4g of %d\n", epoch, sums[3] / kPoints, sums[4], kPoints);
  }
  // All ranks made the same steps from the same start, so their weights are the same, to the last bit.
  std::vector<double> largest(weights.size()), smallest(weights.size());
  world.allreduce(weights, largest, {.op = col::ReduceOp::max});
  world.allreduce(weights, smallest, {.op = col::ReduceOp::min});
  if (world.rank() == 0)
    std::printf("ranks: %d, weights %.4f %.4f %.4f, %s\n", world.size(), weights[0], weights[1], weights[2],
                largest == smallest ? "equal everywhere" : "NOT EQUAL");
  col::finalize();
}
