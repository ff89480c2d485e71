// The reductions of the planted backends, element by element: the arithmetic of common/, with the requested bug.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <utility>

#include <col/types.hpp>

#include "colcheck/engine/memory.hpp"
#include "colcheck/engine/primitive.hpp"
#include "colcheck/engine/special_inputs.hpp"
#include "colcheck/selftest/planted_backend.hpp"

namespace col::colcheck {

struct PlantedSteps : tools::Steps {
  explicit PlantedSteps(Bug planted) : bug(planted) {}

  template <class T>
  Partial<T> combined(const Op& op, Partial<T> a, Partial<T> b) const {
    using P = Partial<T>;
    const bool is_user = op.kind() == Op::Kind::user;
    if (bug == Bug::operands_swapped && is_user) std::swap(a, b);
    if constexpr (std::is_arithmetic_v<P> && !std::is_same_v<P, bool>) {
      if (!is_user) return combined_number<T>(op, a, b);
    }
    return Steps::combined<T>(op, a, b);
  }

  template <class T>
  Partial<T> averaged(const Op& op, Partial<T> total, int ranks) const {
    Partial<T> result = Steps::averaged<T>(op, total, ranks);
    if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
      const bool lowers = bug == Bug::avg_floor && op.reduce_op() == ReduceOp::avg && total < 0 && total % ranks != 0;
      return static_cast<T>(result - (lowers ? 1 : 0));
    } else if constexpr (std::is_floating_point_v<Partial<T>>) {
      const bool flushes = bug == Bug::denormals_flushed && op.kind() != Op::Kind::user;
      const auto least = static_cast<Partial<T>>(Encoding<T>::greatest_denormal());
      if (flushes && std::fabs(static_cast<Partial<T>>(static_cast<T>(result))) <= least)
        return std::copysign(Partial<T>{}, result);
    }
    return result;
  }

  Bug bug;

 private:
  template <class T>
  Partial<T> combined_number(const Op& op, Partial<T> a, Partial<T> b) const {
    using P = Partial<T>;
    const ReduceOp kind = op.reduce_op();
    const bool greatest = kind == ReduceOp::max, orders = greatest || kind == ReduceOp::min;
    const bool adds = kind == ReduceOp::sum || kind == ReduceOp::avg;
    // A NaN is neither less nor greater, and the first value stays.
    if (bug == Bug::lost_nan && orders) return greatest ? std::max(a, b) : std::min(a, b);
    if constexpr (std::is_integral_v<P>) {
      using Signed = std::make_signed_t<P>;
      if (bug == Bug::signed_compare && orders)
        return static_cast<P>(tools::extreme(greatest, static_cast<Signed>(a), static_cast<Signed>(b)));
      P sum;
      if (bug == Bug::saturates && adds && __builtin_add_overflow(a, b, &sum))
        return b < P{} ? std::numeric_limits<P>::min() : std::numeric_limits<P>::max();
    } else if (bug == Bug::sums_in_float32 && adds) {
      return static_cast<P>(static_cast<float>(a) + static_cast<float>(b));
    }
    const P result = Steps::combined<T>(op, a, b);
    return bug == Bug::rounds_every_hop ? static_cast<P>(static_cast<T>(result)) : result;
  }
};

// The steps of one reduction of elements of `dtype`. Narrow floats become float32 on their rank, travel in this form,
// and are rounded once, in result(). `op` must outlive it.
class Arithmetic {
 public:
  Arithmetic(Bug bug, const Op& op, DType dtype, int ranks) : steps_(bug), op_(op), dtype_(dtype), ranks_(ranks) {}

  // The type of contributions and partial results.
  DType working_type() const { return is_narrow(dtype_) ? DType::float32 : dtype_; }
  // The contribution of a rank with this input, scaled if the operator requires it. `in` need not be aligned.
  Bytes contribution(ConstTensorView in) const;
  // left[i] = left[i] op right[i] for i in [0, count).
  void combine(Bytes& left, const Bytes& right, std::size_t count) const;
  // The result from the partial result over all ranks, as elements of `dtype`: averaged if the operator requires it,
  // and rounded.
  Bytes result(const Bytes& folded) const;

 private:
  PlantedSteps steps_;
  const Op& op_;
  DType dtype_;
  int ranks_;
};

}  // namespace col::colcheck
