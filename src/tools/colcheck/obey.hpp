// A rank's side of a run: carries out the lead's orders.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>

#include <col/group.hpp>

#include "colcheck/order.hpp"
#include "common/coordinator.hpp"

namespace col::colcheck {

struct ObeyOptions {
  Duration timeout = std::chrono::seconds(20);  // of one call
  // Called before each case, on this rank.
  std::function<void(const Case&)> on_case = {};
};

// Does this rank's part in `order`, the run's number `number`. Blocks until it is done. Does not throw for findings of
// cases, or for a group that cannot be made.
Answer carry_out(Context& context, const Order& order, std::uint64_t number, const ObeyOptions& options);

// Runs cases that need no group, in this process.
Answer carry_out_alone(Context& context, std::span<const Case> cases, const ObeyOptions& options);

// Waits for orders and carries them out, until there are no more. Throws col::Error if the lead is lost.
void obey(Context& context, tools::Coordinator& lead, const ObeyOptions& options);

}  // namespace col::colcheck
