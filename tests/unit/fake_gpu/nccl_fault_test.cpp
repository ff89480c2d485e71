// Hangs, aborts, errors and non-blocking communicators of the stand-in for NCCL.
#include <atomic>
#include <memory>

#include "unit/fake_gpu/session.hpp"

using namespace fake_gpu_test;

namespace {

ncclConfig_t non_blocking() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

// What the state settles to.
ncclResult_t settle(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  soon([&] { return ncclCommGetAsyncError(comm, &state) != ncclSuccess || state != ncclInProgress; });
  return state;
}

}  // namespace

TEST_CASE("fake nccl: calls that do not match hang until every rank aborts") {
  std::atomic<int> aborted{0};
  check_communicator(3, [&](Verdict& verdict, ncclComm_t comm, int rank, CUstream stream) {
    Buffer<float> data(300'000);
    const size_t count = rank == 1 ? 100 : 300'000;  // more slots of 512 KiB
    verdict.expect(ncclAllReduce(data.get(), data.get(), count, ncclFloat32, ncclSum, comm, stream) == ncclSuccess,
                   "call");
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    verdict.expect(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY, "it hangs");
    // One after another: an abort ends only the own rank's operation.
    soon([&] { return aborted == rank; });
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    verdict.expect(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY, "it goes on hanging");
    verdict.expect(ncclCommAbort(comm) == ncclSuccess, "abort");
    verdict.expect(cuStreamSynchronize(stream) == CUDA_SUCCESS, "the stream goes on");
    ++aborted;
    ncclResult_t state;
    verdict.expect(ncclCommGetAsyncError(comm, &state) == ncclInvalidArgument, "the handle is dead");
  });
}

TEST_CASE("fake nccl: calls that differ in what is in a slot end well on all ranks, with wrong results") {
  check_communicator(2, [&](Verdict& verdict, ncclComm_t comm, int rank, CUstream stream) {
    const auto ends = [&](ncclResult_t result, const char* what) {
      verdict.expect(result == ncclSuccess && cuStreamSynchronize(stream) == CUDA_SUCCESS, what);
    };
    const std::vector<int> own{rank + 1, rank + 1};
    Buffer<int> data(own), out(std::vector<int>{0, 0});
    ends(ncclAllReduce(data.get(), out.get(), 2, ncclInt32, rank == 0 ? ncclSum : ncclMax, comm, stream), "operator");
    verdict.expect(out.values()[0] == (rank == 0 ? 3 : 2), "each has its own");
    ends(ncclAllReduce(data.get(), out.get(), rank == 0 ? 1 : 2, ncclInt32, ncclSum, comm, stream), "count");
    verdict.expect(out.values()[0] == 3, "what both have");
    ends(ncclBroadcast(data.get(), out.get(), 2, ncclInt32, rank, comm, stream), "root");
    if (rank == 0)
      ends(ncclSend(data.get(), 1, ncclInt32, 1, comm, stream), "send");
    else
      ends(ncclRecv(out.get(), 2, ncclInt32, 0, comm, stream), "receive");
    verdict.expect(rank == 0 || (out.values()[0] == 1 && out.values()[1] != 1), "what was sent");
    verdict.expect(ncclCommDestroy(comm) == ncclSuccess, "destroy");
  });
}

TEST_CASE("fake nccl: a send and a receive without a group wait for each other for ever") {
  check_communicator(2, [&](Verdict& verdict, ncclComm_t comm, int rank, CUstream stream) {
    Buffer<int> data(8);
    verdict.expect(ncclSend(data.get(), 8, ncclInt32, 1 - rank, comm, stream) == ncclSuccess, "send");
    verdict.expect(ncclRecv(data.get(), 8, ncclInt32, 1 - rank, comm, stream) == ncclSuccess, "receive");
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    verdict.expect(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY, "deadlock");
    verdict.expect(ncclCommAbort(comm) == ncclSuccess, "abort");
  });
}

TEST_CASE("fake nccl: a test makes an operation hang, and sets an error on a communicator") {
  check_communicator(2, [&](Verdict& verdict, ncclComm_t comm, int rank, CUstream stream) {
    Buffer<int> data(std::vector<int>{1});
    auto call = [&] { return ncclAllReduce(data.get(), data.get(), 1, ncclInt32, ncclSum, comm, stream); };
    if (rank == 0) fake_nccl_hang(0, 2);
    verdict.expect(call() == ncclSuccess && cuStreamSynchronize(stream) == CUDA_SUCCESS, "first");
    verdict.expect(call() == ncclSuccess, "second");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    verdict.expect(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY, "hangs");
    fake_nccl_async_error(rank, ncclRemoteError);
    ncclResult_t state = ncclSuccess;
    verdict.expect(ncclCommGetAsyncError(comm, &state) == ncclSuccess && state == ncclRemoteError, "error");
    verdict.expect(call() == ncclRemoteError, "a call after the error");
    verdict.expect(ncclCommAbort(comm) == ncclSuccess, "abort");
  });
}

TEST_CASE("fake nccl: the ranks learn that a peer is lost") {
  check_communicator(3, [&](Verdict& verdict, ncclComm_t comm, int rank, CUstream stream) {
    Buffer<int> data(1);
    if (rank == 2) {
      fake_nccl_lose_peer(2);
      ncclCommAbort(comm);
      return;
    }
    ncclResult_t state = ncclSuccess;
    verdict.expect(soon([&] { return ncclCommGetAsyncError(comm, &state), state == ncclRemoteError; }), "told");
    verdict.expect(cuStreamSynchronize(stream) == CUDA_SUCCESS, "stream");
    verdict.expect(ncclCommAbort(comm) == ncclSuccess, "abort");
  });
}

TEST_CASE("fake nccl: a non-blocking communicator is in progress until it is asked") {
  check_ranks(2, [&](Verdict& verdict, int rank, const ncclUniqueId& id) {
    auto is = [&](ncclResult_t result, ncclResult_t expected, const char* what) {
      verdict.expect(result == expected, std::string(what) + " gave " + ncclGetErrorString(result));
    };
    ncclConfig_t config = non_blocking();
    ncclComm_t comm = nullptr;
    is(ncclCommInitRankConfig(&comm, 2, id, rank, &config), ncclInProgress, "init");
    int count = 0;
    is(ncclCommCount(comm, &count), ncclInvalidArgument, "too early");
    is(settle(comm), ncclSuccess, "init's end");
    is(ncclCommCount(comm, &count), ncclSuccess, "count");
    verdict.expect(count == 2, "count");
    OwnStream stream;
    Buffer<int> data(std::vector<int>{rank + 1});
    is(ncclAllReduce(data.get(), data.get(), 1, ncclInt32, ncclSum, comm, stream), ncclInProgress, "allreduce");
    is(ncclAllReduce(data.get(), data.get(), 1, ncclInt32, ncclSum, comm, stream), ncclInvalidArgument, "too early");
    is(settle(comm), ncclSuccess, "launch's end");
    verdict.expect(cuStreamSynchronize(stream) == CUDA_SUCCESS && data.values()[0] == 3, "data");
    is(ncclGroupStart(), ncclSuccess, "start");
    is(ncclAllReduce(data.get(), data.get(), 1, ncclInt32, ncclMax, comm, stream), ncclSuccess, "inside a group");
    is(ncclGroupEnd(), ncclInProgress, "end");
    is(settle(comm), ncclSuccess, "group's end");
    verdict.expect(cuStreamSynchronize(stream) == CUDA_SUCCESS, "stream");
    is(ncclCommFinalize(comm), ncclInProgress, "finalize");
    is(settle(comm), ncclSuccess, "finalize's end");
    is(ncclAllReduce(data.get(), data.get(), 1, ncclInt32, ncclSum, comm, stream), ncclInvalidUsage, "too late");
    is(ncclCommDestroy(comm), ncclSuccess, "destroy");
  });
}

TEST_CASE("fake nccl: a rank that never comes is waited for until abort") {
  OnDevice device(0);
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  ncclConfig_t config = non_blocking();
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  REQUIRE(ncclCommInitRankConfig(&comm, 2, id, 0, &config) == ncclInProgress);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ncclResult_t state = ncclSuccess;
  for (int look = 0; look < 3; ++look) CHECK(ncclCommGetAsyncError(comm, &state) == ncclSuccess);
  CHECK(state == ncclInProgress);
  CHECK(fake_nccl_alive("unconnected") == 1);
  CHECK(ncclCommAbort(comm) == ncclSuccess);
  CHECK(fake_nccl_alive("communicators") == 0);
  CHECK(fake_nccl_alive("unconnected") == 0);
  CHECK(ncclCommInitRankConfig(&comm, 2, id, 0, &config) == ncclInvalidUsage);
}

TEST_CASE("fake nccl: the first launch waits on the host for the peers' first one") {
  std::atomic<bool> waited{false};
  check_ranks(2, [&](Verdict& verdict, int rank, const ncclUniqueId& id) {
    ncclConfig_t config = non_blocking();
    ncclComm_t comm = nullptr;
    ncclCommInitRankConfig(&comm, 2, id, rank, &config);
    verdict.expect(settle(comm) == ncclSuccess, "init");
    OwnStream stream;
    Buffer<int> data(1);
    if (rank == 1) soon([&] { return waited.load(); });
    ncclAllReduce(data.get(), data.get(), 1, ncclInt32, ncclSum, comm, stream);
    ncclResult_t state = ncclSuccess;
    for (int look = 0; rank == 0 && look < 5; ++look) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      ncclCommGetAsyncError(comm, &state);
      verdict.expect(state == ncclInProgress, "connecting");
    }
    if (rank == 0) waited = true;
    verdict.expect(settle(comm) == ncclSuccess, "launch");
    cuStreamSynchronize(stream);
    verdict.expect(ncclCommDestroy(comm) == ncclSuccess, "destroy");
  });
}

TEST_CASE("fake nccl: a launch that waits for its peers ends with revoke") {
  check_ranks(2, [&](Verdict& verdict, int rank, const ncclUniqueId& id) {
    ncclConfig_t config = non_blocking();
    ncclComm_t comm = nullptr;
    ncclCommInitRankConfig(&comm, 2, id, rank, &config);
    verdict.expect(settle(comm) == ncclSuccess, "init");
    OwnStream stream;
    Buffer<int> data(1);
    if (rank == 0) {
      ncclAllReduce(data.get(), data.get(), 1, ncclInt32, ncclSum, comm, stream);
      verdict.expect(ncclCommRevoke(comm, 0) == ncclInProgress, "revoke");
      verdict.expect(settle(comm) == ncclSuccess, "revoked");
      verdict.expect(cuStreamQuery(stream) == CUDA_SUCCESS, "nothing was launched");
    }
    verdict.expect(ncclCommAbort(comm) == ncclSuccess, "abort");
  });
}

TEST_CASE("fake nccl: a revoke that hangs ends with abort") {
  ncclUniqueId id;
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  ncclConfig_t config = non_blocking();
  ncclComm_t comm = nullptr;
  OnDevice device(0);
  ncclCommInitRankConfig(&comm, 1, id, 0, &config);
  REQUIRE(settle(comm) == ncclSuccess);
  fake_nccl_hang_revoke(0);
  CHECK(ncclCommRevoke(comm, 0) == ncclInProgress);
  ncclResult_t state = ncclSuccess;
  for (int i = 0; i < 100; ++i) {
    CHECK(ncclCommGetAsyncError(comm, &state) == ncclSuccess);
    CHECK(state == ncclInProgress);
  }
  CHECK(ncclCommAbort(comm) == ncclSuccess);
  CHECK(fake_nccl_alive("communicators") == 0);
}

TEST_CASE("fake nccl: two ranks on one device are refused") {
  ncclComm_t comms[2] = {};
  const int devices[] = {1, 1};
  CHECK(ncclCommInitAll(comms, 2, devices) == ncclInvalidUsage);
  CHECK(std::string(ncclGetLastError(nullptr)).find("Duplicate GPU detected") == 0);
  CHECK(fake_nccl_alive("communicators") == 2);
  for (ncclComm_t comm : comms) CHECK(ncclCommAbort(comm) == ncclSuccess);
  CHECK(fake_nccl_alive("communicators") == 0);
  CHECK(fake_gpu_alive("contexts") == 0);
}

TEST_CASE("fake nccl: revoke ends what runs, and shrink goes on without the odd rank") {
  check_communicator(3, [&](Verdict& verdict, ncclComm_t comm, int rank, CUstream stream) {
    Buffer<int> data(std::vector<int>{rank});
    if (rank == 1) {
      ncclAllReduce(data.get(), data.get(), 1, ncclInt32, ncclMax, comm, stream);
      ncclCommAbort(comm);
      return;
    }
    verdict.expect(ncclAllReduce(data.get(), data.get(), 1, ncclInt32, ncclSum, comm, stream) == ncclSuccess, "call");
    verdict.expect(ncclCommRevoke(comm, 0) == ncclSuccess, "revoke");
    verdict.expect(cuStreamSynchronize(stream) == CUDA_SUCCESS, "ended");
    verdict.expect(ncclAllReduce(data.get(), data.get(), 1, ncclInt32, ncclSum, comm, stream) == ncclInvalidUsage,
                   "revoked");
    verdict.expect(ncclCommFinalize(comm) == ncclInvalidUsage, "finalize");
    int gone = 1, size = 0, place = -1;
    ncclComm_t smaller = nullptr;
    verdict.expect(ncclCommShrink(comm, &gone, 1, &smaller, nullptr, NCCL_SHRINK_ABORT) == ncclSuccess,
                   ncclGetLastError(nullptr));
    verdict.expect(ncclCommCount(smaller, &size) == ncclSuccess && size == 2, "size");
    verdict.expect(ncclCommUserRank(smaller, &place) == ncclSuccess && place == rank / 2, "rank");
    data.set({rank + 10});
    verdict.expect(ncclAllReduce(data.get(), data.get(), 1, ncclInt32, ncclSum, smaller, stream) == ncclSuccess,
                   "goes on");
    verdict.expect(cuStreamSynchronize(stream) == CUDA_SUCCESS && data.values()[0] == 22, "data");
    verdict.expect(ncclCommDestroy(comm) == ncclSuccess, "destroy");
    verdict.expect(ncclCommDestroy(smaller) == ncclSuccess, "destroy");
  });
}

TEST_CASE("fake nccl: split gives each color a communicator, ordered by key") {
  check_communicator(4, [&](Verdict& verdict, ncclComm_t comm, int rank, CUstream) {
    ncclComm_t part = nullptr;
    const int color = rank == 3 ? NCCL_SPLIT_NOCOLOR : 7;
    verdict.expect(ncclCommSplit(comm, color, -rank, &part, nullptr) == ncclSuccess, ncclGetLastError(nullptr));
    if (rank == 3) {
      verdict.expect(part == nullptr, "no color");
    } else {
      int place = -1, size = 0;
      verdict.expect(ncclCommUserRank(part, &place) == ncclSuccess && place == 2 - rank, "rank");
      verdict.expect(ncclCommCount(part, &size) == ncclSuccess && size == 3, "size");
      verdict.expect(ncclCommDestroy(part) == ncclSuccess, "destroy");
    }
    verdict.expect(ncclCommDestroy(comm) == ncclSuccess, "destroy");
  });
}

TEST_CASE("fake nccl: windows are counted") {
  check_communicator(1, [&](Verdict& verdict, ncclComm_t comm, int, CUstream) {
    void* memory = nullptr;
    verdict.expect(ncclMemAlloc(&memory, 8192) == ncclSuccess, "alloc");
    ncclWindow_t window = nullptr, none = nullptr;
    verdict.expect(ncclCommWindowRegister(comm, memory, 8192, &window, NCCL_WIN_COLL_SYMMETRIC) == ncclSuccess, "win");
    verdict.expect(window != nullptr && fake_nccl_alive("windows") == 1, "window");
    verdict.expect(ncclCommWindowRegister(comm, static_cast<char*>(memory) + 16, 64, &none, 0) == ncclInvalidArgument,
                   "alignment");
    verdict.expect(ncclCommWindowDeregister(comm, window) == ncclSuccess, "window gone");
    verdict.expect(ncclMemFree(memory) == ncclSuccess && ncclMemFree(memory) == ncclInvalidArgument, "free");
    verdict.expect(ncclCommDestroy(comm) == ncclSuccess, "destroy");
  });
  CHECK(fake_nccl_alive("memory") == 0);
}
