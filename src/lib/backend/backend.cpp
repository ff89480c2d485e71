#include <col/backend.hpp>

namespace col {

Channel::~Channel() = default;
BackendFactory::~BackendFactory() = default;

std::string_view to_string(Collective collective) noexcept {
  switch (collective) {
    case Collective::allreduce:
      return "allreduce";
    case Collective::reduce:
      return "reduce";
    case Collective::broadcast:
      return "broadcast";
    case Collective::allgather:
      return "allgather";
    case Collective::allgatherv:
      return "allgatherv";
    case Collective::reduce_scatter:
      return "reduce_scatter";
    case Collective::reduce_scatterv:
      return "reduce_scatterv";
    case Collective::gather:
      return "gather";
    case Collective::gatherv:
      return "gatherv";
    case Collective::scatter:
      return "scatter";
    case Collective::scatterv:
      return "scatterv";
    case Collective::alltoall:
      return "alltoall";
    case Collective::alltoallv:
      return "alltoallv";
    case Collective::scan:
      return "scan";
    case Collective::exscan:
      return "exscan";
    case Collective::barrier:
      return "barrier";
    case Collective::send:
      return "send";
    case Collective::recv:
      return "recv";
  }
  return "?";
}

}  // namespace col
