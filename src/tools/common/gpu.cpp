#include "common/gpu.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include <col/error.hpp>
#include <col/job.hpp>

#include "common/ask_child.hpp"
#include "core/clock/clock.hpp"

namespace col::tools {
namespace {

constexpr Duration kPatience = std::chrono::minutes(1);

// What buffers have left behind, by device and size: sizes are powers of two.
class Kept {
 public:
  // Never destroyed: at the end of the process, the driver may be gone first, and takes all back.
  static Kept& all() {
    static Kept& kept = *new Kept;
    return kept;
  }

  std::shared_ptr<void> take(int device, std::size_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      const auto found = free_.find({device, room_for(bytes)});
      if (found != free_.end()) {
        std::shared_ptr<void> memory = std::move(found->second);
        free_.erase(found);
        return memory;
      }
    }
    return gpus().allocate(device, room_for(bytes));
  }
  void give_back(int device, std::size_t bytes, std::shared_ptr<void> memory) {
    const std::lock_guard lock(mutex_);
    free_.emplace(std::pair(device, room_for(bytes)), std::move(memory));
  }

 private:
  static std::size_t room_for(std::size_t bytes) { return std::bit_ceil(std::max<std::size_t>(bytes, 256)); }

  std::mutex mutex_;
  std::multimap<std::pair<int, std::size_t>, std::shared_ptr<void>> free_;
};

std::string from_child(const std::function<std::string()>& question) {
  return ask_child(question, kPatience).value_or("the CUDA driver does not answer, or ends the process");
}

template <class Done>
void wait_until(Done done, const char* what) {
  for (const Deadline deadline = Deadline::after(kPatience); !done(); core::yield()) {
    if (deadline.expired())
      throw Error(ErrorCode::timeout, std::string(what) + " does not end; see nvidia-smi for what the GPU is doing");
  }
}

void copy(void* to, const void* from, std::size_t bytes, int device) {
  if (bytes == 0) return;
  const auto copy = gpus().copy(to, from, bytes, device, {});
  wait_until([&] { return copy->done(); }, "a copy between the host and the GPU");
}

BackendFactory& device_factory() {
  if (BackendFactory* const factory = find_device_backend()) return *factory;
  throw Error(ErrorCode::unavailable, "this build of col has no backend for GPUs");
}

}  // namespace

DeviceMemory& gpus() {
  return device_factory().device_memory();
}

std::string why_no_gpus() {
  return from_child([]() -> std::string {
    try {
      gpus();
      return {};
    } catch (const Error& error) {
      return error.message();
    }
  });
}

std::string why_no_nccl() {
  return from_child(&nccl_unavailable_reason);
}

std::string device_backend() {
  const BackendFactory* const factory = find_device_backend();
  return factory != nullptr ? std::string(factory->name()) : "";
}

bool moves_device_memory(std::string_view backend) {
  const BackendFactory* const factory = find_backend(backend);
  return factory != nullptr && factory->device() != Device::Type::cpu;
}

int gpu_of(const ContextSpec& rank) {
  return rank.local_rank % gpus().devices();
}

std::shared_ptr<void> use_gpu(const ContextSpec& rank) {
  return gpus().make_current(gpu_of(rank));
}

GpuFacts facts_of_gpu(int device) {
  return {gpus().name(device), gpus().bus(device)};
}

std::string facts_of_nccl() {
  const PeerInfo self;
  ConnectRequest request;
  request.peers = {&self, 1};
  const std::string text = device_factory().describe(request);  // and behind a comma, the GPU
  return text.substr(0, text.find("), ") + 1);
}

std::string gpus_by_rank(std::span<const RankOnGpu> ranks) {
  std::string text;
  for (std::size_t first = 0; first < ranks.size(); ++first) {
    const auto shares = [&](const RankOnGpu& other) {
      return other.host == ranks[first].host && other.gpu == ranks[first].gpu;
    };
    if (std::any_of(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(first), shares)) continue;
    std::string users;
    for (std::size_t rank = first; rank < ranks.size(); ++rank) {
      if (shares(ranks[rank])) users += (users.empty() ? "" : ", ") + std::to_string(rank);
    }
    const bool alone = users.find(',') == std::string::npos;
    text += (text.empty() ? "" : "; ") + std::string(alone ? "rank " : "ranks ") + users + ": " + ranks[first].gpu;
  }
  return text;
}

int current_gpu() {
  const std::optional<int> current = gpus().current();
  if (!current) throw Error(ErrorCode::unavailable, "no GPU is current in this thread; use_gpu() makes one so");
  return *current;
}

double seconds_of(DeviceTimer& timer) {
  std::optional<double> seconds;
  wait_until([&] { return (seconds = timer.seconds()).has_value(); }, "what is timed on the GPU");
  return *seconds;
}

void copy_to_gpu(void* to, std::span<const std::byte> from, int device) {
  copy(to, from.data(), from.size(), device);
}

void copy_from_gpu(std::span<std::byte> to, const void* from, int device) {
  copy(to.data(), from, to.size(), device);
}

std::optional<Difference> compare_on_gpu(const void* left, const void* right, std::size_t count,
                                         std::size_t element_bytes, int device) {
  const auto comparison = gpus().compare(left, right, count, element_bytes, device, {});
  if (comparison == nullptr) return std::nullopt;
  std::optional<Difference> found;
  wait_until([&] { return (found = comparison->result()).has_value(); }, "a comparison on the GPU");
  return found;
}

GpuBuffer::GpuBuffer(std::size_t bytes, Keep keep) : keep_(keep), size_(bytes) {
  device_ = current_gpu();
  memory_ = keep_ == Keep::yes ? Kept::all().take(device_, bytes) : gpus().allocate(device_, bytes);
}

GpuBuffer::~GpuBuffer() {
  if (keep_ == Keep::yes) Kept::all().give_back(device_, size_, std::move(memory_));
}

std::optional<Difference> GpuBuffer::compare(std::span<const std::byte> bytes) const {
  GpuBuffer other(size_);
  other.write(0, bytes);
  return compare_on_gpu(data(), other.data(), size_, 1, device_);
}

}  // namespace col::tools
