#include "backend/ucx/engine.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace col::ucx_backend {
namespace {

using namespace std::chrono_literals;

// How often one call of progress() asks UCX for more, so that a peer that never stops sending does not keep it.
constexpr int kRounds = 16;
constexpr int kLastRounds = 256;
// How long a rank that leaves tries to get its last words out, to a peer that does not read.
constexpr auto kFarewell = 10s;
// How long the hardware of a fabric has to confirm them.
constexpr auto kConfirmation = 10ms;
constexpr auto kNap = 10ms;
constexpr std::size_t kMostWords = 500;  // of an error, for the peers

}  // namespace

Engine::Engine(const ConnectRequest& request, const backend::Module::Environment& environment)
    : rank_(request.rank),
      token_(request.token),
      secret_(make_nonce()),
      store_(request.store),
      settings_(choose_settings(request, environment)),
      peers_(static_cast<std::size_t>(request.size)) {
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    peers_[i].engine = this;
    peers_[i].rank = static_cast<int>(i);
  }
  (void)make_proof({}, ProofRole::server, {});  // here, where it may fail, and not in a function that UCX calls
  const std::set<std::string> before = Sockets::listening();
  worker_ = std::make_unique<Worker>(settings_, request.size - 1, environment);
  std::set<std::string> own = Sockets::listening();
  for (const std::string& address : before) own.erase(address);
  sockets_.set_own(std::move(own));
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = kMessageId;
  handler.cb = &Engine::on_message;
  handler.arg = this;
  require_ok(ucp_worker_set_am_recv_handler(worker_->handle(), &handler), "take messages");
}

Engine::~Engine() {
  close();
}

// A worker with requests under way cannot be destroyed: UCX ends the process. So the endpoints go first, by force, and
// their requests with them.
void Engine::close() noexcept {
  if (worker_ == nullptr) return;
  is_closing_ = true;
  // UCX also ends the process over an endpoint that goes while it is still connecting. Then its sockets go instead, and
  // the worker stays to the end of the process, where nothing moves it any more.
  const auto is_connecting = [](const Peer& peer) { return peer.endpoint != nullptr && !peer.proven && !peer.closed; };
  if (std::any_of(peers_.begin(), peers_.end(), is_connecting)) {
    sockets_.shut();
    [[maybe_unused]] Worker* const left_alone = worker_.release();
    return;
  }
  ucp_request_param_t by_force{};
  by_force.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  by_force.flags = UCP_EP_CLOSE_FLAG_FORCE;
  for (Peer& peer : peers_) {
    if (peer.endpoint == nullptr) continue;
    const ucs_status_ptr_t request = ucp_ep_close_nbx(std::exchange(peer.endpoint, nullptr), &by_force);
    if (UCS_PTR_IS_PTR(request)) ucp_request_free(request);
  }
  for (int round = 0; round < kLastRounds && (worker_->progress() || round < kFewRounds); ++round) {
  }
  worker_.reset();
}

// ---- Operations

Operation& Engine::add(int peer, std::uint64_t slot, std::uint64_t bytes) {
  Operation& operation = operations_[next_ticket_];
  operation.ticket = next_ticket_++;
  operation.peer = peer;
  operation.slot = slot;
  operation.bytes = bytes;
  return operation;
}

Operation* Engine::find(Ticket ticket) noexcept {
  const auto found = operations_.find(ticket.id);
  return found == operations_.end() ? nullptr : &found->second;
}

// ---- The turn of the engine

bool Engine::progress() {
  if (worker_ == nullptr) return false;
  for (int round = 0; round < kRounds && worker_->progress(); ++round) {
  }
  const bool is_time = sockets_.look();
  if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
  attend();
  return is_time;
}

// ---- The end

void Engine::say_goodbye() noexcept {
  try {
    // UCX takes a second one when it has passed the first to the kernel.
    for (int i = 0; i < 2; ++i) {
      for (Peer& other : peers_) {
        if (other.proven && !other.left) tell(other, Kind::goodbye);
      }
    }
    const auto end = Deadline::Clock::now() + kFarewell;
    const auto is_goodbye = [](const Note& note) { return note.header.kind == Kind::goodbye; };
    while (std::any_of(notes_.begin(), notes_.end(), is_goodbye) && Deadline::Clock::now() < end) {
      if (!worker_->progress()) worker_->sleep(kNap);
    }
    if (!settings_.has_rdma()) return;
    ucp_request_param_t parameters{};
    const ucs_status_ptr_t flush = ucp_worker_flush_nbx(worker_->handle(), &parameters);
    if (!UCS_PTR_IS_PTR(flush)) return;
    const auto confirmed_by = Deadline::Clock::now() + kConfirmation;
    while (ucp_request_check_status(flush) == UCS_INPROGRESS && Deadline::Clock::now() < confirmed_by)
      worker_->progress();
    ucp_request_free(flush);
  } catch (const std::exception&) {  // a rank that leaves has no use for what comes in
  }
}

void Engine::break_off(const Error& cause) noexcept {
  if (worker_ == nullptr) return;
  try {
    for (Peer& other : peers_) {
      if (other.proven && !other.left && other.lost.empty())
        tell(other, Kind::broken, std::string(cause.message()).substr(0, kMostWords));
    }
  } catch (const std::exception&) {  // out of memory: they see that the connections close
  }
  close();
}

}  // namespace col::ucx_backend
