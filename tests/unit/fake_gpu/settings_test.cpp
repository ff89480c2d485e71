// What the stand-ins do under other settings, and between processes. Every check runs in a child, because settings are
// read once and a driver does not survive a fork.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "support/temp_dir.hpp"
#include "unit/fake_gpu/session.hpp"

using namespace fake_gpu_test;

namespace {

using Settings = std::vector<std::pair<const char*, std::string>>;

// The exit status of a child, or minus the signal it died of. The body returns what failed, "" when all is good.
pid_t start_child(const Settings& settings, const std::function<std::string()>& body) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child != 0) return child;
  for (int signal : {SIGSEGV, SIGABRT}) std::signal(signal, SIG_DFL);
  for (const auto& [name, value] : settings) setenv(name, value.c_str(), 1);
  std::string failed;
  try {
    failed = body();
  } catch (const std::exception& error) {
    failed = error.what();
  }
  if (!failed.empty()) fprintf(stderr, "child: %s\n", failed.c_str());
  fflush(stderr);
  _exit(failed.empty() ? 0 : 1);
}

int end_of(pid_t child) {
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

int in_child(const Settings& settings, const std::function<std::string()>& body) {
  return end_of(start_child(settings, body));
}

std::string unless(bool good, const std::string& text) {
  return good ? "" : text;
}

}  // namespace

TEST_CASE("fake cuda: the number of devices is a setting") {
  CHECK(in_child({{"FAKE_GPU_DEVICES", "0"}}, [] { return unless(cuInit(0) == CUDA_ERROR_NO_DEVICE, "0"); }) == 0);
  auto count_is = [](int expected) {
    return [expected] {
      int count = 0;
      return unless(cuInit(0) == CUDA_SUCCESS && cuDeviceGetCount(&count) == CUDA_SUCCESS && count == expected,
                    "count");
    };
  };
  CHECK(in_child({{"FAKE_GPU_DEVICES", ""}}, count_is(1)) == 0);
  CHECK(in_child({{"FAKE_GPU_DEVICES", "8"}, {"CUDA_VISIBLE_DEVICES", "5,2,9,1"}}, [&] {
          char address[20];
          if (cuInit(0) != CUDA_SUCCESS || cuDeviceGetPCIBusId(address, 20, 0) != CUDA_SUCCESS)
            return std::string("id");
          return unless(std::string(address) == "0000:06:00.0", address) + count_is(2)();
        }) == 0);
  CHECK(in_child({{"FAKE_GPU_DEVICES", "nine"}}, [] { return unless(cuInit(0) == CUDA_SUCCESS, ""); }) == -SIGABRT);
}

TEST_CASE("fake cuda: a driver that is missing or old says so") {
  CHECK(in_child({{"FAKE_GPU_NO_DRIVER", "1"}}, [] {
          CUdevice device;
          const std::string failed = unless(cuInit(0) == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "init");
          return failed + unless(cuDeviceGet(&device, 0) == CUDA_ERROR_NOT_INITIALIZED, "device");
        }) == 0);
  CHECK(in_child({{"FAKE_GPU_DRIVER", "11040"}}, [] {
          int version = 0;
          return unless(cuDriverGetVersion(&version) == CUDA_SUCCESS && version == 11040, "version");
        }) == 0);
}

TEST_CASE("fake cuda: nothing works before cuInit, nor in a child of a process that called it") {
  CHECK(in_child({}, [] {
          int count = 0;
          if (cuDeviceGetCount(&count) != CUDA_ERROR_NOT_INITIALIZED) return std::string("before");
          if (cuInit(0) != CUDA_SUCCESS) return std::string("init");
          return unless(
              in_child({}, [] { return unless(cuInit(0) == CUDA_ERROR_NOT_INITIALIZED, "init in the child"); }) == 0,
              "in a child");
        }) == 0);
}

TEST_CASE("fake cuda: a host that touches device memory crashes, unless the setting allows it") {
  auto touch = [] {
    OnDevice device(0);
    Buffer<int> data(1);
    *static_cast<volatile int*>(data.get()) = 1;
    return unless(data.values()[0] == 1, "data");
  };
  CHECK(in_child({}, touch) == -SIGSEGV);
  CHECK(in_child({{"FAKE_GPU_PROTECT", "0"}}, touch) == 0);
}

TEST_CASE("fake cuda: the size of memory is a setting") {
  CHECK(in_child({{"FAKE_GPU_MEMORY", "1000000"}}, [] {
          OnDevice device(0);
          CUdeviceptr pointer;
          const std::string failed = unless(cuMemAlloc(&pointer, 1000001) == CUDA_ERROR_OUT_OF_MEMORY, "more");
          return failed + unless(cuMemAlloc(&pointer, 1000000) == CUDA_SUCCESS, "all");
        }) == 0);
}

TEST_CASE("fake cuda: faults come from the environment too") {
  CHECK(in_child({{"FAKE_GPU_FAIL", "cuCtxSynchronize:719:2"}, {"FAKE_NCCL_FAIL", "ncclGetUniqueId:2"}}, [] {
          OnDevice device(0);
          ncclUniqueId id;
          std::string failed = unless(cuCtxSynchronize() == CUDA_SUCCESS, "first");
          failed += unless(cuCtxSynchronize() == CUDA_ERROR_LAUNCH_FAILED, "second");
          failed += unless(ncclGetUniqueId(&id) == ncclSystemError, "nccl");
          return failed + unless(ncclGetUniqueId(&id) == ncclSuccess, "once");
        }) == 0);
}

TEST_CASE("fake cuda: a wait without end ends the process") {
  CHECK(in_child({{"FAKE_GPU_TIMEOUT", "1"}}, [] {
          OnDevice device(0);
          OwnStream stream;
          fake_gpu_hold_streams(1);
          Buffer<char> data(1);
          cuMemsetD8Async(data.address(), 1, 1, stream);
          cuStreamSynchronize(stream);
          return std::string("it came back");
        }) == -SIGABRT);
}

TEST_CASE("fake cuda: allocating waits for the device, unless the setting says that it is kind") {
  const auto allocate = [] {
    OnDevice device(0);
    OwnStream stream;
    Buffer<char> data(1);
    fake_gpu_hold_streams(1);
    cuMemsetD8Async(data.address(), 1, 1, stream);
    CUdeviceptr more = 0;
    const CUresult result = cuMemAlloc(&more, 1);
    fake_gpu_hold_streams(0);
    return unless(result == CUDA_SUCCESS, "allocate");
  };
  CHECK(in_child({{"FAKE_GPU_TIMEOUT", "1"}}, allocate) == -SIGABRT);
  CHECK(in_child({{"FAKE_GPU_TIMEOUT", "20"}, {"FAKE_GPU_HARSH", "0"}}, allocate) == 0);
}

TEST_CASE("fake cuda: kernels come from a library that the environment names") {
  const char* library = std::getenv("TEST_KERNEL_LIBRARY");
  REQUIRE(library != nullptr);
  CHECK(in_child({{"FAKE_GPU_KERNELS", library}}, [] {
          OnDevice device(0);
          Buffer<int> data(std::vector<int>{41});
          const unsigned char image[] = {0x7F, 'E', 'L', 'F'};
          CUmodule module;
          CUfunction function;
          int* pointer = data.get();
          void* arguments[] = {&pointer};
          if (cuModuleLoadData(&module, image) != CUDA_SUCCESS) return std::string("module");
          if (cuModuleGetFunction(&function, module, "add_one") != CUDA_SUCCESS) return std::string("function");
          if (cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr) != CUDA_SUCCESS) {
            return std::string("launch");
          }
          return unless(cuCtxSynchronize() == CUDA_SUCCESS && data.values()[0] == 42, "data");
        }) == 0);
  CHECK(in_child({{"FAKE_GPU_KERNELS", "/nowhere.so"}}, [] { return unless(cuInit(0) == CUDA_SUCCESS, ""); }) ==
        -SIGABRT);
}

TEST_CASE("fake nccl: the library of 2.26 lacks what came later") {
  const char* path = std::getenv("TEST_NCCL_2_26");
  REQUIRE(path != nullptr);
  CHECK(in_child({}, [path] {
          void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
          if (library == nullptr) return std::string(dlerror());
          int number = 0;
          auto get_version = reinterpret_cast<ncclResult_t (*)(int*)>(dlsym(library, "ncclGetVersion"));
          std::string failed = unless(get_version(&number) == ncclSuccess && number == 22602, "version");
          for (const char* name : {"ncclGather", "ncclAlltoAll", "ncclCommShrink", "ncclCommRevoke"}) {
            failed += unless(dlsym(library, name) == nullptr, name);
          }
          return failed + unless(dlsym(library, "ncclAllReduce") != nullptr, "ncclAllReduce");
        }) == 0);
}

TEST_CASE("fake nccl: the version decides which calls there are") {
  auto version_is = [](int expected, ncclResult_t gather, ncclResult_t shrink) {
    return [=] {
      int version = 0;
      if (ncclGetVersion(&version) != ncclSuccess || version != expected) return std::string("version");
      return unless(ncclGather(nullptr, nullptr, 0, ncclInt8, 0, nullptr, nullptr) == gather, "gather") +
             unless(ncclCommShrink(nullptr, nullptr, 0, nullptr, nullptr, 0) == shrink, "shrink");
    };
  };
  CHECK(in_child({}, version_is(22809, ncclInvalidArgument, ncclInvalidArgument)) == 0);
  CHECK(in_child({{"FAKE_NCCL_VERSION", "22703"}}, version_is(22703, ncclInvalidUsage, ncclInvalidArgument)) == 0);
  CHECK(in_child({{"FAKE_NCCL_VERSION", "22602"}}, version_is(22602, ncclInvalidUsage, ncclInvalidUsage)) == 0);
}

TEST_CASE("fake nccl: ranks share a device when a new version is told that they may") {
  auto init_twice = [](ncclResult_t expected) {
    return [expected] {
      ncclComm_t comms[2] = {};
      const int devices[] = {0, 0};
      const ncclResult_t made = ncclCommInitAll(comms, 2, devices);
      for (ncclComm_t comm : comms) ncclCommDestroy(comm);
      return unless(made == expected, ncclGetErrorString(made));
    };
  };
  CHECK(in_child({{"FAKE_NCCL_VERSION", "23003"}}, init_twice(ncclInvalidUsage)) == 0);
  CHECK(in_child({{"NCCL_MULTI_RANK_GPU_ENABLE", "1"}}, init_twice(ncclInvalidUsage)) == 0);
  CHECK(in_child({{"FAKE_NCCL_VERSION", "23003"}, {"NCCL_MULTI_RANK_GPU_ENABLE", "1"}}, init_twice(ncclSuccess)) == 0);
}

TEST_CASE("fake nccl: a reduction has a planted mistake in its result, or beside it") {
  auto sum_is = [](std::vector<int> expected) {
    return [expected = std::move(expected)] {
      const OnDevice device(0);
      const OwnStream stream;
      const int number = 0;
      ncclComm_t comm = nullptr;
      ncclCommInitAll(&comm, 1, &number);
      Buffer<int> data(std::vector<int>{4, 8});
      ncclAllReduce(data.get(), data.get(), 1, ncclInt32, ncclSum, comm, stream);
      cuStreamSynchronize(stream);
      ncclCommDestroy(comm);
      return unless(data.values() == expected, "data");
    };
  };
  CHECK(in_child({}, sum_is({4, 8})) == 0);
  CHECK(in_child({{"FAKE_NCCL_SPOIL", "inside"}}, sum_is({4 + (1 << 24), 8})) == 0);
  CHECK(in_child({{"FAKE_NCCL_SPOIL", "beside"}}, sum_is({4, 9})) == 0);
  CHECK(in_child({{"FAKE_NCCL_SPOIL", "somewhere"}}, sum_is({4, 8})) == -SIGABRT);
}

TEST_CASE("fake nccl: without a device or driver there is a CUDA error") {
  for (const char* name : {"FAKE_GPU_NO_DRIVER", "FAKE_GPU_DEVICES"}) {
    const std::string value = name == std::string("FAKE_GPU_DEVICES") ? "0" : "1";
    CHECK(in_child({{name, value}}, [] {
            ncclUniqueId id;
            ncclComm_t comm;
            const std::string failed = unless(ncclGetUniqueId(&id) == ncclSuccess, "identity");
            return failed + unless(ncclCommInitRank(&comm, 1, id, 0) == ncclUnhandledCudaError, "init");
          }) == 0);
  }
}

TEST_CASE("fake nccl: the environment's word on blocking wins over the configuration") {
  const auto made = [] {
    const OnDevice device(0);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclUniqueId id;
    ncclComm_t comm = nullptr;
    ncclGetUniqueId(&id);
    const ncclResult_t result = ncclCommInitRankConfig(&comm, 1, id, 0, &config);
    ncclCommAbort(comm);
    return result;
  };
  CHECK(in_child({{"NCCL_COMM_BLOCKING", "1"}}, [&] { return unless(made() == ncclSuccess, "blocks"); }) == 0);
  CHECK(in_child({}, [&] { return unless(made() == ncclInProgress, "does not"); }) == 0);
}

TEST_CASE("fake nccl: parts of one GPU are one device before version 2.30.3") {
  const auto together = [] {
    ncclComm_t comms[2] = {};
    const int devices[] = {0, 1};
    const ncclResult_t result = ncclCommInitAll(comms, 2, devices);
    for (ncclComm_t comm : comms) ncclCommAbort(comm);
    return result;
  };
  const Settings old{{"FAKE_GPU_MIG", "1"}, {"FAKE_GPU_DEVICES", "2"}, {"FAKE_NCCL_VERSION", "22907"}};
  const Settings later{{"FAKE_GPU_MIG", "1"}, {"FAKE_GPU_DEVICES", "2"}, {"FAKE_NCCL_VERSION", "23003"}};
  CHECK(in_child(old, [&] { return unless(together() == ncclInvalidUsage, "refused"); }) == 0);
  CHECK(in_child(later, [&] { return unless(together() == ncclSuccess, "taken"); }) == 0);
}

TEST_CASE("fake nccl: operations of two communicators in different orders may deadlock") {
  // Rank 1 begins with the other communicator than rank 0.
  auto crossed = [](bool deadlocks) {
    return [deadlocks] {
      ncclUniqueId ids[2];
      for (auto& id : ids) ncclGetUniqueId(&id);
      Verdict verdict;
      run_as_ranks(2, [&](int rank) {
        ncclComm_t comms[2];
        OwnStream streams[2];
        Buffer<int> data(2);
        for (int i = 0; i < 2; ++i) ncclCommInitRank(&comms[i], 2, ids[i], rank);
        for (int i : {rank, 1 - rank}) {
          ncclAllReduce(data.get() + i, data.get() + i, 1, ncclInt32, ncclSum, comms[i], streams[i]);
        }
        if (deadlocks) {
          std::this_thread::sleep_for(std::chrono::milliseconds(100));
          verdict.expect(cuStreamQuery(streams[0]) == CUDA_ERROR_NOT_READY, "0");
          verdict.expect(cuStreamQuery(streams[1]) == CUDA_ERROR_NOT_READY, "1");
        } else {
          for (CUstream stream : streams) verdict.expect(cuStreamSynchronize(stream) == CUDA_SUCCESS, "stream");
        }
        for (ncclComm_t comm : comms) ncclCommAbort(comm);
      });
      return verdict.failures();
    };
  };
  const Settings plain = {{"FAKE_GPU_DEVICES", "2"}, {"FAKE_NCCL_LAZY_CONNECT", "0"}};
  CHECK(in_child(plain, crossed(false)) == 0);
  Settings serial = plain;
  serial.emplace_back("FAKE_NCCL_SERIAL", "1");
  CHECK(in_child(serial, crossed(true)) == 0);
}

TEST_CASE("fake nccl: ranks may be processes") {
  col::test::TempDir directory;
  ncclUniqueId id;
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  constexpr int kRanks = 3;
  std::vector<pid_t> children;
  for (int rank = 0; rank < kRanks; ++rank) {
    const Settings settings = {{"TMPDIR", directory.path()}, {"FAKE_GPU_DEVICES", "3"}};
    children.push_back(start_child(settings, [&, rank] {
      OnDevice device(rank);
      OwnStream stream;
      ncclComm_t comm;
      if (ncclCommInitRank(&comm, kRanks, id, rank) != ncclSuccess) return std::string(ncclGetLastError(nullptr));
      constexpr size_t kCount = 100'000;
      Buffer<double> data(std::vector<double>(kCount, rank + 1)), gathered(kCount * kRanks);
      std::string failed;
      failed += unless(ncclAllReduce(data.get(), data.get(), kCount, ncclFloat64, ncclSum, comm, stream) == ncclSuccess,
                       "reduce");
      failed +=
          unless(ncclAllGather(data.get(), gathered.get(), kCount, ncclFloat64, comm, stream) == ncclSuccess, "gather");
      failed += unless(cuStreamSynchronize(stream) == CUDA_SUCCESS, "stream");
      failed += unless(gathered.values() == std::vector<double>(kCount * kRanks, 6.0), "data");
      return failed + unless(ncclCommDestroy(comm) == ncclSuccess, "destroy");
    }));
  }
  for (pid_t child : children) CHECK(end_of(child) == 0);
  // The shared file is gone before the first operation.
  CHECK(rmdir(directory.path().c_str()) == 0);
}

TEST_CASE("fake nccl: a rank whose process died is waited for until abort") {
  col::test::TempDir directory;
  ncclUniqueId id;
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  const Settings settings = {{"TMPDIR", directory.path()}, {"FAKE_GPU_DEVICES", "2"}};
  auto rank = [&](int own, bool dies) {
    return start_child(settings, [&, own, dies]() -> std::string {
      OnDevice device(own);
      OwnStream stream;
      ncclComm_t comm;
      if (ncclCommInitRank(&comm, 2, id, own) != ncclSuccess) return "init";
      Buffer<int> data(1);
      ncclAllReduce(data.get(), data.get(), 1, ncclInt32, ncclSum, comm, stream);
      if (cuStreamSynchronize(stream) != CUDA_SUCCESS) return "first";
      if (dies) std::raise(SIGKILL);
      ncclAllReduce(data.get(), data.get(), 1, ncclInt32, ncclSum, comm, stream);
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      if (cuStreamQuery(stream) != CUDA_ERROR_NOT_READY) return "it came back";
      if (ncclCommAbort(comm) != ncclSuccess) return "abort";
      return unless(cuStreamSynchronize(stream) == CUDA_SUCCESS, "stream");
    });
  };
  const pid_t survivor = rank(0, false), victim = rank(1, true);
  CHECK(end_of(victim) == -SIGKILL);
  CHECK(end_of(survivor) == 0);
}
