// The node's object store, emulated: a thread that keeps the bytes that clients put, and gives them to clients that get
// them.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <col/types.hpp>

#include "colbench/workload/store_wire.hpp"
#include "common/unique_fd.hpp"

namespace col::colbench {

struct StoreLimits {
  std::size_t object_bytes = 0;  // the largest object
  int clients = 1;               // at the same time; more are refused
  Duration timeout = {};         // a client that does not continue what it has begun for this long is dropped
};

// Serves Unix stream sockets: any number of clients at a time, one request of each at a time. The bytes are copied from
// socket to memory and back, as between processes. No client can harm another one. A client that sends an invalid
// frame, or puts an object that already exists, gets an error and is dropped. A client that goes away is forgotten.
class StoreServer {
 public:
  // Throws std::system_error if the thread cannot be started.
  StoreServer(Listener listener, const StoreLimits& limits);
  // Drops all clients. Waits only for the thread, which never waits for a client.
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  // Waits until all clients have gone. Returns false if some have not after `limit`.
  bool wait_until_left(Duration limit);
  // Why it no longer serves; empty as long as it does.
  std::string failure() const;

 private:
  class Loop;
  void serve(Loop& loop) noexcept;

  tools::UniqueFd stop_;  // an eventfd
  mutable std::mutex mutex_;
  std::condition_variable left_;  // notified when clients_ has become 0
  int clients_ = 0;
  std::string failure_;
  std::unique_ptr<Loop> loop_;  // the thread's own
  std::jthread thread_;
};

}  // namespace col::colbench
