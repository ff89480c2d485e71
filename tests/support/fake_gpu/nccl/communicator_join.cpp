// How the ranks of a communicator find one another.
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <thread>

#include "support/fake_gpu/cuda/work.hpp"
#include "support/fake_gpu/nccl/communicator.hpp"
#include "support/fake_gpu/nccl/library.hpp"
#include "support/fake_gpu/nccl/registry.hpp"

namespace fake_nccl {
namespace {

constexpr int kFirstVersionWithSharedDevices = 23003;

uint64_t bit_of(int peer) {
  return uint64_t{1} << peer;
}

bool devices_may_be_shared() {
  return version() >= kFirstVersionWithSharedDevices && fake_gpu::number_setting("NCCL_MULTI_RANK_GPU_ENABLE", 0) == 1;
}

// Takes the seat and waits for everybody's; the last one removes the file's name.
void meet(Segment& segment, int rank, int color, int key, int device, const std::function<bool()>& stop) {
  SegmentHead& head = segment.head();
  uint32_t size = 0;
  if (!head.size.compare_exchange_strong(size, segment.size()) && size != static_cast<uint32_t>(segment.size())) {
    fail(ncclInvalidUsage,
         "ranks of one communicator say " + std::to_string(size) + " and " + std::to_string(segment.size()) + " ranks");
  }
  Seat& seat = segment.seat(rank);
  if (seat.taken.exchange(1) != 0) fail(ncclInvalidUsage, "rank " + std::to_string(rank) + " joined twice");
  seat.process = getpid();
  seat.device = device;
  seat.color = color;
  seat.key = key;
  head.arrived.fetch_add(1, std::memory_order_acq_rel);
  segment.announce();
  const bool all = segment.wait(
      "the meeting of an NCCL communicator's ranks",
      [&] { return head.arrived == static_cast<uint32_t>(segment.size()); }, stop);
  segment.unlink();
  if (!all) fail(ncclInternalError, "aborted");
}

}  // namespace

namespace {

std::atomic<int>& waits_ended() {
  static auto* instance = new std::atomic<int>(0);
  return *instance;
}

}  // namespace

void Communicator::end_waits() {
  ++waits_ended();
}

std::function<bool()> Communicator::given_up() const {
  return [this, before = waits_ended().load()] { return config_.blocking && waits_ended() != before; };
}

// As the job is called there.
void Communicator::join(const std::string& identity, int rank, int size, const Communicator* parent) {
  if (const auto code = call_log().enter("ncclCommInitRankFunc"))
    fail(static_cast<ncclResult_t>(*code), "a communicator cannot be made");
  identity_ = identity;
  rank_ = rank;
  size_ = size;
  counts_ = std::make_unique<TransferCounts>(size);
  segment_ = std::make_unique<Segment>(identity, size);
  meet(*segment_, rank, 0, 0, fake_gpu_physical_device(device_), [&, is_given_up = given_up()] {
    return aborted_.load() || is_given_up() || (parent != nullptr && parent->stopped_now_());
  });
  check_devices();
  joined_ = true;
}

void Communicator::join_split(Communicator& parent, const std::string& board, int color, int key) {
  Segment meeting(board, parent.size());
  meet(meeting, parent.rank(), color, key, 0, [&] { return aborted_.load() || parent.stopped_now_(); });
  std::vector<std::pair<int, int>> members;  // key, rank of the parent
  for (int peer = 0; peer < parent.size(); ++peer) {
    if (meeting.seat(peer).color == color) members.emplace_back(meeting.seat(peer).key, peer);
  }
  std::sort(members.begin(), members.end());
  const auto self = std::find(members.begin(), members.end(), std::pair(key, parent.rank()));
  if (color == NCCL_SPLIT_NOCOLOR) return;
  join(board + "c" + std::to_string(color), static_cast<int>(self - members.begin()), static_cast<int>(members.size()),
       &parent);
}

void Communicator::check_devices() const {
  if (devices_may_be_shared()) return;
  // Below that version it compares the addresses on the bus, which the parts of a GPU have in common.
  const bool by_bus = version() < kFirstVersionWithSharedDevices && fake_gpu::number_setting("FAKE_GPU_MIG", 0) != 0;
  for (int rank = 0; rank < size_; ++rank) {
    for (int other = rank + 1; other < size_; ++other) {
      if (!by_bus && segment_->seat(rank).device != segment_->seat(other).device) continue;
      fail(ncclInvalidUsage, "Duplicate GPU detected : rank " + std::to_string(rank) + " and rank " +
                                 std::to_string(other) + " both on device " +
                                 std::to_string(segment_->seat(rank).device));
    }
  }
}

void Communicator::begin_connect(const std::vector<Operation>& operations) {
  if (fake_gpu::number_setting("FAKE_NCCL_LAZY_CONNECT", 1) == 0) return;
  uint64_t peers = 0;
  for (const Operation& operation : operations) {
    if (operation.point_to_point()) {
      peers |= bit_of(operation.root);
    } else {
      for (int peer = 0; peer < size_; ++peer) peers |= bit_of(peer);
    }
  }
  wanted_peers_ |= peers;
  if ((segment_->seat(rank_).wanted_peers.fetch_or(peers) & peers) != peers) segment_->announce();
}

bool Communicator::finish_connect() {
  auto all_want_us = [this] {
    for (uint64_t peers = wanted_peers_; peers != 0; peers &= peers - 1) {
      const int peer = std::countr_zero(peers);
      if ((segment_->seat(peer).wanted_peers & bit_of(rank_)) == 0) return false;
    }
    return true;
  };
  const char* what = "the connection of NCCL's ranks at their first operation";
  const auto stops = [this, is_given_up = given_up()] { return stopped_now_() || is_given_up(); };
  if (segment_->wait(what, all_want_us, stops)) return true;
  if (aborted_) fail(ncclInternalError, "aborted");
  return false;
}

// ---- Windows

void Communicator::register_window(const void* memory, size_t bytes, bool symmetric, ncclWindow_t* window) {
  const uint32_t number = ++segment_->seat(rank_).windows;
  segment_->announce();
  const auto all_have_begun = [&] {
    for (int peer = 0; peer < size_; ++peer) {
      if (segment_->seat(peer).windows < number) return false;
    }
    return true;
  };
  const bool all = segment_->wait("the registration of a window by all ranks", all_have_begun, stopped_now_);
  std::this_thread::sleep_for(std::chrono::microseconds(fake_gpu::random_below(3000)));
  if (!all) {
    *window = nullptr;  // written even now
    fail(ncclInternalError, "aborted");
  }
  ncclWindow_t handle = nullptr;
  {
    std::lock_guard lock(registry().mutex);
    if (!registry().has(memory, bytes)) fake_gpu::die("memory was freed while its window was being registered");
    handle = reinterpret_cast<ncclWindow_t>(registry().new_handle());
  }
  std::lock_guard lock(mutex);
  windows[handle] = {reinterpret_cast<uintptr_t>(memory), bytes, number, symmetric};
  *window = handle;
}

uint64_t Communicator::symmetry_of(const void* input, const void* output) {
  std::lock_guard lock(mutex);
  uint64_t both = 1;
  for (const void* buffer : {input, output}) {
    const auto address = reinterpret_cast<uintptr_t>(buffer);
    const auto within = std::find_if(windows.begin(), windows.end(), [&](const auto& one) {
      const Window& window = one.second;
      return window.symmetric && window.begin <= address && address < window.begin + window.bytes;
    });
    if (within == windows.end()) return 0;
    both = both * 0x100000001b3 + (uint64_t{within->second.number} << 40) + (address - within->second.begin);
  }
  return both;
}

}  // namespace fake_nccl
