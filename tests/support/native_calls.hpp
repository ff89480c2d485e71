// Collectives of a channel's own, below the group layer, and what they must give.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <col/channel.hpp>

#include "common/arithmetic.hpp"
#include "support/channel_ranks.hpp"

namespace col::test {

struct NativeCall {
  Collective collective = Collective::barrier;
  std::size_t count = 0;  // elements of the vector, or of each block
  int root = 0;
  bool in_place = false;
  std::vector<std::size_t> counts = {};  // v-forms: of the blocks
  std::string_view algorithm = {};       // empty: the channel chooses
};

// Calls of one of the channel's entries, with vectors or blocks of `count`: by each root.
inline std::vector<NativeCall> calls_of(const NativeEntry& entry, std::size_t count, int size, bool in_place) {
  const CollectiveRow& row = row_of(entry.collective);
  std::vector<std::size_t> counts;
  for (int rank = 0; row.has_counts() && rank < size; ++rank) counts.push_back(rank % 2 == 0 ? count : count / 3);
  std::vector<NativeCall> calls;
  for (int root = 0; root < (row.rooted ? size : 1); ++root)
    calls.push_back({entry.collective, count, root, in_place, counts, entry.name});
  return calls;
}

inline std::string show(const NativeCall& call) {
  return fmt::format("{} {} of {} elements, root {}{}", call.algorithm, to_string(call.collective), call.count,
                     call.root, call.in_place ? ", in place" : "");
}

// Inputs and the operator of a type. All sums are exact, but for the one rounding of a 16-bit result.
template <class T>
struct Numbers;

inline std::uint32_t scattered(int rank, std::size_t i, std::uint64_t number) {
  return static_cast<std::uint32_t>((i * 2654435761U + static_cast<std::uint64_t>(rank) * 40503U + number * 97U) * 29U);
}

// Sums that wrap.
template <class T>
struct WholeNumbers {
  static T input(int rank, std::size_t i, std::uint64_t number) {
    return static_cast<T>(scattered(rank, i, number) >> 8);
  }
  static Op op(int /*rank*/) { return ReduceOp::sum; }
};
template <>
struct Numbers<std::int8_t> : WholeNumbers<std::int8_t> {};
template <>
struct Numbers<std::int32_t> : WholeNumbers<std::int32_t> {};
template <>
struct Numbers<std::int64_t> : WholeNumbers<std::int64_t> {};

// Affine maps modulo 2^16, one after the other: associative, and the order matters.
template <>
struct Numbers<std::uint32_t> {
  static std::uint32_t input(int rank, std::size_t i, std::uint64_t number) { return scattered(rank, i, number) | 1U; }
  static std::uint32_t compose(std::uint32_t left, std::uint32_t right) {
    const std::uint32_t a = (left >> 16) * (right >> 16);
    const std::uint32_t b = (left & 0xffffU) * (right >> 16) + (right & 0xffffU);
    return (a & 0xffffU) << 16 | (b & 0xffffU);
  }
  static Op op(int /*rank*/) {
    const auto apply = [](const void* left, const void* right, void* result, std::size_t count, DType) {
      for (std::size_t i = 0; i < count; ++i) {
        static_cast<std::uint32_t*>(result)[i] =
            compose(static_cast<const std::uint32_t*>(left)[i], static_cast<const std::uint32_t*>(right)[i]);
      }
    };
    return Op::user(apply, false, "compose");
  }
};

// premul_sum, by another factor on each rank.
template <class T>
struct ScaledNumbers {
  static T input(int rank, std::size_t i, std::uint64_t number) {
    return T(static_cast<float>(scattered(rank, i, number) % 255U));
  }
  static Op op(int rank) { return Op::premul_sum(0.5 * (rank + 1)); }
};
template <>
struct Numbers<float> : ScaledNumbers<float> {};
template <>
struct Numbers<bfloat16> : ScaledNumbers<bfloat16> {};

// One rank's part in a call: its buffers, and what must be in them afterwards.
template <class T>
class NativePart {
 public:
  // `number`: of the call, the same on all ranks.
  NativePart(const NativeCall& call, int rank, int size, std::uint64_t number)
      : call_(call), rank_(rank), size_(size), number_(number), reference_(reference_of()) {
    const bool is_root = rank == call.root;
    const std::vector<std::size_t> blocks = input_blocks(reference_, rank);
    segments_ = output_segments(reference_, rank);
    if (call.collective == Collective::exscan && rank == 0) segments_ = {{0, 0, 0, call.count}};
    for (const tools::Segment& segment : segments_) {
      begins_.push_back(begin_of(reference_, segment));
      if (call.collective == Collective::alltoallv) out_counts_.push_back(segment.count);
    }
    if (call.collective == Collective::alltoallv) in_counts_ = blocks;
    if (call.collective != Collective::broadcast) in_count_ = tools::elements_of(blocks);
    out_count_ = tools::elements_of(segments_);
    const std::size_t own_block = outline_of(reference_, rank).own_offset;
    in_.resize(in_count_ + 1);
    for (std::size_t i = 0; i < in_count_; ++i) in_[i] = Numbers<T>::input(rank, i, number);
    out_.assign(out_count_ + kGuard, untouched());
    if (call.collective == Collective::broadcast && is_root) {
      for (std::size_t i = 0; i < out_count_; ++i) out_[i] = Numbers<T>::input(rank, i, number);
    }
    request_.collective = call.collective;
    request_.in = {in_.data(), in_count_, dtype_of<T>()};
    request_.out = {out_.data(), out_count_, dtype_of<T>()};
    const bool fits = call.collective != Collective::alltoallv || in_count_ == out_count_;
    if (call.in_place && fits && in_count_ > 0 && out_count_ > 0) {
      if (in_count_ <= out_count_) {
        std::copy_n(in_.begin(), in_count_, out_.begin() + static_cast<std::ptrdiff_t>(own_block));
        request_.in.data = out_.data() + own_block;
      } else {
        request_.out.data = in_.data() + own_block;
      }
    }
    const Collective c = call.collective;
    if (c == Collective::allgatherv || (c == Collective::gatherv && is_root)) request_.out_counts = call_.counts;
    if (c == Collective::reduce_scatterv || (c == Collective::scatterv && is_root)) request_.in_counts = call_.counts;
    if (c == Collective::alltoallv) request_.in_counts = in_counts_, request_.out_counts = out_counts_;
    request_.op = Numbers<T>::op(rank);
    request_.root = call.root;
    request_.fingerprint = (number + 1) * 0x9e37'79b9'7f4a'7c15ULL;
    request_.algorithm = call.algorithm;
  }
  NativePart(const NativePart&) = delete;
  NativePart& operator=(const NativePart&) = delete;

  const Request& request() const noexcept { return request_; }

  // Throws at the first element that is not as it must be.
  void check() const {
    const auto* const got = static_cast<const T*>(request_.out.data);
    for (std::size_t i = 0; i < out_count_; ++i) {
      if (is_left_out(i, out_count_)) continue;
      const T want = expected(i);
      if (std::memcmp(&got[i], &want, sizeof(T)) != 0) {
        throw std::runtime_error(fmt::format("call {} on rank {} of {}: {}: element {} is {}, not {}", number_, rank_,
                                             size_, show(call_), i, static_cast<float>(got[i]),
                                             static_cast<float>(want)));
      }
    }
    const T guard = untouched();
    for (std::size_t i = out_count_; i < out_.size(); ++i)
      expect(std::memcmp(&out_[i], &guard, sizeof(T)) == 0, show(call_) + ": wrote beyond its output");
    for (std::size_t i = 0; !call_.in_place && i < in_count_; ++i) {
      if (is_left_out(i, in_count_)) continue;
      const T was = input(rank_, i);
      if (std::memcmp(&in_[i], &was, sizeof(T)) != 0) throw std::runtime_error(show(call_) + ": wrote into its input");
    }
  }

 private:
  static constexpr std::size_t kGuard = 64;
  static T untouched() { return T(-7); }
  // Of large ones not all are checked: what goes wrong does so at a border, or for more than a few.
  static bool is_left_out(std::size_t i, std::size_t count) {
    return count > 20'000 && i % 23 != 0 && ((i + 20) & 4095U) > 40 && i + 40 < count;
  }

  // What one rank sends to another in an alltoallv: on an odd number of ranks, as much as it gets in all, and otherwise
  // cut.
  std::size_t between(std::size_t from, std::size_t to) const {
    return call_.counts[(2 * from + to) % call_.counts.size()];
  }
  tools::ReferenceCall reference_of() const {
    tools::ReferenceCall reference{.collective = call_.collective,
                                   .size = size_,
                                   .root = call_.root,
                                   .count = call_.count,
                                   .counts = call_.counts,
                                   .ops = {}};
    for (int rank = 0; rank < size_; ++rank) reference.ops.push_back(Numbers<T>::op(rank));
    if (call_.collective != Collective::alltoallv) return reference;
    reference.counts.clear();
    const auto n = static_cast<std::size_t>(size_);
    for (std::size_t from = 0; from < n; ++from)
      for (std::size_t to = 0; to < n; ++to) reference.counts.push_back(between(from, to));
    return reference;
  }
  T input(int rank, std::size_t i) const { return Numbers<T>::input(rank, i, number_); }

  // Of the output.
  T expected(std::size_t i) const {
    std::size_t at = 0;
    while (i >= segments_[at].count) i -= segments_[at++].count;
    const tools::Segment& segment = segments_[at];
    if (segment.last == 0) return call_.in_place ? input(0, i) : untouched();  // of an exscan's rank 0
    return tools::element_at<T>(reference_, segment, begins_[at] + i,
                                [this](int from, int /*block*/, std::size_t k) { return input(from, k); });
  }

  const NativeCall call_;
  const int rank_, size_;
  const std::uint64_t number_;
  const tools::ReferenceCall reference_;
  std::size_t in_count_ = 0, out_count_ = 0;
  std::vector<std::size_t> in_counts_, out_counts_;  // alltoallv
  std::vector<tools::Segment> segments_;             // of the output
  std::vector<std::size_t> begins_;                  // where each of them begins in the inputs
  std::vector<T> in_, out_;
  Request request_;
};

template <class T>
void make_call(Channel& channel, const NativeCall& call, int rank, int size, std::uint64_t number) {
  const NativePart<T> part(call, rank, size, number);
  run_native(channel, part.request());
  part.check();
}

}  // namespace col::test
