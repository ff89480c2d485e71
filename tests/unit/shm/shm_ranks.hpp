// Ranks for the tests of the shared-memory channel, below the group layer.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <col/backend.hpp>
#include <col/store.hpp>

#include "backend/shm/channel.hpp"
#include "backend/shm/segment/connect.hpp"

namespace col::test {

using shm_backend::ShmChannel;

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
  shm_backend::Places places = {};
  shm_backend::LocalSegments* local = nullptr;  // null: none of this process
};

// A channel over memory that the ranks share through the store.
std::unique_ptr<ShmChannel> connect(const Place& place, Duration timeout = std::chrono::seconds(20));

// Runs `body`, turning what it throws into an Ending.
Ending ending_of(const std::function<void()>& body);
std::string show(const std::vector<Ending>& endings);
bool all_well(const std::vector<Ending>& endings);
// For ranks, in which Catch2 means nothing: throws when `condition` does not hold.
void expect(bool condition, const std::string& what);

using RankBody = std::function<void(int rank, ShmChannel& channel)>;

// One thread per rank over one MemoryStore and one mapping.
std::vector<Ending> run_ranks(int size, const RankBody& body);

// A forked process.
class RankProcess {
 public:
  explicit RankProcess(const std::function<void()>& body);
  ~RankProcess();  // kills and reaps it
  RankProcess(RankProcess&& other) noexcept;
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;

  void kill();
  // What went wrong in the body; empty when nothing. Waits for the process to end, at most `limit`.
  std::string wait(Duration limit = std::chrono::seconds(30));

 private:
  pid_t pid_ = -1;
  int pipe_ = -1;
};

int wait_for(ShmChannel& channel, Ticket ticket, Duration timeout = std::chrono::seconds(20));
void send(ShmChannel& channel, int peer, std::uint64_t slot, ConstTensorView data);
void recv(ShmChannel& channel, int peer, std::uint64_t slot, TensorView data);

// The names that this backend can have left in a directory, and this process's open descriptors.
std::vector<std::string> leftovers(const std::string& directory = "/dev/shm");
std::size_t open_descriptors();

}  // namespace col::test
