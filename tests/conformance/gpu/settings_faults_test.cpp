// Settings of NCCL by name: GroupSpec::nccl_settings and COL_NCCL_SETTINGS.
#include <nccl.h>

#include <string>

#include <fmt/format.h>

#include "conformance/gpu/faults.hpp"
#include "conformance/gpu/gpu_ranks.hpp"
#include "support/catch.hpp"
#include "support/outcomes.hpp"

namespace col::test {
namespace {

int nccl_version() {
  int version = 0;
  expect(ncclGetVersion(&version) == ncclSuccess, "the version of NCCL");
  return version;
}

Group join_with(Context& context, int rank, const std::string& settings, const std::string& name = "g") {
  return context.init_group(
      {.name = name, .rank = rank, .world_size = 2, .backend = Backend::nccl, .nccl_settings = settings});
}

// What the communicators were told, of which each rank has one.
std::size_t told(const std::string& settings) {
  const std::string all = "\n" + std::string(fake_nccl_settings());
  std::size_t count = 0;
  for (std::size_t at = 0; (at = all.find("\n" + settings + "\n", at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST_CASE("gpu settings: NCCL is told what the group names, and so for the groups that are made from it", "[gpu]") {
  check_good(run_threads(2, [](int rank, Context& context) {
    const OnGpu current(rank);
    Group group = join_with(context, rank, "max_ctas=8, min_ctas=2,cga_cluster_size=0");
    group.barrier();
    expect(told("minCTAs=2 maxCTAs=8 cgaClusterSize=0") == 2, fake_nccl_settings());
    group.barrier();
    Group child = group.dup();
    const GpuArray<float> data(rank, std::size_t{8}, 1.0f);
    const std::vector<TensorView> tensors{data};
    group.allreduce_multigpu(tensors);
    group.barrier();
    expect(told("minCTAs=2 maxCTAs=8 cgaClusterSize=0") == 6, fake_nccl_settings());
    group.barrier();
  }));
  check_nothing_left();
}

TEST_CASE("gpu settings: those of the environment are for all groups, and a group's own win", "[gpu]") {
  const Setting all("COL_NCCL_SETTINGS", "max_ctas=8,min_ctas=4");
  check_good(run_threads(2, [](int rank, Context& context) {
    const OnGpu current(rank);
    Group group = join_with(context, rank, "max_ctas=16");
    group.barrier();
    expect(told("minCTAs=4 maxCTAs=16") == 2, fake_nccl_settings());
    group.barrier();
  }));
}

// NCCL compares with an upper bound that is not set, and refuses.
TEST_CASE("gpu settings: a lower bound alone is one", "[gpu]") {
  check_good(run_threads(2, [](int rank, Context& context) {
    const OnGpu current(rank);
    Group group = join_with(context, rank, "min_ctas=4");
    group.barrier();
    expect(told("minCTAs=4 maxCTAs=64") == 2, fake_nccl_settings());
    group.barrier();
  }));
}

TEST_CASE("gpu settings: what does not fit is an error on the rank that says it, and ends the others", "[gpu]") {
  struct {
    const char* settings;
    const char* says;
  } const wrong[] = {
      {"max_cta=8", "there is no setting of NCCL 'max_cta' here; it is one of cga_cluster_size, "},
      {"max_ctas=0", "max_ctas is a number from 1 to 64, and not '0'"},
      {"max_ctas=65", "max_ctas is a number from 1 to 64, and not '65'"},
      {"max_ctas=8x", "and not '8x'"},
      {"max_ctas=", "and not ''"},
      {"max_ctas", "'max_ctas' has no value"},
      {"max_ctas=8,max_ctas=9", "max_ctas is set twice"},
      {"max_ctas=8,min_ctas=9", "min_ctas=9 is above max_ctas=8"},
  };
  for (const auto& [settings, says] : wrong) {
    INFO(settings);
    const auto alike = run_threads(2, [&, settings = settings](int rank, Context& context) {
      const OnGpu current(rank);
      join_with(context, rank, settings);
    });
    check_all(alike, {.code = ErrorCode::invalid_argument, .says = says});
    const auto alone = run_threads(2, [&, settings = settings](int rank, Context& context) {
      const OnGpu current(rank);
      join_with(context, rank, rank == 1 ? settings : "");
    });
    check_ending(alone[1], {.code = ErrorCode::invalid_argument, .says = says});
    check_ending(alone[0], {.code = ErrorCode::mismatch, .says = "settings of NCCL that are in error"});
  }
  check_nothing_left();
}

TEST_CASE("gpu settings: ranks that name different ones are a mismatch", "[gpu]") {
  const auto outcomes = run_threads(2, [](int rank, Context& context) {
    const OnGpu current(rank);
    join_with(context, rank, rank == 0 ? "max_ctas=8" : "max_ctas=9");
  });
  check_all(outcomes, {.code = ErrorCode::mismatch, .says = "the settings max_ctas=8 of NCCL; rank 1: "});
}

TEST_CASE("gpu settings: what this NCCL is too old for is unavailable, and what it has is set", "[gpu]") {
  struct {
    const char* settings;
    int since;
    const char* told;
  } const given[] = {
      {"traffic_class=7", 22600, "trafficClass=7"},
      {"collnet=1", 22700, "collnetEnable=1"},
      {"cta_policy=efficiency", 22700, "CTAPolicy=1"},
      {"nvls_ctas=16", 22700, "nvlsCTAs=16"},
      {"cta_policy=zero", 22800, "CTAPolicy=2"},
      {"channels_per_net_peer=2", 22800, "nChannelsPerNetPeer=2"},
      {"nvlink_centric_sched=1", 22800, "nvlinkCentricSched=1"},
  };
  for (const auto& [settings, since, wanted] : given) {
    INFO(settings);
    const std::string expected = wanted;
    const auto outcomes = run_threads(2, [&, settings = settings](int rank, Context& context) {
      const OnGpu current(rank);
      Group group = join_with(context, rank, settings);
      group.barrier();
      expect(told(expected) == 2, fake_nccl_settings());
      group.barrier();
    });
    if (nccl_version() >= since)
      check_good(outcomes);
    else
      check_all(outcomes, {.code = ErrorCode::unavailable,
                           .says = fmt::format("needs NCCL {}.{}, and this is ", since / 10000, since % 10000 / 100)});
  }
  const auto outcomes = run_threads(2, [](int rank, Context& context) {
    const OnGpu current(rank);
    join_with(context, rank, "cta_policy=1");
  });
  if (nccl_version() >= 22700)
    check_all(outcomes, {.code = ErrorCode::invalid_argument,
                         .says = "cta_policy is one of default, efficiency, zero, and not '1'"});
}

TEST_CASE("gpu settings: groups over the host do not look at them", "[gpu]") {
  check_good(run_threads(2, [](int rank, Context& context) {
    Group group = context.init_group(
        {.name = "host", .rank = rank, .world_size = 2, .backend = Backend::gloo, .nccl_settings = "max_ctas=8"});
    group.barrier();
  }));
}

}  // namespace
}  // namespace col::test
