// Ranks for the tests of the Gloo channel, below the group layer: connect requests made by hand.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include <col/backend.hpp>
#include <col/store.hpp>

#include "backend/gloo/channel.hpp"
#include "core/hash.hpp"

namespace col::test {

using gloo_backend::GlooChannel;

constexpr std::uint64_t kToken = 0x5eed'0000'1234'abcdULL;

// How one rank ended; the code is nothing when it ended well.
struct Ending {
  std::optional<ErrorCode> code;
  std::string text;
  int rank = -1;  // Error::rank()
  double seconds = 0;
};

struct Place {
  int rank = 0;
  int size = 1;
  std::shared_ptr<Store> store;
  std::uint64_t token = kToken;
  std::string group = "g";
};

std::unique_ptr<GlooChannel> connect(const Place& place, WaitContext& wait);
std::unique_ptr<GlooChannel> connect(const Place& place, Duration timeout = std::chrono::seconds(20));

using RankBody = std::function<void(int rank, GlooChannel& channel)>;

// Runs `body`, turning what it throws into an Ending.
Ending ending_of(const std::function<void()>& body);
std::string show(const std::vector<Ending>& endings);
bool all_well(const std::vector<Ending>& endings);

// One thread per rank over one MemoryStore. What a body expects it says with expect().
std::vector<Ending> run_ranks(int size, const RankBody& body);
void expect(bool condition, const std::string& what);

// A forked process per rank over a FileStore.
class RankProcess {
 public:
  explicit RankProcess(const std::function<void()>& body);
  ~RankProcess();  // kills and reaps it
  RankProcess(RankProcess&& other) noexcept;
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;

  pid_t pid() const { return pid_; }
  void kill();
  // What the body came to; waits for the process to end, at most `limit`. A process that was killed or crashed gives
  // the text "signal N" and code internal.
  Ending wait(Duration limit = std::chrono::seconds(20));

 private:
  pid_t pid_ = -1;
  int pipe_ = -1;
};

// A call of one native collective with the fingerprint that the group layer would make.
inline Request request_for(Collective collective, std::uint64_t sequence, std::size_t count) {
  Request request;
  request.collective = collective;
  request.fingerprint = core::Hash().add(static_cast<int>(collective)).add(sequence).add(count).value();
  return request;
}

inline WaitContext wait_for(Duration timeout = std::chrono::seconds(20)) {
  return WaitContext(Deadline::after(timeout));
}

void barrier(GlooChannel& channel, std::uint64_t sequence, Duration timeout = std::chrono::seconds(20));

}  // namespace col::test
