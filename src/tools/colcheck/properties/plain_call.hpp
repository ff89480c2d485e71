// A blocking call of any primitive, on memory that the caller provides.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <col/group.hpp>

#include "colcheck/engine/case.hpp"
#include "colcheck/engine/reference.hpp"

namespace col::colcheck {

struct Views {
  ConstTensorView in;
  TensorView out;
  std::span<const std::size_t> in_counts = {}, out_counts = {};  // v-forms
};

// The options of the case for `rank`.
col::Options options_of(const Case& c, int rank);

// Makes the call, and waits until the rank's part is done. Messages go as Call sends them; data from recv_any is in
// rank order afterwards. Throws col::Error; std::runtime_error if recv_any did not get one message from each rank.
void call_plainly(Group& group, const Case& c, const Views& views, const col::Options& options);

// Where two pieces of memory of equal length differ: "byte 3 of the output is 0x1, not 0x2"; empty if they are equal.
std::string difference(std::string_view what, std::span<const std::byte> got, std::span<const std::byte> want);

}  // namespace col::colcheck
