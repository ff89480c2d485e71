#include "store/tcp/patience.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <col/error.hpp>

#include "core/duration.hpp"

namespace col::store::tcp {

Patience Patience::part(Duration budget, std::string_view what) const {
  Patience part = *this;
  part.what_ = what;
  const Deadline sooner = Deadline::after(budget);
  if (sooner.at() < deadline_.at()) part.deadline_ = sooner;
  return part;
}

Duration Patience::slice() noexcept {
  return std::min(wait_ != nullptr ? wait_->slice() : kLongestSlice, deadline_.remaining());
}

void Patience::check() {
  if (wait_ != nullptr) wait_->check();
  if (!deadline_.expired()) return;
  throw Error(
      ErrorCode::timeout,
      fmt::format("the store at {} has not {} within {}{}; see whether its process runs (rank 0, or the launcher "
                  "on the first host) and this host can reach it, or allow more time (COL_TIMEOUT)",
                  url_, what_, core::format_duration(deadline_.budget()),
                  why_.empty() ? "" : fmt::format(" ({})", why_)));
}

void Patience::explain(std::string why) {
  why_ = std::move(why);
  if (wait_ == nullptr) return;
  if (!why_.empty())
    wait_->describe(
        fmt::format("{}, as the store at {} cannot be reached ({})", what_.empty() ? "the others" : what_, url_, why_));
  else if (!what_.empty())
    wait_->describe(std::string(what_));
}

}  // namespace col::store::tcp
