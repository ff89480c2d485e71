// The store of a server elsewhere.
//
// A call takes an idle connection, or makes one, and gives it back when it has its answer: so a process has as many
// connections as threads that ever waited at once, commonly one. A forked child finds the parent's connections in its
// memory and leaves them alone.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/error.hpp>
#include <col/store.hpp>

#include "core/clock/clock.hpp"
#include "core/fork_guard.hpp"
#include "store/base/call_limit.hpp"
#include "store/base/run.hpp"
#include "store/base/text.hpp"
#include "store/tcp/connection.hpp"
#include "store/tcp/socket.hpp"
#include "store/tcp/token.hpp"

namespace col {
namespace store::tcp {
namespace {

using namespace std::chrono_literals;

// A wait with less time than this first looks once. So even a wait without any time finds a value that is there.
constexpr Duration kShortWait = 100ms;
constexpr Duration kLookPatience = 250ms;
// For the first sign of life of a server that has been there before.
constexpr Duration kReconnectPatience = 5s;
// Before another try to reach a server that has not been there yet.
constexpr Duration kRetryPause = 50ms;
constexpr std::size_t kMaxIdle = 8;
// Calls of one run() that are under way at a time: the server drops a client that asks on and does not read.
constexpr std::size_t kMostAsked = 256;

// The connections of one process.
class Pool {
 public:
  bool is_of_another_process() const noexcept { return guard_.is_forked_child(); }

  std::unique_ptr<Connection> take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return nullptr;
    auto connection = std::move(idle_.back());
    idle_.pop_back();
    return connection;
  }
  void give_back(std::unique_ptr<Connection> connection) {
    if (!connection->good()) return;
    const std::lock_guard lock(mutex_);
    if (idle_.size() < kMaxIdle) idle_.push_back(std::move(connection));
  }
  void set_connected() {
    const std::lock_guard lock(mutex_);
    was_connected_ = true;
  }
  bool was_connected() {
    const std::lock_guard lock(mutex_);
    return was_connected_;
  }

  // In a forked child: closes the copies of the parent's connections, unless a thread of the parent was just using the
  // list when it forked: then they stay open, unused.
  void abandon() noexcept {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return;
    for (const auto& connection : idle_) connection->abandon();
  }

 private:
  const core::ForkGuard guard_;
  std::mutex mutex_;  // guards the two below
  std::vector<std::unique_ptr<Connection>> idle_;
  bool was_connected_ = false;
};

class TcpStore final : public Store, public RunExtension {
 public:
  TcpStore(net::Endpoint endpoint, std::string token, std::string job, Duration timeout)
      : endpoint_(std::move(endpoint)),
        url_(url_of(endpoint_)),
        token_(std::move(token)),
        job_(std::move(job)),
        timeout_(timeout),
        pool_(new Pool) {}

  ~TcpStore() override {
    Pool* const pool = pool_.load(std::memory_order_acquire);
    if (pool->is_of_another_process()) return;  // as in this_pool()
    delete pool;
  }
  TcpStore(const TcpStore&) = delete;
  TcpStore& operator=(const TcpStore&) = delete;

  void set(std::string_view key, std::string_view value) override {
    ask({.type = RequestType::set, .key = key, .value = value}, AnswerType::done, [](const Answer&) {});
  }

  std::optional<std::string> get(std::string_view key) override {
    return value_of({.type = RequestType::get, .key = key}, timeout_);
  }

  std::string wait(std::string_view key, WaitContext& wait) override {
    const std::string what = describe_key(key);
    wait.describe(what);
    if (wait.deadline().remaining() < kShortWait) {
      if (auto value = look(key)) return *std::move(value);
      wait.check();
    }
    check_key(key);
    Patience patience(wait, url_, what);
    auto connection = connect(patience);
    const auto id = connection->send({.type = RequestType::wait, .key = key}, patience);
    try {
      const Answer answer = connection->receive(id, patience);
      if (answer.type != AnswerType::value) throw_odd(answer);
      std::string value(answer.bytes);
      this_pool().give_back(std::move(connection));
      return value;
    } catch (...) {
      connection->cancel(id);
      this_pool().give_back(std::move(connection));
      throw;
    }
  }

  void run(std::span<Call> calls, WaitContext& wait, const Answered& answered) override {
    if (calls.empty()) return;
    for (const Call& call : calls) check_key(call.key);
    Patience patience(wait, url_);  // the caller describes the wait
    auto connection = connect(patience);
    for (const Call& call : calls) {
      check_value(*connection, call.key, call.value);
      check_value(*connection, call.key, call.expected.value_or(""));
    }
    std::map<std::uint64_t, std::size_t> asked;  // the calls under way, by the number of the request
    std::size_t next = 0;
    try {
      for (bool goes_on = true; goes_on && (next < calls.size() || !asked.empty());) {
        for (; next < calls.size() && asked.size() < kMostAsked; ++next)
          asked.emplace(connection->post(request_of(calls[next])), next);
        connection->flush(patience);
        const Answer answer = connection->receive_any(patience);
        const auto found = asked.find(answer.id);
        if (found == asked.end()) continue;  // of a wait that was given up
        const std::size_t i = found->second;
        asked.erase(found);
        take(calls[i], answer);
        goes_on = !answered || answered(i);
      }
    } catch (...) {
      if (give_up(*connection, calls, asked)) this_pool().give_back(std::move(connection));
      throw;
    }
    if (give_up(*connection, calls, asked)) this_pool().give_back(std::move(connection));
  }

  std::int64_t add(std::string_view key, std::int64_t delta) override {
    return number_of({.type = RequestType::add, .key = key, .number = delta});
  }

  std::optional<std::string> compare_set(std::string_view key, std::optional<std::string_view> expected,
                                         std::string_view desired) override {
    return value_of({.type = RequestType::compare_set, .key = key, .value = desired, .expected = expected}, timeout_);
  }

  bool erase(std::string_view key) override { return number_of({.type = RequestType::erase, .key = key}) != 0; }

  std::size_t num_keys(std::string_view prefix) override {
    return static_cast<std::size_t>(number_of({.type = RequestType::num_keys, .key = prefix}));
  }

 private:
  // The pool of this process; a forked child makes its own. The parent's is left as it is, as its mutex may be locked
  // forever by a thread that is not here.
  Pool& this_pool() {
    Pool* pool = pool_.load(std::memory_order_acquire);
    if (!pool->is_of_another_process()) return *pool;
    auto fresh = std::make_unique<Pool>();
    if (!pool_.compare_exchange_strong(pool, fresh.get(), std::memory_order_acq_rel)) return *pool;
    pool->abandon();
    return *fresh.release();
  }

  std::unique_ptr<Connection> connect(Patience& patience) {
    Pool& pool = this_pool();
    if (auto connection = pool.take()) return connection;
    if (!pool.was_connected()) {
      auto connection = first_connection(patience);
      pool.set_connected();
      return connection;
    }
    // It has been there, so it is not about to start: if it does not answer now, it has gone.
    Patience little = patience.part(std::min(timeout_, kReconnectPatience), "let this process connect again");
    auto connection = another_connection(little);
    patience.explain({});  // it is the answer that is waited for again
    return connection;
  }

  std::unique_ptr<Connection> another_connection(Patience& patience) const {
    try {
      return std::make_unique<Connection>(endpoint_, token_, job_, patience, true);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::io) throw;
    }
    // A server that strangers crowd may have dropped it before it could say who it is.
    core::sleep_for(std::min(kRetryPause, patience.slice()));
    patience.check();
    return std::make_unique<Connection>(endpoint_, token_, job_, patience, true);
  }

  std::unique_ptr<Connection> first_connection(Patience& patience) const {
    for (;;) {
      try {
        return std::make_unique<Connection>(endpoint_, token_, job_, patience, false);
      } catch (const Error& error) {
        // Who forwards a port, as containers do, takes connections before there is a server, and closes them.
        if (error.code() != ErrorCode::io) throw;
      }
      patience.check();
      core::sleep_for(std::min(kRetryPause, patience.slice()));
    }
  }

  static void check_key(std::string_view key) {
    if (key.size() <= kMaxKeyBytes) return;
    throw Error(ErrorCode::resource, fmt::format("{} has {} bytes, and a TCP store takes {} at most; use a shorter one",
                                                 describe_key(key), key.size(), kMaxKeyBytes));
  }

  void check_value(const Connection& connection, std::string_view key, std::string_view value) const {
    if (value.size() <= connection.max_value_bytes()) return;
    throw Error(ErrorCode::resource,
                fmt::format("the value of {} has {} bytes, and the store at {} takes {} at most; keep large data "
                            "elsewhere, or start the server with a larger limit (StoreServerSpec::max_value_bytes)",
                            describe_key(key), value.size(), url_, connection.max_value_bytes()));
  }

  // Sends the request and calls `use` with its answer, which is of type `expected`, or absent.
  template <class Use>
  void ask(const Request& request, AnswerType expected, Use use, std::optional<Duration> timeout = {}) {
    check_key(request.key);
    Patience patience(CallLimit::bound(Deadline::after(timeout.value_or(timeout_))), url_, "answered");
    patience.check();
    auto connection = connect(patience);
    try {
      check_value(*connection, request.key, request.value);
      check_value(*connection, request.key, request.expected.value_or(""));
      const Answer answer = connection->receive(connection->send(request, patience), patience);
      if (answer.type != expected && answer.type != AnswerType::absent) throw_odd(answer);
      use(answer);
    } catch (const Error& error) {
      // A server that is late with one answer is asked for the next over a new connection.
      if (error.code() != ErrorCode::timeout) this_pool().give_back(std::move(connection));
      throw;
    }
    this_pool().give_back(std::move(connection));
  }

  std::optional<std::string> value_of(const Request& request, Duration timeout) {
    std::optional<std::string> value;
    ask(
        request, AnswerType::value,
        [&](const Answer& answer) {
          if (answer.type == AnswerType::value) value.emplace(answer.bytes);
        },
        timeout);
    return value;
  }

  std::int64_t number_of(const Request& request) {
    std::int64_t number = 0;
    ask(request, AnswerType::number, [&](const Answer& answer) { number = answer.number; });
    return number;
  }

  static Request request_of(const Call& call) {
    using Kind = Call::Kind;
    switch (call.kind) {
      case Kind::set:
        return {.type = RequestType::set, .key = call.key, .value = call.value};
      case Kind::get:
        return {.type = RequestType::get, .key = call.key};
      case Kind::wait:
        return {.type = RequestType::wait, .key = call.key};
      case Kind::compare_set:
        return {
            .type = RequestType::compare_set, .key = call.key, .value = call.value, .expected = view_of(call.expected)};
      case Kind::erase:
        return {.type = RequestType::erase, .key = call.key};
    }
    return {};
  }

  static std::optional<std::string_view> view_of(const std::optional<std::string>& text) {
    return text ? std::optional<std::string_view>(*text) : std::nullopt;
  }

  void take(Call& call, const Answer& answer) const {
    const bool counts = call.kind == Call::Kind::erase;
    switch (answer.type) {
      case AnswerType::error:
        throw Error(answer.code, answer.bytes);
      case AnswerType::value:
        call.answer = answer.bytes;
        return;
      case AnswerType::number:
        if (!counts) break;
        if (answer.number != 0) call.answer = "";
        return;
      case AnswerType::absent:
      case AnswerType::done:
        if (counts) break;
        call.answer.reset();
        return;
    }
    throw_odd(answer);
  }

  // Those without an answer. Returns whether the connection is as good as before: not if the server is late with an
  // answer, see ask().
  static bool give_up(Connection& connection, std::span<const Call> calls,
                      const std::map<std::uint64_t, std::size_t>& asked) {
    bool only_waits = true;
    for (const auto& [id, i] : asked) {
      if (calls[i].kind == Call::Kind::wait)
        connection.cancel(id);
      else
        only_waits = false;
    }
    return only_waits;
  }

  // The value at this moment; nothing if the server does not return one at once.
  std::optional<std::string> look(std::string_view key) {
    try {
      return value_of({.type = RequestType::get, .key = key}, kLookPatience);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::timeout) return std::nullopt;
      throw;
    }
  }

  [[noreturn]] void throw_odd(const Answer& answer) const {
    throw Error(ErrorCode::io, fmt::format("the store at {} has given an answer of type {} to something else; use the "
                                           "same version of col for all parts of the job",
                                           url_, static_cast<int>(answer.type)));
  }

  const net::Endpoint endpoint_;
  const std::string url_;
  const std::string token_;
  const std::string job_;
  const Duration timeout_;
  std::atomic<Pool*> pool_;  // replaced in a forked child: release publishes the new pool, acquire finds it whole
};

}  // namespace
}  // namespace store::tcp

std::shared_ptr<Store> make_tcp_store(const std::string& host, int port, const std::string& token, Duration timeout,
                                      const std::string& job) {
  net::Endpoint endpoint{host, port};
  if (!net::parse_endpoint(endpoint.text()))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} is no place of a store; name a host, or an address, and a port from 1 to 65535",
                            store::tcp::url_of(endpoint)));
  if (timeout <= Duration::zero())
    throw Error(ErrorCode::invalid_argument, "the timeout of a TCP store must be above zero; name one such as 30s");
  store::tcp::check_token(token);
  store::tcp::check_job(job);
  return std::make_shared<store::tcp::TcpStore>(std::move(endpoint), token, job, timeout);
}

}  // namespace col
