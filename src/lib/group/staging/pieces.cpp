// Long calls over the host in a group whose ranks may give memory of GPUs: they are cut into pieces, so that one is
// copied while another is on its way.
#include <algorithm>
#include <chrono>
#include <deque>
#include <new>

#include "group/call/describe.hpp"
#include "group/state.hpp"

namespace col {
namespace {

// How many are in flight: one is copied in, one is moved, one is copied back.
constexpr std::size_t kInFlight = 3;

// Whether each element of the result comes from the elements at its own place.
bool is_by_element(Collective collective) {
  const CollectiveRow& row = row_of(collective);
  return row.out == Extent::vector && !row.is_message;
}

// What a rank does not use stays out: nobody has looked at it.
template <class View>
View part_of(View view, std::size_t first, std::size_t count, std::size_t whole) {
  if (view.count != whole || view.data == nullptr) return {nullptr, 0, view.dtype};
  return view.slice(first, count);
}

}  // namespace

// 0: the call goes in one piece. It depends only on what all ranks know: a rank with its buffers on the host takes part
// in the pieces of ranks with buffers on GPUs.
std::size_t Group::State::elements_of_piece(const Lane& lane, const Request& request, const Options& options) const {
  if (!parts_.may_stage || lane.channel == nullptr || lane.device.type != Device::Type::cpu) return 0;
  if (!is_by_element(request.collective) || options.compress) return 0;
  const ConstTensorView view = group::common_view(request);
  const std::size_t elements = std::max<std::size_t>(1, group::Staging::kPartBytes / size_of(view.dtype));
  return view.count >= 2 * elements ? elements : 0;
}

void Group::State::run_in_pieces(Lane& lane, const Request& request, const Options& options, std::size_t elements) {
  const std::size_t whole = group::common_view(request).count;
  await_collectives();  // as before any call that blocks this rank
  const Deadline deadline = Deadline::after(timeout_of(options));
  const auto time_left = [&] { return std::max<Duration>(deadline.remaining(), std::chrono::milliseconds(1)); };
  std::deque<PendingPtr> in_flight;
  const auto await_first = [&] {
    const PendingPtr first = in_flight.front();
    in_flight.pop_front();
    first->timeout = time_left();
    await(*first);
  };
  std::deque<PendingPtr> begun;  // of a backend's own collective: those that run when their turn has come
  const auto run_first = [&] {
    const PendingPtr first = begun.front();
    begun.pop_front();
    first->timeout = time_left();
    run_piece(first);
    in_flight.push_back(first);
  };
  for (std::size_t first = 0; first < whole; first += elements) {
    const std::size_t count = std::min(elements, whole - first);
    Request piece = request;
    piece.in = part_of(request.in, first, count, whole);
    piece.out = part_of(request.out, first, count, whole);
    Options of_piece = options;
    of_piece.timeout = time_left();
    const PendingPtr pending = begin_piece(lane, std::move(piece), of_piece, {first, whole});
    if (pending->decision->plan) {
      in_flight.push_back(pending);
    } else {
      fetch_ahead(*pending);
      begun.push_back(pending);
    }
    if (begun.size() == kInFlight) run_first();
    if (in_flight.size() == kInFlight) await_first();
  }
  while (!begun.empty()) run_first();
  while (!in_flight.empty()) await_first();
  if (parts_.record != nullptr && active_.empty()) parts_.record->end(name());
}

// The first one is refused as any call is. With others under way, on all ranks, the call cannot be taken back.
Group::State::PendingPtr Group::State::begin_piece(Lane& lane, Request&& request, const Options& options,
                                                   group::Piece piece) {
  try {
    return begin(&lane, std::move(request), options, false, piece);
  } catch (const Error& error) {
    if (piece.first == 0 || broken_) throw;
    fail(own_error(error.code(), error.message()));
  } catch (const std::bad_alloc&) {
    fail(own_error(ErrorCode::resource, "out of memory in a part of a long call"));
  }
}

void Group::State::fetch_ahead(group::Pending& pending) {
  if (!pending.staging) return;
  try {
    pending.staging->fetch(pending.stream);
  } catch (...) {
    group::Diagnosis diagnosis = diagnose(pending);
    fail_with_current(diagnosis, pending);
  }
}

// As run_native(), but that what comes back is copied while the next piece runs.
void Group::State::run_piece(const PendingPtr& piece) {
  group::Diagnosis diagnosis = diagnose(*piece);
  WaitContext wait(piece->timeout, parts_.surroundings.control.get(), parts_.record, &diagnosis);
  try {
    if (fault_ != nullptr) exec::FaultHook::pass(fault_, piece->sequence, fault_->step);
    if (piece->staging) await_copies(*piece->staging, wait);
    piece->channel->native(piece->request, wait);
    if (!piece->staging) return finish(*piece);
    piece->phase = group::Pending::Phase::returning;
    active_.push_back(piece);
    piece->staging->give_back(piece->stream);
  } catch (...) {
    fail_with_current(diagnosis, *piece);
  }
}

}  // namespace col
