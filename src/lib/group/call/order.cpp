#include "group/call/order.hpp"

#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/joined.hpp"
#include "group/call/operation.hpp"

namespace col::group {
namespace {

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorCode::invalid_argument, fmt::format(format, std::forward<Args>(args)...));
}

bool has_tree(Collective collective) {
  return collective == Collective::allreduce;
}

// It has a tree, or will have one.
bool is_over_all(const CollectiveRow& row) {
  return row.folds == Folds::all;
}

}  // namespace

Order order_of(Collective collective, const Options& options, Order of_group) {
  const CollectiveRow& row = row_of(collective);
  Order order = options.order;
  if (options.deterministic && order != Order::any && order != Order::rank)
    refuse("{}: deterministic asks for rank order, and order = {} for another; leave one of them out", row.name,
           to_string(order));
  if (order == Order::exact)
    refuse("{}: order = exact is not there yet; take tree, whose bits do not depend on the ranks either", row.name);
  if (order == Order::tree && !has_tree(collective))
    refuse("{}: order = tree is there for allreduce so far{}", row.name,
           is_over_all(row) ? "; reduce by one, and take of its result what this rank needs" : "");
  if (options.deterministic) order = Order::rank;
  if (order == Order::any && (of_group != Order::tree || is_over_all(row))) {
    order = of_group;
    if (order == Order::tree && !has_tree(collective))
      refuse("{}: the group's order is tree, which is there for allreduce so far; name another order for this call",
             row.name);
  }
  if (options.contributions != 0 && order != Order::tree)
    refuse("{}: contributions are counted in order = tree, and the order is {}; leave them out", row.name,
           to_string(order));
  if (order == Order::tree && options.compress)
    refuse("{}: compress rounds partial sums, which order = tree does not allow; leave one of them out", row.name);
  return row.reduces() ? order : Order::any;
}

std::size_t share_of(const Request& request) {
  return request.out.count == 0 ? 0 : request.in.count / request.out.count;
}

std::string shares_text(std::span<const std::size_t> shares) {
  constexpr std::size_t kMostParts = 16;
  std::map<std::size_t, std::vector<int>> givers;
  for (std::size_t rank = 0; rank < shares.size(); ++rank) givers[shares[rank]].push_back(static_cast<int>(rank));
  std::vector<std::string> parts;
  for (const auto& [share, ranks] : givers) {
    if (parts.size() == kMostParts) {
      parts.emplace_back("…");
      break;
    }
    parts.push_back(fmt::format("{} {} {}", ranks_text(ranks), ranks.size() == 1 ? "gives" : "give", share));
  }
  return core::joined(parts, "; ");
}

std::string problem_with(std::span<const std::size_t> shares, std::size_t contributions) {
  const std::size_t total = std::reduce(shares.begin(), shares.end());
  if (total == 0) return "no rank gives a contribution, and there is nothing to reduce";
  if (contributions == 0 || contributions == total) return {};
  return fmt::format("contributions is {}, but the ranks give {}: {}", contributions, total, shares_text(shares));
}

}  // namespace col::group
