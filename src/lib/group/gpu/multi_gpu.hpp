// Calls over several GPUs of each rank: their data, their requirements, and their description in words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <col/backend.hpp>
#include <col/group.hpp>

#include "group/call/checks.hpp"

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

  // The tensors of which each GPU has one; so their number is the number of GPUs.
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

}  // namespace col::group
