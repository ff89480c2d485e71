// How the ranks of a communicator find one another.
#include <unistd.h>

#include <algorithm>
#include <bit>

#include "support/fake_gpu/cuda/work.hpp"
#include "support/fake_gpu/nccl/communicator.hpp"
#include "support/fake_gpu/nccl/library.hpp"

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

void Communicator::join(const std::string& identity, int rank, int size) {
  identity_ = identity;
  rank_ = rank;
  size_ = size;
  counts_ = std::make_unique<TransferCounts>(size);
  segment_ = std::make_unique<Segment>(identity, size);
  meet(*segment_, rank, 0, 0, fake_gpu_physical_device(device_), aborted_now_);
  check_devices();
  joined_ = true;
}

void Communicator::join_split(Communicator& parent, const std::string& board, int color, int key) {
  Segment meeting(board, parent.size());
  meet(meeting, parent.rank(), color, key, 0, [&] { return aborted_.load() || parent.aborted_.load(); });
  std::vector<std::pair<int, int>> members;  // key, rank of the parent
  for (int peer = 0; peer < parent.size(); ++peer) {
    if (meeting.seat(peer).color == color) members.emplace_back(meeting.seat(peer).key, peer);
  }
  std::sort(members.begin(), members.end());
  const auto self = std::find(members.begin(), members.end(), std::pair(key, parent.rank()));
  if (color == NCCL_SPLIT_NOCOLOR) return;
  join(board + "c" + std::to_string(color), static_cast<int>(self - members.begin()), static_cast<int>(members.size()));
}

void Communicator::check_devices() const {
  if (devices_may_be_shared()) return;
  for (int rank = 0; rank < size_; ++rank) {
    for (int other = rank + 1; other < size_; ++other) {
      if (segment_->seat(rank).device != segment_->seat(other).device) continue;
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
  if (segment_->wait(what, all_want_us, stopped_now_)) return true;
  if (aborted_) fail(ncclInternalError, "aborted");
  return false;
}

}  // namespace fake_nccl
