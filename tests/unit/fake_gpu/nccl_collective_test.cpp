// The collectives of the stand-in for NCCL, with ranks as threads.
#include <cuda_bf16.h>

#include <atomic>
#include <limits>
#include <memory>
#include <numeric>

#include "unit/fake_gpu/session.hpp"

using namespace fake_gpu_test;

namespace {

constexpr int kRanks = 4;

void run_communicator(int size, const std::function<void(Verdict&, ncclComm_t, int rank, cudaStream_t)>& body) {
  check_communicator(size, [&](Verdict& verdict, ncclComm_t comm, int rank, cudaStream_t stream) {
    body(verdict, comm, rank, stream);
    verdict.expect(ncclCommDestroy(comm) == ncclSuccess, "destroy");
  });
}

template <typename T>
std::vector<T> sequence(size_t count, T first) {
  std::vector<T> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

}  // namespace

TEST_CASE("fake nccl: what an operation is to write is spoilt until it has ended, and its input in place is not lost") {
  std::atomic<bool> seen = false;
  check_communicator(2, [&](Verdict& verdict, ncclComm_t comm, int rank, CUstream stream) {
    Buffer<int> apart(std::vector<int>{1}), result(std::vector<int>{7}), in_place(std::vector<int>{rank + 1});
    ncclBroadcast(apart.get(), apart.get(), 1, ncclInt32, 0, comm, stream);  // connects
    if (rank == 1) verdict.expect(soon([&] { return seen.load(); }), "the other does not come");
    ncclAllReduce(apart.get(), result.get(), 1, ncclInt32, ncclSum, comm, stream);
    if (rank == 0) verdict.expect(soon([&] { return result.values()[0] == 0x5B5B5B5B; }), "it is not spoilt");
    seen = true;
    ncclAllReduce(in_place.get(), in_place.get(), 1, ncclInt32, ncclSum, comm, stream);
    verdict.expect(cuStreamSynchronize(stream) == CUDA_SUCCESS, "the stream");
    verdict.expect(result.values()[0] == 2 && in_place.values()[0] == 3, "the sums");
    ncclCommDestroy(comm);
  });
}

TEST_CASE("fake nccl: every collective gives every rank what it must") {
  constexpr size_t kCount = 1000;
  run_communicator(kRanks, [&](Verdict& verdict, ncclComm_t comm, int rank, cudaStream_t stream) {
    auto done = [&](ncclResult_t result, const char* what) {
      verdict.expect(result == ncclSuccess, std::string(what) + ": " + ncclGetLastError(comm));
      verdict.expect(cuStreamSynchronize(stream) == CUDA_SUCCESS, what);
    };
    const auto own = sequence<int>(kCount, rank * 10000);
    Buffer<int> one(own), one_out(kCount);
    Buffer<int> all(sequence<int>(kCount * kRanks, rank * 10000)), all_out(kCount * kRanks);

    done(ncclAllReduce(one.get(), one_out.get(), kCount, ncclInt32, ncclSum, comm, stream), "allreduce");
    for (size_t i = 0; i < kCount; ++i) verdict.expect(one_out.values()[i] == int(60000 + 4 * i), "allreduce data");

    one_out.set(std::vector<int>(kCount, -1));
    done(ncclReduce(one.get(), rank == 2 ? one_out.get() : nullptr, kCount, ncclInt32, ncclMax, 2, comm, stream),
         "reduce");
    verdict.expect(one_out.values()[5] == (rank == 2 ? 30005 : -1), "reduce data");

    Buffer<int> spread(own);
    done(ncclBroadcast(spread.get(), spread.get(), kCount, ncclInt32, 1, comm, stream), "broadcast");
    verdict.expect(spread.values() == sequence<int>(kCount, 10000), "broadcast data");

    done(ncclAllGather(one.get(), all_out.get(), kCount, ncclInt32, comm, stream), "allgather");
    for (int peer = 0; peer < kRanks; ++peer) {
      verdict.expect(all_out.values()[peer * kCount + 7] == peer * 10000 + 7, "allgather data");
    }

    done(ncclReduceScatter(all.get(), one_out.get(), kCount, ncclInt32, ncclSum, comm, stream), "reduce_scatter");
    verdict.expect(one_out.values()[9] == int(60000 + 4 * (rank * kCount + 9)), "reduce_scatter data");

    done(ncclAlltoAll(all.get(), all_out.get(), kCount, ncclInt32, comm, stream), "alltoall");
    for (int peer = 0; peer < kRanks; ++peer) {
      verdict.expect(all_out.values()[peer * kCount] == int(peer * 10000 + rank * kCount), "alltoall data");
    }

    all_out.set(std::vector<int>(kCount * kRanks, -1));
    done(ncclGather(one.get(), rank == 0 ? all_out.get() : nullptr, kCount, ncclInt32, 0, comm, stream), "gather");
    for (int peer = 0; peer < kRanks; ++peer) {
      verdict.expect(all_out.values()[peer * kCount + 1] == (rank == 0 ? peer * 10000 + 1 : -1), "gather data");
    }

    done(ncclScatter(rank == 3 ? all.get() : nullptr, one_out.get(), kCount, ncclInt32, 3, comm, stream), "scatter");
    verdict.expect(one_out.values()[2] == int(30000 + rank * kCount + 2), "scatter data");
  });
}

TEST_CASE("fake nccl: data larger than a channel and a block arrives whole, in place too") {
  constexpr size_t kCount = 700'001;
  run_communicator(3, [&](Verdict& verdict, ncclComm_t comm, int rank, cudaStream_t stream) {
    Buffer<float> data(std::vector<float>(kCount, float(rank + 1)));
    verdict.expect(ncclAllReduce(data.get(), data.get(), kCount, ncclFloat32, ncclSum, comm, stream) == ncclSuccess,
                   "call");
    cuStreamSynchronize(stream);
    verdict.expect(data.values() == std::vector<float>(kCount, 6.0f), "data");
  });
}

TEST_CASE("fake nccl: operators keep NCCL's habits") {
  run_communicator(2, [&](Verdict& verdict, ncclComm_t comm, int rank, cudaStream_t stream) {
    auto reduce = [&](auto value, ncclDataType_t type, ncclRedOp_t op) {
      Buffer<decltype(value)> data(std::vector{value});
      verdict.expect(ncclAllReduce(data.get(), data.get(), 1, type, op, comm, stream) == ncclSuccess,
                     ncclGetLastError(comm));
      cuStreamSynchronize(stream);
      return data.values()[0];
    };
    const float nan = std::numeric_limits<float>::quiet_NaN();
    verdict.expect(reduce(rank == 0 ? nan : 2.0f, ncclFloat32, ncclMax) == 2.0f, "max passes over NaN");
    verdict.expect(reduce(int32_t(rank == 0 ? 3 : 4), ncclInt32, ncclAvg) == 3, "an average of integers is cut");
    verdict.expect(reduce(rank == 0 ? 3.0 : 4.0, ncclFloat64, ncclAvg) == 3.5, "average");
    verdict.expect(reduce(int8_t(rank == 0 ? 100 : 100), ncclInt8, ncclSum) == int8_t(-56), "int8 wraps");
    verdict.expect(reduce(uint64_t(1) << 40, ncclUint64, ncclProd) == 0, "product wraps");
    const __nv_bfloat16 narrow = reduce(__float2bfloat16(rank == 0 ? 256.0f : 1.0f), ncclBfloat16, ncclSum);
    verdict.expect(__bfloat162float(narrow) == 256.0f, "bfloat16 rounds");
    verdict.expect(__half2float(reduce(__float2half(rank + 1.0f), ncclFloat16, ncclProd)) == 2.0f, "half");

    ncclRedOp_t scaled;
    float factor = 0.5f;
    verdict.expect(
        ncclRedOpCreatePreMulSum(&scaled, &factor, ncclFloat32, ncclScalarHostImmediate, comm) == ncclSuccess,
        "operator");
    factor = 100;
    verdict.expect(reduce(rank + 3.0f, ncclFloat32, scaled) == 3.5f, "premul");
    verdict.expect(ncclRedOpDestroy(scaled, comm) == ncclSuccess, "operator gone");
    int own_factor = rank + 2;
    verdict.expect(
        ncclRedOpCreatePreMulSum(&scaled, &own_factor, ncclInt32, ncclScalarHostImmediate, comm) == ncclSuccess,
        "operator with a scale of each rank's own");
    verdict.expect(reduce(10 * (rank + 1), ncclInt32, scaled) == 10 * 2 + 20 * 3, "scales of the ranks' own");
    verdict.expect(ncclRedOpDestroy(scaled, comm) == ncclSuccess, "operator gone");
    verdict.expect(ncclRedOpDestroy(scaled, comm) == ncclInvalidArgument, "gone once");
  });
}

TEST_CASE("fake nccl: a group of sends and receives goes round") {
  run_communicator(kRanks, [&](Verdict& verdict, ncclComm_t comm, int rank, cudaStream_t stream) {
    const int next = (rank + 1) % kRanks, previous = (rank + kRanks - 1) % kRanks;
    constexpr size_t kCount = 50'000;
    Buffer<int64_t> out(sequence<int64_t>(kCount, rank)), in(kCount), own(kCount);
    ncclGroupStart();
    ncclSend(out.get(), kCount, ncclInt64, next, comm, stream);
    ncclRecv(in.get(), kCount, ncclInt64, previous, comm, stream);
    ncclSend(out.get(), kCount, ncclInt64, rank, comm, stream);
    ncclRecv(own.get(), kCount, ncclInt64, rank, comm, stream);
    verdict.expect(ncclGroupEnd() == ncclSuccess, ncclGetLastError(comm));
    cuStreamSynchronize(stream);
    verdict.expect(in.values() == sequence<int64_t>(kCount, previous), "from the neighbour");
    verdict.expect(own.values() == sequence<int64_t>(kCount, rank), "from itself");
  });
}

TEST_CASE("fake nccl: a group over two streams comes after both and before what follows in both") {
  run_communicator(2, [&](Verdict& verdict, ncclComm_t comm, int rank, cudaStream_t first) {
    OwnStream second;
    Buffer<unsigned char> one(std::vector<unsigned char>{1}), two(std::vector<unsigned char>{1}), copy(1);
    fake_gpu_hold_streams(1);
    cuMemsetD8Async(one.address(), static_cast<unsigned char>(10 + rank), 1, first);
    cuMemsetD8Async(two.address(), static_cast<unsigned char>(20 + rank), 1, second);
    ncclGroupStart();
    ncclAllReduce(two.get(), two.get(), 1, ncclUint8, ncclSum, comm, first);
    ncclAllReduce(one.get(), one.get(), 1, ncclUint8, ncclSum, comm, second);
    verdict.expect(ncclGroupEnd() == ncclSuccess, "group");
    cuMemcpyAsync(copy.address(), two.address(), 1, second);
    fake_gpu_hold_streams(0);
    verdict.expect(cuStreamSynchronize(second) == CUDA_SUCCESS, "stream");
    verdict.expect(one.values()[0] == 21 && copy.values()[0] == 41, "data");
  });
}

TEST_CASE("fake nccl: one thread drives all devices inside groups") {
  std::vector<ncclComm_t> comms(kRanks);
  REQUIRE(cuInit(0) == CUDA_SUCCESS);
  REQUIRE(ncclCommInitAll(comms.data(), kRanks, nullptr) == ncclSuccess);
  std::vector<std::unique_ptr<Buffer<int>>> data;
  {
    std::vector<std::unique_ptr<OnDevice>> devices;
    for (int rank = 0; rank < kRanks; ++rank) {
      devices.push_back(std::make_unique<OnDevice>(rank));
      data.push_back(std::make_unique<Buffer<int>>(std::vector<int>{1 << rank}));
    }
    REQUIRE(ncclGroupStart() == ncclSuccess);
    for (int rank = 0; rank < kRanks; ++rank) {
      CHECK(ncclAllReduce(data[rank]->get(), data[rank]->get(), 1, ncclInt32, ncclSum, comms[rank], nullptr) ==
            ncclSuccess);
    }
    REQUIRE(ncclGroupEnd() == ncclSuccess);
    for (int rank = 0; rank < kRanks; ++rank) {
      OnDevice own(rank);
      CHECK(cuStreamSynchronize(nullptr) == CUDA_SUCCESS);
      CHECK(data[rank]->values() == std::vector<int>{15});
      data[rank].reset();
    }
  }
  for (ncclComm_t comm : comms) CHECK(ncclCommDestroy(comm) == ncclSuccess);
  CHECK(fake_nccl_alive("communicators") == 0);
  CHECK(fake_gpu_alive("contexts") == 0);
}

TEST_CASE("fake nccl: what would go wrong in silence is refused") {
  run_communicator(2, [&](Verdict& verdict, ncclComm_t comm, int rank, cudaStream_t stream) {
    Buffer<float> data(100);
    float host[4] = {};
    auto invalid = [&](ncclResult_t result, const char* what) { verdict.expect(result == ncclInvalidArgument, what); };
    invalid(ncclAllReduce(host, data.get(), 4, ncclFloat32, ncclSum, comm, stream), "host memory");
    invalid(ncclAllReduce(data.get(), data.get(), 101, ncclFloat32, ncclSum, comm, stream), "too long");
    const char* odd = reinterpret_cast<const char*>(data.get()) + 1;
    invalid(ncclAllReduce(odd, data.get() + 50, 4, ncclFloat32, ncclSum, comm, stream), "alignment");
    invalid(ncclAllReduce(data.get(), data.get() + 1, 50, ncclFloat32, ncclSum, comm, stream), "overlap");
    invalid(ncclAlltoAll(data.get(), data.get(), 10, ncclFloat32, comm, stream), "in-place alltoall");
    invalid(ncclAllReduce(data.get(), data.get(), 4, ncclFloat32, ncclRedOp_t(77), comm, stream), "operator");
    invalid(ncclBroadcast(data.get(), data.get(), 4, ncclFloat32, 2, comm, stream), "root");
    invalid(ncclSend(data.get(), 4, ncclFloat32, -1, comm, stream), "peer");
    invalid(ncclAllReduce(data.get(), data.get(), 4, ncclFloat32, ncclSum, nullptr, stream), "null communicator");
    if (rank == 0) {
      OnDevice other(1);
      Buffer<float> foreign(4);
      invalid(ncclBroadcast(foreign.get(), foreign.get(), 4, ncclFloat32, 0, comm, stream), "another device's memory");
    }
    OnDevice again(rank);
    verdict.expect(ncclAllReduce(nullptr, nullptr, 0, ncclFloat32, ncclSum, comm, stream) == ncclSuccess, "empty");
    verdict.expect(ncclGroupEnd() == ncclInvalidUsage, "end without start");
    ncclGroupStart();
    invalid(ncclAllReduce(host, data.get(), 4, ncclFloat32, ncclSum, comm, stream), "inside a group");
    invalid(ncclGroupEnd(), "the group");
  });
}
