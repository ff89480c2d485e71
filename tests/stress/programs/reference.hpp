// What the events of a program must give, by the plainest means: every rank can say what every rank brings.
//
// All values are whole numbers so small that no type and no order of summing rounds them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "program.hpp"

namespace programs {

// A piece of an output: element i is the elements `offset` + i of the inputs of ranks `first` … `last` - 1, combined.
struct Segment {
  int first = 0, last = 0;
  std::size_t offset = 0;
  std::size_t count = 0;
};

// Elements that a rank brings to a collective, and that it gets. A rank that gets nothing has an output all the same,
// which is not to be touched.
std::size_t input_count(const Event& event, int rank);
std::size_t output_count(const Event& event, int rank);
// What the output is made of; empty when it is not to be touched.
std::vector<Segment> output_of(const Event& event, int rank);

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
