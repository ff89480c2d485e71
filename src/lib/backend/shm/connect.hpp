// How the ranks of a group come to map the same memory.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <col/backend.hpp>

#include "backend/shm/segment.hpp"

namespace col::shm_backend {

// The segments that ranks of this process made, so that ranks which are its threads share one mapping: cheaper, and
// the tools that watch threads know memory by its address. Thread safe.
class LocalSegments {
 public:
  void add(std::uint64_t id, const std::shared_ptr<Segment>& segment);
  std::shared_ptr<Segment> find(std::uint64_t id);  // null when there is none

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, std::weak_ptr<Segment>> segments_;
};

// Where the memory comes from. Other values than these are for tests.
struct Places {
  bool use_memfd = true;
  std::string processes = "/proc";
  std::string files = "/dev/shm";
};

// Blocking; see BackendFactory::connect(). Rank 0 makes the memory without a name (memfd) and the others open it as
// /proc/<pid>/fd/<n>: nothing is left behind, whoever is killed. Where one of them cannot (another pid namespace, a
// hidden /proc), it is a file with a name that nobody can guess, which is removed as soon as all have mapped it.
std::shared_ptr<Segment> connect_segment(const ConnectRequest& request, WaitContext& wait, LocalSegments& local,
                                         const Places& places = {});

}  // namespace col::shm_backend
