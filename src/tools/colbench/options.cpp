#include "colbench/options.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>
#include <col/backend.hpp>
#include <col/group.hpp>
#include <col/select.hpp>

#include "colbench/commands/print.hpp"
#include "common/gpu.hpp"
#include "common/numbers.hpp"
#include "common/option_values.hpp"
#include "common/version.hpp"
#include "launch/job/job_spec.hpp"
#include "launch/place/cpu_quota.hpp"

namespace col::colbench {
namespace {

constexpr const char* kWhat = "What";
constexpr const char* kHow = "How";
constexpr const char* kOutputGroup = "Output";
constexpr const char* kOther = "Other";
constexpr const char* kNcclTests = "As nccl-tests names them";

// What was written behind the options; empty: the option was not given.
struct Texts {
  std::string size, sizes, backend, device, algorithm, dtype, op, root, place, cadence, cache, groups;
  std::string ranks, launches, interval, min_iterations, max_time, seed, sync, check, skew, delay, timeout, bound;
  std::string least_bytes, most_bytes, factor, warm_ups, checked;
};

// Ranks when nobody says how many: those that are there, else one per usable core.
int default_ranks() {
  const ContextSpec& spec = Context::current().spec();
  if (!spec.launcher.empty()) return spec.world_size;
  return std::max(2, launch::usable_cpus());
}

template <class Value>
Value one_of(const char* option, const std::string& text,
             std::initializer_list<std::pair<std::string_view, Value>> known) {
  std::vector<std::string_view> names;
  for (const auto& [name, value] : known) {
    if (text == name) return value;
    names.push_back(name);
  }
  throw UsageError(fmt::format("{} takes {}, not '{}'", option, fmt::join(names, ", "), text));
}

std::vector<std::string> list_of(const char* option, const std::string& text) {
  auto list = tools::parse_list(text);
  if (!list) throw UsageError(fmt::format("{} '{}' has an empty name in it", option, text));
  return std::move(*list);
}

int number_of(const char* option, const std::string& text, int least, int most) {
  const auto number = tools::parse_whole_number<int>(text, least, most);
  if (!number)
    throw UsageError(fmt::format("{} takes a whole number from {} to {}, not '{}'", option, least, most, text));
  return *number;
}

Duration duration_of(const char* option, const std::string& text) {
  const auto duration = tools::parse_duration(text);
  if (!duration) throw UsageError(fmt::format("{} takes a time such as 20us, 5ms, 10s or 2m, not '{}'", option, text));
  return *duration;
}

// "2%" and "0.02" are the same.
double fraction_of(const char* option, std::string_view text) {
  const bool percent = text.ends_with('%');
  const std::string digits(text.substr(0, text.size() - (percent ? 1 : 0)));
  char* end = nullptr;
  const double value = std::strtod(digits.c_str(), &end) * (percent ? 0.01 : 1);
  if (digits.empty() || *end != '\0' || !(value > 0) || value >= (percent ? 10 : 1))
    throw UsageError(fmt::format("{} takes a part such as 2%, not '{}'", option, text));
  return value;
}

// "mod:2", "div:4", "pairs", "bisect".
void check_groups(const std::string& text) {
  if (text == "pairs" || text == "bisect") return;
  int number = 0, used = 0;
  const bool good = (std::sscanf(text.c_str(), "mod:%d%n", &number, &used) == 1 ||
                     std::sscanf(text.c_str(), "div:%d%n", &number, &used) == 1) &&
                    used == static_cast<int>(text.size()) && number >= 1;
  if (!good) throw UsageError(fmt::format("--groups takes mod:N, div:N, pairs or bisect, not '{}'", text));
}

// "uniform:20us", "late:1:1ms", with microseconds in place of the time.
std::string skew_of(const std::string& text, int ranks) {
  if (text == "none") return {};
  const std::size_t last = text.rfind(':');
  const auto time = last == std::string::npos ? std::nullopt : tools::parse_duration(text.substr(last + 1));
  const std::string kind = text.substr(0, last == std::string::npos ? 0 : last);
  const bool late = kind.starts_with("late:");
  const auto rank =
      late ? tools::parse_whole_number<int>(std::string_view(kind).substr(5), 0, ranks - 1) : std::nullopt;
  if (!time || (kind != "uniform" && !rank))
    throw UsageError(
        fmt::format("--skew takes none, uniform:TIME or late:RANK:TIME with a rank below {}, not '{}'", ranks, text));
  return fmt::format("{}:{}", kind, std::chrono::duration<double, std::micro>(*time).count());
}

int root_of(const std::string& text, int ranks) {
  const auto root = tools::parse_whole_number<int>(text, 0, ranks - 1);
  if (!root)
    throw UsageError(fmt::format("--root takes a rank from 0 to {}, all or rotate, not '{}'", ranks - 1, text));
  return *root;
}

void check_backends(const Request& request) {
  for (const std::string& name : request.backends) {
    if (name == "auto") continue;
    if (name == "nccl") {
      const std::string why = tools::why_no_nccl();
      if (!why.empty()) throw Unavailable("nccl cannot be used here: " + why);
      if (request.device == Device::Type::cpu)
        throw UsageError("--backend nccl moves memory of GPUs; add --device cuda");
      continue;
    }
    BackendFactory* factory = find_backend(name);
    if (factory == nullptr) {
      std::vector<std::string> known = backend_names();
      known.emplace_back("auto");
      throw UsageError(fmt::format("unknown backend '{}'; there are {}", name, fmt::join(known, ", ")));
    }
    if (const auto why = factory->unavailable_reason())
      throw Unavailable(fmt::format("{} cannot be used here: {}", name, *why));
  }
  if (request.device == Device::Type::cuda) {
    const std::string why = tools::why_no_gpus();
    if (!why.empty()) throw Unavailable("no CUDA device can be used here: " + why);
  }
}

void read_cells(const Texts& texts, Request& request) {
  if (!texts.size.empty()) request.sizes = parse_sizes(texts.size);
  if (!texts.sizes.empty()) request.sizes = parse_sizes(texts.sizes);
  if (!texts.backend.empty()) request.backends = list_of("--backend", texts.backend);
  if (!texts.algorithm.empty()) request.algorithms = list_of("--algo", texts.algorithm);
  if (!texts.device.empty())
    request.device =
        one_of<Device::Type>("--device", texts.device, {{"cpu", Device::Type::cpu}, {"cuda", Device::Type::cuda}});
  try {
    if (!texts.dtype.empty()) request.dtype = dtype_from_string(texts.dtype);
    if (!texts.op.empty()) request.op = reduce_op_from_string(texts.op);
    for (const std::string& name : request.algorithms) {
      if (name != "all" && name != "auto") AlgorithmSpec::parse(name);
    }
  } catch (const Error& error) {
    throw UsageError(error.message());
  }
  const int ranks = request.method.ranks;
  if (texts.root == "rotate") {
    request.roots = {kRotatingRoot};
  } else if (texts.root == "all") {
    request.roots.clear();
    for (int root = 0; root < ranks; ++root) request.roots.push_back(root);
  } else if (!texts.root.empty()) {
    request.roots = {root_of(texts.root, ranks)};
  }
  using Places = std::vector<bool>;
  if (!texts.place.empty())
    request.in_place =
        one_of<Places>("--place", texts.place, {{"out", {false}}, {"in", {true}}, {"both", {false, true}}});
  using Cadences = std::vector<Cadence>;
  if (!texts.cadence.empty())
    request.cadences = one_of<Cadences>("--cadence", texts.cadence,
                                        {{"isolated", {Cadence::isolated}},
                                         {"stream", {Cadence::stream}},
                                         {"both", {Cadence::isolated, Cadence::stream}}});
  if (!texts.cache.empty())
    request.cache = one_of<CacheState>(
        "--cache", texts.cache, {{"hot", CacheState::hot}, {"cold", CacheState::cold}, {"rotate", CacheState::rotate}});
  if (!texts.groups.empty()) check_groups(texts.groups);
  request.groups = texts.groups;
  check_backends(request);
  // What is measured of the machine is about the host.
  if (request.device == Device::Type::cuda) request.method.calibrate = false;
  const bool bitwise = request.op == ReduceOp::band || request.op == ReduceOp::bor || request.op == ReduceOp::bxor;
  const bool orders = request.op == ReduceOp::min || request.op == ReduceOp::max;
  const ElementKind kind = row_of(request.dtype).kind;
  if (bitwise && (kind == ElementKind::floating || kind == ElementKind::complex))
    throw UsageError(fmt::format("{} is for integers, not for {}; use --dtype int32", col::to_string(request.op),
                                 col::to_string(request.dtype)));
  const bool has_reductions = std::any_of(request.operations.begin(), request.operations.end(), is_reduction);
  if (has_reductions && (kind == ElementKind::opaque || (kind == ElementKind::boolean && !bitwise && !orders) ||
                         (kind == ElementKind::complex && orders)))
    throw UsageError(fmt::format("{} is not defined on {}; choose another --op or --dtype", col::to_string(request.op),
                                 col::to_string(request.dtype)));
}

void read_delay(const std::string& text, Method& method) {
  if (text.ends_with('%'))
    method.delay_fraction = fraction_of("--delay", text);
  else
    method.delay = duration_of("--delay", text);
}

void read_method(const Texts& texts, Request& request) {
  Method& method = request.method;
  constexpr int kMost = 1'000'000'000;
  if (!texts.launches.empty()) method.launches = number_of("--launches", texts.launches, 1, 1000);
  if (!texts.interval.empty()) method.target_interval = fraction_of("--ci", texts.interval);
  if (!texts.min_iterations.empty()) method.min_iterations = number_of("--min-iters", texts.min_iterations, 1, kMost);
  if (!texts.max_time.empty()) method.max_time = duration_of("--max-time", texts.max_time);
  if (!texts.warm_ups.empty()) method.warm_ups = number_of("-w", texts.warm_ups, 1, 10'000);
  if (!texts.sync.empty())
    method.barrier_sync = one_of<bool>("--sync", texts.sync, {{"window", false}, {"barrier", true}});
  if (!texts.check.empty())
    method.check = one_of<std::string>("--check", texts.check, {{"off", "off"}, {"sample", "sample"}, {"all", "all"}});
  if (!texts.checked.empty()) method.check = number_of("-c", texts.checked, 0, 1) > 0 ? "sample" : "off";
  if (!texts.skew.empty()) method.skew = skew_of(texts.skew, method.ranks);
  if (!texts.delay.empty()) read_delay(texts.delay, method);
  if (!texts.timeout.empty()) method.timeout = duration_of("--timeout", texts.timeout);
  if (!texts.bound.empty())
    request.bound = one_of<BoundMode>(
        "--bound", texts.bound, {{"strict", BoundMode::strict}, {"warn", BoundMode::warn}, {"off", BoundMode::off}});
  method.calibrate = request.bound != BoundMode::off;
  method.strict_bound = request.bound == BoundMode::strict;
  const auto seed = tools::parse_seed(texts.seed);
  if (!texts.seed.empty() && !seed) throw UsageError(fmt::format("--seed takes 42 or 0x2a, not '{}'", texts.seed));
  method.seed = seed ? *seed : (std::uint64_t{std::random_device()()} << 16 | std::random_device()() % 65'536);
}

// -b 8 -e 128M -f 2: the sizes; with -b, -n is a number of iterations.
void read_nccl_tests(Texts& texts, Request& request) {
  if (texts.least_bytes.empty()) {
    for (const auto& [name, text] : {std::pair("-e", &texts.most_bytes), std::pair("-f", &texts.factor)})
      if (!text->empty()) throw UsageError(fmt::format("{} needs -b, the least size", name));
    return;
  }
  if (!texts.size.empty() || !texts.sizes.empty()) throw UsageError("-b and --size say the same; give one of them");
  const std::string most = texts.most_bytes.empty() ? texts.least_bytes : texts.most_bytes;
  texts.sizes = fmt::format("{}:{}:x{}", texts.least_bytes, most, texts.factor.empty() ? "2" : texts.factor);
  if (texts.ranks.empty()) return;
  request.method.min_iterations = request.method.max_iterations = number_of("-n", texts.ranks, 1, 1'000'000'000);
  request.method.launches = 1;
  request.method.max_time = std::chrono::hours(24);  // a number of iterations is meant as such
  texts.ranks.clear();
}

}  // namespace

struct CommandLine::Impl {
  Impl(const std::string& command, std::string usage_, std::string footer_)
      : app("", command), usage(std::move(usage_)), footer(std::move(footer_)) {}
  CLI::App app;
  std::string usage, footer;
  Texts texts;
  Request request;
  std::vector<std::string> words;
  bool has_cells = false, has_method = false;
};

CommandLine::CommandLine(std::string command, std::string usage, std::string footer)
    : impl_(std::make_unique<Impl>(command, usage, footer)) {}
CommandLine::~CommandLine() = default;

void CommandLine::add_cells() {
  CLI::App& app = impl_->app;
  Texts& texts = impl_->texts;
  impl_->has_cells = true;
  using tools::add_option;
  add_option(app, kWhat, "--size", texts.size, "LIST", "bytes, as nccl-tests counts them: 32M, or 1K,3M");
  add_option(app, kWhat, "--sizes", texts.sizes, "RANGE", "8:256M:x2 multiplies by 2, 8:1M:+64K adds");
  add_option(app, kWhat, "--backend", texts.backend, "LIST", "auto, shm, gloo, nccl; default: auto");
  add_option(app, kWhat, "--device", texts.device, "DEVICE",
             "what buffers are memory of: cpu, or cuda (adds tdev, times on the GPU); default: cpu");
  add_option(app, kWhat, "--algo", texts.algorithm, "LIST",
             "auto, all, or names, as ring,bde,file:plan.json; default: auto");
  add_option(app, kWhat, "--dtype", texts.dtype, "TYPE", "int8 … complex128, or bytes[N]; default: float32");
  add_option(app, kWhat, "--op", texts.op, "OP", "sum, product, min, max, avg, band, bor, bxor; default: sum");
  add_option(app, kWhat, "--root", texts.root, "RANK", "or all, or rotate; default: 0");
  add_option(app, kWhat, "--place", texts.place, "PLACE",
             "out of place, in place, or both: out, in, both; default: out");
  add_option(app, kWhat, "--cadence", texts.cadence, "HOW",
             "isolated, stream (one after the other), both; default: isolated");
  add_option(app, kWhat, "--cache", texts.cache, "STATE", "hot, cold, rotate (ever other buffers); default: hot");
  add_option(app, kWhat, "--groups", texts.groups, "WAY", "several groups at once: mod:2, div:4, pairs, bisect");
  add_option(app, kNcclTests, "-b,--minbytes", texts.least_bytes, "SIZE", "the least size; with it, -n is iterations");
  add_option(app, kNcclTests, "-e,--maxbytes", texts.most_bytes, "SIZE", "the greatest size");
  add_option(app, kNcclTests, "-f,--stepfactor", texts.factor, "N", "from one size to the next; default: 2");
}

void CommandLine::add_method() {
  CLI::App& app = impl_->app;
  Texts& texts = impl_->texts;
  impl_->has_method = true;
  using tools::add_option;
  add_option(app, kHow, "-n,--ranks,--np", texts.ranks, "N",
             "how many ranks to start; default: one per core, at least 2");
  add_option(app, kHow, "--launches", texts.launches, "N",
             "how many times the ranks are started anew; default: 6 to 40, as --ci and --max-time allow; noise: 20");
  add_option(app, kHow, "--ci", texts.interval, "PART",
             "enough when the median is known to within this, over launches; default: 2%");
  add_option(app, kHow, "--min-iters", texts.min_iterations, "N",
             "but not with fewer samples than these, if five times the time suffices; default: 30");
  add_option(app, kHow, "--max-time", texts.max_time, "TIME",
             "how long one row may take; default: 1s; pairs, bisect, tune: less");
  add_option(app, kHow, "--check", texts.check, "HOW",
             "look at results: off, sample (of every one), all; default: sample");
  add_option(app, kHow, "--bound", texts.bound, "HOW",
             "times below the physical bound: strict, warn, off; default: strict");
  add_option(app, kHow, "--sync", texts.sync, "HOW", "start at a common time, or at a barrier: window, barrier");
  add_option(app, kHow, "--skew", texts.skew, "HOW", "ranks come late: uniform:20us, late:1:1ms; default: none");
  add_option(app, kHow, "--delay", texts.delay, "TIME", "make every operation so much slower: 5us, 15%");
  tools::add_flag(app, kHow, "--no-shuffle", "measure rows in the order of the table");
  tools::add_flag(app, kHow, "--allow-single", "measure one rank alone");
  add_option(app, kHow, "--seed", texts.seed, "N", "of the values and the order; default: a new one");
  add_option(app, kHow, "--timeout", texts.timeout, "TIME", "how long one operation may take; default: 60s");
  add_option(app, kNcclTests, "-w,--warmup_iters", texts.warm_ups, "N", "operations that do not count; default: 2");
  add_option(app, kNcclTests, "-c,--checked", texts.checked, "0|1", "whether results are looked at");
}

void CommandLine::add_outputs() {
  CLI::App& app = impl_->app;
  Output& output = impl_->request.output;
  tools::add_option(app, kOutputGroup, "--json", output.json, "FILE", "write everything, every sample too, as JSON");
  tools::add_option(app, kOutputGroup, "--csv", output.csv, "FILE", "write the rows as CSV");
  tools::add_option(app, kOutputGroup, "--plot", output.plot, "FILE",
                    "draw time and bandwidth over size: x.svg, x.png");
  tools::add_option(app, kOutputGroup, "--html", output.html, "FILE", "write a page that needs no network");
  tools::add_flag(app, kOutputGroup, "--legend", "explain the columns");
  tools::add_flag(app, kOutputGroup, "--no-progress", "no progress line, even on a terminal");
}

void CommandLine::add_option(const char* group, const std::string& name, std::string& value, const char* type,
                             const std::string& description) {
  tools::add_option(impl_->app, group, name, value, type, description);
}

void CommandLine::add_flag(const char* group, const std::string& name, const std::string& description) {
  tools::add_flag(impl_->app, group, name, description);
}

bool CommandLine::parse(const std::vector<std::string>& arguments, std::size_t most_words) {
  CLI::App& app = impl_->app;
  tools::add_help(app, kOther, impl_->usage, impl_->footer);  // at the end of --help
  std::vector<std::string> options;
  for (std::string& argument : tools::join_values(app, arguments, most_words)) {
    (argument.starts_with('-') ? options : impl_->words).push_back(std::move(argument));
  }
  std::reverse(options.begin(), options.end());  // what CLI11 expects of a vector
  try {
    app.parse(options);
  } catch (const CLI::CallForHelp&) {
    print(tools::help_of(app));
    return false;
  } catch (const CLI::CallForVersion&) {
    print(tools::version_line("colbench") + "\n");
    return false;
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  for (const std::string& name : tools::option_names(app)) {
    if (app.count(name) > 1) throw UsageError(fmt::format("{} was given twice; give it once", name));
  }
  Texts& texts = impl_->texts;
  Request& request = impl_->request;
  if (impl_->has_cells) read_nccl_tests(texts, request);
  if (impl_->has_method) {
    request.method.ranks = texts.ranks.empty() ? default_ranks() : number_of("-n", texts.ranks, 1, launch::kMaxRanks);
    read_method(texts, request);
    request.method.shuffle = app.count("--no-shuffle") == 0;
    request.allow_single = app.count("--allow-single") > 0;
  }
  if (impl_->has_cells) read_cells(texts, request);
  if (app.get_option_no_throw("--legend") != nullptr) {
    request.output.legend = app.count("--legend") > 0;
    request.output.progress = app.count("--no-progress") == 0;
  }
  return true;
}

bool CommandLine::given(const std::string& name) const {
  return impl_->app.count(name) > 0;
}
const std::vector<std::string>& CommandLine::words() const {
  return impl_->words;
}
Request& CommandLine::request() {
  return impl_->request;
}

}  // namespace col::colbench
