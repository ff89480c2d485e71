// Long calls over the host, in pieces.
#include <algorithm>
#include <chrono>
#include <deque>
#include <new>

#include "group/call/operation.hpp"
#include "group/run/collectives.hpp"

namespace col::group {
namespace {

// Pieces in flight: one is copied in, one is moved, one is copied back.
constexpr std::size_t kInFlight = 3;

// True if each element of the result comes from the input elements with the same index.
bool is_by_element(Collective collective) {
  const CollectiveRow& row = row_of(collective);
  return row.out == Extent::vector && !row.is_message;
}

// Empty for a view that this rank does not use, because no check has looked at it.
template <class View>
View part_of(View view, std::size_t first, std::size_t count, std::size_t whole) {
  if (view.count != whole || view.data == nullptr) return {nullptr, 0, view.dtype};
  return view.slice(first, count);
}

}  // namespace

// Returns 0 if the call goes in one piece. The result depends only on what all ranks know: a rank with its buffers on
// the host takes part in the pieces of ranks with buffers on GPUs.
std::size_t Collectives::elements_of_piece(const Lane& lane, const Request& request, const Options& options) const {
  if (!lanes_.may_stage() || lane.channel == nullptr || lane.device.type != Device::Type::cpu) return 0;
  if (!is_by_element(request.collective) || options.compress || request.order == Order::tree) return 0;
  const ConstTensorView view = common_view(request);
  const std::size_t elements = std::max<std::size_t>(1, Staging::kPartBytes / size_of(view.dtype));
  return view.count >= 2 * elements ? elements : 0;
}

void Collectives::run_in_pieces(Lane& lane, const Request& request, const Options& options, std::size_t elements) {
  const std::size_t whole = common_view(request).count;
  flight_.await_collectives();  // as before any call that blocks this rank
  const Deadline deadline = Deadline::after(core_.timeout_of(options));
  const auto time_left = [&] { return std::max<Duration>(deadline.remaining(), std::chrono::milliseconds(1)); };
  std::deque<PendingPtr> in_flight;
  const auto await_first = [&] {
    const PendingPtr first = in_flight.front();
    in_flight.pop_front();
    flight_.await_part(*first, deadline);
  };
  std::deque<PendingPtr> begun;  // pieces of a backend's own collective, which run one after another
  const auto run_first = [&] {
    const PendingPtr first = begun.front();
    begun.pop_front();
    run_piece(first, deadline);
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
  if (core_.record() != nullptr && flight_.active().empty()) core_.record()->end(core_.name());
}

// An error of the first piece refuses the call, as any call. Later, other pieces are under way on all ranks, and the
// call cannot be taken back: an error breaks the group.
PendingPtr Collectives::begin_piece(Lane& lane, Request&& request, const Options& options, Piece piece) {
  try {
    core_.check_name(options.group);
    PendingPtr pending = starter_.prepare(&lane, std::move(request), options, false, piece);
    starter_.begin(*pending, false);
    if (pending->decision->plan) flight_.launch(pending);
    return pending;
  } catch (const Error& error) {
    if (piece.first == 0 || core_.broken()) throw;
    core_.fail(core_.own_error(error.code(), error.message()));
  } catch (const std::bad_alloc&) {
    core_.fail(core_.own_error(ErrorCode::resource, "out of memory in a part of a long call"));
  }
}

void Collectives::fetch_ahead(Pending& pending) {
  if (!pending.staging) return;
  try {
    pending.staging->fetch(pending.stream);
  } catch (...) {
    flight_.fail(pending);
  }
}

// As Starter::end(), except that the result is copied back while the next piece runs.
void Collectives::run_piece(const PendingPtr& piece, const Deadline& deadline) {
  Diagnosis diagnosis = piece->diagnose(core_.surroundings());
  WaitContext wait = core_.waiting(deadline, &diagnosis);
  try {
    core_.pass_fault(piece->sequence);
    if (piece->staging) Flight::await_copies(*piece->staging, wait);
    piece->channel->native(piece->request, wait);
    if (!piece->staging) return flight_.finish(*piece);
    piece->phase = Pending::Phase::returning;
    flight_.add(piece);
    piece->staging->give_back(piece->stream);
  } catch (...) {
    core_.fail_with_current(diagnosis, piece->name);
  }
}

}  // namespace col::group
