// What the events of a program must give, by the plainest means: every rank can say what every rank brings.
//
// All values are whole numbers so small that no type and no order of summing rounds them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/reference.hpp"
#include "program.hpp"

namespace programs {

// The collective that an event is. Requires: it is one.
col::tools::ReferenceCall call_of(const Event& event);

// What Operator::premul_sum multiplies the input of a rank by.
int premul_scale(int rank);

// Element `index` of what a rank brings. Of the transfers of a batch or a recv_any, `rank` is the number.
std::int64_t value_of(const Event& event, int rank, std::size_t index);

using Bytes = std::vector<std::byte>;
Bytes input_of(const Event& event, int rank, std::size_t count);
Bytes expected_output(const Event& event, int rank);

// Empty when they are equal; else the first difference, in words.
std::string difference(const Event& event, const std::byte* found, const Bytes& expected);

}  // namespace programs
