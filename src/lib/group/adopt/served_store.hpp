// The store of a job on several hosts that nobody has given one: rank 0 serves it in its own process.
//
// The server must outlive the other ranks' need of it, and rank 0 cannot know that need by itself. So the ranks count
// in the store:
//
//   present     ranks that are in it: who comes adds 1, who goes takes it away
//   left        how often ranks other than 0 have gone
//   gone/<n>    set when that has been n times as many as there are
//   open        set when the server is ready
//
// Rank 0, when it goes for the n-th time, waits for gone/<n>, within bounds; then, if `present` is 0 still, it makes it
// a number so low that nobody who adds 1 can miss it, and stops. Who meets that number comes back to the next server.
// If others are there still, or again, the server stays, until the process of rank 0 ends.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "core/fork_guard.hpp"
#include "group/adopt/adopted_store.hpp"
#include "group/adopt/turn.hpp"

namespace col::group::adopt {

struct ServedSpec {
  int rank = 0;
  int world_size = 1;
  std::string host = {};  // of rank 0
  int port = 0;
  std::string source = {};  // what says so, for messages: a variable
  std::string token = {};
  Duration timeout = {};                      // of a call other than wait()
  std::shared_ptr<ControlPage> control = {};  // may be null; an abort ends the wait for rank 0
};

// Thread safe. The first call of a rank other than 0 connects, and waits for rank 0 to serve.
class ServedStore final : public AdoptedStore {
 public:
  explicit ServedStore(ServedSpec spec);
  ~ServedStore() override;  // leave(), as if the process ended
  ServedStore(const ServedStore&) = delete;
  ServedStore& operator=(const ServedStore&) = delete;

  // Rank 0: serves when it returns. Does nothing elsewhere. Throws unavailable when the port cannot be had; resource.
  void serve();
  // Tells the others; rank 0 waits for them to leave as well: 10 seconds at most, 1 when something failed, 2 at the end
  // of the process.
  void leave(Leaving why) noexcept override;

  void set(std::string_view key, std::string_view value) override;
  std::optional<std::string> get(std::string_view key) override;
  std::string wait(std::string_view key, WaitContext& wait) override;
  std::int64_t add(std::string_view key, std::int64_t delta) override;
  std::optional<std::string> compare_set(std::string_view key, std::optional<std::string_view> expected,
                                         std::string_view desired) override;
  bool erase(std::string_view key) override;
  std::size_t num_keys(std::string_view prefix = {}) override;

 private:
  // A client, and its view of the counts.
  struct Client {
    std::shared_ptr<Store> store;
    std::shared_ptr<Store> counts;
    explicit operator bool() const noexcept { return store != nullptr; }
  };

  std::shared_ptr<Store> client();
  std::shared_ptr<Store> client(WaitContext& wait);
  Client present() const;
  Client connect() const;
  Client enter(WaitContext& wait);
  bool try_enter(const Client& client, WaitContext& wait);
  void require_this_process() const;
  void serve_in_turn();
  void count_out(const Client& client);
  void linger(Leaving why);
  void stop() noexcept;

  const ServedSpec spec_;
  const core::ForkGuard guard_;
  mutable std::mutex mutex_;  // guards the next four, and is never held while waiting
  Client client_;             // empty while this rank is not in the store; shared with the calls under way
  bool comes_back_ = false;   // this rank has left before
  int departures_ = 0;        // of rank 0, from the present server
  int lingered_ = -1;         // departures_ when rank 0 last waited for the others
  Turn turn_;                 // of the thread that enters, and of the server; taken before mutex_
  std::unique_ptr<StoreServer> server_;
};

}  // namespace col::group::adopt
