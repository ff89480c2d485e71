// Data-parallel training in step: every rank holds all parameters and works on its shard of each batch. Who adds up
// the gradients and takes the step is the exchange's choice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <col/col.hpp>

#include "dataset.hpp"
#include "gpu.hpp"
#include "strategies/strategy.hpp"

namespace digits {

// How ranks add up vectors of equal length. The elements of own() are this rank's: it gets their sum, and passes on
// what it makes of it.
class Exchange {
 public:
  Exchange() = default;
  virtual ~Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  virtual Shard own() const = 0;
  // Collective. In own(), `values` gets the sum over all ranks; elsewhere it then holds unspecified values.
  virtual void sum(std::span<float> values) = 0;
  // Collective. Outside of own(), `values` gets what the owners have there.
  virtual void share(std::span<float> values) = 0;
  // What it is, for Strategy::introduction(); `own` of `all` parameters are this rank's.
  virtual std::string text(std::size_t own, std::size_t all) const = 0;
};

// For vectors of `count` elements.
std::unique_ptr<Exchange> make_allreduce(col::Group world, std::size_t count, const Gpu* gpu);
std::unique_ptr<Exchange> make_ps(col::Group world, std::size_t count);
std::unique_ptr<Exchange> make_zero(col::Group world, std::size_t count);

class DataParallel final : public Strategy {
 public:
  // Requires: the exchange is for vectors of one element more than there are parameters.
  DataParallel(Workplace& place, std::unique_ptr<Exchange> exchange, std::span<const float> velocity);

  double train(std::span<const std::uint32_t> order) override;
  std::vector<float> velocity() override;
  std::string introduction() const override;

 private:
  // Returns the summed loss of the images.
  double step(std::span<const std::uint32_t> batch);

  Workplace& place_;
  std::unique_ptr<Exchange> exchange_;
  Shard own_;                    // of the parameters
  std::vector<float> velocity_;  // of own_
  std::vector<double> gradient_;
  std::vector<float> fused_;  // gradient and, last, loss: one buffer, so that one call moves both
};

}  // namespace digits
