// The server of a TCP store without its sockets: a state machine that makes no system call. It handles input and
// output, and decides which clients to drop. Used by one thread. The caller passes the time.
//
//   opened ──hello with a proof────> open ──> requests, answers …
//      │ anything else, or too late            │ invalid message; does not read its answers; stops inside a message
//      └──────────────> ended <────────────────┘
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <col/types.hpp>

#include "core/clock/clock.hpp"
#include "net/output.hpp"
#include "store/tcp/budget.hpp"
#include "store/tcp/database.hpp"
#include "store/tcp/message_reader.hpp"
#include "store/tcp/protocol.hpp"

namespace col::store::tcp {

using Time = core::Clock::time_point;
using SessionId = std::uint64_t;

struct EngineLimits {
  std::size_t max_value_bytes = std::size_t{64} << 20;
  std::size_t max_total_bytes = std::size_t{1} << 30;
  Duration handshake_timeout = std::chrono::seconds(5);
  Duration stall_timeout = std::chrono::minutes(1);
  // The largest number of clients that have not proven who they are. One more replaces the oldest one, if that has had
  // this time.
  std::size_t max_strangers = 256;
  Duration stranger_time = std::chrono::milliseconds(100);
};

// One client.
class Session {
 public:
  SessionId id() const noexcept { return id_; }
  const net::Output& output() const noexcept { return output_; }
  // Whether it has proven that it knows the token.
  bool proven() const noexcept { return proven_; }
  // Whether nothing more is to be sent or received. The connection must then be closed, and the session with it.
  bool ended() const noexcept { return state_ == State::ended || (state_ == State::closing && output_.empty()); }

 private:
  friend class Engine;
  enum class State { opened, open, closing, ended };
  struct Wait {
    std::string key;
    Charge charge;
  };
  Session(SessionId id, Budget& budget, std::string nonce, Time now) noexcept
      : id_(id), nonce_(std::move(nonce)), reader_(kMaxHelloBytes, &budget), progress_(now) {}

  const SessionId id_;
  const std::string nonce_;
  bool proven_ = false;
  State state_ = State::opened;
  bool is_changed_ = false;
  MessageReader reader_;
  net::Output output_;
  Time progress_;  // when bytes last came or went; before the hello: the beginning
  std::map<std::uint64_t, Wait> waits_;
};

class Engine {
 public:
  // `job`: the one in StoreServerSpec.
  Engine(const EngineLimits& limits, std::string token, std::string job = {});

  // A client has connected. The reference is valid until close().
  Session& open(Time now);
  void receive(Session& session, std::string_view bytes, Time now);
  // The first `size` bytes of its output have been sent.
  void sent(Session& session, std::size_t size, Time now) noexcept;
  // The connection is closed. Its waits are dropped.
  void close(Session& session) noexcept;

  // Sets `changed` to the sessions that got output or ended since the last call. Each is in it once.
  void take_changed(std::vector<Session*>& changed);
  // Whether another client may connect: there are not too many strangers, or one has had its time and is now ended.
  bool make_room(Time now) noexcept;
  // Ends the stranger that has been connected for the longest time, if it has had its time.
  bool end_old_stranger(Time now) noexcept;
  // Ends sessions that are too late with something. Returns whether any session must be watched: otherwise the passing
  // of time changes nothing.
  bool expire(Time now) noexcept;

  std::size_t sessions() const noexcept { return sessions_.size(); }
  std::size_t waits() const noexcept { return waits_count_; }
  std::size_t used_bytes() const noexcept { return budget_.used(); }

 private:
  struct Waiter {
    Session* session;
    std::uint64_t id;
  };

  void handle(Session& session, const MessageReader::Message& message);
  void greet(Session& session, const Request& request);
  void refuse(Session& session, const Request& request, std::string_view why);
  void serve(Session& session, const Request& request);
  void begin_wait(Session& session, const Request& request);
  void end_wait(Session& session, std::uint64_t id) noexcept;
  void wake(std::string_view key);
  void send(Session& session, const Answer& answer);
  void send_value(Session& session, std::uint64_t id, const SharedBytes& value);
  void send_error(Session& session, std::uint64_t id, const Error& error);
  void end(Session& session) noexcept;
  void mark(Session& session) noexcept;

  const EngineLimits limits_;
  const std::string token_;
  const std::string job_;
  Budget budget_;  // outlives everything that is charged to it
  Database database_;
  KeyMap<std::vector<Waiter>> waits_;  // by key
  std::size_t waits_count_ = 0;
  std::unordered_map<SessionId, std::unique_ptr<Session>> sessions_;
  std::set<SessionId> strangers_;  // sessions without a proof so far, the oldest first
  SessionId next_id_ = 1;
  std::vector<Session*> changed_;  // has room for all sessions
};

}  // namespace col::store::tcp
