// A reduce op as NCCL's operator.
#pragma once

#include <nccl.h>

#include <col/types.hpp>

#include "backend/nccl/communicator.hpp"

namespace col::nccl_backend {

// For one call on one communicator: the operator of a scaled sum is made for it. It must outlive the start of the call.
class Operator {
 public:
  // Throws unavailable for operators that NCCL does not have: bitwise operators and user's functions.
  Operator(const Communicator& communicator, const Op& op, DType dtype);
  ~Operator();
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;
  ncclRedOp_t get() const noexcept { return op_; }

  // Throws what the constructor would throw if NCCL does not have the operator.
  static void require(const Op& op, DType dtype);

 private:
  const Communicator& communicator_;
  ncclRedOp_t op_ = ncclSum;
  bool made_ = false;
};

}  // namespace col::nccl_backend
