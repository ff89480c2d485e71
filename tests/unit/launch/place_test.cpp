// Where the ranks of a node run: processors, devices, and the map that says so.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "launch/inspect.hpp"
#include "launch/place/cpu_quota.hpp"
#include "launch/place/placement.hpp"
#include "launch/place/topology.hpp"
#include "support/catch.hpp"
#include "unit/launch/fake_files.hpp"

using namespace col::launch;
using col::test::FakeFiles;
using To = BindingSpec::To;
using MapBy = BindingSpec::MapBy;
using std::chrono::milliseconds;
using Strings = std::vector<std::string>;

namespace {

void add_cpu(const FakeFiles& sys, int cpu, const std::string& siblings, int core, int package) {
  const std::string path = fmt::format("devices/system/cpu/cpu{}/topology/", cpu);
  sys.write(path + "core_cpus_list", siblings + "\n");
  sys.write(path + "core_id", std::to_string(core) + "\n");
  sys.write(path + "physical_package_id", std::to_string(package) + "\n");
}

void add_node(const FakeFiles& sys, int node, const std::string& cpus) {
  sys.write(fmt::format("devices/system/node/node{}/cpulist", node), cpus + "\n");
}

// Two packages, two cores each, two threads each, numbered as most machines do: second threads come last.
void add_two_packages(const FakeFiles& sys) {
  for (int cpu = 0; cpu < 8; ++cpu) {
    const int core = cpu % 4;
    add_cpu(sys, cpu, fmt::format("{},{}", core, core + 4), core % 2, core / 2);
  }
  add_node(sys, 0, "0-1,4-5");
  add_node(sys, 1, "2-3,6-7");
}

std::vector<int> list(const std::string& text) {
  return parse_cpu_list(text).value();
}

std::string text_of(const Topology& topology) {
  std::string text;
  for (const Core& core : topology.cores) {
    text +=
        fmt::format("{}/{}:n{}p{}c{} ", cpu_list_text(core.cpus), core.threads, core.node, core.package, core.number);
  }
  return text;
}

}  // namespace

TEST_CASE("topology: threads, packages and NUMA nodes are told apart", "[launch]") {
  const FakeFiles sys;
  add_two_packages(sys);
  const Topology topology = read_topology(list("0-7"), sys.path());
  CHECK(text_of(topology) == "0,4/2:n0p0c0 1,5/2:n0p0c1 2,6/2:n1p1c0 3,7/2:n1p1c1 ");
  CHECK(topology.cpus() == list("0-7"));
  CHECK_FALSE(topology.has_one_package());
}

TEST_CASE("topology: of a core of which some threads may be used, only these count", "[launch]") {
  const FakeFiles sys;
  add_two_packages(sys);
  const Topology topology = read_topology(list("4,6-7"), sys.path());
  CHECK(text_of(topology) == "4/2:n0p0c0 6/2:n1p1c0 7/2:n1p1c1 ");
}

TEST_CASE("topology: processors that are off line are left out", "[launch]") {
  const FakeFiles sys;
  // CPU 3 is off: its directory has no topology, its sibling does not name it, and no node has it.
  add_cpu(sys, 0, "0-1", 0, 0);
  add_cpu(sys, 1, "0-1", 0, 0);
  add_cpu(sys, 2, "2", 1, 0);
  sys.write("devices/system/cpu/cpu3/online", "0\n");
  add_node(sys, 0, "0-2");
  const Topology topology = read_topology(list("0-2"), sys.path());
  CHECK(text_of(topology) == "0-1/2:n0p0c0 2/1:n0p0c1 ");
  CHECK(topology.has_one_package());
}

TEST_CASE("topology: nodes with gaps, without processors, and not in the order of processors", "[launch]") {
  const FakeFiles sys;
  for (int cpu = 0; cpu < 4; ++cpu) add_cpu(sys, cpu, std::to_string(cpu), cpu, 0);
  add_node(sys, 8, "0-1");
  add_node(sys, 2, "2-3");
  add_node(sys, 5, "");
  sys.write("devices/system/node/online", "2,5,8\n");
  const Topology topology = read_topology(list("0-3"), sys.path());
  CHECK(text_of(topology) == "2/1:n2p0c2 3/1:n2p0c3 0/1:n8p0c0 1/1:n8p0c1 ");
}

TEST_CASE("topology: an older kernel's name of the siblings", "[launch]") {
  const FakeFiles sys;
  sys.write("devices/system/cpu/cpu0/topology/thread_siblings_list", "0-1\n");
  CHECK(text_of(read_topology(list("0-1"), sys.path())) == "0-1/2:n0p0c0 ");
}

TEST_CASE("topology: what cannot be read is a core of its own on node 0", "[launch]") {
  const FakeFiles sys;
  CHECK(text_of(read_topology(list("1,3"), sys / "missing")) == "1/1:n0p0c1 3/1:n0p0c3 ");
  sys.write("devices/system/cpu/cpu1/topology/core_cpus_list", "rubbish\n");
  sys.write("devices/system/cpu/cpu1/topology/core_id", "-1\n");
  sys.write("devices/system/cpu/cpu1/topology/physical_package_id", "-1\n");
  sys.write("devices/system/cpu/cpu3/topology/core_cpus_list", "0-1\n");  // does not even name CPU 3
  CHECK(text_of(read_topology(list("1,3"), sys.path())) == "1/1:n0p0c1 3/1:n0p0c3 ");
}

TEST_CASE("topology: of this machine has every allowed processor once", "[launch]") {
  const std::vector<int> allowed = allowed_cpus();
  CHECK(read_topology(allowed).cpus() == allowed);
}

namespace {

// Node 0 has three cores of two threads, the last of which may be used by half; node 1 has one core.
Topology uneven() {
  return {{{.cpus = {0, 8}, .threads = 2, .number = 0, .package = 0, .node = 0},
           {.cpus = {1, 9}, .threads = 2, .number = 1, .package = 0, .node = 0},
           {.cpus = {2}, .threads = 2, .number = 2, .package = 0, .node = 0},
           {.cpus = {4, 12}, .threads = 2, .number = 0, .package = 1, .node = 1}}};
}

Topology two_cores() {
  return {{{.cpus = {6, 7}, .threads = 2, .number = 3}, {.cpus = {8}, .threads = 1, .number = 4}}};
}

std::string text_of(const Binding& binding) {
  std::string text;
  for (const auto& cpus : binding.cpus) text += (text.empty() ? "" : " ") + (cpus.empty() ? "-" : cpu_list_text(cpus));
  return text;
}

std::string planned(const Topology& topology, const BindingSpec& spec, int ranks) {
  return text_of(plan_binding(topology, spec, ranks));
}

std::vector<std::string> described(const Topology& topology, const BindingSpec& spec, int ranks) {
  std::vector<int> numbers(static_cast<std::size_t>(ranks));
  std::iota(numbers.begin(), numbers.end(), 3);
  return describe_bindings(topology, plan_binding(topology, spec, ranks), numbers);
}

std::string refusal(const Topology& topology, std::vector<std::vector<int>> lists) {
  return col::test::refusal_of(2, [&] { plan_binding(topology, {.to = To::list, .lists = std::move(lists)}, 2); });
}

}  // namespace

TEST_CASE("binding: none binds nobody", "[launch]") {
  const Binding binding = plan_binding(uneven(), {.to = To::none}, 3);
  CHECK(text_of(binding) == "- - -");
  CHECK(binding.notice.empty());
}

TEST_CASE("binding: to cores, node after node or in turns", "[launch]") {
  CHECK(planned(uneven(), {.to = To::core}, 2) == "0,8 1,9");
  CHECK(planned(uneven(), {.to = To::core}, 4) == "0,8 1,9 2 4,12");
  CHECK(planned(uneven(), {.to = To::core, .map_by = MapBy::numa}, 2) == "0,8 4,12");
  CHECK(planned(uneven(), {.to = To::core, .map_by = MapBy::numa}, 4) == "0,8 4,12 1,9 2");
}

TEST_CASE("binding: more ranks than cores begin again, and it is said once", "[launch]") {
  const Binding binding = plan_binding(two_cores(), {.to = To::core}, 4);
  CHECK(text_of(binding) == "6-7 8 6-7 8");
  CHECK(binding.notice == "4 ranks share 2 cores");
  CHECK(plan_binding(two_cores(), {.to = To::core}, 2).notice.empty());
  const Topology one{{{.cpus = {5}}}};
  CHECK(plan_binding(one, {.to = To::core}, 2).notice == "2 ranks share 1 core");
}

TEST_CASE("binding: to NUMA nodes", "[launch]") {
  CHECK(planned(uneven(), {.to = To::numa}, 4) == "0-2,8-9 0-2,8-9 0-2,8-9 4,12");
  CHECK(planned(uneven(), {.to = To::numa, .map_by = MapBy::numa}, 3) == "0-2,8-9 4,12 0-2,8-9");
  CHECK(plan_binding(uneven(), {.to = To::numa}, 5).notice == "5 ranks share 4 cores");
}

TEST_CASE("binding: to a list, begun again at its end", "[launch]") {
  const Binding binding = plan_binding(uneven(), {.to = To::list, .lists = {{1, 0, 1}, {4}}}, 3);
  CHECK(text_of(binding) == "0-1 4 0-1");
  CHECK(binding.notice.empty());
}

TEST_CASE("binding: a list stays inside the mask", "[launch]") {
  CHECK(refusal(two_cores(), {{6, 9}, {3, 8}, {2}}) ==
        "--bind-to list names CPUs 2-3,9, but this process may run on 6-8 only; name some of these (taskset -cp $$ "
        "shows them)");
  CHECK(refusal(two_cores(), {{5}}).starts_with("--bind-to list names CPU 5, but"));
  CHECK(refusal(two_cores(), {}).starts_with("--bind-to list: needs processors"));
  CHECK(refusal(two_cores(), {{6}, {}}).starts_with("--bind-to list: needs processors"));
  CHECK(refusal(two_cores(), {{6, 7, 8}}).empty());
}

TEST_CASE("binding: the report has the numbers of the operating system", "[launch]") {
  CHECK(described(two_cores(), {.to = To::core}, 2) ==
        Strings{"rank 3: CPUs 6-7 (core 3, NUMA node 0)", "rank 4: CPU 8 (core 4, NUMA node 0)"});
  CHECK(described(two_cores(), {.to = To::none}, 1) == Strings{"rank 3: CPUs 6-8 (not bound)"});
  CHECK(described(uneven(), {.to = To::core}, 4) ==
        Strings{"rank 3: CPUs 0,8 (core 0 of package 0, NUMA node 0)",
                "rank 4: CPUs 1,9 (core 1 of package 0, NUMA node 0)",
                "rank 5: CPU 2 (1 of 2 threads of core 2 of package 0, NUMA node 0)",
                "rank 6: CPUs 4,12 (core 0 of package 1, NUMA node 1)"});
  CHECK(described(uneven(), {.to = To::list, .lists = {{0, 1, 4}}}, 1) ==
        Strings{"rank 3: CPUs 0-1,4 (cores 0-1 of package 0, core 0 of package 1, NUMA nodes 0-1)"});
}

TEST_CASE("binding: the report says why nobody is bound", "[launch]") {
  const Binding binding{.cpus = {{}, {}}, .why_not = "there are 2 ranks on 1 CPU"};
  const std::vector<int> ranks = {0, 1};
  CHECK(describe_bindings(two_cores(), binding, ranks) ==
        Strings{"rank 0: CPUs 6-8 (not bound: there are 2 ranks on 1 CPU)",
                "rank 1: CPUs 6-8 (not bound: there are 2 ranks on 1 CPU)"});
}

TEST_CASE("binding: a child runs where its mask says", "[launch]") {
  const std::vector<int> allowed = allowed_cpus();
  const std::vector<int> last = {allowed.back()};
  const CpuMask mask(last);
  const CpuMask nothing;
  const pid_t child = ::vfork();
  if (child == 0) ::_exit(nothing.apply() == 0 && mask.apply() == 0 ? 0 : 1);
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(allowed_cpus() == allowed);  // of the parent

  const pid_t reader = ::fork();
  if (reader == 0) ::_exit(mask.apply() == 0 && allowed_cpus() == last ? 0 : 1);
  REQUIRE(::waitpid(reader, &status, 0) == reader);
  CHECK(status == 0);
}

TEST_CASE("binding: a mask of processors that do not exist is refused by the kernel", "[launch]") {
  CHECK(CpuMask(std::vector<int>{kMaxCpus - 1}).apply() == EINVAL);
}

namespace {

const Strings kThree = {"GPU-aa11", "GPU-ab22", "GPU-cc33"};

GpuSources sources(const FakeFiles& files) {
  return {.proc = files / "proc", .dev = files / "dev", .sys = files / "sys", .nvidia_smi = files / "nvidia-smi"};
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
  return col::test::refusal_of(125, [&] { assign_gpus(gpus, gpus_per_rank, ranks); });
}

}  // namespace

TEST_CASE("gpus: without a driver there are none", "[launch]") {
  const FakeFiles files;
  CHECK(find_gpus(sources(files)).empty());
}

TEST_CASE("gpus: the driver's files, by bus id", "[launch]") {
  const FakeFiles files;
  add_gpu(files, "0000:c1:00.0", 1, "GPU-second");
  add_gpu(files, "0000:0a:00.0", 3, "GPU-first");
  add_device(files, 1);
  add_device(files, 3);
  add_query(files, "echo GPU-wrong\n");
  CHECK(uuids_of(find_gpus(sources(files))) == Strings{"GPU-first", "GPU-second"});
}

TEST_CASE("gpus: a device that was not given to this container is left out", "[launch]") {
  const FakeFiles files;
  add_gpu(files, "0000:0a:00.0", 0, "GPU-first");
  add_gpu(files, "0000:c1:00.0", 1, "GPU-second");
  add_device(files, 1);
  CHECK(uuids_of(find_gpus(sources(files))) == Strings{"GPU-second"});
}

TEST_CASE("gpus: a UUID that the driver does not tell yet is asked for", "[launch]") {
  const FakeFiles files;
  add_gpu(files, "0000:0a:00.0", 0, "GPU-\?\?\?\?\?\?\?\?-\?\?\?\?-\?\?\?\?");
  add_device(files, 0);
  CHECK(find_gpus(sources(files)).empty());
  add_query(files,
            "[ \"$*\" = '--query-gpu=uuid,pci.bus_id --format=csv,noheader' ] && echo GPU-known, 00000000:0A:00.0 && "
            "echo GPU-other\n");
  CHECK(uuids_of(find_gpus(sources(files))) == Strings{"GPU-known", "GPU-other"});
}

TEST_CASE("gpus: words of a driver that does not work are no devices", "[launch]") {
  const FakeFiles files;
  add_query(files, "echo 'NVIDIA-SMI has failed because it could not communicate with the driver.'\n");
  CHECK(find_gpus(sources(files)).empty());
  add_query(files, "echo GPU-half; exit 9\n");
  CHECK(find_gpus(sources(files)).empty());
}

TEST_CASE("gpus: a query that hangs is ended with what it started", "[launch]") {
  const FakeFiles files;
  const std::string script = GENERATE("echo GPU-early; sleep 60\n", "sleep 60 & sleep 60\n", "exec >&-; sleep 60\n");
  CAPTURE(script);
  add_query(files, script);
  GpuSources quick = sources(files);
  quick.limit = milliseconds(300);
  const auto before = std::chrono::steady_clock::now();
  CHECK(find_gpus(quick).empty());
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

TEST_CASE("gpus: the NUMA node of each is known by its bus, whoever names that", "[launch]") {
  const FakeFiles files;
  const auto nodes = [&] {
    std::vector<int> found;
    for (const Gpu& gpu : find_gpus(sources(files))) found.push_back(gpu.node);
    return found;
  };
  files.write("sys/bus/pci/devices/0000:0a:00.0/numa_node", "1\n");
  files.write("sys/bus/pci/devices/0000:c1:00.0/numa_node", "-1\n");
  files.write("sys/bus/pci/devices/10000:c1:00.0/numa_node", "3\n");
  add_query(files,
            "echo GPU-a, 00000000:0A:00.0; echo GPU-b, 00000000:C1:00.0; echo GPU-c, 00010000:C1:00.0; echo GPU-d, "
            "rubbish; echo GPU-e\n");
  CHECK(nodes() == std::vector<int>{1, -1, 3, -1, -1});
  add_gpu(files, "0000:0a:00.0", 0, "GPU-first");
  add_gpu(files, "0000:c1:00.0", 1, "GPU-second");
  add_device(files, 0);
  add_device(files, 1);
  CHECK(nodes() == std::vector<int>{1, -1});
}

TEST_CASE("gpus: a rank's devices are on one NUMA node, or nobody knows", "[launch]") {
  const std::vector<Gpu> gpus = {{"GPU-a", 0}, {"GPU-b", 1}, {"GPU-c", 1}, {"GPU-d", -1}};
  CHECK(nodes_of_devices({"GPU-b", "GPU-a"}, gpus) == std::vector<int>{1, 0});
  CHECK(nodes_of_devices({"GPU-b,GPU-c", "GPU-a,GPU-b", "GPU-d", "MIG-1"}, gpus) == std::vector<int>{1, -1, -1, -1});
  CHECK(nodes_of_devices({}, gpus).empty());
}

TEST_CASE("gpus: too few are said with what can be done", "[launch]") {
  CHECK(refusal(kThree, 1, 4) ==
        "4 ranks with 1 GPU each need 4, but 3 can be used here; start at most 3 ranks, or give them fewer");
  CHECK(refusal(kThree, 2, 2) ==
        "2 ranks with 2 GPUs each need 4, but 3 can be used here; start at most 1 rank, or give them fewer");
  CHECK(refusal(kThree, 4, 1) == "1 rank with 4 GPUs each need 4, but 3 can be used here; give a rank at most 3");
  CHECK(refusal({}, 1, 1).find("but none can be used here; leave --gpus-per-rank out") != std::string::npos);
}

TEST_CASE("job map: one line for each rank, columns as needed", "[launch]") {
  const std::vector<MappedNode> map{
      {.node_rank = 0,
       .host = "ada",
       .ranks = {{.rank = 0, .local_rank = 0, .command = {"./train", "--lr", "0.1"}},
                 {.rank = 1, .local_rank = 1, .command = {"./train", "--name", "my run"}}}}};
  CHECK(render_job_map(map, {}) ==
        "node 0 (ada): 2 ranks\n"
        "rank  command                  output\n"
        "--------------------------------------\n"
        "0     ./train --lr 0.1         console\n"
        "1     ./train --name 'my run'  console\n");
}

TEST_CASE("job map: several nodes, processors, GPUs and files", "[launch]") {
  const std::vector<MappedNode> map{
      {.node_rank = 0, .host = "ada", .ranks = {{.rank = 0, .local_rank = 0, .command = {"a"}}}},
      {.node_rank = 1,
       .host = "bob",
       .ranks = {{.rank = 1,
                  .local_rank = 0,
                  .command = {"b", ""},
                  .cpus = {0, 1, 8},
                  .gpus = {"GPU-12345678-aaaa-bbbb", "MIG-7"},
                  .output = "run/1.out, run/1.err"},
                 {.rank = 2, .local_rank = 1, .command = {"b"}}}}};
  CHECK(render_job_map(map, {}) ==
        "node 0 (ada): 1 rank\n"
        "rank  command  output\n"
        "----------------------\n"
        "0     a        console\n"
        "\n"
        "node 1 (bob): 2 ranks\n"
        "rank  local rank  command  CPUs       GPUs                output\n"
        "------------------------------------------------------------------------------\n"
        "1     0           b ''     0-1,8      GPU-12345678,MIG-7  run/1.out, run/1.err\n"
        "2     1           b        not bound                      console\n");
}

TEST_CASE("job map: why nobody is bound stands below", "[launch]") {
  const std::vector<MappedNode> map{{.host = "ada",
                                     .ranks = {{.rank = 0, .local_rank = 0, .command = {"a"}}},
                                     .why_not = "a single rank may use all of them"}};
  CHECK(render_job_map(map, {}) ==
        "node 0 (ada): 1 rank\n"
        "rank  command  output\n"
        "----------------------\n"
        "0     a        console\n"
        "not bound to CPUs: a single rank may use all of them\n");
}

TEST_CASE("job map: long commands are shortened and control characters are harmless", "[launch]") {
  const std::string ascii =
      render_job_map({{.host = "ada\x1b[2J", .ranks = {{.command = {std::string(100, 'x')}}}}}, {});
  CHECK(ascii.find("ada\\x1b[2J") != std::string::npos);
  CHECK(ascii.find("\n0     " + std::string(45, 'x') + "...  console\n") != std::string::npos);
  const std::string unicode =
      render_job_map({{.host = "ada", .ranks = {{.command = {std::string(100, 'x')}}}}}, {.utf8 = true});
  CHECK(unicode.find("\n0     " + std::string(47, 'x') + "…  console\n") != std::string::npos);
}
