#include "colbench/commands/options.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <random>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <col/channel.hpp>
#include <col/group.hpp>
#include <col/select.hpp>

#include "colbench/commands/command.hpp"
#include "common/gpu.hpp"
#include "common/numbers.hpp"
#include "common/option_readers.hpp"
#include "common/option_values.hpp"
#include "launch/job/job_spec.hpp"
#include "launch/place/cpu_quota.hpp"

namespace col::colbench {
namespace {

constexpr const char* kWhat = "What";
constexpr const char* kHow = "How";
constexpr const char* kOutputGroup = "Output";
constexpr const char* kNcclTests = "As nccl-tests names them";
constexpr auto kRare = tools::HelpExtent::all;  // not in --help
constexpr int kMostIterations = 1'000'000'000;

using tools::becomes, tools::completed, tools::into, tools::number_between, tools::one_of;
using Text = tools::Word;

// Ranks when nobody says how many: those that are there, else one per usable core.
int default_ranks() {
  const ContextSpec& spec = Context::current().spec();
  if (!spec.launcher.empty()) return spec.world_size;
  return std::max(2, launch::usable_cpus());
}

std::vector<std::string> list_of(const std::string& option, const std::string& text) {
  auto list = tools::parse_list(text);
  if (!list) throw UsageError("{} '{}' has an empty name in it", option, text);
  return std::move(*list);
}

constexpr auto duration_of = [](Text& option, Text& text) {
  return tools::parsed_by(tools::parse_duration, "a time such as 20us, 5ms, 10s or 2m")(option, text);
};

// What nccl-tests and OSU's benchmarks call element types and reductions, and our names for them.
using OtherName = std::pair<std::string_view, std::string_view>;
constexpr std::array kDTypes = {OtherName{"char", "int8"},
                                OtherName{"int", "int32"},
                                OtherName{"half", "float16"},
                                OtherName{"float", "float32"},
                                OtherName{"double", "float64"},
                                OtherName{"fp8_e4m3", "float8_e4m3fn"},
                                OtherName{"f8e4m3", "float8_e4m3fn"},
                                OtherName{"float8", "float8_e4m3fn"},
                                OtherName{"float8_e4m3", "float8_e4m3fn"},
                                OtherName{"fp8_e5m2", "float8_e5m2"},
                                OtherName{"f8e5m2", "float8_e5m2"}};
constexpr std::array kOps = {OtherName{"prod", "product"}};

std::vector<std::string_view> dtype_names() {
  std::vector<std::string_view> names;
  for (const DTypeRow& row : col::kDTypes) names.push_back(row.name);
  return names;
}

std::string_view our_name(std::span<const OtherName> names, std::string_view text) {
  const auto found = std::ranges::find(names, text, &OtherName::first);
  return found == names.end() ? text : found->second;
}

// "2%" and "0.02" are the same.
double fraction_of(const std::string& option, const std::string& text) {
  const bool percent = text.ends_with('%');
  const std::string digits(text.substr(0, text.size() - (percent ? 1 : 0)));
  char* end = nullptr;
  const double value = std::strtod(digits.c_str(), &end) * (percent ? 0.01 : 1);
  if (digits.empty() || *end != '\0' || !(value > 0) || value >= (percent ? 10 : 1))
    throw UsageError("{} takes a part such as 2%, not '{}'", option, text);
  return value;
}

// "mod:2", "div:4", "pairs", "bisect".
std::string groups_of(const std::string& option, const std::string& text) {
  if (text == "pairs" || text == "bisect") return text;
  int number = 0, used = 0;
  const bool good = (std::sscanf(text.c_str(), "mod:%d%n", &number, &used) == 1 ||
                     std::sscanf(text.c_str(), "div:%d%n", &number, &used) == 1) &&
                    used == static_cast<int>(text.size()) && number >= 1;
  if (!good) throw UsageError("{} takes mod:N, div:N, pairs or bisect, not '{}'", option, text);
  return text;
}

// "uniform:20us", "late:1:1ms", with microseconds in place of the time.
std::string skew_of(const std::string& option, const std::string& text, int ranks) {
  if (text == "none") return {};
  const std::size_t last = text.rfind(':');
  const auto time = last == std::string::npos ? std::nullopt : tools::parse_duration(text.substr(last + 1));
  const std::string kind = text.substr(0, last == std::string::npos ? 0 : last);
  const bool late = kind.starts_with("late:");
  const auto rank =
      late ? tools::parse_whole_number<int>(std::string_view(kind).substr(5), 0, ranks - 1) : std::nullopt;
  if (!time || (kind != "uniform" && !rank))
    throw UsageError("{} takes none, uniform:TIME or late:RANK:TIME with a rank below {}, not '{}'", option, ranks,
                     text);
  return fmt::format("{}:{}", kind, std::chrono::duration<double, std::micro>(*time).count());
}

std::vector<int> roots_of(const std::string& option, const std::string& text, int ranks) {
  if (text == "rotate") return {kRotatingRoot};
  if (text == "all") {
    std::vector<int> all(static_cast<std::size_t>(ranks));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  const auto root = tools::parse_whole_number<int>(text, 0, ranks - 1);
  if (!root) throw UsageError("{} takes a rank from 0 to {}, all or rotate, not '{}'", option, ranks - 1, text);
  return {*root};
}

// What the library reads, with its own words when it cannot.
template <class Read>
auto as_library(std::string_view text, Read read) {
  try {
    return read(text);
  } catch (const Error& error) {
    throw UsageError(error.message());
  }
}

std::vector<std::string> algorithms_of(const std::string& option, const std::string& text) {
  std::vector<std::string> list = list_of(option, text);
  for (const std::string& name : list) {
    if (name != "all" && name != "auto") as_library(name, &AlgorithmSpec::parse);
  }
  return list;
}

void check_backends(const Request& request) {
  for (const std::string& name : request.backends) {
    if (name == "auto") continue;
    if (moves_gpu_memory(name)) {
      const std::string why = tools::why_no_nccl();
      if (!why.empty()) throw Unavailable(fmt::format("{} cannot be used here: {}", name, why));
      if (request.device == Device::Type::cpu)
        throw UsageError("--backend {} moves memory of GPUs; add --device cuda", name);
      continue;
    }
    BackendFactory* factory = find_backend(name);
    if (factory == nullptr) {
      std::vector<std::string> known = backend_names();
      known.emplace_back("auto");
      throw UsageError("unknown backend '{}'; there are {}", name, fmt::join(known, ", "));
    }
    if (const auto why = factory->unavailable_reason())
      throw Unavailable(fmt::format("{} cannot be used here: {}", name, *why));
  }
  if (request.device == Device::Type::cuda) {
    const std::string why = tools::why_no_gpus();
    if (!why.empty()) throw Unavailable("no CUDA device can be used here: " + why);
  }
}

void check_types(const Request& request) {
  const bool bitwise = request.op == ReduceOp::band || request.op == ReduceOp::bor || request.op == ReduceOp::bxor;
  const bool orders = request.op == ReduceOp::min || request.op == ReduceOp::max;
  const ElementKind kind = row_of(request.dtype).kind;
  if (bitwise && (kind == ElementKind::floating || kind == ElementKind::complex))
    throw UsageError("{} is for integers, not for {}; use --dtype int32", col::to_string(request.op),
                     col::to_string(request.dtype));
  const bool has_reductions = std::any_of(request.operations.begin(), request.operations.end(), is_reduction);
  if (has_reductions && (kind == ElementKind::opaque || (kind == ElementKind::boolean && !bitwise && !orders) ||
                         (kind == ElementKind::complex && orders)))
    throw UsageError("{} is not defined on {}; choose another --op or --dtype", col::to_string(request.op),
                     col::to_string(request.dtype));
}

// -b 8 -e 128M -f 2: the sizes; with -b, -n is a number of iterations.
void read_nccl_tests(tools::Values& values, Request& request, bool counts_iterations) {
  const tools::Given *least = values.find("-b"), *most = values.find("-e"), *factor = values.find("-f");
  if (least == nullptr) {
    if (const auto* other = values.first_of({"-e", "-f"}))
      throw UsageError("{} needs -b, the least size", other->said_as);
    return;
  }
  if (const auto* other = values.first_of({"--size", "--sizes"}))
    throw UsageError("{} and {} say the same; give one of them", least->said_as, other->said_as);
  request.sizes = parse_sizes(fmt::format("{}:{}:x{}", least->text, most != nullptr ? most->text : least->text,
                                          factor != nullptr ? factor->text : "2"));
  const tools::Given* iterations = values.find("-n");
  if (iterations == nullptr || !counts_iterations) return;
  request.method.min_iterations = request.method.max_iterations =
      tools::read_number(iterations->said_as, iterations->text, 1, kMostIterations);
  request.method.launches = 1;
  request.method.max_time = std::chrono::hours(24);  // a number of iterations is meant as such
  values.erase("-n");
}

}  // namespace

CommandLine::CommandLine(std::string command, std::string usage, std::string footer, std::string brief)
    : OptionTable({std::move(command), std::move(usage), std::move(footer), std::move(brief)}) {
  offer(operation_words());
}

void CommandLine::add_cells(Letter o) {
  Request& request = request_;
  has_cells_ = true;
  const auto sizes = [&](Text&, Text& text) { request.sizes = parse_sizes(text); };
  add({kWhat, "--size", "LIST", "bytes, by powers of 1024: 32M or 32MiB, or 1K,3M", sizes});
  add({kWhat, "--sizes", "RANGE", "8:256M:x2 multiplies by 2, 8:1M:+64K adds", sizes});
  add({kWhat, "--backend", "LIST", "auto, shm, hosts, hosts_ucx, gloo, ucx, nccl; default: auto",
       completed(into(request.backends, list_of), {"auto", "shm", "hosts", "hosts_ucx", "gloo", "ucx", "nccl"})});
  add({kWhat, "--device", "DEVICE", "whose memory buffers are in: cpu or cuda; default: cpu",
       into(request.device, one_of<Device::Type>({{"cpu", Device::Type::cpu}, {"cuda", Device::Type::cuda}}))});
  add({kWhat, "--algo", "LIST", "auto, all, or names: ring,bde,file:plan.json",
       into(request.algorithms, algorithms_of)});
  add({kWhat, "--dtype,-d,--datatype", "TYPE", "int8 … complex128, or bytes[N]; default: float32",
       completed(into(request.dtype,
                      [](Text&, Text& text) { return as_library(our_name(kDTypes, text), &dtype_from_string); }),
                 dtype_names()),
       kRare});
  add({kWhat, o == Letter::op ? "--op,-o" : "--op", "OP", "sum, product, min, max, avg, band, bor, bxor; default: sum",
       completed(
           into(request.op, [](Text&, Text& text) { return as_library(our_name(kOps, text), &reduce_op_from_string); }),
           {"sum", "product", "min", "max", "avg", "band", "bor", "bxor"}),
       kRare});
  add({kWhat, "--root", "RANK", "or all, or rotate; default: 0",
       completed([&](Text& option, Text& text) { request.roots = roots_of(option, text, request.method.ranks); },
                 {"all", "rotate"}),
       kRare});
  add({kWhat, "--place", "PLACE", "out of place, in place, or both: out, in, both; default: out",
       into(request.in_place, one_of<std::vector<bool>>({{"out", {false}}, {"in", {true}}, {"both", {false, true}}})),
       kRare});
  add({kWhat, "--order", "ORDER",
       "in which a reduction combines: any, rank, tree (one contribution of each rank), or both any and tree: both; "
       "default: any",
       into(request.orders, one_of<std::vector<col::Order>>({{"any", {col::Order::any}},
                                                             {"rank", {col::Order::rank}},
                                                             {"tree", {col::Order::tree}},
                                                             {"both", {col::Order::any, col::Order::tree}}})),
       kRare});
  add({kWhat, "--cadence", "HOW",
       "isolated, stream (one after the other), both of these, prepared (a call that was prepared before); "
       "default: isolated",
       into(request.cadences, one_of<std::vector<Cadence>>({{"isolated", {Cadence::isolated}},
                                                            {"stream", {Cadence::stream}},
                                                            {"both", {Cadence::isolated, Cadence::stream}},
                                                            {"prepared", {Cadence::prepared}}})),
       kRare});
  add({kWhat, "--cache", "STATE", "hot, cold, rotate (ever other buffers); default: hot",
       into(request.cache,
            one_of<CacheState>({{"hot", CacheState::hot}, {"cold", CacheState::cold}, {"rotate", CacheState::rotate}})),
       kRare});
  add({kWhat, "--groups", "WAY", "several groups at once: mod:2, div:4, pairs, bisect", into(request.groups, groups_of),
       kRare});
  add({kNcclTests, "-b,--minbytes", "SIZE", "the least size; with it, -n is iterations", {}, kRare});
  add({kNcclTests, "-e,--maxbytes", "SIZE", "the greatest size", {}, kRare});
  add({kNcclTests, "-f,--stepfactor", "N", "from one size to the next; default: 2", {}, kRare});
  // Of a process with several GPUs.
  const auto refuse_gpus = [](Text& option, Text& text) {
    throw UsageError(
        "{} {}: colbench has one rank for each GPU, and a process for each rank; write --ranks {} "
        "--device cuda",
        option, text, text);
  };
  add({"", "-g,--ngpus", "N", "", refuse_gpus});
  add({"", "-t,--nthreads", "N", "", refuse_gpus});
}

void CommandLine::add_method(ReadRanks read_ranks) {
  Request& request = request_;
  Method& method = request.method;
  has_method_ = true;
  read_ranks_ = std::move(read_ranks);
  add({kHow, "-n,--ranks,--np", "N", "ranks to start; default: one per core, at least 2"});
  add({kHow, "--launches", "N",
       "how many times the ranks are started anew; default: 6 to 40, as --ci and --max-time allow; noise: 20",
       into(method.launches, number_between(1, 1000)), kRare});
  add({kHow, "--ci", "PART", "enough when the median is known to within this, over launches; default: 2%",
       into(method.target_interval, fraction_of), kRare});
  add({kHow, "--min-iters", "N", "but not with fewer samples than these, if five times the time suffices; default: 30",
       into(method.min_iterations, number_between(1, kMostIterations)), kRare});
  add({kHow, "--max-time", "TIME", "of one row; default: 1s; pairs, tune: less", into(method.max_time, duration_of)});
  add({kHow, "--check", "HOW", "look at results: off, sample (of every one), all; default: sample",
       into(method.check, one_of<std::string>({{"off", "off"}, {"sample", "sample"}, {"all", "all"}})), kRare});
  add({kHow, "--bound", "HOW", "times below the physical bound: strict, warn, off; default: strict",
       into(request.bound,
            one_of<BoundMode>({{"strict", BoundMode::strict}, {"warn", BoundMode::warn}, {"off", BoundMode::off}})),
       kRare});
  add({kHow, "--sync", "HOW", "start at a common time, or at a barrier: window, barrier",
       into(method.barrier_sync, one_of<bool>({{"window", false}, {"barrier", true}})), kRare});
  add({kHow, "--skew", "HOW", "ranks come late: uniform:20us, late:1:1ms; default: none",
       [&](Text& option, Text& text) { method.skew = skew_of(option, text, method.ranks); }, kRare});
  add({kHow, "--delay", "TIME", "make every operation so much slower: 5us, 15%",
       [&](Text& option, Text& text) {
         if (text.ends_with('%'))
           method.delay_fraction = fraction_of(option, text);
         else
           method.delay = duration_of(option, text);
       },
       kRare});
  add({kHow, "--no-shuffle", "", "measure rows in the order of the table", becomes(method.shuffle, false), kRare});
  add({kHow, "--allow-single", "", "measure one rank alone", becomes(request.allow_single, true), kRare});
  add({kHow, "--seed", "N", "of the values and the order; default: a new one",
       into(method.seed, tools::parsed_by(tools::parse_seed, "42 or 0x2a")), kRare});
  add({kHow, "--timeout", "TIME", "how long one operation may take; default: 60s", into(method.timeout, duration_of),
       kRare});
  add({kOutputGroup, "-q,--quiet", "", "neither a progress line, nor notes and warnings before it measures",
       becomes(method.quiet, true), kRare});
  add({kNcclTests, "-w,--warmup_iters", "N", "operations that do not count; default: 2",
       into(method.warm_ups, number_between(1, 10'000)), kRare});
  add({kNcclTests, "-c,--checked", "0|1", "whether results are looked at",
       [&](Text& option, Text& text) { method.check = tools::read_number(option, text, 0, 1) > 0 ? "sample" : "off"; },
       kRare});
}

void CommandLine::add_outputs() {
  Output& output = request_.output;
  add_option(kOutputGroup, "--json", output.json, "FILE", "write everything, every sample too, as JSON");
  add({kOutputGroup, "--csv", "FILE", "write the rows as CSV", into(output.csv, tools::as_written), kRare});
  add({kOutputGroup, "--plot", "FILE", "draw time and bandwidth over size: x.svg", into(output.plot, tools::as_written),
       kRare});
  add_option(kOutputGroup, "--html", output.html, "FILE", "write a page that needs no network");
  add({kOutputGroup, "--legend", "", "explain the columns", becomes(output.legend, true)});
  add({kOutputGroup, "--no-progress", "", "no progress line, even on a terminal", becomes(output.progress, false),
       kRare});
}

void CommandLine::add_option(std::string_view group, std::string_view names, std::string& value, std::string_view type,
                             std::string text) {
  add({group, names, type, std::move(text), into(value, tools::as_written)});
}

bool CommandLine::parse(const std::vector<std::string>& arguments, std::size_t most_words) {
  Method& method = request_.method;
  if (const auto text = OptionTable::parse(arguments, most_words)) {
    print(*text);
    return false;
  }
  if (has_cells_) read_nccl_tests(values(), request_, !read_ranks_);
  if (has_method_) {
    const tools::Given* ranks = values().find("-n");
    if (ranks == nullptr)
      method.ranks = default_ranks();
    else if (read_ranks_)
      method.ranks = read_ranks_(ranks->said_as, ranks->text);
    else
      method.ranks = tools::read_number(ranks->said_as, ranks->text, 1, launch::kMaxRanks);
    method.seed = std::uint64_t{std::random_device()()} << 16 | std::random_device()() % 65'536;
  }
  values().apply();
  // What is measured of the machine is about the host.
  method.calibrate = request_.bound != BoundMode::off && request_.device != Device::Type::cuda;
  method.strict_bound = request_.bound == BoundMode::strict;
  if (has_cells_) {
    check_backends(request_);
    check_types(request_);
  }
  return true;
}

}  // namespace col::colbench
