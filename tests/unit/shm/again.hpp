// Calls that come again, at one place in memory, and what they must give: one scalar after the other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <col/request.hpp>

namespace col::test {

struct Again {
  Collective collective = Collective::barrier;
  int count = 0, root = 0;
  ReduceOp op = ReduceOp::sum;

  bool operator==(const Again&) const = default;
};

inline std::int32_t input_of(int rank, int i, int step) {
  return (rank + 1) * 1'000'003 % 977 + i * 31 + step * 7;
}

// The element `i` of the result, for ranks that get one.
inline std::int32_t result_of(const Again& call, int rank, int size, int i, int step) {
  const auto fold = [&](int end, int at) {
    std::int32_t result = input_of(0, at, step);
    for (int other = 1; other < end; ++other) {
      const std::int32_t next = input_of(other, at, step);
      result = call.op == ReduceOp::max ? std::max(result, next) : result + next;
    }
    return result;
  };
  switch (call.collective) {
    case Collective::allreduce:
    case Collective::reduce:
      return fold(size, i);
    case Collective::scan:
      return fold(rank + 1, i);
    case Collective::reduce_scatter:
      return fold(size, rank * call.count + i);
    case Collective::broadcast:
      return input_of(call.root, i, step);
    case Collective::scatter:
      return input_of(call.root, rank * call.count + i, step);
    case Collective::alltoall:
      return input_of(i / call.count, rank * call.count + i % call.count, step);
    default:  // allgather, gather
      return input_of(i / call.count, i % call.count, step);
  }
}

// One rank's buffers and request, for one call after the other.
class AgainPart {
 public:
  // `most`: the most elements of a vector, or of a block.
  AgainPart(int rank, int size, int most)
      : rank_(rank),
        size_(size),
        in_(static_cast<std::size_t>(most * size)),
        out_(static_cast<std::size_t>(most * size)) {}

  const Request& prepare(const Again& call, int step, std::uint64_t fingerprint) {
    const CollectiveRow& row = row_of(call.collective);
    const bool is_root = rank_ == call.root;
    const auto extent = [&](Extent side) {
      return side == Extent::nothing ? 0 : side == Extent::blocks ? call.count * size_ : call.count;
    };
    const int in = row.has_input(is_root) ? extent(row.in) : 0, out = row.has_output(is_root) ? extent(row.out) : 0;
    for (int i = 0; i < in; ++i) in_[static_cast<std::size_t>(i)] = input_of(rank_, i, step);
    for (int i = 0; i < out; ++i)
      out_[static_cast<std::size_t>(i)] =
          call.collective == Collective::broadcast && is_root ? input_of(rank_, i, step) : -1;
    request_.collective = call.collective;
    request_.in = {in_.data(), static_cast<std::size_t>(in), DType::int32};
    request_.out = {out_.data(), static_cast<std::size_t>(out), DType::int32};
    request_.op = call.op;
    request_.root = call.root;
    request_.fingerprint = fingerprint;
    is_again_ = call == call_;
    call_ = call, step_ = step;
    return request_;
  }
  // Whether that call was the one before, too.
  bool is_again() const { return is_again_; }
  // Whether the result of that call is there.
  bool is_right() const {
    for (std::size_t i = 0; i < request_.out.count; ++i) {
      if (out_[i] != result_of(call_, rank_, size_, static_cast<int>(i), step_)) return false;
    }
    return true;
  }

 private:
  const int rank_, size_;
  std::vector<std::int32_t> in_, out_;
  Request request_;
  Again call_;
  int step_ = 0;
  bool is_again_ = false;
};

}  // namespace col::test
