#include "colbench/rank/player.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>
#include <random>

#include <fmt/format.h>

#include "colbench/machine/latency.hpp"
#include "colbench/workload/workload.hpp"
#include "common/gpu.hpp"

namespace col::colbench {
namespace {

double seconds_between(std::int64_t begin_ns, std::int64_t end_ns) {
  return static_cast<double>(end_ns - begin_ns) * 1e-9;
}

// Busy for so long, as an application would be.
void spend(double seconds) {
  if (seconds <= 0) return;
  const std::int64_t until = now_ns() + static_cast<std::int64_t>(seconds * 1e9);
  while (now_ns() < until) {
  }
}

}  // namespace

Player::Player(Context& context, Duration timeout)
    : context_(context),
      timeout_(timeout),
      control_(context.init_group({.name = "colbench",
                                   .rank = context.spec().rank,
                                   .world_size = context.spec().world_size,
                                   .timeout = timeout})),
      ranks_(tools::coordinator_over(control_)) {}

void Player::give(const Order& order) {
  give({.kind = Command::Kind::order}, encode(order), timeout_);
}

std::vector<Answer> Player::give(const Command& command, const std::string& order, Duration limit) {
  std::string text(reinterpret_cast<const char*>(&command), sizeof command);
  text += order;
  std::vector<Answer> answers;
  for (const std::string& bytes :
       ranks_->give(text, limit, [this](std::uint64_t, const std::string& told) { return obey(told); }))
    answers.push_back(decode_answer(bytes));
  return answers;
}

void Player::follow(Duration patience) {
  ranks_->follow(patience, [this](std::uint64_t, const std::string& told) { return obey(told); });
}

std::string Player::obey(const std::string& text) {
  Command command;
  std::memcpy(&command, text.data(), sizeof command);
  if (command.kind == Command::Kind::order) take_order(decode_order(text.substr(sizeof command)));
  return encode(carry_out(command));
}

void Player::take_order(const Order& order) {
  order_ = order;
  const bool on_gpus = std::any_of(order.cells.begin(), order.cells.end(), &needs_gpu);
  // Before the groups of the cells are made, which choose their backend by it.
  if (on_gpus && !gpu_) gpu_ = tools::use_gpu(context_.spec());
  whereabouts_ = control_.allgather_object(own_whereabouts(gpu_ ? tools::gpu_of(context_.spec()) : -1));
  start_line_ = std::make_unique<StartLine>(control_, context_.spec().control, order.method.barrier_sync, whereabouts_);
}

Group Player::group_of(const CellSpec& spec) {
  // Messages name their partners among all ranks.
  const std::string groups = is_message(spec.operation) ? "" : spec.groups;
  const std::string key = fmt::format("{}/{}", spec.backend, groups);
  if (const auto found = groups_.find(key); found != groups_.end()) return found->second;
  const Placement placement = placement_of(groups, context_.spec().rank, context_.spec().world_size);
  Group group = context_.init_group({.name = fmt::format("colbench/{}/{}", key, placement.group),
                                     .rank = placement.rank,
                                     .world_size = placement.size,
                                     .backend_name = spec.backend == "auto" ? "" : spec.backend,
                                     .timeout = order_.method.timeout});
  groups_.emplace(key, group);
  return group;
}

void Player::set_up(const CellSpec& spec) {
  workload_ = nullptr;  // its memory first
  const WorkloadSetup setup{.group = group_of(spec),
                            .spec = spec,
                            .seed = order_.method.seed,
                            .check_mode = order_.method.check,
                            .timeout = order_.method.timeout};
  workload_ = is_message(spec.operation) ? make_message_workload(setup) : make_collective_workload(setup);
}

double Player::skew_of(std::uint64_t iteration) const {
  const std::string& skew = order_.method.skew;
  double microseconds = 0;
  int late_rank = 0;
  const int rank = context_.spec().rank;
  if (std::sscanf(skew.c_str(), "uniform:%lf", &microseconds) == 1) {
    std::minstd_rand random(
        static_cast<std::uint32_t>(order_.method.seed + iteration * 7919 + static_cast<unsigned>(rank)));
    random.discard(3);
    return microseconds * 1e-6 * std::uniform_real_distribution<>(0, 1)(random);
  }
  if (std::sscanf(skew.c_str(), "late:%d:%lf", &late_rank, &microseconds) == 2)
    return rank == late_rank ? microseconds * 1e-6 : 0;
  return 0;
}

void Player::take(const Command& command, Answer& answer) {
  const Duration timeout = order_.method.timeout;
  answer.takes_part = workload_ && workload_->takes_part();
  answer.operations = workload_ ? workload_->operations() : 1;
  for (int i = 0; i < command.samples; ++i) {
    const std::uint64_t iteration = command.iteration + static_cast<std::uint64_t>(i);
    if (workload_) workload_->prepare(iteration);
    const double skew = skew_of(iteration);
    const std::int64_t start = start_line_->wait(timeout);
    spend(skew);
    const std::int64_t began = now_ns();
    if (workload_) workload_->run();
    spend(command.delay_seconds);
    const std::int64_t ended = now_ns();
    answer.began.push_back(seconds_between(start, began));
    answer.ended.push_back(seconds_between(start, ended));
    if (workload_) {
      if (const auto seconds = workload_->device_seconds()) answer.on_device.push_back(*seconds);
    }
    if (!workload_ || !command.checked) continue;
    Check check = workload_->check(iteration, command.whole_check && i == 0);
    if (check.wrong > 0 && answer.check.wrong == 0) answer.check.first = check.first;
    answer.check.mode = check.mode;
    answer.check.elements += check.elements;
    answer.check.wrong += check.wrong;
  }
}

Answer Player::carry_out(const Command& command) {
  Answer answer;
  try {
    switch (command.kind) {
      case Command::Kind::group:
        group_of(order_.cells.at(static_cast<std::size_t>(command.cell)));
        break;
      case Command::Kind::set_up:
        set_up(order_.cells.at(static_cast<std::size_t>(command.cell)));
        break;
      case Command::Kind::kernel:
        workload_ = nullptr;
        if (!command.alone || context_.spec().rank == 0)
          workload_ = make_kernel_workload(command.calibration, command.bytes);
        break;
      case Command::Kind::take:
        take(command, answer);
        break;
      case Command::Kind::hand_over:
        answer.ended.push_back(start_line_->hand_over(order_.method.timeout));
        break;
      case Command::Kind::order:  // taken already: an error in that ends the run
        break;
    }
  } catch (const Error& error) {
    answer.code = error.code();
    answer.harmless = error.code() == ErrorCode::invalid_argument || error.code() == ErrorCode::unavailable;
    answer.trouble = answer.harmless ? error.message() : error.what();
    if (!answer.harmless && start_line_) start_line_->fail();
  } catch (const std::bad_alloc&) {
    answer.trouble = "there is not enough memory";
    answer.code = ErrorCode::resource;
  }
  return answer;
}

}  // namespace col::colbench
