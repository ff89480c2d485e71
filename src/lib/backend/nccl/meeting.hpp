// How ranks meet before NCCL connects them: each writes into the store what it brings, and the first one gives out
// that of all, and NCCL's id.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <col/channel.hpp>

#include "backend/nccl/device.hpp"
#include "backend/nccl/nccl_library.hpp"
#include "core/clock/clock.hpp"
#include "store/base/run.hpp"

namespace col::nccl_backend {

// What a rank brings.
struct Offer {
  std::string terms = {};               // what all must say alike: "2 tensors on each rank"
  int devices = 0;                      // how many devices its process sees
  std::string why_alone = {};           // why it cannot share a GPU; empty if it can
  std::vector<std::string> seats = {};  // seat_of() of each GPU that it wants to connect
};

// Identifies a GPU, as `nccl` tells it from others, among all GPUs of all hosts, whatever number a process gives it.
// Each host has its own `boot_id`.
std::string seat_of(const GpuDevice& device, const std::string& boot_id, const NcclLibrary& nccl);

// Throws io if NCCL can make none.
ncclUniqueId make_id(const NcclLibrary& nccl);

class Meeting {
 public:
  struct Spec {
    std::string group;
    std::shared_ptr<Store> store;     // of this meeting only: any key may be used; shared, because adapters keep it
    std::vector<int> ranks;           // the ranks that meet, as numbered in the group; all ranks use the same order
    std::size_t place = 0;            // this rank's place among them
    std::string advice;               // what helps ranks that share a GPU: "give each rank its own: colrun …"
    std::function<void()> look = {};  // ends a wait by throwing; called at least every second; may be null
  };

  explicit Meeting(Spec spec) : spec_(std::move(spec)) {}

  struct Table {
    std::vector<Offer> offers;     // what all ranks bring, in their order
    bool has_shared_gpus = false;  // whether some share a GPU
    ncclUniqueId id{};             // equal on all of them
  };
  using MakeId = std::function<ncclUniqueId()>;  // called by the first of them
  // Throws, alike on all ranks: mismatch if the terms differ, unavailable if two ranks share a GPU and NCCL cannot
  // serve that, and what `id` throws. Also throws what wait.check() and the store throw.
  Table exchange(const Offer& own, const MakeId& id, WaitContext& wait);
  // Tells the others that this rank cannot connect, and why: NCCL tells them nothing.
  void give_up(const Error& why) noexcept;
  // Throws peer_lost if another rank has given up. It asks the store a few times a second, however often it is called.
  void check();
  // Removes what they have written. Requires: all ranks have read it; they have, once they are connected.
  void leave(WaitContext& wait);

 private:
  void run(std::span<store::Call> calls, WaitContext& wait, const store::Answered& answered) const;
  Table gather(const Offer& own, const MakeId& make_id, WaitContext& wait) const;
  Table say(const Offer& own, WaitContext& wait) const;
  void judge(Table& table) const;
  Error with_missing(const Error& error) const;
  std::string say_key(std::size_t place) const;
  void require_same_terms(const std::vector<Offer>& offers) const;
  bool has_shared_gpus(const std::vector<Offer>& offers) const;

  const Spec spec_;
  core::Clock::time_point next_check_ = core::Clock::now();
};

}  // namespace col::nccl_backend
