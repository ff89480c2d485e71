// What a call of a collective must satisfy, checked before any data moves. Each throws invalid_argument.
#pragma once

#include <span>
#include <string_view>

#include <col/backend.hpp>
#include <col/group.hpp>

namespace col::group {

struct Shape {
  std::string_view group;
  int rank = 0;
  int size = 1;
  Device::Type device = Device::Type::cpu;  // whose memory the group's backend moves
  int world_rank = -1;                      // of this rank
};

// Checks everything about `request` against `shape`: root, dtypes, counts, overlap, devices, the operator.
void check(const Request& request, const Shape& shape);

// Which buffers mean anything on this rank: on a non-root, only one side of a rooted collective does.
struct Sides {
  bool in, out;
};
Sides sides_of(const Request& request, const Shape& shape);

// Whether the input lies in the output, or the output in the input, as <col/group.hpp> allows. Requires: both sides
// take part in the call on this rank.
bool is_in_place(const Request& request, const Shape& shape);

// Whether the two share a byte.
bool overlaps(ConstTensorView a, ConstTensorView b);

void check_peer(int peer, std::string_view role, const Shape& shape);
void check_tensor(ConstTensorView view, std::string_view role, const Shape& shape);

}  // namespace col::group
