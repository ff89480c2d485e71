// The control: what the other sources of this folder do wrong, done right. It must compile.
#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <col/col.hpp>

std::size_t count(col::TensorView view) {
  return view.count;
}
std::size_t count_const(col::ConstTensorView view) {
  return view.count;
}

void call(col::Group& world, const col::Options& options) {
  std::vector<float> in(8), out(8);
  std::vector<double> wide(8);
  float fixed[4] = {};
  double residual = 1, sum = 0;
  int number = 3;
  world.allreduce(residual);
  world.allreduce(residual, sum);
  world.allreduce(residual, {.op = col::ReduceOp::max});
  world.reduce(number, number, {.root = 1});
  world.broadcast(number);
  world.broadcast(in, {});
  world.allgather(residual, wide);
  world.send(3, 1);
  world.recv(residual, 0);
  world.allreduce(fixed);
  world.allreduce(in, out, options);
  world.allreduce(in, {.op = col::Op::premul_sum(2)});
  world.allreduce(std::span(in.data(), 2));
  world.scatter({}, out);
  world.gather(in, {}, options);
  col::allreduce(residual);
  col::allreduce(in, {.group = "other", .op = col::ReduceOp::max});
}

int main() {
  std::vector<std::int16_t> shorts(0);
  std::vector<std::complex<float>> waves(0);
  bool flags[1] = {};
  const std::size_t none = count(shorts) + count(waves) + count(flags) - 1;
  std::vector<std::int32_t> integers(3);
  const std::vector<float> constant(2);
  const std::size_t n = count(integers) + count(std::span(integers)) + count_const(constant) +
                        count_const(std::vector<double>(4));  // a temporary lives until the call ends
  return n + none == 12 ? 0 : 1;
}
