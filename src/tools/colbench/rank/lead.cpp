#include "colbench/rank/lead.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <col/select.hpp>

#include "colbench/machine/latency.hpp"
#include "colbench/rank/calibration.hpp"
#include "colbench/stats/sample.hpp"
#include "common/exit_codes.hpp"
#include "common/gpu.hpp"

namespace col::colbench {
namespace {

namespace exit_code = tools::exit_code;

constexpr int kMostBatch = 1024;
constexpr double kMostOverrun = 5;
// What ranks may take longer than others for, besides the operation: memory, looking at results.
constexpr Duration kSetUpTime = std::chrono::seconds(10);
constexpr std::int64_t kCheckpointNs = 1'000'000'000;
constexpr double kLate = 0.02;  // of the median: a start later than that is too late
constexpr double kLeastLate = 0.3e-6;
// What a sample takes besides its operation: meeting, looking at the result.
constexpr double kLeastSampleSeconds = 20e-6;
// The run cannot go on.
struct RunEnded {
  int exit_code;
  std::string why;
};

int exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::timeout:
      return exit_code::kRankTimeout;
    case ErrorCode::mismatch:
      return exit_code::kWrongData;
    case ErrorCode::invalid_argument:
    case ErrorCode::unavailable:
    case ErrorCode::resource:
      return exit_code::kUsage;
    default:
      return exit_code::kRankDied;
  }
}

void add_check(Cell& cell, const std::vector<Answer>& answers) {
  for (const Answer& answer : answers) {
    cell.check.elements += answer.check.elements;
    if (answer.check.wrong > 0 && cell.check.wrong == 0) cell.check.first = answer.check.first;
    cell.check.wrong += answer.check.wrong;
  }
}

std::string_view base_name(std::string_view algorithm) {
  return algorithm.substr(0, algorithm.find(':'));
}

}  // namespace

struct Lead::State {
  std::size_t index = 0;  // of the cell
  bool done = false;
  double operation_seconds = 0;  // the median so far
  double undelayed_seconds = 0;  // what --delay is a part of
};

Lead::Lead(Player& player, const ContextSpec& context, LeadListener listener)
    : player_(player), context_(context), listener_(std::move(listener)) {}

std::vector<Answer> Lead::command(const Command& command) {
  listener_.on_command();
  // They all do the same at the same time. A rank that is done much later has been stopped, or is lost.
  std::vector<Answer> answers = player_.command(command, order_.method.timeout + kSetUpTime);
  // Of several that failed, one that knows more than that another has.
  const Answer* worst = nullptr;
  for (const Answer& answer : answers) {
    if (answer.trouble.empty() || answer.harmless) continue;
    if (worst == nullptr || worst->code == ErrorCode::aborted) worst = &answer;
  }
  if (worst != nullptr) throw RunEnded{exit_code_of(worst->code), worst->trouble};
  return answers;
}

// ---- Which cells there are ------------------------------------------------------------------------------------------

// "all" becomes every existing algorithm. A cell with an unknown name says so. Cells for fitting come last.
void Lead::note_gpus() {
  results_.run.gpus = gpus_of(player_.whereabouts());
  if (results_.run.gpus.empty()) return;
  if (tools::is_fake_gpu(results_.run.gpus))
    results_.warnings.emplace_back("stand-ins for GPUs: these times are of no GPU, and say nothing of any");
  if (nccl_available()) results_.run.nccl = tools::facts_of_nccl();
  for (Cell& cell : results_.cells) cell.fake = needs_gpu(cell.spec) && tools::is_fake_gpu(results_.run.gpus);
}

void Lead::expand(const Order& order) {
  player_.give(order);
  results_.machine.node_of_rank = nodes_of(player_.whereabouts());
  if (std::ranges::all_of(results_.machine.node_of_rank, [](int node) { return node == 0; }))
    results_.machine.node_of_rank.clear();
  Order expanded{.method = order.method, .launch = order.launch, .calibrations = order.calibrations};
  for (std::size_t i = 0; i < order.cells.size(); ++i) {
    const CellSpec& spec = order.cells[i];
    const std::optional<Collective> collective = collective_of(spec.operation);
    const std::string_view name = base_name(spec.algorithm);
    std::vector<std::string> known;
    if (collective && name != "auto" && name != "file") {
      command({.kind = Command::Kind::group, .cell = static_cast<int>(i)});
      known = player_.group_of(spec).algorithms(*collective);
    }
    Cell cell{.spec = spec};
    if (order.calibrations == 0) cell.launches.push_back({.launch = order.launch});
    cell.check.mode = order.method.check;
    if (name == "all") {
      for (const std::string& algorithm : known) {
        cell.spec.algorithm = algorithm;
        results_.cells.push_back(cell);
      }
      continue;
    }
    if (!known.empty() && std::find(known.begin(), known.end(), name) == known.end()) {
      const std::vector<std::string_view> names(known.begin(), known.end());
      const std::string_view nearest = nearest_name(name, names);
      cell.note = fmt::format("{} has no algorithm '{}'; {}", to_string(spec.operation), spec.algorithm,
                              nearest.empty() ? fmt::format("it has {}", fmt::join(names, ", "))
                                              : fmt::format("did you mean '{}'?", nearest));
    }
    results_.cells.push_back(cell);
  }
  for (const Cell& cell : results_.cells) expanded.cells.push_back(cell.spec);
  wanted_ = expanded.cells.size();
  // What passes between nodes bounds every cell, also where no model is asked for.
  for (const Cell& cell : results_.cells) {
    if (needs_gpu(cell.spec)) continue;
    auto& fits = expanded.method.fits;
    if (!is_one_node() && std::find(fits.begin(), fits.end(), cell.spec.backend) == fits.end())
      fits.push_back(cell.spec.backend);
  }
  for (const std::string& backend : expanded.method.fits) {
    const auto cells = cells_to_fit(backend, order.method.ranks, results_.machine.node_of_rank);
    expanded.cells.insert(expanded.cells.end(), cells.begin(), cells.end());
  }
  order_ = expanded;
  player_.give(order_);
}

// ---- Timing ---------------------------------------------------------------------------------------------------------

std::vector<Answer> Lead::take(int samples, bool checked) {
  auto answers =
      command({.kind = Command::Kind::take, .checked = checked, .samples = samples, .iteration = iteration_});
  iteration_ += static_cast<std::uint64_t>(samples);
  return answers;
}

std::vector<double> Lead::timed(int samples, bool checked) {
  return longest_of(take(samples, checked), samples);
}

bool Lead::is_late(const State& state, double skew) const {
  StartLine& line = player_.start_line();
  if (!line.is_window() || line.is_crowded() || !order_.method.skew.empty()) return false;
  return skew > std::max(kLeastLate, kLate * state.operation_seconds);
}

void Lead::record(State& state, const std::vector<Answer>& answers) {
  Cell& cell = results_.cells[state.index];
  LaunchSamples& samples = cell.launches.front();
  add_check(cell, answers);
  const std::size_t count = answers.front().ended.size();
  for (std::size_t i = 0; i < count; ++i) {
    double longest = 0, last_start = 0, longest_on_device = 0;
    bool has_device_time = true;
    for (const Answer& answer : answers) {
      if (!answer.takes_part) continue;
      longest = std::max(longest, answer.ended[i] / answer.operations);
      last_start = std::max(last_start, answer.began[i]);
      if (answer.on_device.size() != count)
        has_device_time = false;
      else
        longest_on_device = std::max(longest_on_device, answer.on_device[i] / answer.operations);
    }
    // More late than not: the machine is like that, so late samples are used.
    if (is_late(state, last_start / answers.front().operations) &&
        samples.late <= static_cast<int>(samples.seconds.size())) {
      ++samples.late;
      continue;
    }
    samples.seconds.push_back(longest);
    samples.start_skew.push_back(last_start);
    if (has_device_time) samples.device_seconds.push_back(longest_on_device);
  }
  state.operation_seconds = median(samples.seconds);
}

bool Lead::is_done(const State& state) const {
  const Method& method = order_.method;
  const Cell& cell = results_.cells[state.index];
  const auto n = static_cast<int>(cell.launches.front().seconds.size());
  if (cell.check.wrong > 0 || n >= in_this_launch(method.max_iterations)) return true;
  if (n < std::max(6, in_this_launch(method.min_iterations))) return false;
  // Half of the target, so that what a launch's few samples add to the scatter of launches is little.
  std::vector<double> sorted = cell.launches.front().seconds;
  std::sort(sorted.begin(), sorted.end());
  const Interval interval = median_interval(sorted);
  return interval.high - interval.low <= method.target_interval * state.operation_seconds;
}

// Of a number of iterations of the whole run, what is for this launch.
int Lead::in_this_launch(int iterations) const {
  const int launches = order_.method.planned_launches();
  return (iterations + launches - 1) / launches;
}

void Lead::sample(State& state, double budget_seconds) {
  Cell& cell = results_.cells[state.index];
  const std::int64_t begin = now_ns();
  const auto spent = [&] { return static_cast<double>(now_ns() - begin) * 1e-9; };
  const auto refused = [&](const std::vector<Answer>& answers) {
    for (const Answer& answer : answers)
      if (!answer.trouble.empty()) cell.note = answer.trouble;
    if (!cell.note.empty()) state.done = true;
    return state.done;
  };
  if (refused(command({.kind = Command::Kind::set_up, .cell = static_cast<int>(state.index)}))) return;
  // The first operations make connections and fault pages in; what the very first one leaves behind is checked as a
  // whole. It is one alone: where some ranks refuse it, the others must not wait for them at the next start.
  Command take{.kind = Command::Kind::take, .whole_check = true, .samples = 1, .iteration = iteration_++};
  std::vector<Answer> answers = command(take);
  if (refused(answers)) return;
  add_check(cell, answers);
  if (cell.algorithm.empty()) name_what_ran(cell);
  const double operations = answers.front().operations;
  const std::vector<double> warm_up = timed(std::max(1, order_.method.warm_ups - 1), true);
  if (state.operation_seconds == 0) state.operation_seconds = least_of(warm_up);
  if (order_.method.delay_fraction > 0 && state.undelayed_seconds == 0)
    state.undelayed_seconds = median(timed(kFitSamples, true));
  take.whole_check = false;
  take.delay_seconds = (std::chrono::duration<double>(order_.method.delay).count() +
                        order_.method.delay_fraction * state.undelayed_seconds) *
                       operations;
  double sample_seconds = std::max(kLeastSampleSeconds, state.operation_seconds * operations);
  int taken = 0;
  do {
    const double left = std::max(0.0, budget_seconds - spent());
    take.samples = static_cast<int>(std::clamp(left / sample_seconds / 2, 1.0, double{kMostBatch}));
    const auto so_far = static_cast<int>(cell.launches.front().seconds.size());
    take.samples = std::clamp(take.samples, 1, std::max(1, in_this_launch(order_.method.max_iterations) - so_far));
    taken += take.samples;
    take.iteration = iteration_;
    const double before = spent();
    answers = command(take);
    iteration_ += static_cast<std::uint64_t>(take.samples);
    if (refused(answers)) return;
    // With what filling and looking take.
    sample_seconds = std::max(sample_seconds, (spent() - before) / take.samples);
    record(state, answers);
    state.done = is_done(state);
    checkpoint();
    // If --min-iters is expensive, up to several times the budget. A launch is an observation; a late start is not.
  } while (!state.done &&
           (cell.launches.front().seconds.empty() ||
            spent() < (taken < in_this_launch(order_.method.min_iterations) ? kMostOverrun : 1) * budget_seconds));
}

void Lead::name_what_ran(Cell& cell) {
  Group group = player_.group_of(cell.spec);
  cell.backend = group.backend();
  cell.algorithm = algorithm_of(group, cell.spec);
}

void Lead::sample_all() {
  std::vector<State> states;
  for (std::size_t i = 0; i < wanted_; ++i) {
    if (results_.cells[i].note.empty()) states.push_back({.index = i});
  }
  const double budget =
      std::chrono::duration<double>(order_.method.max_time).count() / order_.method.planned_launches();
  // In another order in every launch, so that no cell always follows the same one.
  if (order_.method.shuffle) std::shuffle(states.begin(), states.end(), random_);
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (listener_.on_cell) listener_.on_cell(i, states.size(), order_.cells[states[i].index]);
    sample(states[i], budget);
  }
}

// ---- The run --------------------------------------------------------------------------------------------------------

void Lead::checkpoint() {
  if (!listener_.on_checkpoint || now_ns() - checkpoint_ns_ < kCheckpointNs) return;
  listener_.on_checkpoint(results_);
  checkpoint_ns_ = now_ns();
}

Results Lead::run(const Order& order) {
  results_ = {};
  random_.seed(order.method.seed * 1000 + static_cast<std::uint64_t>(order.launch));
  checkpoint_ns_ = now_ns();
  order_ = order;
  try {
    expand(order);
    results_.run.cpus = cpus_of(player_.whereabouts());
    note_gpus();
    results_.run.sync = player_.start_line().is_window() ? "window" : "barrier";
    if (const std::string& why = player_.start_line().why_barrier(); !why.empty())
      results_.warnings.push_back("each rank counts from where it leaves a barrier: " + why);
    const auto is_refused = [](const Cell& cell) { return !cell.note.empty(); };
    if (!std::all_of(results_.cells.begin(), results_.cells.end(), is_refused)) {
      order_.calibrations > 0 ? calibrate() : sample_all();
    }
  } catch (const RunEnded& end) {
    results_.ended_early = end.why;
    results_.exit_code = end.exit_code;
  } catch (const Error& error) {
    results_.ended_early = error.what();
    results_.exit_code = exit_code_of(error.code());
  }
  for (Cell& cell : results_.cells) {
    if (cell.check.wrong == 0) continue;
    cell.invalid = "wrong data: " + cell.check.first;
    results_.exit_code = results_.exit_code == 0 ? exit_code::kWrongData : results_.exit_code;
  }
  return std::move(results_);
}

}  // namespace col::colbench
