// Ranks for the tests of a backend's channel, below the group layer: threads, or forked processes, and how they end.
// What a rank expects it says with expect() of ranks.hpp.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <col/channel.hpp>

#include "support/catch.hpp"
#include "support/prompt.hpp"
#include "support/ranks.hpp"

namespace col::test {

inline constexpr std::uint64_t kToken = 0x5eed'0000'1234'abcdULL;

// How one rank ended; the code is nothing when it ended well.
struct Ending {
  std::optional<ErrorCode> code;
  std::string text;
  int rank = -1;  // Error::rank()
  double seconds = 0;

  bool says(std::string_view words) const { return text.find(words) != std::string::npos; }
};

// Runs `body`, turning what it throws into an Ending.
Ending ending_of(const std::function<void()>& body);
// How `body` ends, which waits with what it gets, when another thread aborts the channel as soon as it waits: at first
// because "the test says stop". The seconds are those since then.
Ending ending_when_aborted(Channel& channel, const std::function<void(WaitContext& wait)>& body);
std::string show(const std::vector<Ending>& endings);
bool all_well(const std::vector<Ending>& endings);
inline void require_well(const std::vector<Ending>& endings) {
  INFO(show(endings));
  REQUIRE(all_well(endings));
}

// Runs `body` in one thread for each rank.
std::vector<Ending> run_each(int size, const std::function<void(int rank)>& body);

// A forked process.
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
  Ending wait(Duration limit = std::chrono::seconds(30));

 private:
  pid_t pid_ = -1;
  int pipe_ = -1;
};

// The descriptors that are open in this process.
std::vector<int> own_descriptors();

// ---- Calls that end within a limit

inline WaitContext wait_for(Duration timeout = kDeadline) {
  return WaitContext(Deadline::after(timeout));
}

inline int wait_for(Channel& channel, Ticket ticket, Duration timeout = kDeadline) {
  WaitContext wait = wait_for(timeout);
  return channel.wait(ticket, wait);
}

inline void send(Channel& channel, int peer, std::uint64_t slot, ConstTensorView data) {
  wait_for(channel, channel.post_send(peer, slot, data));
}

inline void recv(Channel& channel, int peer, std::uint64_t slot, TensorView data) {
  wait_for(channel, channel.post_recv(peer, slot, data));
}

// Each rank sends its own number, from `first` on, to all, and receives theirs.
void meet_all(Channel& channel, int rank, int size, std::uint64_t slot, std::int32_t first = 0);
// Until all ranks have come to that point.
void await_all(Store& store, const std::string& point, int size);

inline void run_native(Channel& channel, const Request& request, Duration timeout = std::chrono::seconds(60)) {
  WaitContext wait = wait_for(timeout);
  channel.native(request, wait);
}

}  // namespace col::test
