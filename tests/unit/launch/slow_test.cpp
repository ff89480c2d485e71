// How long calls took, and who is named for it.
#include "launch/report/report.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <col/job.hpp>

#include "common/text.hpp"
#include "core/clock/clock.hpp"
#include "launch/report/report_json.hpp"
#include "launch/times/call_watch.hpp"
#include "support/call_ring.hpp"
#include "support/catch.hpp"
#include "support/jumping_time.hpp"

using namespace col::launch;
using col::Collective;
using col::ControlPage;
using col::test::note;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;

std::vector<std::string> slow_lines(const JobStory& story) {
  return col::tools::lines_of(report_text(slow_part(story), {}, ""));
}

// Ranks that are threads of this process, and members of one group.
struct Ranks {
  explicit Ranks(int size) : page(ControlPage::in_memory(size)) {
    for (int rank = 0; rank < size; ++rank) {
      page->record(rank).join(rank);
      groups.push_back(page->record(rank).enter_group("dp", 77));
    }
  }
  // Nothing: it did not wait.
  void end_call(int rank, std::uint64_t sequence, std::optional<std::uint64_t> waited_ns,
                Collective op = Collective::allreduce) {
    note(page->record(rank), groups[static_cast<std::size_t>(rank)], sequence, op, {col::DType::float32, 1000, -1, -1},
         true, waited_ns.value_or(0));
  }

  std::shared_ptr<ControlPage> page;
  std::vector<int> groups;
};

const CallSite& site_of(const std::vector<CallTimes>& times, std::size_t rank) {
  REQUIRE(times[rank].sites.size() == 1);
  return times[rank].sites.front();
}

// A story of ranks that were watched for ten seconds, and were outside of calls for half of them.
JobStory story_of(std::vector<CallSite> sites, const std::string& host = "n1") {
  JobStory story;
  for (const CallSite& site : sites) {
    RankStory rank;
    rank.rank = rank.local_rank = static_cast<int>(story.ranks.size());
    rank.host = host;
    rank.times.sites = {site};
    rank.times.own = {.seconds = 10, .outside = 5, .cpu = 9, .queued = 0.1};
    story.ranks.push_back(rank);
  }
  return story;
}

CallSite site(std::uint64_t last, double late) {
  return {.group = "dp",
          .op = "allreduce",
          .calls = 1000,
          .seconds = 2,
          .compared = 1000,
          .waited = 1,
          .last = last,
          .late = late};
}

}  // namespace

TEST_CASE("call watch: the rank that has not waited came last", "[launch]") {
  Ranks ranks(3);
  CallWatch watch(3);
  constexpr std::uint64_t kCalls = 100;
  for (std::uint64_t call = 1; call <= kCalls; ++call) {
    ranks.end_call(0, call, 2 * kMillisecond);
    ranks.end_call(1, call, 2 * kMillisecond);
    ranks.end_call(2, call, std::nullopt);
    if (call % 30 == 0) watch.look(*ranks.page);
  }
  const auto times = watch.take(*ranks.page);
  const CallSite& late = site_of(times, 2);
  CHECK(late.group == "dp");
  CHECK(late.op == "allreduce");
  CHECK(late.calls == kCalls);
  CHECK(late.bytes == kCalls * 4000);
  CHECK(late.compared == kCalls);
  CHECK(late.last == kCalls);
  CHECK(late.late >= 0.2);
  CHECK(late.seconds == 0);
  CHECK(late.waited == 0);
  CHECK(site_of(times, 0).last == 0);
  CHECK(site_of(times, 0).waited >= 0.2);
  CHECK(site_of(times, 0).seconds >= 0.2);
}

TEST_CASE("call watch: of a long call, what the last one needs itself is no waiting", "[launch]") {
  const col::test::JumpingTime time;  // stands still
  Ranks ranks(2);
  CallWatch watch(2);
  ranks.end_call(0, 1, 50 * kMillisecond);
  ranks.end_call(1, 1, 20 * kMillisecond);
  const auto times = watch.take(*ranks.page);
  CHECK(site_of(times, 1).last == 1);
  CHECK(site_of(times, 1).late >= 0.02);
  CHECK(site_of(times, 1).late < 0.04);
  CHECK(site_of(times, 1).waited == 0);
  CHECK(site_of(times, 1).seconds >= 0.02);
}

TEST_CASE("call watch: it is not known who came last if several have not waited, or have started it before",
          "[launch]") {
  Ranks ranks(3);
  CallWatch watch(3);
  ranks.end_call(0, 1, kMillisecond, Collective::reduce);
  ranks.end_call(1, 1, std::nullopt, Collective::reduce);
  ranks.end_call(2, 1, std::nullopt, Collective::reduce);
  auto times = watch.take(*ranks.page);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    CHECK(site_of(times, rank).compared == 1);
    CHECK(site_of(times, rank).last == 0);
  }
  CHECK(site_of(times, 0).waited >= 0.001);

  Ranks starters(2);
  CallWatch other(2);
  for (int rank = 0; rank < 2; ++rank)
    note(starters.page->record(rank), starters.groups[static_cast<std::size_t>(rank)], 1, Collective::allreduce, {},
         false);
  starters.end_call(0, 1, kMillisecond);
  starters.end_call(1, 1, std::nullopt);
  times = other.take(*starters.page);
  CHECK(site_of(times, 0).calls == 1);
  CHECK(site_of(times, 1).last == 0);
  CHECK(site_of(times, 1).compared == 0);
}

TEST_CASE("call watch: what was overwritten between two looks is estimated by what is there", "[launch]") {
  Ranks ranks(2);
  CallWatch watch(2);
  watch.look(*ranks.page);
  constexpr std::uint64_t kCalls = 5000;
  for (std::uint64_t call = 1; call <= kCalls; ++call) {
    ranks.end_call(0, call, call % 2 == 0 ? std::optional(kMillisecond / 10) : std::nullopt);
    ranks.end_call(1, call, std::nullopt);
  }
  const auto times = watch.take(*ranks.page);
  CHECK(site_of(times, 0).calls == kCalls);
  CHECK(site_of(times, 0).compared == kCalls);
  CHECK(site_of(times, 1).last >= kCalls / 2 - 5);
  CHECK(site_of(times, 1).last <= kCalls / 2 + 5);
  CHECK(site_of(times, 0).waited >= 0.24);
  CHECK(site_of(times, 1).late >= 0.24);
}

TEST_CASE("call watch: a rank of a group that has gone, and one that is alone in its group on this host", "[launch]") {
  const auto page = ControlPage::in_memory(2);
  CallWatch watch(2);
  for (int rank = 0; rank < 2; ++rank) {
    auto& record = page->record(rank);
    record.join(rank);
    const int both = record.enter_group("both", 5),
              alone = record.enter_group("alone", 10 + static_cast<unsigned>(rank));
    note(record, both, 1, Collective::barrier, {}, true);
    note(record, alone, 1, Collective::barrier, {}, true);
    record.leave_group(both);
    record.leave_group(alone);
  }
  const auto times = watch.take(*page);
  REQUIRE(times[0].sites.size() == 2);
  CHECK(times[0].sites[0].group == "alone");
  CHECK(times[0].sites[0].compared == 0);
  CHECK(times[0].sites[1].group == "both");
  CHECK(times[0].sites[1].compared == 1);
}

TEST_CASE("call watch: what ranks of this process do is seen", "[launch]") {
  Ranks ranks(1);
  CallWatch watch(1);
  watch.look(*ranks.page);
  ranks.page->record(0).begin("dp", 1, "allreduce", 0);
  const auto end = CallWatch::Clock::now() + 30ms;
  while (CallWatch::Clock::now() < end) {
  }
  watch.look(*ranks.page);
  const OwnTime own = watch.take(*ranks.page)[0].own;
  CHECK(own.seconds >= 0.03);
  CHECK(own.outside < own.seconds);
  CHECK(own.outside > 0);
}

TEST_CASE("slow: one rank that comes last again and again is named, with its reason", "[launch]") {
  JobStory story = story_of({site(60, 0.05), site(830, 1.743), site(110, 0.1)});
  const auto slow = find_slow(story);
  REQUIRE(slow);
  CHECK(slow->rank == 1);
  CHECK(slow->sentence ==
        "rank 1 was last in 83 % of 1,000 allreduces of group 'dp', and the others waited 2.1 ms for it then, 1.7 s in "
        "all; it computes: its main thread was on a processor for 90 % of the time");
  story.ranks[1].times.own = {.seconds = 10, .outside = 5, .cpu = 5, .queued = 4};
  CHECK(find_slow(story)->sentence.ends_with(
      "it computes: its main thread was on a processor for 50 % of the time, and waited for one for 40 %"));
  story.ranks[1].times.own = {.seconds = 10, .outside = 5, .cpu = 4, .queued = 5};
  CHECK(find_slow(story)->sentence.ends_with(
      "its processor is busy: it was ready to run, and waited for a processor, for 50 % of the time"));
  story.ranks[1].times.own = {.seconds = 10, .outside = 5, .cpu = 1};
  CHECK(find_slow(story)->sentence.find("it sleeps, or waits for something that is not of col") != std::string::npos);
  story.ranks[1].times.own = {.seconds = 10, .outside = 5};
  CHECK(find_slow(story)->sentence.ends_with("what it did meanwhile is not known here"));

  const auto report = report_json(story);
  CHECK(report["slow"]["rank"] == 1);
  CHECK(report["ranks"][1]["times"]["calls"][0]["last"] == 830);
  CHECK(story_from_json(report).ranks[1].times.sites[0].last == 830);
  CHECK(report_json(JobStory())["slow"].is_null());
}

TEST_CASE("slow: nobody is named without a reason", "[launch]") {
  CHECK_FALSE(find_slow(JobStory()));
  // Each is the last as often as chance has it.
  CHECK_FALSE(find_slow(story_of({site(330, 0.7), site(350, 0.8), site(320, 0.7)})));
  // Always the last one, and it costs next to nothing.
  CHECK_FALSE(find_slow(story_of({site(1000, 0.1), site(0, 0)})));
  // Too few calls.
  CallSite few = site(10, 3);
  few.compared = 10;
  CHECK_FALSE(find_slow(story_of({few, CallSite{.group = "dp", .op = "allreduce", .compared = 10}})));
  // The root of broadcasts, which is in calls all the time.
  JobStory busy = story_of({site(1000, 6), site(0, 0)});
  busy.ranks[0].times.own.outside = 0.5;
  CHECK_FALSE(find_slow(busy));
  // Nothing to compare with.
  CHECK_FALSE(find_slow(story_of({site(1000, 3)})));
  JobStory two = story_of({site(1000, 3)}, "n1");
  two.ranks.push_back(story_of({site(0, 0)}, "n2").ranks[0]);
  CHECK_FALSE(find_slow(two));
}

TEST_CASE("slow: a table of groups and calls", "[launch]") {
  JobStory story = story_of({site(60, 0.05), site(830, 1.743)});
  story.ranks[0].times.sites[0].bytes = story.ranks[1].times.sites[0].bytes = 1000 * (1 << 20);
  story.ranks[0].times.sites.push_back({.group = "dp", .op = "send", .calls = 12, .bytes = 96, .seconds = 0.0004});
  const auto lines = slow_lines(story);
  REQUIRE(lines.size() == 5);
  CHECK(lines[0].starts_with("rank 1 was last in 83 % of 1,000 allreduces"));
  CHECK(lines[1] == "group  call       calls  took    waiting  last to come             data");
  CHECK(lines[3] == "dp     allreduce  1,000  2.0 s   1.0 s    rank 1: 83 %, by 2.1 ms  1.0 GB/s");
  CHECK(lines[4] == "dp     send       12     400 us");
  CHECK(slow_lines(JobStory()).empty());
}

namespace {

// Ranks 0 and 1 on one host and rank 2 on another, all in group 7: how long they took in each of `calls` calls.
JobStory on_two_hosts(std::uint64_t calls, const std::vector<std::uint64_t>& took_us) {
  JobStory story = story_of({site(0, 0), site(0, 0), site(0, 0)});
  story.nodes = 2;
  for (RankStory& rank : story.ranks) {
    rank.node_rank = rank.rank / 2;
    rank.host = rank.node_rank == 0 ? "n1" : "n2";
    rank.times.distance = 20e-6;
    CallSite& one = rank.times.sites[0];
    one.calls = calls;
    one.sampled.members = 2 - rank.node_rank;
    for (std::uint64_t call = 1; call <= calls; ++call)
      one.sampled.add(7, call, took_us[static_cast<std::size_t>(rank.rank)] * 1000);
  }
  return story;
}

}  // namespace

TEST_CASE("slow: ranks of several hosts are compared with one another", "[launch]") {
  JobStory story = on_two_hosts(1000, {2100, 2300, 100});
  compare_hosts(story);
  for (const RankStory& rank : story.ranks) {
    const CallSite& one = rank.times.sites[0];
    CHECK(one.hosts == 2);
    CHECK(one.doubt == Catch::Approx(40e-6));
    CHECK(one.compared == 1000);
    CHECK(one.sampled.calls.empty());
  }
  const CallSite& late = story.ranks[2].times.sites[0];
  CHECK(late.last == 1000);
  CHECK(late.late == Catch::Approx(1000 * 2.1e-3));
  CHECK(late.waited == 0);
  CHECK(story.ranks[0].times.sites[0].waited == Catch::Approx(1000 * 2e-3));
  CHECK(find_slow(story)->sentence.starts_with(
      "rank 2 (host n2) was last in 100 % of 1,000 allreduces of group 'dp', and the others waited 2.1 ms for it then, "
      "to within 40 us, 2.1 s in all; it computes"));
  const auto lines = slow_lines(story);
  REQUIRE(lines.size() == 4);
  CHECK(lines[3].starts_with("dp     allreduce  2 hosts  1,000"));
  CHECK(report_json(story)["ranks"][2]["times"]["calls"][0]["hosts"] == 2);
  CHECK(report_json(story_from_json(story_to_json(story)))["slow"]["rank"] == 2);
}

TEST_CASE("slow: between hosts, who was last by less than a message takes is not said", "[launch]") {
  JobStory story = on_two_hosts(1000, {139, 139, 100});
  compare_hosts(story);
  CHECK(story.ranks[2].times.sites[0].compared == 1000);
  CHECK(story.ranks[2].times.sites[0].last == 0);
  // Neighbours have no such doubt about each other.
  story = on_two_hosts(1000, {100, 139, 200});
  compare_hosts(story);
  CHECK(story.ranks[0].times.sites[0].last == 1000);
}

TEST_CASE("slow: hosts are compared only where all that is needed is known", "[launch]") {
  const auto is_compared = [](JobStory story) {
    compare_hosts(story);
    CHECK(story.ranks[0].times.sites[0].sampled.calls.empty());
    return story.ranks[0].times.sites[0].hosts > 1;
  };
  CHECK(is_compared(on_two_hosts(20, {2100, 2200, 100})));
  CHECK_FALSE(is_compared(on_two_hosts(19, {2100, 2200, 100})));
  JobStory story = on_two_hosts(1000, {2100, 2200, 100});
  story.ranks[2].times.distance.reset();  // nobody has watched there
  CHECK_FALSE(is_compared(story));
  story = on_two_hosts(1000, {2100, 2200, 100});
  story.ranks[2].times.sites[0].sampled.token = 8;  // another group of the same name
  CHECK_FALSE(is_compared(story));
  // A rank that is in the group has samples of another one of the same name; the others are still on two hosts.
  story = on_two_hosts(1000, {2100, 2200, 100});
  story.ranks[1].times.sites[0].sampled.token = 8;
  CHECK_FALSE(is_compared(story));
  // One of them has not seen some calls.
  story = on_two_hosts(1000, {2100, 2200, 100});
  auto& calls = story.ranks[1].times.sites[0].sampled.calls;
  calls.erase(calls.begin(), calls.begin() + 100);
  compare_hosts(story);
  CHECK(story.ranks[2].times.sites[0].compared == 1000);
  CHECK(story.ranks[2].times.sites[0].late == Catch::Approx(1000 * 2.05e-3));
}

TEST_CASE("slow: calls that take turns are compared as all others", "[launch]") {
  // One kind has odd numbers only, the other one even ones, and each its own last rank.
  JobStory story = on_two_hosts(0, {});
  for (RankStory& rank : story.ranks) {
    std::vector<CallSite>& sites = rank.times.sites;
    sites.push_back(sites[0]);
    sites[1].op = "allgather";
    for (std::uint64_t call = 1; call <= 20'000; ++call) {
      CallSite& one = sites[1 - call % 2];
      ++one.calls;
      one.sampled.add(7, call, rank.rank == (call % 2 == 1 ? 2 : 0) ? 100'000 : 2'100'000);
    }
  }
  compare_hosts(story);
  for (std::size_t site = 0; site < 2; ++site) {
    for (const RankStory& rank : story.ranks) {
      const CallSite& one = rank.times.sites[site];
      const bool is_last = rank.rank == (site == 0 ? 2 : 0);
      CHECK(one.hosts == 2);
      CHECK(one.compared == 10'000);
      CHECK(one.last == (is_last ? 10'000 : 0));
      CHECK(one.late == Catch::Approx(is_last ? 10'000 * 2e-3 : 0));
      CHECK(one.waited == Catch::Approx(is_last ? 0 : 10'000 * 2e-3));
    }
  }
}

TEST_CASE("slow: samples stay few, and are the same on all hosts", "[launch]") {
  SampledCalls all, some;
  for (std::uint64_t call = 1; call <= 100'000; ++call) {
    all.add(7, call, call);
    if (call % 7 != 0) some.add(7, call, call);
    all.add(8, call, 0);
  }
  for (const SampledCalls* sampled : {&all, &some}) {
    CHECK(sampled->token == 7);
    CHECK(sampled->calls.size() <= SampledCalls::kMost);
    CHECK(sampled->calls.size() >= SampledCalls::kMost / 4);
  }
  // Who keeps fewer keeps some of those.
  while (some.stride < all.stride) some.thin();
  while (all.stride < some.stride) all.thin();
  CHECK(std::ranges::includes(all.calls, some.calls));
  CHECK(some.calls.size() >= SampledCalls::kMost / 8);
}

TEST_CASE("call watch: samples stay few, however many kinds of calls there are", "[launch]") {
  Ranks ranks(1);
  CallWatch watch(1, true);
  constexpr int kGroups = 60;
  std::vector<int> groups;
  for (int group = 0; group < kGroups; ++group)
    groups.push_back(
        ranks.page->record(0).enter_group("g" + std::to_string(group), 100 + static_cast<std::uint64_t>(group)));
  std::uint64_t sequence = 0;
  for (int round = 0; round < 300; ++round) {
    ++sequence;
    for (const int group : groups)
      note(ranks.page->record(0), group, sequence, Collective::allreduce, {col::DType::float32, 8, -1, -1}, true);
    if (round % 10 == 9) watch.look(*ranks.page);
  }
  const auto times = watch.take(*ranks.page);
  std::size_t samples = 0, least = SampledCalls::kMost;
  for (const CallSite& site : times[0].sites) {
    samples += site.sampled.calls.size();
    least = std::min(least, site.sampled.calls.size());
  }
  CHECK(times[0].sites.size() == kGroups);
  CHECK(samples <= CallWatch::kMostSamples);
  CHECK(samples >= CallWatch::kMostSamples / 2);
  CHECK(least >= CallWatch::kMostSamples / kGroups / 4);
}

TEST_CASE("call watch: keeps calls for other hosts, also of a rank that is alone here", "[launch]") {
  Ranks ranks(1);
  CallWatch watch(1, true);
  constexpr std::uint64_t kCalls = 100;
  for (std::uint64_t call = 1; call <= kCalls; ++call) ranks.end_call(0, call, 2 * kMillisecond);
  const auto times = watch.take(*ranks.page);
  const SampledCalls& sampled = site_of(times, 0).sampled;
  CHECK(sampled.token == 77);
  CHECK(sampled.calls.size() == kCalls);
  CHECK(sampled.calls.back().first == kCalls);
  CHECK(sampled.calls.back().second >= 2 * kMillisecond);
}
