#include "group/state.hpp"

#include <unistd.h>

#include <cstring>
#include <new>

#include <fmt/format.h>

#include "core/hash.hpp"
#include "core/log.hpp"
#include "group/alone.hpp"
#include "group/checks.hpp"
#include "group/describe.hpp"
#include "group/error_file.hpp"
#include "group/failure.hpp"

namespace col {
namespace {

std::vector<int> everybody_but(int rank, int size) {
  std::vector<int> ranks;
  for (int r = 0; r < size; ++r) {
    if (r != rank) ranks.push_back(r);
  }
  return ranks;
}

}  // namespace

// Marks the group as in use by this thread, for the length of one call.
class Group::State::Use {
 public:
  explicit Use(State& state) : state_(state) {
    // acquire pairs with the release below: the next call, maybe in another thread, sees what this one wrote.
    if (state_.in_use_.exchange(true, std::memory_order_acquire))
      throw Error(ErrorCode::invalid_argument,
                  "the group is in use by another thread; give each thread a group of its own", state_.name(),
                  state_.rank());
  }
  ~Use() { state_.in_use_.store(false, std::memory_order_release); }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  State& state_;
};

Group::State::State(group::GroupParts parts, std::string error_file)
    : parts_(std::move(parts)), error_file_(std::move(error_file)), pid_(getpid()) {}

Group::State::~State() {
  destroy();
  // Left there by a call that was still going on when the group was destroyed.
  if (!is_forked_child()) group::clear_board(parts_.surroundings);
}

bool Group::State::is_forked_child() const {
  return getpid() != pid_;
}

void Group::State::destroy() noexcept {
  if (destroyed_.exchange(true)) return;
  // A call in progress in another thread still uses the channel: it is ended, and the channel goes with the last
  // handle.
  if (in_use_.exchange(true, std::memory_order_acquire)) {
    if (parts_.channel) parts_.channel->abort(Error(ErrorCode::aborted, "the group was destroyed", name(), rank()));
    return;
  }
  parts_.channel.reset();
  if (!is_forked_child()) group::clear_board(parts_.surroundings);
  in_use_.store(false, std::memory_order_release);
}

void Group::State::require_usable() const {
  if (is_forked_child())
    throw Error(ErrorCode::not_initialized,
                "this process was forked after the group was made, and is no member of it; make groups after fork()",
                name(), rank());
  if (destroyed_)
    throw Error(ErrorCode::not_initialized, "the group was destroyed; init_collective_group makes it anew", name(),
                rank());
  if (broken_)
    throw Error(ErrorCode::aborted,
                fmt::format("the group broke before ({}: {}); destroy it and create it anew",
                            to_string(broken_->code()), broken_->message()),
                name(), broken_->rank());
}

// A method is called on a group; a name in its options can only be a slip.
void Group::State::check_name(std::string_view named) const {
  if (named == Options().group || named == name()) return;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("called on this group, but the options name group '{}'; call it on that group, or use the free "
                  "function",
                  named),
      name(), rank());
}

void Group::State::check_algorithm(const Request& request, std::string_view algorithm) const {
  if (algorithm.empty() || !parts_.channel) return;
  std::string known;
  for (const NativeEntry& entry : parts_.channel->native_entries()) {
    if (entry.collective != request.collective) continue;
    if (entry.name == algorithm) return;
    known += fmt::format("{}'{}'", known.empty() ? "" : ", ", entry.name);
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} has no algorithm '{}' on backend {}; choose from {}, or leave it empty",
                          to_string(request.collective), algorithm, parts_.backend, known),
              name(), rank());
}

void Group::State::collective(Request request, const Options& options) {
  const Use use(*this);
  require_usable();
  check_name(options.group);
  group::check(request, {name(), rank(), size()});
  check_algorithm(request, options.algorithm);
  if (size() == 1) return group::run_alone(request);

  const std::uint64_t sequence = ++sequence_;
  request.fingerprint = group::fingerprint(parts_.token, sequence, request);
  group::Operation operation{.text = group::describe(request),
                             .board = fmt::format("c/{}", sequence),
                             .sequence = sequence,
                             .counterparts = everybody_but(rank(), size())};
  if (request.collective == Collective::alltoallv) {
    operation.in_counts.assign(request.in_counts.begin(), request.in_counts.end());
    operation.out_counts.assign(request.out_counts.begin(), request.out_counts.end());
  }
  run(to_string(request.collective), sequence, request.fingerprint, {std::move(operation)}, options,
      [&](WaitContext& wait) { parts_.channel->native(request, wait); });
}

void Group::State::run(std::string_view op, std::uint64_t sequence, std::uint64_t fingerprint,
                       std::vector<group::Operation> operations, const Options& options,
                       const std::function<void(WaitContext&)>& body) {
  const Duration timeout = options.timeout > Duration::zero() ? options.timeout : parts_.timeout;
  group::Diagnosis diagnosis(parts_.surroundings, std::move(operations));
  WaitContext wait(Deadline::after(timeout), parts_.surroundings.control.get(), parts_.record, &diagnosis);
  if (parts_.record != nullptr) parts_.record->begin(name(), sequence, op, fingerprint);
  try {
    body(wait);
  } catch (const Error& error) {
    fail(diagnosis.explain(error));
  } catch (const std::bad_alloc&) {
    fail(Error(ErrorCode::resource, fmt::format("out of memory in {}", op), name(), rank()));
  }
  if (parts_.record != nullptr) parts_.record->end();
}

// Publishes the cause before the connections close, so that whoever notices the closing finds it.
void Group::State::fail(const Error& cause) {
  broken_ = parts_.surroundings.scope ? group::publish_failure(*parts_.surroundings.scope, cause) : cause;
  if (broken_->group() != name()) broken_ = Error(broken_->code(), broken_->message(), name(), broken_->rank());
  if (parts_.channel) parts_.channel->abort(*broken_);
  group::write_error_file(error_file_, *broken_);
  throw *broken_;
}

// ---- Point to point
// --------------------------------------------------------------------------------------------------

void Group::State::send(ConstTensorView data, int destination, const Options& options) {
  const Use use(*this);
  require_usable();
  check_name(options.group);
  group::check_peer(destination, "destination", {name(), rank(), size()});
  group::check_tensor(data, "what is sent", {name(), rank(), size()});
  if (destination == rank()) return send_to_self(data, options.tag);
  exchange({Leg{true, destination, data, nullptr}}, options);
}

void Group::State::recv(TensorView data, int source, const Options& options) {
  const Use use(*this);
  require_usable();
  check_name(options.group);
  group::check_peer(source, "source", {name(), rank(), size()});
  group::check_tensor(data, "what is received", {name(), rank(), size()});
  if (source == rank()) return recv_from_self(data, options.tag);
  exchange({Leg{false, source, data, data.data}}, options);
}

void Group::State::sendrecv(ConstTensorView out, int destination, TensorView in, int source, const Options& options) {
  const Use use(*this);
  require_usable();
  check_name(options.group);
  const group::Shape shape{name(), rank(), size()};
  group::check_peer(destination, "destination", shape);
  group::check_peer(source, "source", shape);
  group::check_tensor(out, "what is sent", shape);
  group::check_tensor(in, "what is received", shape);
  std::vector<Leg> legs;
  if (destination == rank())
    send_to_self(out, options.tag);
  else
    legs.push_back(Leg{true, destination, out, nullptr});
  if (source == rank())
    recv_from_self(in, options.tag);
  else
    legs.push_back(Leg{false, source, in, in.data});
  if (!legs.empty()) exchange(std::move(legs), options);
}

void Group::State::exchange(std::vector<Leg> legs, const Options& options) {
  struct Posted {
    std::uint64_t slot;
    Leg leg;
  };
  std::vector<Posted> posts;
  std::vector<group::Operation> operations;
  for (const Leg& leg : legs) {
    const int source = leg.sending ? rank() : leg.peer;
    const int destination = leg.sending ? leg.peer : rank();
    const std::uint64_t number = ++(leg.sending ? sent_ : received_)[{leg.peer, options.tag}];
    // The same words on both sides, so that equal calls are equal texts.
    const std::string text = fmt::format("message of {} {} from rank {} to rank {}, tag {}", leg.view.count,
                                         to_string(leg.view.dtype), source, destination, options.tag);
    const std::uint64_t slot = core::Hash().add(parts_.token).add(number).add(text).value();
    posts.push_back({slot, leg});
    operations.push_back(
        {text, fmt::format("p/{}/{}/{}/{}", source, destination, options.tag, number), number, false, {leg.peer}});
  }
  const std::string_view op = legs.size() > 1 ? "sendrecv" : legs.front().sending ? "send" : "recv";
  const std::uint64_t fingerprint = posts.front().slot;
  // The record's number stays that of the last collective: whoever looks for a straggler compares collectives.
  run(op, sequence_, fingerprint, std::move(operations), options, [&](WaitContext& wait) {
    std::vector<Ticket> tickets;
    for (const Posted& post : posts) {
      const Leg& leg = post.leg;
      tickets.push_back(
          leg.sending ? parts_.channel->post_send(leg.peer, post.slot, leg.view)
                      : parts_.channel->post_recv(leg.peer, post.slot,
                                                  {leg.destination, leg.view.count, leg.view.dtype, leg.view.device}));
    }
    for (std::size_t i = 0; i < tickets.size(); ++i) {
      if (parts_.record != nullptr) parts_.record->waiting(-1, posts[i].leg.peer);
      parts_.channel->wait(tickets[i], wait);
    }
  });
}

void Group::State::send_to_self(ConstTensorView data, int tag) {
  try {
    Message message{data.dtype, data.count, std::vector<std::byte>(data.bytes())};
    if (!data.empty()) std::memcpy(message.bytes.data(), data.data, data.bytes());
    to_self_[tag].push_back(std::move(message));
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::resource,
                fmt::format("no memory to keep a message of {} bytes to oneself until it is received", data.bytes()),
                name(), rank());
  }
}

void Group::State::recv_from_self(TensorView data, int tag) {
  auto& queue = to_self_[tag];
  if (queue.empty())
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("recv from oneself (tag {}), but nothing was sent to oneself before; this would wait for ever",
                    tag),
        name(), rank());
  const Message& message = queue.front();
  if (message.dtype != data.dtype || message.count != data.count)
    fail(Error(ErrorCode::mismatch,
               fmt::format("recv of {} {} from oneself (tag {}), but {} {} were sent", data.count,
                           to_string(data.dtype), tag, message.count, to_string(message.dtype)),
               name(), rank()));
  if (!data.empty()) std::memcpy(data.data, message.bytes.data(), data.bytes());
  queue.pop_front();
}

}  // namespace col
