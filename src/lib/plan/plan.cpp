#include <col/plan.hpp>

#include <array>
#include <cstddef>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/names.hpp"

namespace col {
namespace {

constexpr std::array<std::string_view, 5> kKinds = {"send", "recv", "reduce", "copy", "convert"};
constexpr std::array<std::string_view, 4> kBuffers = {"input", "output", "scratch", "wide"};
constexpr std::array<std::string_view, 3> kOrders = {"any", "contiguous", "rank_order"};

[[noreturn]] void refuse(const std::string& why) {
  throw Error(ErrorCode::invalid_argument, why);
}

// The elements of one side of the call.
std::size_t count_of(Extent extent, const PlanRequest& request, std::span<const std::size_t> counts) {
  if (extent == Extent::nothing) return 0;
  if (extent != Extent::blocks) return request.count;
  return counts.empty() ? request.count * static_cast<std::size_t>(request.size)
                        : std::reduce(counts.begin(), counts.end());
}

}  // namespace

std::string_view to_string(Step::Kind kind) noexcept {
  return core::name_at(kKinds, static_cast<std::size_t>(kind));
}

std::string_view to_string(Buffer buffer) noexcept {
  return core::name_at(kBuffers, static_cast<std::size_t>(buffer));
}

std::string_view to_string(FoldOrder order) noexcept {
  return core::name_at(kOrders, static_cast<std::size_t>(order));
}

PlanProblem::PlanProblem(Spec spec) : spec_(std::move(spec)) {
  if (spec_.size < 1) refuse(fmt::format("a plan is for at least one rank, not {}", spec_.size));
  if (spec_.root < 0 || spec_.root >= spec_.size)
    refuse(fmt::format("root {} is not in a group of {} ranks", spec_.root, spec_.size));
  if (row_of(spec_.collective).is_message) refuse("send and recv are no collectives: there is no plan for them");
  const auto size = static_cast<std::size_t>(spec_.size);
  const std::size_t rows = row_of(spec_.collective).counts == BlockCounts::pairs ? size : 1;
  const std::size_t needed = row_of(spec_.collective).has_counts() ? rows * size : 0;
  if (spec_.counts.size() != needed)
    refuse(fmt::format("{} of {} ranks takes {} counts, not {}", to_string(spec_.collective), size, needed,
                       spec_.counts.size()));
  if (!spec_.node_of_rank.empty() && spec_.node_of_rank.size() != size)
    refuse(fmt::format("node_of_rank has {} entries for {} ranks", spec_.node_of_rank.size(), size));
  if (const std::vector<std::size_t>& listed = spec_.contributions; !listed.empty()) {
    if (row_of(spec_.collective).folds != Folds::all)
      refuse(fmt::format("contributions are listed for reductions over all ranks, not for {}",
                         to_string(spec_.collective)));
    if (listed.size() != size) refuse(fmt::format("contributions has {} entries for {} ranks", listed.size(), size));
    if (std::reduce(listed.begin(), listed.end()) == 0) refuse("no rank gives a contribution");
  }
  displacements_.resize(needed);
  for (std::size_t row = 0; row < (needed > 0 ? rows : 0); ++row) {
    const auto begin = spec_.counts.begin() + static_cast<std::ptrdiff_t>(row * size);
    std::exclusive_scan(begin, begin + static_cast<std::ptrdiff_t>(size),
                        displacements_.begin() + static_cast<std::ptrdiff_t>(row * size), std::size_t{0});
  }
  find_columns();
  find_neighbour_counts();
}

void PlanProblem::find_columns() {
  if (row_of(spec_.collective).counts != BlockCounts::pairs) return;
  const auto size = static_cast<std::size_t>(spec_.size);
  const std::size_t needed = size * size;
  column_counts_.resize(needed);
  column_displacements_.resize(needed);
  for (std::size_t to = 0; to < size; ++to) {
    std::size_t total = 0;
    for (std::size_t from = 0; from < size; ++from) {
      column_counts_[to * size + from] = spec_.counts[from * size + to];
      column_displacements_[to * size + from] = total;
      total += spec_.counts[from * size + to];
    }
  }
}

void PlanProblem::find_neighbour_counts() {
  if (!row_of(spec_.collective).has_private_counts() || spec_.node_of_rank.empty()) return;
  std::map<int, int> lowest;  // by the node's name
  const auto size = static_cast<std::size_t>(spec_.size);
  for (std::size_t rank = 0; rank < size; ++rank) {
    lowest_.push_back(lowest.emplace(spec_.node_of_rank[rank], static_cast<int>(rank)).first->second);
    std::vector<std::size_t>& known = neighbour_counts_[lowest_.back()];
    if (column_counts_.empty()) {
      known.push_back(spec_.counts[rank]);
      continue;
    }
    for (const std::vector<std::size_t>* const counts : {&spec_.counts, &column_counts_}) {
      const auto row = counts->begin() + static_cast<std::ptrdiff_t>(rank * size);
      known.insert(known.end(), row, row + static_cast<std::ptrdiff_t>(size));
    }
  }
}

PlanRequest PlanProblem::request(int rank) const {
  const auto size = static_cast<std::size_t>(spec_.size);
  const auto r = static_cast<std::size_t>(rank);
  const bool is_root = rank == spec_.root;
  PlanRequest request{.collective = spec_.collective,
                      .rank = rank,
                      .size = spec_.size,
                      .root = spec_.root,
                      .count = spec_.count,
                      .widens = spec_.widens,
                      .wide_input = spec_.wide_input,
                      .in_place = spec_.in_place,
                      .parameters = spec_.parameters,
                      .node_of_rank = spec_.node_of_rank,
                      .contributions = spec_.contributions};
  if (!spec_.contributions.empty() && spec_.contributions[r] != 1) request.in_place = false;
  if (!lowest_.empty()) request.neighbour_counts = neighbour_counts_.at(lowest_[r]);
  const std::span<const std::size_t> counts = spec_.counts;
  const std::span<const std::size_t> displacements = displacements_;
  const CollectiveRow& row = row_of(spec_.collective);
  if (row.counts == BlockCounts::pairs) {
    request.count = 0;
    request.in_counts = counts.subspan(r * size, size);
    request.in_displacements = displacements.subspan(r * size, size);
    request.out_counts = std::span(column_counts_).subspan(r * size, size);
    request.out_displacements = std::span(column_displacements_).subspan(r * size, size);
  } else if (row.has_counts()) {
    request.count = counts[r];
    if (row.out == Extent::blocks && row.has_output(is_root)) {
      request.out_counts = counts;
      request.out_displacements = displacements;
    }
    if (row.in == Extent::blocks && row.has_input(is_root)) {
      request.in_counts = counts;
      request.in_displacements = displacements;
    }
  }
  return request;
}

std::size_t PlanProblem::input_count(int rank) const {
  const CollectiveRow& row = row_of(spec_.collective);
  const PlanRequest request = this->request(rank);
  if (!row.has_input(rank == spec_.root)) return 0;
  const std::size_t given = request.contributions.empty() ? 1 : request.contributions[static_cast<std::size_t>(rank)];
  return given * count_of(row.in, request, request.in_counts);
}

std::size_t PlanProblem::output_count(int rank) const {
  const CollectiveRow& row = row_of(spec_.collective);
  const PlanRequest request = this->request(rank);
  return row.has_output(rank == spec_.root) ? count_of(row.out, request, request.out_counts) : 0;
}

PlanOfRank plans_of(const Algorithm& algorithm, const PlanProblem& problem) {
  return [build = algorithm.build, &problem](int rank) { return build(problem.request(rank)); };
}

}  // namespace col
