// Calls over several GPUs of each rank: which communicators serve a call, and what NCCL gets on each of them.
//
// A call over all ranks needs communicators between all their GPUs. A message needs one between two GPUs. Both are made
// when a call first needs them, and kept for later calls: a few of each kind. The ones that were unused for the longest
// time are dropped first. The ranks agree on these without communication, because they make the same calls in the same
// order.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <col/device.hpp>

#include "backend/nccl/device_set.hpp"
#include "backend/nccl/meeting.hpp"

namespace col::nccl_backend {

class NcclMultiChannel final : public MultiChannel {
 public:
  static constexpr std::size_t kMostSets = 8;   // of all ranks
  static constexpr std::size_t kMostPairs = 8;  // with each other rank

  struct Place {
    std::string group;
    int rank = 0, size = 1;
    std::string boot_id;
    std::vector<int> devices = {};         // by rank: how many GPUs its process sees
    std::shared_ptr<Store> store;          // private to the group; shared, because adapters keep it
    Priority priority = Priority::normal;  // of the streams that are made
    Settings settings = {};
    bool has_shared_gpus = false;  // as of Membership
  };
  // What the channel around it does for it.
  struct Host {
    // Runs `body` as the only thread inside NCCL. An exception from it breaks the channel.
    std::function<void(std::string_view call, const std::function<void()>& body)> guarded;
    std::function<void()> look;  // throws if the channel has been broken meanwhile
    Communicator::Rest rest;     // as on_wait() has it
  };

  // `device` is the rank's device in the group. `device` and `nccl` must outlive the object.
  NcclMultiChannel(const GpuDevice& device, const NcclLibrary& nccl, Place place, Host host);

  const Place& place() const noexcept { return place_; }
  void check(const MultiRequest& request) const override;
  std::uint64_t connections(std::span<const int> devices) const override;
  void run(const MultiRequest& request, WaitContext& wait) override;

  // All communicators, for the channel to end or abort.
  std::vector<Communicator*> communicators() const;

 private:
  struct Connected {
    std::uint64_t number = 0;  // for sets
    int peer_device = 0;       // for pairs
    std::unique_ptr<DeviceSet> set;
  };
  using Kept = std::list<Connected>;  // the last used one is first

  [[noreturn]] void refuse(const MultiRequest& request, const std::string& what, int rank) const;
  void check_default_streams(const MultiRequest& request) const;
  void check_memory(const MultiRequest& request, ConstTensorView data, int device) const;
  Meeting meeting(std::string_view prefix, std::vector<int> ranks, std::size_t place) const;
  std::unique_ptr<DeviceSet> connect(std::span<const int> devices, Meeting meeting, std::string terms, int first,
                                     int size, WaitContext& wait) const;
  DeviceSet& set_of(std::span<const int> devices, WaitContext& wait);
  DeviceSet& pair_of(const MultiRequest& request, WaitContext& wait);
  void run_collective(const MultiRequest& request, WaitContext& wait);
  void run_message(const MultiRequest& request, WaitContext& wait);

  const GpuDevice& device_;
  const NcclLibrary& nccl_;
  const Place place_;
  const Host host_;
  Kept sets_;
  std::uint64_t next_set_ = 1;
  std::map<int, Kept> pairs_;                  // by peer
  std::map<int, std::uint64_t> pairs_so_far_;  // by peer: how many have been connected
};

}  // namespace col::nccl_backend
