#include "launch/place/gpus.hpp"

#include <sys/stat.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "launch/job/launch_error.hpp"
#include "support/catch.hpp"
#include "unit/launch/fake_files.hpp"

using namespace col::launch;
using col::test::FakeFiles;
using std::chrono::milliseconds;
using Strings = std::vector<std::string>;

namespace {

const Strings kThree = {"GPU-aa11", "GPU-ab22", "GPU-cc33"};

GpuSources sources(const FakeFiles& files) {
  return {.proc = files / "proc", .dev = files / "dev", .nvidia_smi = files / "nvidia-smi"};
}

void add_gpu(const FakeFiles& files, const std::string& bus_id, int minor, const std::string& uuid) {
  files.write(fmt::format("proc/driver/nvidia/gpus/{}/information", bus_id),
              fmt::format("Model: \t\t NVIDIA H100\nIRQ:   \t\t 16\nGPU UUID: \t {}\nBus Location: \t {}\nDevice "
                          "Minor: \t {}\nGPU Excluded:\t No\n",
                          uuid, bus_id, minor));
}

void add_device(const FakeFiles& files, int minor) {
  files.write(fmt::format("dev/nvidia{}", minor), "");
}

void add_query(const FakeFiles& files, const std::string& script) {
  files.write("nvidia-smi", "#!/bin/sh\n" + script);
  REQUIRE(::chmod((files / "nvidia-smi").c_str(), 0700) == 0);
}

std::string refusal(const Strings& gpus, int gpus_per_rank, int ranks) {
  try {
    assign_gpus(gpus, gpus_per_rank, ranks);
  } catch (const LaunchError& error) {
    CHECK(error.exit_code() == 125);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("gpus: without a driver there are none", "[launch]") {
  const FakeFiles files;
  CHECK(gpu_uuids(sources(files)).empty());
}

TEST_CASE("gpus: the driver's files, by bus id", "[launch]") {
  const FakeFiles files;
  add_gpu(files, "0000:c1:00.0", 1, "GPU-second");
  add_gpu(files, "0000:0a:00.0", 3, "GPU-first");
  add_device(files, 1);
  add_device(files, 3);
  add_query(files, "echo GPU-wrong\n");
  CHECK(gpu_uuids(sources(files)) == Strings{"GPU-first", "GPU-second"});
}

TEST_CASE("gpus: a device that was not given to this container is left out", "[launch]") {
  const FakeFiles files;
  add_gpu(files, "0000:0a:00.0", 0, "GPU-first");
  add_gpu(files, "0000:c1:00.0", 1, "GPU-second");
  add_device(files, 1);
  CHECK(gpu_uuids(sources(files)) == Strings{"GPU-second"});
}

TEST_CASE("gpus: a UUID that the driver does not tell yet is asked for", "[launch]") {
  const FakeFiles files;
  add_gpu(files, "0000:0a:00.0", 0, "GPU-\?\?\?\?\?\?\?\?-\?\?\?\?-\?\?\?\?");
  add_device(files, 0);
  CHECK(gpu_uuids(sources(files)).empty());
  add_query(files, "[ \"$*\" = '--query-gpu=uuid --format=csv,noheader' ] && echo GPU-known && echo GPU-other\n");
  CHECK(gpu_uuids(sources(files)) == Strings{"GPU-known", "GPU-other"});
}

TEST_CASE("gpus: words of a driver that does not work are no devices", "[launch]") {
  const FakeFiles files;
  add_query(files, "echo 'NVIDIA-SMI has failed because it could not communicate with the driver.'\n");
  CHECK(gpu_uuids(sources(files)).empty());
  add_query(files, "echo GPU-half; exit 9\n");
  CHECK(gpu_uuids(sources(files)).empty());
}

TEST_CASE("gpus: a query that hangs is ended with what it started", "[launch]") {
  const FakeFiles files;
  const std::string script = GENERATE("echo GPU-early; sleep 60\n", "sleep 60 & sleep 60\n", "exec >&-; sleep 60\n");
  CAPTURE(script);
  add_query(files, script);
  GpuSources quick = sources(files);
  quick.limit = milliseconds(300);
  const auto before = std::chrono::steady_clock::now();
  CHECK(gpu_uuids(quick).empty());
  CHECK(std::chrono::steady_clock::now() - before < std::chrono::seconds(10));
}

TEST_CASE("gpus: CUDA_VISIBLE_DEVICES restricts and orders", "[launch]") {
  CHECK(visible_gpus(kThree, std::nullopt) == kThree);
  CHECK(visible_gpus(kThree, "2,0") == Strings{"GPU-cc33", "GPU-aa11"});
  CHECK(visible_gpus(kThree, " 1 , 2 ") == Strings{"GPU-ab22", "GPU-cc33"});
  CHECK(visible_gpus(kThree, "GPU-cc33,1") == Strings{"GPU-cc33", "GPU-ab22"});
  CHECK(visible_gpus(kThree, "GPU-c") == Strings{"GPU-cc33"});
  CHECK(visible_gpus(kThree, "MIG-1b,MIG-GPU-aa11/3/0") == Strings{"MIG-1b", "MIG-GPU-aa11/3/0"});
}

TEST_CASE("gpus: CUDA_VISIBLE_DEVICES counts up to what names no device", "[launch]") {
  CHECK(visible_gpus(kThree, "").empty());
  CHECK(visible_gpus(kThree, "-1").empty());
  CHECK(visible_gpus(kThree, "NoDevFiles").empty());
  CHECK(visible_gpus(kThree, "0,3,1") == Strings{"GPU-aa11"});
  CHECK(visible_gpus(kThree, "1,-1,0") == Strings{"GPU-ab22"});
  CHECK(visible_gpus(kThree, "0,GPU-a,1") == Strings{"GPU-aa11"});  // two begin with it
  CHECK(visible_gpus(kThree, "0,,1") == Strings{"GPU-aa11"});
  CHECK(visible_gpus(kThree, "0,1,0").empty());  // twice
  CHECK(visible_gpus({}, "0,MIG-1b").empty());
}

TEST_CASE("gpus: each rank gets its own", "[launch]") {
  CHECK(assign_gpus(kThree, 0, 8).empty());
  CHECK(assign_gpus(kThree, 1, 2) == Strings{"GPU-aa11", "GPU-ab22"});
  CHECK(assign_gpus({"a", "b", "c", "d"}, 2, 2) == Strings{"a,b", "c,d"});
}

TEST_CASE("gpus: too few are said with what can be done", "[launch]") {
  CHECK(refusal(kThree, 1, 4) ==
        "4 ranks with 1 GPU each need 4, but 3 can be used here; start at most 3 ranks, or give them fewer");
  CHECK(refusal(kThree, 2, 2) ==
        "2 ranks with 2 GPUs each need 4, but 3 can be used here; start at most 1 rank, or give them fewer");
  CHECK(refusal(kThree, 4, 1) == "1 rank with 4 GPUs each need 4, but 3 can be used here; give a rank at most 3");
  CHECK(refusal({}, 1, 1).find("but none can be used here; leave --gpus-per-rank out") != std::string::npos);
}
