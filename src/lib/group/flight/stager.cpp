#include "group/flight/stager.hpp"

#include <algorithm>
#include <utility>

#include "core/log.hpp"
#include "group/call/checks.hpp"

namespace col::group {
namespace {

// Staging treats all buffers in the same way. A buffer that is only read is never written through this view.
TensorView writable(ConstTensorView view) {
  return {const_cast<void*>(view.data), view.count, view.dtype, view.device};
}

}  // namespace

std::unique_ptr<Staging> Stager::stage(Request& request, Device wanted) {
  const auto [uses_in, uses_out] = sides_of(request, core_.shape());
  const bool moves_in = Staging::is_needed(request.in, wanted), moves_out = Staging::is_needed(request.out, wanted);
  if (!moves_in && !moves_out) return nullptr;
  auto staging = std::make_unique<Staging>(pool_);
  if (uses_in)
    request.in = staging->replace(writable(request.in), wanted, true, false);
  else if (moves_in)
    request.in = {nullptr, 0, request.in.dtype};
  if (uses_out) {
    const CollectiveRow& row = row_of(request.collective);
    const bool is_written = writes_output(request, core_.shape());
    request.out = staging->replace(request.out, wanted, row.in == Extent::nothing && !is_written, is_written);
  } else if (moves_out) {
    request.out = {nullptr, 0, request.out.dtype};
  }
  return keep_if_used(std::move(staging), request.stream);
}

std::unique_ptr<Staging> Stager::stage(std::vector<Leg>& legs, Stream stream) {
  const auto wanted = [this](const Leg& leg) {
    return leg.channel == lanes_.own().channel ? lanes_.own().device : Device();
  };
  if (std::none_of(legs.begin(), legs.end(), [&](const Leg& leg) { return Staging::is_needed(leg.view, wanted(leg)); }))
    return nullptr;
  auto staging = std::make_unique<Staging>(pool_);
  for (Leg& leg : legs) {
    const TensorView copy = staging->replace(writable(leg.view), wanted(leg), leg.sending, !leg.sending);
    leg.staged = copy.data != leg.view.data;
    if (leg.staged && leg.channel != nullptr && copy.bytes() >= 2 * Staging::kPartBytes)
      leg.parts = leg.channel == lanes_.own().channel ? lanes_.own().can.parts : lanes_.hosted()->can.parts;
    leg.view = copy;
    if (!leg.sending) leg.destination = copy.data;
  }
  return keep_if_used(std::move(staging), stream);
}

std::unique_ptr<Staging> Stager::keep_if_used(std::unique_ptr<Staging> staging, Stream stream) {
  if (staging->empty()) return nullptr;
  if (staging->is_captured(stream))
    throw core_.own_error(
        ErrorCode::unavailable,
        stream.handle == nullptr
            ? "a stream that is ordered with the default stream is being captured, and a call that copies through the "
              "host comes after the default stream; make it outside of the capture, or in a stream of its own"
            : "the stream is being captured, and a call that copies through the host cannot be part of a graph; make "
              "it outside of the capture");
  if (!lanes_.why_staged().empty() && !std::exchange(told_, true))
    core::log::info("group '{}': memory of GPUs is copied through the host: {}", core_.name(), lanes_.why_staged());
  return staging;
}

}  // namespace col::group
