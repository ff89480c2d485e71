#include "launch/place/topology.hpp"

#include <string>
#include <vector>

#include <fmt/format.h>

#include "launch/place/cpu_list.hpp"
#include "launch/place/cpu_quota.hpp"
#include "support/catch.hpp"
#include "unit/launch/fake_files.hpp"

using namespace col::launch;
using col::test::FakeFiles;

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
  CHECK(topology.nodes() == std::vector<int>{0, 1});
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
  CHECK(topology.nodes() == std::vector<int>{2, 8});
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
