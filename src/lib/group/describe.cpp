#include "group/describe.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/hash.hpp"
#include "group/collective_kind.hpp"

namespace col::group {
namespace {

// The view whose count all ranks share.
ConstTensorView common_view(const Request& request) {
  const bool out = request.collective == Collective::broadcast || request.collective == Collective::scatter;
  return out ? ConstTensorView(request.out) : request.in;
}

}  // namespace

std::string describe(const Request& request) {
  const Collective c = request.collective;
  std::string text(to_string(c));
  const ConstTensorView view = common_view(request);
  if (c == Collective::allgatherv)
    text += fmt::format(" of [{}] {}", fmt::join(request.out_counts, ","), to_string(view.dtype));
  else if (c == Collective::alltoallv)
    text += fmt::format(" of {}", to_string(view.dtype));
  else if (c != Collective::barrier)
    text += fmt::format(" of {} {}", view.count, to_string(view.dtype));
  if (is_reduction(c)) text += fmt::format(", {}", request.op.name());
  if (is_rooted(c)) text += fmt::format(", root {}", request.root);
  if (!request.algorithm.empty()) text += fmt::format(", algorithm {}", request.algorithm);
  return text;
}

std::uint64_t fingerprint(std::uint64_t group_token, std::uint64_t sequence, const Request& request) {
  return core::Hash().add(group_token).add(sequence).add(describe(request)).value();
}

}  // namespace col::group
