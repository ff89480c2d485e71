// How ranks meet before NCCL connects them: each says in the store what it brings, and the first hands out NCCL's id.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <col/backend.hpp>

#include "backend/nccl/device.hpp"
#include "backend/nccl/nccl_library.hpp"

namespace col::nccl_backend {

// What a rank brings.
struct Offer {
  std::string terms = {};               // what all must say alike: "2 tensors on each rank"
  int devices = 0;                      // how many its process sees
  std::string why_alone = {};           // why it cannot share a GPU; empty: it can
  std::vector<std::string> seats = {};  // seat_of() each GPU that it wants to have connected
};

// Tells a GPU from all others, whatever process names it, on hosts that have a `boot_id` each.
std::string seat_of(const GpuDevice& device, const std::string& boot_id);

class Meeting {
 public:
  struct Spec {
    std::string group;
    std::shared_ptr<Store> store;     // of this meeting alone: any key may be used; shared, as adapters keep it
    std::vector<int> ranks;           // who meets, as numbered in the group: all in the same order
    std::size_t place = 0;            // this rank's among them
    std::string advice;               // what helps ranks that are on one GPU: "give each rank its own: colrun …"
    std::function<void()> look = {};  // ends a wait by throwing; called every second at least, unless it is null
  };

  explicit Meeting(Spec spec) : spec_(std::move(spec)) {}

  struct Table {
    std::vector<Offer> offers;     // what all bring, in their order
    bool has_shared_gpus = false;  // some are on one GPU
  };
  // Throws, on all alike: mismatch when the terms differ, unavailable when two are on one GPU and NCCL cannot serve
  // that; and what wait.check() throws, and the store.
  Table exchange(const Offer& own, WaitContext& wait);
  // Throws io when NCCL can make none.
  ncclUniqueId agree_on_id(const NcclLibrary& nccl, WaitContext& wait);
  // Takes back what this rank has said. Requires: all have read it, as they have when they are connected.
  void leave();

 private:
  std::string hear(const std::string& key, WaitContext& wait);
  std::string say_key(std::size_t place) const;
  void require_same_terms(const std::vector<Offer>& offers) const;
  bool has_shared_gpus(const std::vector<Offer>& offers) const;

  const Spec spec_;
};

}  // namespace col::nccl_backend
