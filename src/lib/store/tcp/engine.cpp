#include "store/tcp/engine.hpp"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <col/error.hpp>

#include "store/tcp/token.hpp"
#include "store/text.hpp"

namespace col::store::tcp {
namespace {

// Unsent answers with which a client may still ask for more. Ours ask for one thing at a time.
constexpr std::size_t kMaxOutputBytes = std::size_t{256} << 10;
constexpr std::size_t kMaxWaits = 1024;  // of one client
constexpr std::size_t kWaitOverheadBytes = 256;

}  // namespace

Engine::Engine(const EngineLimits& limits, std::string token)
    : limits_(limits),
      token_(std::move(token)),
      budget_(limits.max_total_bytes),
      database_(budget_, limits.max_value_bytes) {}

Session& Engine::open(Time now) {
  const SessionId id = next_id_++;
  auto session = std::unique_ptr<Session>(new Session(id, budget_, now));
  changed_.reserve(sessions_.size() + 1);  // so that marking one never fails
  Session& opened = *sessions_.emplace(id, std::move(session)).first->second;
  opened.output_.add(kGreeting);
  mark(opened);
  return opened;
}

void Engine::receive(Session& session, std::string_view bytes, Time now) {
  using State = Session::State;
  if (session.state_ == State::closing || session.state_ == State::ended) return;
  if (session.state_ == State::open) session.progress_ = now;
  try {
    session.reader_.feed(bytes);
    MessageReader::Message message;
    while (session.state_ == State::opened || session.state_ == State::open) {
      switch (session.reader_.next(message)) {
        case MessageReader::Status::incomplete:
          return;
        case MessageReader::Status::complete:
          handle(session, message);
          break;
        case MessageReader::Status::no_room:
          if (session.output_.size() > kMaxOutputBytes) return end(session);
          try {
            throw_full(budget_);
          } catch (const Error& error) {
            send_error(session, message.header.id, error);
          }
          break;
        case MessageReader::Status::too_long:
          return end(session);
      }
    }
  } catch (const std::bad_alloc&) {
    end(session);
  }
}

void Engine::handle(Session& session, const MessageReader::Message& message) {
  const auto request = decode_request(message.header, message.body);
  if (!request) return end(session);
  if (session.state_ == Session::State::opened) return greet(session, *request);
  if (request->type == RequestType::hello || session.output_.size() > kMaxOutputBytes) return end(session);
  try {
    serve(session, *request);
  } catch (const Error& error) {
    send_error(session, request->id, error);
  }
}

void Engine::greet(Session& session, const Request& request) {
  if (request.type != RequestType::hello) return end(session);
  if (!equal_in_constant_time(request.value, token_)) {
    send(session, {.type = AnswerType::error,
                   .id = request.id,
                   .bytes = "the token is not this store's",
                   .code = ErrorCode::mismatch});
    session.state_ = Session::State::closing;
    return;
  }
  session.state_ = Session::State::open;
  session.reader_.set_limit(max_request_bytes(limits_.max_value_bytes));
  send(session,
       {.type = AnswerType::number, .id = request.id, .number = static_cast<std::int64_t>(limits_.max_value_bytes)});
}

void Engine::serve(Session& session, const Request& request) {
  const std::uint64_t id = request.id;
  const auto send_number = [&](auto number) {
    send(session, {.type = AnswerType::number, .id = id, .number = static_cast<std::int64_t>(number)});
  };
  const auto send_found = [&](const SharedBytes& value) {
    value ? send_value(session, id, value) : send(session, {.type = AnswerType::absent, .id = id});
  };
  switch (request.type) {
    case RequestType::set:
      database_.set(request.key, request.value);
      send(session, {.type = AnswerType::done, .id = id});
      return wake(request.key);
    case RequestType::get:
      return send_found(database_.find(request.key));
    case RequestType::wait:
      return begin_wait(session, request);
    case RequestType::cancel:
      return end_wait(session, static_cast<std::uint64_t>(request.number));
    case RequestType::add:
      send_number(database_.add(request.key, request.number));
      return wake(request.key);
    case RequestType::compare_set:
      send_found(database_.compare_set(request.key, request.expected, request.value));
      return wake(request.key);
    case RequestType::erase:
      return send_number(database_.erase(request.key) ? 1 : 0);
    case RequestType::num_keys:
      return send_number(database_.count(request.key));
    case RequestType::hello:
      break;  // handled before
  }
}

void Engine::begin_wait(Session& session, const Request& request) {
  if (const SharedBytes value = database_.find(request.key)) return send_value(session, request.id, value);
  if (session.waits_.size() >= kMaxWaits)
    throw Error(ErrorCode::resource, fmt::format("one connection waits for {} keys already; wait for fewer at a time",
                                                 session.waits_.size()));
  auto charge = budget_.charge(2 * request.key.size() + kWaitOverheadBytes);
  if (!charge) throw_full(budget_);
  const auto [wait, is_new] =
      session.waits_.try_emplace(request.id, Session::Wait{std::string(request.key), *std::move(charge)});
  if (!is_new) return end(session);
  waits_[wait->second.key].push_back({&session, request.id});
  ++waits_count_;
}

void Engine::end_wait(Session& session, std::uint64_t id) noexcept {
  const auto wait = session.waits_.find(id);
  if (wait == session.waits_.end()) return;  // it was answered at the same time
  // Absent when memory ran out in the middle of begin_wait().
  if (const auto waiters = waits_.find(wait->second.key); waiters != waits_.end()) {
    waits_count_ -=
        std::erase_if(waiters->second, [&](const Waiter& w) { return w.session == &session && w.id == id; });
    if (waiters->second.empty()) waits_.erase(waiters);
  }
  session.waits_.erase(wait);
}

void Engine::wake(std::string_view key) {
  const auto found = waits_.find(key);
  if (found == waits_.end()) return;
  const SharedBytes value = database_.find(key);
  if (!value) return;  // a compare_set that did not swap
  const std::vector<Waiter> waiters = std::move(found->second);
  waits_.erase(found);
  waits_count_ -= waiters.size();
  for (const auto& [session, id] : waiters) {
    session->waits_.erase(id);
    // A client in trouble is not the setter's.
    try {
      session->output_.size() > kMaxOutputBytes ? end(*session) : send_value(*session, id, value);
    } catch (const std::bad_alloc&) {
      end(*session);
    }
  }
}

void Engine::send(Session& session, const Answer& answer) {
  if (session.state_ == Session::State::ended) return;
  session.output_.add(encode(answer));
  mark(session);
}

void Engine::send_value(Session& session, std::uint64_t id, const SharedBytes& value) {
  if (session.state_ == Session::State::ended) return;
  session.output_.add(encode_value_header(id, value->bytes.size()), value);
  mark(session);
}

void Engine::send_error(Session& session, std::uint64_t id, const Error& error) {
  send(session, {.type = AnswerType::error, .id = id, .bytes = error.message(), .code = error.code()});
}

void Engine::sent(Session& session, std::size_t size, Time now) noexcept {
  session.output_.drop_front(size);
  if (session.state_ == Session::State::open) session.progress_ = now;
}

void Engine::end(Session& session) noexcept {
  session.state_ = Session::State::ended;
  mark(session);
}

void Engine::mark(Session& session) noexcept {
  if (std::exchange(session.is_changed_, true)) return;
  changed_.push_back(&session);
}

void Engine::take_changed(std::vector<Session*>& changed) {
  changed.clear();
  changed.reserve(sessions_.size());
  changed.swap(changed_);
  for (Session* const session : changed) session->is_changed_ = false;
}

void Engine::close(Session& session) noexcept {
  while (!session.waits_.empty()) end_wait(session, session.waits_.begin()->first);
  std::erase(changed_, &session);
  sessions_.erase(session.id_);
}

bool Engine::expire(Time now) noexcept {
  bool watch = false;
  for (const auto& [id, session] : sessions_) {
    const bool is_open = session->state_ == Session::State::open;
    if (is_open && !session->reader_.in_message() && session->output_.empty()) continue;
    if (now - session->progress_ >= (is_open ? limits_.stall_timeout : limits_.handshake_timeout)) end(*session);
    watch = true;
  }
  return watch;
}

}  // namespace col::store::tcp
