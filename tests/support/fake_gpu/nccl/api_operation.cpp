// Entry points: collectives, send and receive.
//
// Arguments are checked as the real library does with NCCL_CHECK_POINTERS=1, and beyond that: a buffer must lie within
// one allocation, and input and output may overlap only in the in-place form that the header allows.
#include "support/fake_gpu/cuda/work.hpp"
#include "support/fake_gpu/nccl/group.hpp"
#include "support/fake_gpu/nccl/library.hpp"
#include "support/fake_gpu/nccl/registry.hpp"

using namespace fake_nccl;

namespace {

constexpr int kFirstVersionWithGather = 22803;

// A call of the program.
struct Issue {
  Collective collective;
  const void* input;
  void* output;
  size_t count;
  ncclDataType_t type;
  ncclRedOp_t op;
  int root;
};

Reduction reduction_of(Communicator& communicator, ncclRedOp_t op, ncclDataType_t type) {
  using Kind = Reduction::Kind;
  switch (static_cast<int>(op)) {
    case ncclSum:
      return {Kind::sum};
    case ncclProd:
      return {Kind::product};
    case ncclMax:
      return {Kind::max};
    case ncclMin:
      return {Kind::min};
    case ncclAvg:
      return {Kind::average};
    default:
      break;
  }
  std::lock_guard lock(communicator.mutex);
  auto found = communicator.operators.find(op);
  require(found != communicator.operators.end(), "unknown operator " + std::to_string(static_cast<int>(op)));
  require(found->second.type == type, "the operator was made for another data type");
  return found->second.reduction;
}

// Blocks of `count` elements that the rank reads and writes.
struct Extents {
  size_t input = 0;
  size_t output = 0;
};

Extents extents_of(const Issue& issue, int rank, int size) {
  const Shape& shape = shape_of(issue.collective);
  const auto blocks = [&](Blocks wanted, bool at_root) -> size_t {
    if (wanted == Blocks::none || (at_root && rank != issue.root)) return 0;
    return wanted == Blocks::all ? size : 1;
  };
  return {blocks(shape.input, shape.input_at_root), blocks(shape.output, shape.output_at_root)};
}

char* locate(const Communicator& communicator, const void* buffer, size_t bytes, size_t alignment,
             const std::string& name) {
  if (bytes == 0) return nullptr;
  require(buffer != nullptr, name + " is null");
  require(reinterpret_cast<uintptr_t>(buffer) % alignment == 0, name + " is not aligned to its data type");
  const auto place = fake_gpu_locate(reinterpret_cast<uint64_t>(buffer), bytes);
  require(place.bytes != nullptr, name + " is not within memory that a device can reach");
  require(place.device < 0 || place.device == communicator.device(),
          name + " is on device " + std::to_string(place.device) + ", the communicator on " +
              std::to_string(communicator.device()));
  return place.bytes;
}

void require_apart(const Operation& operation, const Extents& extents, int rank) {
  const char* input = operation.input;
  const char* output = operation.output;
  const size_t block = operation.bytes();
  if (input == nullptr || output == nullptr) return;
  if (input + extents.input * block <= output || output + extents.output * block <= input) return;
  // One buffer is the other, or the rank's block of the other.
  const Shape& shape = operation.shape();
  const size_t in_output = shape.output == Blocks::all ? rank * block : 0;
  const size_t in_input = shape.input == Blocks::all ? rank * block : 0;
  const bool in_place = operation.collective != Collective::all_to_all && input + in_input == output + in_output;
  require(in_place, "the buffers overlap in a way that is not the operation's in-place form");
}

ncclResult_t issue(const char* name, int since, const Issue& call, ncclComm_t comm, cudaStream_t stream) {
  const ncclResult_t result = entry(name, since, [&] {
    auto communicator = find_communicator(comm);
    communicator->require_ready();
    if (communicator->revoked()) fail(ncclInvalidUsage, "the communicator was revoked");
    if (communicator->finalized()) fail(ncclInvalidUsage, "the communicator was finalized");
    require(call.root >= 0 && call.root < communicator->size(), "no rank " + std::to_string(call.root));
    Operation operation{call.collective, nullptr, nullptr, call.count, call.type, {Reduction::Kind::sum}, call.root};
    const size_t block = operation.bytes();
    operation.reduction = reduction_of(*communicator, call.op, call.type);
    const Extents extents = extents_of(call, communicator->rank(), communicator->size());
    operation.input = locate(*communicator, call.input, extents.input * block, bytes_of(call.type), "the send buffer");
    operation.output =
        locate(*communicator, call.output, extents.output * block, bytes_of(call.type), "the receive buffer");
    require_apart(operation, extents, communicator->rank());
    // Of these it has kernels that reach into the other ranks' windows.
    const bool has_symmetric_kernels = call.collective == Collective::all_reduce ||
                                       call.collective == Collective::all_gather ||
                                       call.collective == Collective::reduce_scatter;
    if (has_symmetric_kernels) operation.symmetry = communicator->symmetry_of(call.input, call.output);
    // An empty collective is over at once, without meeting the other ranks.
    if (call.count == 0 && !operation.point_to_point()) return ncclSuccess;
    return add_operation(communicator, operation, stream);
  });
  if (result != ncclSuccess && result != ncclInProgress) spoil_group(result);
  return result;
}

}  // namespace

ncclResult_t ncclAllReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return issue("ncclAllReduce", 0, {Collective::all_reduce, sendbuff, recvbuff, count, datatype, op, 0}, comm, stream);
}

ncclResult_t ncclReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                        int root, ncclComm_t comm, cudaStream_t stream) {
  return issue("ncclReduce", 0, {Collective::reduce, sendbuff, recvbuff, count, datatype, op, root}, comm, stream);
}

ncclResult_t ncclBroadcast(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return issue("ncclBroadcast", 0, {Collective::broadcast, sendbuff, recvbuff, count, datatype, ncclSum, root}, comm,
               stream);
}

ncclResult_t ncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return issue("ncclReduceScatter", 0, {Collective::reduce_scatter, sendbuff, recvbuff, recvcount, datatype, op, 0},
               comm, stream);
}

ncclResult_t ncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype,
                           ncclComm_t comm, cudaStream_t stream) {
  return issue("ncclAllGather", 0, {Collective::all_gather, sendbuff, recvbuff, sendcount, datatype, ncclSum, 0}, comm,
               stream);
}

ncclResult_t ncclAlltoAll(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclComm_t comm,
                          cudaStream_t stream) {
  return issue("ncclAlltoAll", kFirstVersionWithGather,
               {Collective::all_to_all, sendbuff, recvbuff, count, datatype, ncclSum, 0}, comm, stream);
}

ncclResult_t ncclGather(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  return issue("ncclGather", kFirstVersionWithGather,
               {Collective::gather, sendbuff, recvbuff, count, datatype, ncclSum, root}, comm, stream);
}

ncclResult_t ncclScatter(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                         ncclComm_t comm, cudaStream_t stream) {
  return issue("ncclScatter", kFirstVersionWithGather,
               {Collective::scatter, sendbuff, recvbuff, count, datatype, ncclSum, root}, comm, stream);
}

ncclResult_t ncclSend(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return issue("ncclSend", 20700, {Collective::send, sendbuff, nullptr, count, datatype, ncclSum, peer}, comm, stream);
}

ncclResult_t ncclRecv(void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return issue("ncclRecv", 20700, {Collective::receive, nullptr, recvbuff, count, datatype, ncclSum, peer}, comm,
               stream);
}
