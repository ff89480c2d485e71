// The store: how ranks find one another before they can talk. Keys are strings, values are bytes, both arbitrary.
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

// Thread safe; every operation but add and compare_set is idempotent. Errors: io (the medium refused), resource (full),
// and from wait() those of WaitContext::check().
class COL_EXPORT Store {
 public:
  virtual ~Store();

  // Sets `key` to `value`; readers see the old value or the new one, never a part.
  virtual void set(std::string_view key, std::string_view value) = 0;
  // The value, or nothing when the key is not set. Does not wait.
  virtual std::optional<std::string> get(std::string_view key) = 0;
  // Waits until `key` is set and returns its value. A timeout names the key.
  virtual std::string wait(std::string_view key, WaitContext& wait) = 0;
  // Adds `delta` to the decimal number in `key` (0 when not set) and returns the sum. Atomic. A value that is no number
  // is invalid_argument.
  virtual std::int64_t add(std::string_view key, std::int64_t delta) = 0;
  // Sets `key` to `desired` if its value is `expected` (nullopt: if it is not set). Returns the value that was there
  // before: the swap happened exactly when the result equals `expected`. Atomic.
  virtual std::optional<std::string> compare_set(std::string_view key, std::optional<std::string_view> expected,
                                                 std::string_view desired) = 0;
  // Removes `key`; returns whether it was set.
  virtual bool erase(std::string_view key) = 0;
  // Number of keys that start with `prefix`.
  virtual std::size_t num_keys(std::string_view prefix = {}) = 0;

  // wait() with nothing but a time limit.
  std::string wait_for(std::string_view key, Duration timeout);
};

// In this process's memory, for ranks that are threads.
COL_EXPORT std::shared_ptr<Store> make_memory_store();

// In a directory that all ranks can reach, created with mode 0700 when absent. A key is one file, written whole and
// renamed into place. Throws io when the directory cannot be created or written, and says which.
COL_EXPORT std::shared_ptr<Store> make_file_store(const std::string& directory);

// A view of `store` in which every key is prefixed. Scopes nest and cannot collide, whatever bytes the prefixes hold.
COL_EXPORT std::shared_ptr<Store> make_prefix_store(std::shared_ptr<Store> store, std::string_view prefix);

// In the server at `host` and `port` (StoreServer, or the launcher's). First of all, each side proves to the other that
// it knows `token`, which is never sent (<col/proof.hpp>). Keys are of 64 KiB at most, values of what the server takes.
// A wait is the server's: it answers when the key is set.
//
// Does not connect yet: the first call does, and tries until its deadline, as the server may not be there yet.
// `timeout` bounds every call but wait(), which has its own. Threads that wait at the same time use a connection each.
// A forked child makes its own connections. `job` is that of the caller; a server that was started with one refuses all
// others. Requires: `timeout` above zero, a token of 1 to 512 bytes, a job of 1024 at most; invalid_argument otherwise.
// Errors of the calls beside those of Store: timeout (no answer in time), io (the server has gone), mismatch (the port
// is no store's of col, or the store has another token or job), unavailable (no libcrypto). No message holds the token.
COL_EXPORT std::shared_ptr<Store> make_tcp_store(const std::string& host, int port, const std::string& token,
                                                 Duration timeout, const std::string& job = {});

// 128 random bits in hexadecimal digits. Pass it on in COL_STORE_TOKEN or in a file of mode 0600, never on a command
// line, which others can read. Throws io when the system gives no random bytes.
COL_EXPORT std::string make_store_token();

// How a TCP store names one run of a job: its id and restart count (COL_JOB_ID, COL_RESTART_COUNT).
COL_EXPORT std::string store_job(std::string_view job_id, int restart);

// Where a server listens so that whoever is told `host` can connect, and nobody else: the addresses of this host, in
// digits, that it is or has. Empty, which means all of them, when `host` is empty, or a name to which this host gives
// nothing but its loopback address (as Debian does with 127.0.1.1: others have another one for it). Nothing when none
// of its addresses is this host's. May ask a name server.
COL_EXPORT std::optional<std::vector<std::string>> listen_addresses(const std::string& host);

struct StoreServerSpec {
  static constexpr std::size_t kMostValueBytes = std::size_t{1} << 30;

  std::string host = {};   // an address of this host, or its name: listen_addresses() of it is where it listens
  int port = 0;            // 0: one that the kernel chooses
  std::string token = {};  // what clients have to know; 1 to 512 bytes
  // Clients of another job are refused; empty: those of any are taken. store_job() has the words.
  std::string job = {};
  // Further clients are turned away with resource. One rank has one connection, commonly.
  std::size_t max_connections = 8192;
  std::size_t max_value_bytes = std::size_t{64} << 20;  // of one value; kMostValueBytes at most
  // Keys, values, requests and answers of all clients together; what does not fit is resource for the client.
  std::size_t max_total_bytes = std::size_t{1} << 30;
  // A client that has not proven by then that it knows the token is dropped. No more than 256 such are held at a time:
  // beyond, the oldest goes.
  Duration handshake_timeout = std::chrono::seconds(5);
  // A client that stops in the middle of a message, or of reading an answer, for so long is dropped.
  Duration stall_timeout = std::chrono::minutes(1);
};

// A store for other processes, in this one's memory: one thread that serves them all. Nothing is encrypted: the token
// keeps strangers and other jobs out, not somebody who can read and change what others send (docs/security.md).
//
// Thread safe. The thread blocks all signals, and nothing is inherited by programs that this process starts. In a
// forked child the object does nothing.
class COL_EXPORT StoreServer {
 public:
  // Listens when it returns. Errors: invalid_argument (a limit, the token), io (the address cannot be had: the port is
  // taken, the host is not this one), resource, unavailable (no libcrypto).
  explicit StoreServer(const StoreServerSpec& spec);
  ~StoreServer();  // stop()
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  int port() const noexcept;
  // Clients that are connected now. One that has ended, in whatever way, is soon not counted any more, so a process
  // that has served the others can see when they have left.
  std::size_t connections() const noexcept;
  // Drops all clients, whose calls fail with io, and forgets all keys. Idempotent; does not wait for clients. Not for
  // several threads at once.
  void stop() noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// The store of a URL: "file:///dir", or "tcp://host:port" ("tcp://[::1]:4711" for an address with colons). The token of
// the latter is COL_STORE_TOKEN, else the content of the file COL_STORE_TOKEN_FILE (of this user, mode 0600), its job
// that of COL_JOB_ID and COL_RESTART_COUNT, and its timeout COL_TIMEOUT, else 5 minutes. Throws invalid_argument for
// any other scheme, naming those that work, and for a token that is missing or readable by others.
COL_EXPORT std::shared_ptr<Store> open_store(std::string_view url);

}  // namespace col
