// The requirements of a collective call, checked before any data moves. Each function throws invalid_argument.
#pragma once

#include <span>
#include <string_view>

#include <col/group.hpp>
#include <col/request.hpp>

namespace col::group {

struct Shape {
  std::string_view group;
  int rank = 0;
  int size = 1;
  Device::Type device = Device::Type::cpu;  // the memory that the group's backend moves
  int world_rank = -1;                      // of this rank
};

// Checks everything about `request` against `shape`: root, dtypes, counts, overlap, devices, the operator.
void check(const Request& request, const Shape& shape);

// Which buffers have a meaning on this rank: on a non-root, a rooted collective uses only one side.
struct Sides {
  bool in, out;
};
Sides sides_of(const Request& request, const Shape& shape);
// True if the call writes the output of this rank: the root's of a broadcast is what the others get.
bool writes_output(const Request& request, const Shape& shape);

// Whether the input is inside the output, or the output inside the input, as <col/group.hpp> allows. Requires: both
// sides take part in the call on this rank.
bool is_in_place(const Request& request, const Shape& shape);

// Whether the two share at least one byte.
bool overlaps(ConstTensorView a, ConstTensorView b);

void check_peer(int peer, std::string_view role, const Shape& shape);
void check_tensor(ConstTensorView view, std::string_view role, const Shape& shape);
// The memory may be written: neither mapped read-only nor of Ray's object store, which other processes read.
void check_written(ConstTensorView view, std::string_view role, const Shape& shape);

}  // namespace col::group
