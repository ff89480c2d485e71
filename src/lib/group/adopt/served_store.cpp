#include "group/adopt/served_store.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "core/clock/clock.hpp"
#include "core/log.hpp"
#include "store/base/call_limit.hpp"
#include "store/tcp/socket.hpp"

namespace col::group::adopt {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kOpen = "open";
constexpr std::string_view kPresent = "present";
constexpr std::string_view kLeft = "left";
// What `present` is when the server is about to stop. More ranks than that are in no job.
constexpr std::int64_t kClosed = -(std::int64_t{1} << 32);

// Between two looks at a server that is not told to say when it has changed, or is not there to say it.
constexpr Duration kPause = 5ms;
constexpr Duration kFarewell = 2s;
// How long a rank that comes back puts up with the server that it has left.
constexpr Duration kOldServer = 5s;
constexpr std::size_t kSpareConnections = 64;

std::string gone_key(std::int64_t times) {
  return fmt::format("gone/{}", times);
}

Duration patience(Leaving why) {
  switch (why) {
    case Leaving::finished:
      return 10s;
    case Leaving::failed:
      return 1s;
    case Leaving::exiting:
      break;
  }
  return 2s;
}

}  // namespace

ServedStore::ServedStore(ServedSpec spec) : spec_(std::move(spec)) {}

ServedStore::~ServedStore() {
  leave(Leaving::exiting);
}

void ServedStore::require_this_process() const {
  if (guard_.is_forked_child())
    throw Error(ErrorCode::not_initialized,
                "this process was forked from one that is in the job already; start it with an environment of its own");
}

// ---- Coming

void ServedStore::serve() {
  require_this_process();
  if (!spec_.serves) return;
  const std::lock_guard turn(turn_);
  serve_in_turn();
}

// Requires: this thread has turn_.
void ServedStore::serve_in_turn() {
  if (server_) return;
  StoreServerSpec server;
  // An address that does not belong to this host is forwarded here, as that of a Service is.
  if (listen_addresses(spec_.host)) server.host = spec_.host;
  server.port = spec_.port;
  server.token = spec_.token;
  // Threads that wait have a connection each.
  server.max_connections =
      std::max(server.max_connections, 2 * static_cast<std::size_t>(spec_.world_size) + kSpareConnections);
  try {
    server_ = std::make_unique<StoreServer>(server);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::io) throw;
    throw Error(ErrorCode::unavailable,
                fmt::format("{} cannot serve the ranks of the job on port {}: {}; another program, or another job, "
                            "may have the port: set COL_RDZV_ENDPOINT=host:port on all ranks, to the host of rank 0 "
                            "and a free port there",
                            spec_.server, spec_.port, error.message()));
  }
  try {
    connect().counts->set(kOpen, "1");
  } catch (const Error&) {
    server_.reset();  // nobody would be told that it is open; the next try makes another
    throw;
  }
  const std::lock_guard lock(mutex_);
  departures_ = 0;
  lingered_ = -1;
}

ServedStore::Client ServedStore::connect() const {
  std::string host = spec_.host;
  if (spec_.serves) {
    const auto own = listen_addresses(spec_.host);
    host = own && !own->empty() ? own->front() : "127.0.0.1";
  }
  Client client;
  client.store = make_tcp_store(host, spec_.port, spec_.token, spec_.timeout);
  client.counts = make_prefix_store(client.store, "served");
  return client;
}

ServedStore::Client ServedStore::present() const {
  const std::lock_guard lock(mutex_);
  return client_;
}

// Whether this rank is counted; else the server is about to stop.
bool ServedStore::try_enter(const Client& client, WaitContext& wait) {
  try {
    client.counts->wait(kOpen, wait);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::timeout) throw;
    const std::string place = store::tcp::url_of({spec_.host, spec_.port});
    throw Error(ErrorCode::timeout,
                fmt::format("{} has not served the ranks of the job at {} ({}): {}; if rank 0 is somewhere else, "
                            "set COL_RDZV_ENDPOINT=host:port on all ranks",
                            spec_.server, place.substr(place.find("//") + 2), spec_.source, error.message()));
  }
  return client.counts->add(kPresent, 1) > 0;
}

// Requires: this thread has turn_.
ServedStore::Client ServedStore::enter(WaitContext& wait) {
  if (spec_.serves) serve_in_turn();
  bool comes_back = false;
  {
    const std::lock_guard lock(mutex_);
    comes_back = comes_back_;
  }
  const Deadline old_server = Deadline::after(kOldServer);
  for (;;) {
    Client client = connect();
    try {
      if (try_enter(client, wait)) return client;
    } catch (const Error& error) {
      // A server that stops meanwhile drops the connection at any moment.
      const bool dropped = error.code() == ErrorCode::io || error.code() == ErrorCode::mismatch;
      if (!comes_back || !dropped || old_server.expired()) throw;
    }
    wait.describe(spec_.server + " to serve the ranks of the job again");
    wait.check();
    core::sleep_for(std::min(kPause, wait.slice()));
  }
}

std::shared_ptr<Store> ServedStore::reach(WaitContext& wait) {
  require_this_process();
  if (const Client client = present()) return client.store;
  // By turns, so that a thread with less time than the one that enters gets its timeout all the same.
  turn_.lock(wait, "another thread to reach " + spec_.server);
  const std::lock_guard turn(turn_, std::adopt_lock);
  if (const Client client = present()) return client.store;
  const Client entered = enter(wait);
  const std::lock_guard lock(mutex_);
  client_ = entered;
  return entered.store;
}

std::shared_ptr<Store> ServedStore::reach() {
  WaitContext wait(store::CallLimit::bound(Deadline::after(spec_.timeout)), spec_.control.get());
  return reach(wait);
}

// ---- Going

void ServedStore::leave(Leaving why) noexcept {
  if (guard_.is_forked_child()) return;
  try {
    Client client;
    {
      const std::lock_guard lock(mutex_);
      client = std::exchange(client_, {});
      if (client) ++departures_;
      comes_back_ = comes_back_ || client;
    }
    if (client) count_out(client);
  } catch (const std::exception& error) {  // rank 0 has gone before, or cannot be reached: nobody is left to tell
    core::log::debug("while leaving the job's store: {}", error.what());
  }
  try {
    if (spec_.serves) linger(why);
  } catch (const std::exception& error) {
    core::log::info("{} has left before all others had: {}", spec_.server, error.what());
  }
  if (why == Leaving::exiting) stop();
}

void ServedStore::count_out(const Client& client) {
  // A bound of its own, as rank 0 may be stopped.
  WaitContext wait(Deadline::after(kFarewell));
  client.counts->wait(kOpen, wait);
  client.counts->add(kPresent, -1);
  if (spec_.serves) return;
  const std::int64_t others = spec_.world_size - 1;
  const std::int64_t left = client.counts->add(kLeft, 1);
  if (left % others == 0) client.counts->set(gone_key(left / others), "1");
}

void ServedStore::linger(Leaving why) {
  WaitContext wait(Deadline::after(patience(why)));
  Client client;
  int departures = 0;
  {
    const std::lock_guard turn(turn_);
    if (!server_) return;
    client = connect();
    const std::lock_guard lock(mutex_);
    if (client_) return;  // back already, by another thread
    departures = departures_;
    // Who finalizes twice does not wait twice.
    if (std::exchange(lingered_, departures) == departures && why != Leaving::exiting) return;
  }
  // Rank 0 may be in no group, and still serve those of the others.
  client.counts->wait(gone_key(std::max(departures, 1)), wait);
  wait.describe("the other ranks to leave");
  while (client.counts->get(kPresent) != "0") {
    // Those who are there again wait for rank 0 to come back, perhaps.
    if (why != Leaving::exiting) return;
    wait.check();
    core::sleep_for(std::min(kPause, wait.slice()));
  }
  const std::lock_guard turn(turn_);
  if (!server_ || client.counts->compare_set(kPresent, "0", std::to_string(kClosed)) != "0") return;
  client = {};
  server_.reset();
}

void ServedStore::stop() noexcept {
  const std::unique_lock turn(turn_, std::try_to_lock);
  if (turn) server_.reset();
}

// Nothing of a forked child's is in it.
std::shared_ptr<Store> ServedStore::reached() const {
  return guard_.is_forked_child() ? nullptr : present().store;
}

}  // namespace col::group::adopt
