#include "group/alone.hpp"

#include <cstring>

#include "core/reduce.hpp"

namespace col::group {

void run_alone(const Request& request) {
  if (request.collective == Collective::barrier || request.collective == Collective::broadcast) return;
  if (request.in.data != request.out.data && !request.in.empty())
    std::memcpy(request.out.data, request.in.data, request.in.bytes());
  // Every other operator leaves the only contribution as it is; the average of one is itself.
  const bool reduces = request.collective == Collective::allreduce || request.collective == Collective::reduce;
  if (reduces && request.op.kind() == Op::Kind::premul_sum)
    core::premultiply(request.op.scale(), request.out.dtype, request.out.data, request.out.count);
}

}  // namespace col::group
