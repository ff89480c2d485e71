#include "store/tcp/engine.hpp"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <col/error.hpp>
#include <col/proof.hpp>

#include "store/base/text.hpp"
#include "store/tcp/handshake.hpp"

namespace col::store::tcp {
namespace {

// Unsent answers with which a client may still ask for more. Ours ask for one thing at a time.
constexpr std::size_t kMaxOutputBytes = std::size_t{256} << 10;
constexpr std::size_t kMaxWaits = 1024;  // of one client
constexpr std::size_t kWaitOverheadBytes = 256;

}  // namespace

Engine::Engine(const EngineLimits& limits, std::string token, std::string job)
    : limits_(limits),
      token_(std::move(token)),
      job_(std::move(job)),
      budget_(limits.max_total_bytes),
      database_(budget_, limits.max_value_bytes) {}

Session& Engine::open(Time now) {
  const SessionId id = next_id_++;
  auto session = std::unique_ptr<Session>(new Session(id, budget_, make_nonce(), now));
  session->output_.add(greeting(session->nonce_));
  changed_.reserve(sessions_.size() + 1);  // so that marking one never fails
  strangers_.insert(id);
  Session& opened = *sessions_.emplace(id, std::move(session)).first->second;
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
  const Handshake handshake{.token = token_, .job = request.key, .server_nonce = session.nonce_};
  const auto client_nonce = check_hello(request, handshake);
  if (!client_nonce) return refuse(session, request, "the token is not this store's");
  // Only a client that knows the token is told this.
  if (!job_.empty() && request.key != job_)
    return refuse(session, request,
                  fmt::format("it is of job and restart '{}', the store of '{}'", printable(request.key), job_));
  session.proven_ = true;
  strangers_.erase(session.id_);
  session.state_ = Session::State::open;
  session.reader_.set_limit(max_request_bytes(limits_.max_value_bytes));
  send(session, {.type = AnswerType::value,
                 .id = request.id,
                 .bytes = make_welcome(handshake, *client_nonce, limits_.max_value_bytes)});
}

// The session stays for as long as the word takes.
void Engine::refuse(Session& session, const Request& request, std::string_view why) {
  send(session, {.type = AnswerType::error, .id = request.id, .bytes = why, .code = ErrorCode::mismatch});
  session.state_ = Session::State::closing;
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
  session.output_.add(encode_value_header(id, value->bytes.size()), {value, &value->bytes});
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
  strangers_.erase(session.id_);
  sessions_.erase(session.id_);
}

bool Engine::make_room(Time now) noexcept {
  return strangers_.size() < limits_.max_strangers || end_old_stranger(now);
}

bool Engine::end_old_stranger(Time now) noexcept {
  if (strangers_.empty()) return false;
  Session& oldest = *sessions_.at(*strangers_.begin());
  if (now - oldest.progress_ < limits_.stranger_time) return false;
  end(oldest);
  strangers_.erase(strangers_.begin());
  return true;
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
