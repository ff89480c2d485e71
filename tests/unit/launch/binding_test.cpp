#include "launch/place/binding.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "launch/job/launch_error.hpp"
#include "launch/place/cpu_list.hpp"
#include "launch/place/cpu_quota.hpp"
#include "support/catch.hpp"

using namespace col::launch;
using To = BindingSpec::To;
using MapBy = BindingSpec::MapBy;

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

std::optional<std::string> refusal(const Topology& topology, std::vector<std::vector<int>> lists) {
  try {
    plan_binding(topology, {.to = To::list, .lists = std::move(lists)}, 2);
  } catch (const LaunchError& error) {
    CHECK(error.exit_code() == 2);
    return error.what();
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("binding: none binds nobody", "[launch]") {
  const Binding binding = plan_binding(uneven(), {}, 3);
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
  CHECK(refusal(two_cores(), {{5}})->starts_with("--bind-to list names CPU 5, but"));
  CHECK(refusal(two_cores(), {})->starts_with("--bind-to list: needs processors"));
  CHECK(refusal(two_cores(), {{6}, {}})->starts_with("--bind-to list: needs processors"));
  CHECK_FALSE(refusal(two_cores(), {{6, 7, 8}}));
}

TEST_CASE("binding: the report has the numbers of the operating system", "[launch]") {
  using Lines = std::vector<std::string>;
  CHECK(described(two_cores(), {.to = To::core}, 2) ==
        Lines{"rank 3: CPUs 6-7 (core 3, NUMA node 0)", "rank 4: CPU 8 (core 4, NUMA node 0)"});
  CHECK(described(two_cores(), {}, 1) == Lines{"rank 3: CPUs 6-8 (not bound)"});
  CHECK(described(uneven(), {.to = To::core}, 4) ==
        Lines{"rank 3: CPUs 0,8 (core 0 of package 0, NUMA node 0)",
              "rank 4: CPUs 1,9 (core 1 of package 0, NUMA node 0)",
              "rank 5: CPU 2 (1 of 2 threads of core 2 of package 0, NUMA node 0)",
              "rank 6: CPUs 4,12 (core 0 of package 1, NUMA node 1)"});
  CHECK(described(uneven(), {.to = To::list, .lists = {{0, 1, 4}}}, 1) ==
        Lines{"rank 3: CPUs 0-1,4 (cores 0-1 of package 0, core 0 of package 1, NUMA nodes 0-1)"});
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
