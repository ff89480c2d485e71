// The store: keys and values that all ranks of a job can reach. Ranks find one another through it before they have
// connections. Keys and values may be any bytes.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <col/export.hpp>
#include <col/job.hpp>
#include <col/types.hpp>

namespace col {

// Thread safe. Every operation except add and compare_set is idempotent. Errors: io (the file system or the network
// failed), resource (no room), and for wait() those of WaitContext::check().
class COL_EXPORT Store {
 public:
  virtual ~Store();

  // Sets `key` to `value`. Readers see the old value or the new one, never a mixture.
  virtual void set(std::string_view key, std::string_view value) = 0;
  // The value; nothing if the key is not set. Does not wait.
  virtual std::optional<std::string> get(std::string_view key) = 0;
  // Waits until `key` is set and returns its value. The message of a timeout names the key.
  virtual std::string wait(std::string_view key, WaitContext& wait) = 0;
  // Adds `delta` to the decimal number in `key` (0 if not set) and returns the sum. Atomic. Throws invalid_argument if
  // the value is not a number.
  virtual std::int64_t add(std::string_view key, std::int64_t delta) = 0;
  // Sets `key` to `desired` if its value is `expected` (nullopt: if it is not set). Returns the value from before: if
  // the result equals `expected`, the key was set, otherwise nothing has changed. Atomic.
  virtual std::optional<std::string> compare_set(std::string_view key, std::optional<std::string_view> expected,
                                                 std::string_view desired) = 0;
  // Removes `key`; returns whether it was set.
  virtual bool erase(std::string_view key) = 0;
  // Number of keys that start with `prefix`.
  virtual std::size_t num_keys(std::string_view prefix = {}) = 0;

  // wait() with only a time limit.
  std::string wait_for(std::string_view key, Duration timeout);
};

// A store in the memory of this process, for ranks that are threads.
COL_EXPORT std::shared_ptr<Store> make_memory_store();

// A store in a directory that all ranks can reach. The directory is created with mode 0700 if it does not exist. Each
// key is one file, which is written completely and then renamed into place. Throws io if the directory cannot be
// created or written, and names it.
COL_EXPORT std::shared_ptr<Store> make_file_store(const std::string& directory);

// A view of `store` that puts a prefix before every key. Views of views work too. Different prefixes never collide,
// whatever bytes they hold.
COL_EXPORT std::shared_ptr<Store> make_prefix_store(std::shared_ptr<Store> store, std::string_view prefix);

// A store in the server at `host` and `port` (a StoreServer, or the launcher's). First, each side proves to the other
// that it knows `token`; the token itself is never sent (<col/proof.hpp>). A key has 64 KiB at most, a value as much as
// the server allows. The server does the waiting for wait(): it answers when the key is set.
//
// This function does not connect. The first call connects, and tries until its deadline, because the server may not be
// there yet. `timeout` bounds every call except wait(), which has its own. Threads that wait at the same time use one
// connection each. A forked child makes its own connections. `job` is the job of the caller: a server that was started
// with a job refuses clients of any other job.
//
// Requires: `timeout` above zero, a token of 1 to 512 bytes, and a job of 1024 bytes at most; otherwise
// invalid_argument. The calls have these errors in addition to those of Store: timeout (no answer in time), io (the
// server has gone), mismatch (the port does not belong to a store of col, or the store has another token or job),
// unavailable (no libcrypto). No message contains the token.
COL_EXPORT std::shared_ptr<Store> make_tcp_store(const std::string& host, int port, const std::string& token,
                                                 Duration timeout, const std::string& job = {});

// Returns 128 random bits as hexadecimal digits. Pass the token on in COL_STORE_TOKEN or in a file of mode 0600, never
// on a command line, which others can read. Throws io if the system gives no random bytes.
COL_EXPORT std::string make_store_token();

// The name of one run of a job for a TCP store: its id and restart count (COL_JOB_ID, COL_RESTART_COUNT).
COL_EXPORT std::string store_job(std::string_view job_id, int restart);

// The addresses on which a server should listen, so that a client that is told `host` can connect, and nobody else: the
// numeric addresses of `host` that belong to this host. An empty list means all addresses: if `host` is empty or "*",
// or if it is a name for which this host knows only its loopback address (Debian uses 127.0.1.1; other hosts know
// another address for the name). Returns nothing if no address of `host` belongs to this host. May ask a name server.
COL_EXPORT std::optional<std::vector<std::string>> listen_addresses(const std::string& host);

struct StoreServerSpec {
  static constexpr std::size_t kMostValueBytes = std::size_t{1} << 30;

  std::string host = {};   // an address or name of this host; the server listens on listen_addresses(host)
  int port = 0;            // 0: the kernel chooses a port
  std::string token = {};  // the secret that clients have to know; 1 to 512 bytes
  // Clients of another job are refused; empty: clients of any job are accepted. See store_job().
  std::string job = {};
  // A client beyond this number is refused with resource. Usually one rank has one connection.
  std::size_t max_connections = 8192;
  std::size_t max_value_bytes = std::size_t{64} << 20;  // the largest value; at most kMostValueBytes
  // Keys, values, requests and answers of all clients together. A client whose request does not fit gets resource.
  std::size_t max_total_bytes = std::size_t{1} << 30;
  // A client that has not proven by then that it knows the token is dropped. The server holds at most 256 such clients
  // at a time, and drops the oldest one for a new one.
  Duration handshake_timeout = std::chrono::seconds(5);
  // A client that stops for this long in the middle of sending a message or reading an answer is dropped.
  Duration stall_timeout = std::chrono::minutes(1);
};

// A store in the memory of this process that serves other processes over TCP. One thread serves all of them. Nothing is
// encrypted: the token keeps out strangers and other jobs, but not somebody who can read and change network traffic
// (docs/security.md).
//
// Thread safe. The thread blocks all signals. Programs that this process starts inherit no socket of it. In a forked
// child the object does nothing.
class COL_EXPORT StoreServer {
 public:
  // The server listens when the constructor returns. Errors: invalid_argument (a limit, the token), io (the address is
  // not available: the port is taken, or `host` is not this host), resource, unavailable (no libcrypto).
  explicit StoreServer(const StoreServerSpec& spec);
  ~StoreServer();  // stop()
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  int port() const noexcept;
  // "tcp://host:port", which the clients pass to open_store(). The host is that of the spec; if that means all
  // addresses (empty, *, 0.0.0.0, ::), it is the address by which this host reaches others, or its loopback address if
  // it reaches none.
  std::string url() const;
  // The number of clients that are connected now. A client that has ended, in any way, is soon counted no more. So a
  // process that serves others can see when they have left.
  std::size_t connections() const noexcept;
  // Drops all clients, whose calls then fail with io, and forgets all keys. Idempotent. Does not wait for clients. Only
  // one thread at a time may call it.
  void stop() noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Settings of open_store() for a tcp store. It takes those that the program leaves out from the environment.
struct StoreOptions {
  std::string token = {};  // empty: COL_STORE_TOKEN, else the content of COL_STORE_TOKEN_FILE
  std::string job = {};    // see make_tcp_store() and store_job(); empty: that of COL_JOB_ID and COL_RESTART_COUNT
  Duration timeout = {};   // zero: COL_TIMEOUT, else 5 minutes
};

// Opens the store of a URL: "file:///dir", or "tcp://host:port" ("tcp://[::1]:4711" for an address with colons). A
// token file must be owned by this user and have mode 0600. Throws invalid_argument for any other scheme, and names
// those that work; also for a token that is missing or too long, for a token file that others can read, and for a
// negative timeout.
COL_EXPORT std::shared_ptr<Store> open_store(std::string_view url, const StoreOptions& options = {});

}  // namespace col
