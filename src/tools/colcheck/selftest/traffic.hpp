// Which elements go from which rank to which rank in the simplest form of a collective: each rank sends to every other
// rank what that rank needs, in one message.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <col/backend.hpp>

namespace col::colcheck {

// Elements of one of a request's buffers.
struct Block {
  std::size_t offset = 0, count = 0;
};

// One rank's part. Both lists are in rank order and have an entry for the rank itself; nothing where nothing goes. A
// block of no elements does go: ranks meet by it.
struct Traffic {
  std::vector<std::optional<Block>> to;    // of source_of(request)
  std::vector<std::optional<Block>> from;  // of the output; in reductions, the elements to be combined
};

Traffic traffic_of(const col::Request& request, int rank, int size);

// What a rank sends from.
ConstTensorView source_of(const col::Request& request);
// The type of the request's elements, also on a rank where one of the two buffers has no meaning.
DType dtype_of(const col::Request& request);

}  // namespace col::colcheck
