#include "simulation/rank.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/clock/clock.hpp"

namespace col::test {
namespace {

constexpr Duration kTimeoutAfterwards = std::chrono::seconds(60);
constexpr int kTests = 20;

}  // namespace

SimulatedRank::SimulatedRank(Surroundings& around, int rank, int process)
    : around_(around), rank_(rank), process_(process) {}

void SimulatedRank::live() noexcept {
  try {
    is_newcomer() ? run_as_newcomer() : run();
  } catch (const std::exception& error) {
    around_.checks.problem(fmt::format("rank {}: {}", process_, error.what()));
  }
}

void SimulatedRank::run() {
  const JobPlan& plan = around_.plan;
  std::optional<Context> context;
  const bool comes = !is_wrong(Mistake::Kind::absent);
  bool failed = !comes, has_world = comes;
  try {
    if (comes) call("meet", plan.timeout, [&] { context.emplace(first_spec()); });
    if (comes) run_program(*context);
  } catch (const Error&) {
    failed = true;
    has_world = at_step_ >= plan.program.world_only;
  }
  if (context && !has_world) leave(*context);
  around_.simulator.say_place("muster");
  const Muster::Result others = around_.muster.come(rank_, failed, has_world);
  const bool renews = !around_.plan.renewals.empty() && others.all_have_world;
  if (renews)
    renew_world(others.survivors);
  else if (others.can_shrink)
    shrink_world(others.survivors);
  if (context && has_world) leave(*context);
  if (others.is_needed && !others.all_have_world) begin_anew(others.survivors);
}

void SimulatedRank::call(const std::string& what, Duration budget, const std::function<void()>& act, bool is_in_group) {
  Simulator& simulator = around_.simulator;
  simulator.say_place("before " + what);
  if (const Duration late = around_.truth.count_call(process_); late > Duration::zero()) core::sleep_for(late);
  // Others may go on between two calls, neither of which has to wait.
  if (simulator.choices().one_in(4)) core::yield();
  simulator.say_place(what);
  simulator.note("call", what);
  simulator.count_progress();
  const Simulator::Time begun = counts_from_ = simulator.now();
  try {
    act();
  } catch (const Error& error) {
    simulator.note("error", error.what());
    around_.checks.time(process_, what, counts_from_, budget);
    around_.checks.error(process_, what, error, groups_, begun);
    if (is_in_group) around_.checks.names_somebody(process_, what, error, begun);
    broken_ = error.group();
    throw;
  } catch (const Interrupted&) {
    simulator.note("interrupted");
    around_.checks.time(process_, what, counts_from_, budget);
    around_.checks.interrupted();
    throw Error(ErrorCode::aborted, "interrupted");
  }
  around_.checks.time(process_, what, counts_from_, budget);
}

// ---- The program

void SimulatedRank::run_program(Context& context) {
  call("init", around_.plan.timeout, [&] {
    std::string backend(backend_of(around_.plan.channel));
    if (is_wrong(Mistake::Kind::backend))
      backend = backend_of(around_.plan.channel == ChannelKind::plain ? ChannelKind::drafting : ChannelKind::plain);
    if (is_wrong(Mistake::Kind::unknown)) backend = "nowhere";
    const ContextSpec& own = context.spec();
    groups_.push_back(
        context.init_group({.rank = own.rank, .world_size = own.world_size, .backend_name = std::move(backend)}));
    if (around_.plan.records_steps) groups_.front().record_trace(true);
  });
  const auto steps = static_cast<int>(around_.plan.program.steps.size());
  for (at_step_ = 0; at_step_ < steps; ++at_step_) run_step(at_step_);
  if (around_.plan.records_steps && groups_.front().size() > 1 && groups_.front().trace().empty())
    around_.checks.problem(fmt::format("rank {}: no step is recorded", rank_));
}

void SimulatedRank::run_step(int number) {
  const Step& step = around_.plan.program.steps[static_cast<std::size_t>(number)];
  const Duration timeout = around_.plan.timeout;
  if (step.pause_us > 0)
    core::sleep_for(
        std::chrono::microseconds(around_.simulator.choices().below(static_cast<std::uint64_t>(step.pause_us))));
  const std::string what = fmt::format("step {}, {}", number, describe(step));
  const auto make = [&](const auto& act) { call(what, 2 * timeout, [&] { groups_.push_back(act(groups_.front())); }); };
  if (step.kind == Step::Kind::await) return await_started();
  if (step.kind == Step::Kind::dup) return make([](Group& world) { return world.dup(); });
  if (step.kind == Step::Kind::split)
    return make([&](Group& world) {
      return world.split(step.colors[static_cast<std::size_t>(rank_)],
                         step.keys.empty() ? 0 : step.keys[static_cast<std::size_t>(rank_)]);
    });
  if (step.kind == Step::Kind::subgroup)
    return make([&](Group& world) { return world.subgroup(step.keys, fmt::format("sub {}", number)); });
  Group& group = groups_[static_cast<std::size_t>(step.group)];
  if (!group) return;
  if (WideCall::is_one(step)) return run_wide(step, number, what, group);
  kept_.push_back(std::make_unique<CallData>(step, number, group));
  CallData& data = *kept_.back();
  if (!step.is_started) {
    call(
        what, timeout, [&] { data.run(group); }, true);
    around_.checks.data(rank_, what, data.problem());
    return;
  }
  Work work;
  call(
      what, timeout, [&] { work = data.start(group); }, true);
  if (step.is_dropped) return;
  if (step.continues) work = continued(work);
  started_.push_back({std::move(work), std::move(kept_.back()), what, step.is_tested});
  kept_.pop_back();
}

void SimulatedRank::run_wide(const Step& step, int number, const std::string& what, Group& group) {
  WideCall& wide = *wide_.emplace_back(std::make_unique<WideCall>(step, number, group));
  const Duration budget = wide.waits() * around_.plan.timeout;
  const auto waits_anew = [&] {
    around_.checks.time(process_, what, counts_from_, budget);
    counts_from_ = around_.simulator.now();
  };
  call(
      what, budget, [&] { wide.run(group, waits_anew); }, true);
  around_.checks.data(rank_, what, wide.problem());
}

// Ends when a function has been called with the end of the operation, by the progress thread.
Work SimulatedRank::continued(Work work) {
  const auto calls = std::make_shared<int>(0);
  return work.then([this, calls](const std::optional<Error>& error) {
    if (++*calls > 1) around_.checks.problem(fmt::format("rank {}: a function of then() is called again", rank_));
    if (error) throw *error;
  });
}

// A test does not end by itself: after so many, it is waited for. A wait has the whole timeout from when it is called,
// and each test no more than what it asks a store that does not answer.
void SimulatedRank::await(Started& one) {
  for (int tests = one.is_tested ? kTests : 0; tests > 0; --tests) {
    counts_from_ = around_.simulator.now();
    const bool has_ended = one.work.test();
    around_.checks.time(process_, "test of " + one.what, counts_from_, Duration::zero());
    if (has_ended) return;
    core::sleep_for(std::chrono::microseconds(around_.simulator.choices().below(200)));
  }
  counts_from_ = around_.simulator.now();
  one.work.wait();
}

// In an order of its own.
void SimulatedRank::await_started() {
  while (!started_.empty()) {
    if (around_.plan.draws >= 2 && around_.simulator.choices().one_in(4)) {
      if (await_several()) return;
      continue;
    }
    auto one = started_.begin();
    std::advance(one, around_.simulator.choices().below(started_.size()));
    const std::string what = "wait for " + one->what;
    call(
        what, around_.plan.timeout, [&] { await(*one); }, true);
    around_.checks.data(rank_, what, one->data->problem());
    started_.erase(one);
  }
}

// All at once, or the first that ends. Returns whether none is left.
bool SimulatedRank::await_several() {
  std::vector<Work> works;
  for (const Started& one : started_) works.push_back(one.work);
  // Each has a turn to wait for, too.
  const Duration timeout = (around_.plan.has_turns ? 2 : 1) * around_.plan.timeout;
  if (around_.simulator.choices().one_in(2)) {
    std::optional<std::size_t> ended;
    call(
        "wait for any", timeout, [&] { ended = wait_any(works); }, true);
    const auto one = std::next(started_.begin(), static_cast<std::ptrdiff_t>(*ended));
    around_.checks.data(rank_, "any: " + one->what, one->data->problem());
    started_.erase(one);
    return started_.empty();
  }
  const Duration glance = around_.plan.timeout / 8;
  call(
      "wait for all", static_cast<int>(works.size()) * timeout + glance,
      [&] {
        if (!wait_all(works, glance)) wait_all(works);
      },
      true);
  for (const Started& one : started_) around_.checks.data(rank_, "all: " + one.what, one.data->problem());
  started_.clear();
  return true;
}

// ---- Its end, and what comes after

void SimulatedRank::leave(Context& context) {
  around_.simulator.say_place("finalize");
  // As an exception unwinds what a program has: that its group was broken is not forgotten.
  if (around_.simulator.choices().one_in(2))
    std::erase_if(groups_, [&](const Group& group) { return group && group.name() == broken_; });
  try {
    if (around_.plan.destroys) destroy_groups(context);
    context.finalize();
  } catch (const Error& error) {
    around_.simulator.note("error", error.what());
    around_.checks.error(process_, "finalize", error, groups_, Simulator::kBegin);
  } catch (const Interrupted&) {
    around_.checks.interrupted();
  }
  groups_.clear();  // only now: a handle that goes tells the others nothing
  for (Started& one : started_) kept_.push_back(std::move(one.data));
  started_.clear();
}

// But the world, and in an order of its own.
void SimulatedRank::destroy_groups(Context& context) {
  std::vector<std::string> names;
  for (const Group& group : groups_) {
    if (group && &group != &groups_.front()) names.emplace_back(group.name());
  }
  while (!names.empty()) {
    const auto one = names.begin() + static_cast<std::ptrdiff_t>(around_.simulator.choices().below(names.size()));
    context.destroy_group(*one);
    names.erase(one);
  }
}

void SimulatedRank::shrink_world(const std::vector<int>& survivors) {
  std::vector<int> excluded;
  for (int rank = 0; rank < around_.plan.ranks; ++rank) {
    if (!std::binary_search(survivors.begin(), survivors.end(), rank)) excluded.push_back(rank);
  }
  call("shrink", 2 * around_.plan.timeout, [&] { use(groups_.front().shrink(excluded)); });
}

void SimulatedRank::begin_anew(const std::vector<int>& survivors) {
  call("next job", kTimeoutAfterwards, [&] {
    const auto self = std::find(survivors.begin(), survivors.end(), rank_);
    const Told told{.rank = static_cast<int>(self - survivors.begin()), .size = static_cast<int>(survivors.size())};
    Context context(spec("after", survivors, told, kTimeoutAfterwards));
    use(context.init_group(
        {.rank = told.rank, .world_size = told.size, .backend_name = std::string(backend_of(around_.plan.channel))}));
    context.finalize();
  });
}

// The next group works. Returns the sum of its ranks' numbers in the job.
std::int64_t SimulatedRank::use(Group group) {
  std::vector<std::int64_t> sum{rank_, 1};
  group.allreduce(sum);
  if (sum[1] != group.size())
    around_.checks.problem(
        fmt::format("rank {}: {} of {} ranks are in the next group", process_, sum[1], group.size()));
  group.barrier();
  return sum[0];
}

}  // namespace col::test
