#include "group/call/alone.hpp"

#include <cstring>

#include "core/kernels/reduce.hpp"

namespace col::group {

void run_alone(const Request& request) {
  const Collective c = request.collective;
  if (c == Collective::barrier || c == Collective::broadcast || c == Collective::exscan) return;
  if (request.in.data != request.out.data && !request.in.empty())
    std::memcpy(request.out.data, request.in.data, request.in.bytes());
  // Every other operator leaves the only contribution as it is; the average of one is itself.
  if (row_of(c).reduces() && request.op.kind() == Op::Kind::premul_sum)
    core::premultiply(request.op.scale(), request.out.dtype, request.out.data, request.out.count);
}

}  // namespace col::group
