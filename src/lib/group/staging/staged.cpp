// Calls whose buffers are in another kind of memory than the channel moves: they are copied before, and back.
#include <algorithm>
#include <memory>
#include <utility>

#include "core/log.hpp"
#include "group/call/alone.hpp"
#include "group/call/checks.hpp"
#include "group/state.hpp"

namespace col {
namespace {

// Staging treats all buffers in the same way. A buffer that is only read is never written through this view.
TensorView writable(ConstTensorView view) {
  return {const_cast<void*>(view.data), view.count, view.dtype, view.device};
}

}  // namespace

// Puts copies in the place of buffers; null where none is needed.
std::unique_ptr<group::Staging> Group::State::stage(Request& request, Device wanted) {
  using group::Staging;
  const auto [uses_in, uses_out] = group::sides_of(request, shape());
  const bool moves_in = Staging::is_needed(request.in, wanted), moves_out = Staging::is_needed(request.out, wanted);
  if (!moves_in && !moves_out) return nullptr;
  auto staging = std::make_unique<Staging>(staging_);
  if (uses_in)
    request.in = staging->replace(writable(request.in), wanted, true, false);
  else if (moves_in)
    request.in = {nullptr, 0, request.in.dtype};
  if (uses_out) {
    const CollectiveRow& row = row_of(request.collective);
    const bool is_source = row.in == Extent::nothing && row.rooted && request.root == rank();
    const bool is_left_alone = is_source || (row.folds == Folds::below_rank && rank() == 0);
    request.out = staging->replace(request.out, wanted, is_source, !is_left_alone);
  } else if (moves_out) {
    request.out = {nullptr, 0, request.out.dtype};
  }
  return keep_if_used(std::move(staging), request.stream);
}

std::unique_ptr<group::Staging> Group::State::stage(std::vector<group::Leg>& legs, Stream stream) {
  const auto wanted = [this](const group::Leg& leg) { return leg.channel == own_.channel ? own_.device : Device(); };
  if (std::none_of(legs.begin(), legs.end(),
                   [&](const group::Leg& leg) { return group::Staging::is_needed(leg.view, wanted(leg)); }))
    return nullptr;
  auto staging = std::make_unique<group::Staging>(staging_);
  for (group::Leg& leg : legs) {
    const TensorView copy = staging->replace(writable(leg.view), wanted(leg), leg.sending, !leg.sending);
    leg.staged = copy.data != leg.view.data;
    if (leg.staged && leg.channel != nullptr && copy.bytes() >= 2 * group::Staging::kPartBytes)
      leg.parts = leg.channel == own_.channel ? own_.in_parts : hosted_->in_parts;
    leg.view = copy;
    if (!leg.sending) leg.destination = copy.data;
  }
  return keep_if_used(std::move(staging), stream);
}

std::unique_ptr<group::Staging> Group::State::keep_if_used(std::unique_ptr<group::Staging> staging, Stream stream) {
  if (staging->empty()) return nullptr;
  if (staging->is_captured(stream))
    throw own_error(
        ErrorCode::unavailable,
        "the stream is being captured, and a call that copies through the host cannot be part of a graph; make "
        "it outside of the capture");
  if (!parts_.why_staged.empty() && !std::exchange(told_of_staging_, true))
    core::log::info("group '{}': memory of GPUs is copied through the host: {}", name(), parts_.why_staged);
  return staging;
}

// Copies what a call reads, and blocks until that is done.
void Group::State::fetch(group::Pending& pending, WaitContext& wait) {
  if (!pending.staging) return;
  pending.staging->fetch(pending.stream);
  await_copies(*pending.staging, wait);
}

// Copies the data of sends, and blocks until that is done. Messages that are sent in parts are an exception.
void Group::State::fetch_messages(group::Pending& pending) {
  if (!pending.staging) return;
  group::Staging& staging = *pending.staging;
  group::Diagnosis diagnosis = diagnose(pending);
  WaitContext wait(Deadline::after(pending.timeout), parts_.surroundings.control.get(), parts_.record, &diagnosis);
  wait.describe("the copies from the GPU to the host");
  staging.fetch(pending.stream);
  const auto is_there = [&](const group::Leg& leg) {
    return !leg.sending || !leg.staged || leg.parts != nullptr || staging.fetched(leg.view.data) == leg.view.bytes();
  };
  for (int turn = 0; !std::ranges::all_of(pending.legs, is_there); ++turn) {
    wait.check();
    pause(turn);
  }
}

// The same for what a call has written.
void Group::State::give_back(group::Pending& pending, WaitContext& wait) {
  if (!pending.staging) return;
  pending.staging->give_back(pending.stream);
  await_copies(*pending.staging, wait);
}

// A world of one, or of none other than this rank where its device cannot do what is asked.
void Group::State::run_alone(const Request& request, const Options& options, group::Staging* staging) {
  if (staging == nullptr) return group::run_alone(request);
  WaitContext wait(Deadline::after(timeout_of(options)), parts_.surroundings.control.get(), parts_.record);
  staging->fetch(request.stream);
  await_copies(*staging, wait);
  group::run_alone(request);
  staging->give_back(request.stream);
  await_copies(*staging, wait);
}

}  // namespace col
