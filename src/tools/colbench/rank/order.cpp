#include "colbench/rank/order.hpp"

#include <col/error.hpp>

#include "colbench/report/spec_fields.hpp"
#include "common/command_line.hpp"

namespace col::colbench {

template <class Visit>
void fields(Method& method, Visit& visit) {
  auto& [ranks, launches, target_interval, min_iterations, max_iterations, warm_ups, max_time, seed, shuffle,
         barrier_sync, check, skew, delay, delay_fraction, timeout, calibrate, strict_bound, fits] = method;
  visit("ranks", ranks);
  visit("launches", launches);
  visit("target_interval", target_interval);
  visit("min_iterations", min_iterations);
  visit("max_iterations", max_iterations);
  visit("warm_ups", warm_ups);
  visit("max_time", max_time);
  visit("seed", seed);
  visit("shuffle", shuffle);
  visit("barrier_sync", barrier_sync);
  visit("check", check);
  visit("skew", skew);
  visit("delay", delay);
  visit("delay_fraction", delay_fraction);
  visit("timeout", timeout);
  visit("calibrate", calibrate);
  visit("fits", fits);
  core::stays(strict_bound);  // whoever gives orders judges
}

template <class Visit>
void fields(Order& order, Visit& visit) {
  auto& [method, launch, calibrations, cells] = order;
  visit("method", method);
  visit("launch", launch);
  visit("calibrations", calibrations);
  visit("cells", cells);
}

std::string encode(const Order& order) {
  return core::json_line(order);
}

Order decode_order(const std::string& text) {
  try {
    return core::parsed_json<Order>(text, "order");
  } catch (const Error& error) {
    throw tools::UsageError("not an order of colbench: " + error.message());
  }
}

}  // namespace col::colbench
