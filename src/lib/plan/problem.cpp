#include <numeric>
#include <utility>

#include <fmt/format.h>

#include <col/plan.hpp>

namespace col {
namespace {

bool is_v_form(Collective collective) {
  switch (collective) {
    case Collective::allgatherv:
    case Collective::reduce_scatterv:
    case Collective::gatherv:
    case Collective::scatterv:
    case Collective::alltoallv:
      return true;
    default:
      return false;
  }
}

[[noreturn]] void refuse(const std::string& why) {
  throw Error(ErrorCode::invalid_argument, why);
}

}  // namespace

PlanProblem::PlanProblem(Spec spec) : spec_(std::move(spec)) {
  if (spec_.size < 1) refuse(fmt::format("a plan is for at least one rank, not {}", spec_.size));
  if (spec_.root < 0 || spec_.root >= spec_.size)
    refuse(fmt::format("root {} is not in a group of {} ranks", spec_.root, spec_.size));
  if (spec_.collective == Collective::send || spec_.collective == Collective::recv)
    refuse("send and recv are no collectives: there is no plan for them");
  const auto size = static_cast<std::size_t>(spec_.size);
  const std::size_t rows = spec_.collective == Collective::alltoallv ? size : 1;
  const std::size_t needed = is_v_form(spec_.collective) ? rows * size : 0;
  if (spec_.counts.size() != needed)
    refuse(fmt::format("{} of {} ranks takes {} counts, not {}", to_string(spec_.collective), size, needed,
                       spec_.counts.size()));
  if (!spec_.node_of_rank.empty() && spec_.node_of_rank.size() != size)
    refuse(fmt::format("node_of_rank has {} entries for {} ranks", spec_.node_of_rank.size(), size));
  displacements_.resize(needed);
  for (std::size_t row = 0; row < (needed > 0 ? rows : 0); ++row) {
    const auto begin = spec_.counts.begin() + static_cast<std::ptrdiff_t>(row * size);
    std::exclusive_scan(begin, begin + static_cast<std::ptrdiff_t>(size),
                        displacements_.begin() + static_cast<std::ptrdiff_t>(row * size), std::size_t{0});
  }
  if (spec_.collective != Collective::alltoallv) return;
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
                      .node_of_rank = spec_.node_of_rank};
  const std::span<const std::size_t> counts = spec_.counts;
  const std::span<const std::size_t> displacements = displacements_;
  switch (spec_.collective) {
    case Collective::allgatherv:
    case Collective::gatherv:
      request.count = counts[r];
      if (spec_.collective == Collective::gatherv && !is_root) break;
      request.out_counts = counts;
      request.out_displacements = displacements;
      break;
    case Collective::reduce_scatterv:
    case Collective::scatterv:
      request.count = counts[r];
      if (spec_.collective == Collective::scatterv && !is_root) break;
      request.in_counts = counts;
      request.in_displacements = displacements;
      break;
    case Collective::alltoallv:
      request.count = 0;
      request.in_counts = counts.subspan(r * size, size);
      request.in_displacements = displacements.subspan(r * size, size);
      request.out_counts = std::span(column_counts_).subspan(r * size, size);
      request.out_displacements = std::span(column_displacements_).subspan(r * size, size);
      break;
    default:
      break;
  }
  return request;
}

std::size_t PlanProblem::input_count(int rank) const {
  const PlanRequest request = this->request(rank);
  const bool is_root = rank == spec_.root;
  const auto size = static_cast<std::size_t>(spec_.size);
  switch (spec_.collective) {
    case Collective::broadcast:
    case Collective::barrier:
      return 0;
    case Collective::scatter:
    case Collective::scatterv:
      if (!is_root) return 0;
      [[fallthrough]];
    case Collective::reduce_scatter:
    case Collective::reduce_scatterv:
    case Collective::alltoall:
    case Collective::alltoallv:
      return request.in_counts.empty() ? request.count * size
                                       : std::reduce(request.in_counts.begin(), request.in_counts.end());
    default:
      return request.count;
  }
}

std::size_t PlanProblem::output_count(int rank) const {
  const PlanRequest request = this->request(rank);
  const bool is_root = rank == spec_.root;
  const auto size = static_cast<std::size_t>(spec_.size);
  switch (spec_.collective) {
    case Collective::barrier:
      return 0;
    case Collective::reduce:
      return is_root ? request.count : 0;
    case Collective::gather:
    case Collective::gatherv:
      if (!is_root) return 0;
      [[fallthrough]];
    case Collective::allgather:
    case Collective::allgatherv:
    case Collective::alltoall:
    case Collective::alltoallv:
      return request.out_counts.empty() ? request.count * size
                                        : std::reduce(request.out_counts.begin(), request.out_counts.end());
    default:
      return request.count;
  }
}

PlanOfRank plans_of(const Algorithm& algorithm, const PlanProblem& problem) {
  return [build = algorithm.build, &problem](int rank) { return build(problem.request(rank)); };
}

}  // namespace col
