// Connecting over shared memory: the ranks of a group map the same segment.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <col/channel.hpp>

#include "backend/shm/segment/segment.hpp"

namespace col::shm_backend {

// The segments that ranks of this process made. Ranks that are threads of this process share one mapping. That is
// cheaper, and tools that watch threads identify memory by its address. Thread safe.
class LocalSegments {
 public:
  void add(std::uint64_t id, const std::shared_ptr<Segment>& segment);
  std::shared_ptr<Segment> find(std::uint64_t id);  // null when there is none

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, std::weak_ptr<Segment>> segments_;
};

// The places where the memory comes from. Tests use other values.
struct Places {
  bool use_memfd = true;
  std::string processes = "/proc";
  std::string files = "/dev/shm";
};

// Decides the tuning by which the ranks of a segment choose their methods. Rank 0 calls it, while the others wait, with
// the number of processors that they have together.
using Tuner = std::function<Tuning(const Segment& segment, int processors)>;

// Blocking; see BackendFactory::connect(). Rank 0 makes the memory without a name (memfd), and the others open it as
// /proc/<pid>/fd/<n>. So nothing is left behind, whichever process is killed. If one rank cannot open it (another pid
// namespace, a hidden /proc), the memory is a file with a name that nobody can guess. Rank 0 removes this file as soon
// as all ranks have mapped it.
std::shared_ptr<Segment> connect_segment(const ConnectRequest& request, WaitContext& wait, LocalSegments& local,
                                         const Places& places, const Tuner& tuner);

}  // namespace col::shm_backend
