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

bool has_tree(const CollectiveRow& row) {
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
  if (order == Order::tree && !has_tree(row))
    refuse("{}: order = tree is for what combines the data of all ranks: allreduce, reduce and reduce_scatter(v)",
           row.name);
  if (options.deterministic) order = Order::rank;
  if (order == Order::any && (of_group != Order::tree || has_tree(row))) order = of_group;
  if (options.contributions != 0 && order != Order::tree)
    refuse("{}: contributions are counted in order = tree, and the order is {}; leave them out", row.name,
           to_string(order));
  if (order == Order::tree && options.compress)
    refuse("{}: compress rounds partial sums, which order = tree does not allow; leave one of them out", row.name);
  return row.reduces() ? order : Order::any;
}

std::optional<std::size_t> length_of_one(const Request& request, const Shape& shape) {
  const CollectiveRow& row = row_of(request.collective);
  if (row.has_counts()) return std::reduce(request.in_counts.begin(), request.in_counts.end());
  if (row.out == Extent::block) return request.out.count * static_cast<std::size_t>(shape.size);
  if (row.out_on_root && request.root != shape.rank) return std::nullopt;
  return request.out.count;
}

std::vector<std::size_t> shares_of_reduce(std::span<const std::size_t> told, int root, std::string_view group) {
  const std::size_t length = told[2 * static_cast<std::size_t>(root) + 1];
  std::vector<std::size_t> shares;
  for (std::size_t rank = 0; rank < told.size() / 2; ++rank) {
    const std::size_t given = told[2 * rank];
    if (length == 0 ? given != 0 : given % length != 0)
      throw Error(ErrorCode::mismatch,
                  fmt::format("reduce: rank {} gives {} elements, which are not whole contributions: the output of "
                              "root {} has {}",
                              rank, given, root, length),
                  group, static_cast<int>(rank));
    shares.push_back(length == 0 ? 0 : given / length);
  }
  return shares;
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
