// Asynchronous training with a parameter server and bounded staleness.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <col/col.hpp>

#include "strategies/clocks.hpp"
#include "strategies/strategy.hpp"

namespace digits {

class AsyncServer final : public Strategy {
 public:
  // Requires: at least two ranks.
  AsyncServer(Workplace& place, std::uint64_t staleness, std::vector<float> velocity);

  double train(std::span<const std::uint32_t> order) override;
  std::vector<float> velocity() override;
  std::string introduction() const override;
  std::string summary() const override;

 private:
  using Steps = std::vector<std::span<const std::uint32_t>>;  // the images of each
  double serve(const Steps& steps);
  void work(const Steps& steps);
  void add_push(float scale, bool first_of_step);
  void answer(std::size_t worker);

  Workplace& place_;
  const std::uint64_t staleness_;
  const std::size_t workers_;
  std::vector<float> pushed_;  // a worker's gradient and, last, loss

  // The server's; empty on workers.
  std::vector<float> velocity_;
  std::vector<std::vector<float>> answers_;  // to each worker: the parameters as they were
  std::vector<col::Work> sent_;              // of each answer
  std::uint64_t largest_lead_ = 0;

  std::vector<double> gradient_;  // a worker's
};

}  // namespace digits
