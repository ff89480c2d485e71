// The reductions of the planted backends, element by element: simple, slow, and right except for the requested bug.
#pragma once

#include <cstddef>

#include <col/types.hpp>

#include "colcheck/engine/memory.hpp"
#include "colcheck/selftest/planted_backend.hpp"

namespace col::colcheck {

// The steps of one reduction of elements of `dtype`. Narrow floats become float32 on their rank, travel in this form,
// and are rounded once, in result(). `op` must outlive it.
class Arithmetic {
 public:
  Arithmetic(Bug bug, const Op& op, DType dtype, int ranks) : bug_(bug), op_(op), dtype_(dtype), ranks_(ranks) {}

  // The type of contributions and partial results. A user's function gets its own type.
  DType working_type() const;
  // The contribution of a rank with this input, scaled if the operator requires it. `in` need not be aligned.
  Bytes contribution(ConstTensorView in) const;
  // left[i] = left[i] op right[i] for i in [0, count).
  void combine(Bytes& left, const Bytes& right, std::size_t count) const;
  // The result from the partial result over all ranks, as elements of `dtype`: averaged if the operator requires it,
  // and rounded.
  Bytes result(const Bytes& folded) const;

 private:
  bool has(Bug bug) const { return bug_ == bug; }
  template <class T>
  T scaled(T value) const;
  template <class T>
  T combined(T left, T right) const;
  template <class T>
  T combined_real(ReduceOp op, T left, T right) const;
  template <class T>
  T summed(T left, T right) const;
  template <class T>
  T averaged(T total) const;
  template <class T>
  T rounded(T partial) const;

  Bug bug_;
  const Op& op_;
  DType dtype_;
  int ranks_;
};

}  // namespace col::colcheck
