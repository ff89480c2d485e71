// Calls over several GPUs of each rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <col/device.hpp>
#include <col/group.hpp>

#include "group/call/checks.hpp"
#include "group/flight/access.hpp"
#include "group/run/starter.hpp"

namespace col::group {

// A collective, with the tensors as in MultiRequest.
struct MultiGpuCall {
  std::string_view name;  // "allreduce_multigpu"
  Collective collective = Collective::allreduce;
  std::vector<ConstTensorView> in = {};
  std::vector<TensorView> out = {};
  bool lists = false;                          // the blocks of a GPU are a list of tensors, not one tensor
  std::vector<std::size_t> list_lengths = {};  // with lists: the length of each list
  int root_tensor = 0;

  // tensors(): the side with one tensor for each GPU. blocks(): the side with the blocks; empty if the call has none.
  std::vector<ConstTensorView> tensors() const;
  std::vector<ConstTensorView> blocks() const;
};

struct MultiGpuMessage {
  std::string_view name;  // "send_multigpu"
  bool sending = false;
  ConstTensorView view = {};
  void* destination = nullptr;  // the same memory, writable, if it is received
  int peer = 0;
  int peer_device = 0;
  std::int64_t elements = 0;  // 0: all
};

// Both throw invalid_argument if a call is wrong for every backend. `shape` is the group's.
void check(const MultiGpuCall& call, const Options& options, const Shape& shape);
void check(const MultiGpuMessage& message, const Shape& shape);

// The devices of the call's tensors, in their order.
std::vector<int> devices_of(const MultiGpuCall& call);

// "allreduce_multigpu of 8 float32 on each of 2 GPUs a rank, sum, over connections 1". Equal on ranks whose calls
// match.
std::string describe(const MultiGpuCall& call, const Options& options, std::uint64_t connections);

// Runs these calls and messages. Both functions block.
class MultiGpu {
 public:
  MultiGpu(Core& core, const Lanes& lanes, Flight& flight, Access& access, Starter& starter)
      : core_(core), lanes_(lanes), flight_(flight), access_(access), starter_(starter) {}

  void run(const MultiGpuCall& call, const Options& options);
  void exchange(const MultiGpuMessage& message, const Options& options);

 private:
  std::string_view algorithm() const;
  MultiChannel& channel_for(std::string_view call) const;
  void check_both(std::string_view call, const Options& options) const;
  void check_numerics(const MultiGpuCall& call, const Options& options) const;
  Operation describe(const MultiGpuMessage& message, int own_device);
  void compare_first(const Operation& operation, WaitContext& wait);

  Core& core_;
  const Lanes& lanes_;
  Flight& flight_;
  Access& access_;
  Starter& starter_;
  std::map<std::pair<int, int>, std::uint64_t> sent_;  // messages so far, by (source, destination)
};

}  // namespace col::group
