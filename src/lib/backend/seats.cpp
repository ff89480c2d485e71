#include "backend/seats.hpp"

#include <algorithm>
#include <map>
#include <string_view>

namespace col::backend {

std::optional<SharedDevice> find_shared_device(std::span<const Seat> seats) {
  std::map<std::string_view, int> users;
  for (const Seat& seat : seats) {
    const auto [first, is_alone] = users.emplace(seat.device, seat.rank);
    if (is_alone) continue;
    SharedDevice shared{first->second, seat.rank, seat.device, ""};
    // Each rank looks by itself whether a device is shared: all must put up with it.
    const auto hindered =
        std::find_if(seats.begin(), seats.end(), [](const Seat& one) { return !one.why_alone.empty(); });
    if (hindered != seats.end())
      shared.problem = "on rank " + std::to_string(hindered->rank) + ", " + hindered->why_alone;
    return shared;
  }
  return std::nullopt;
}

}  // namespace col::backend
