// What else stands on command lines: operations, sizes, the cells that they make, percentages.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <col/select.hpp>

#include "colbench/commands/command.hpp"
#include "colbench/commands/options.hpp"
#include "common/command_line.hpp"
#include "common/option_values.hpp"
#include "common/text.hpp"

namespace col::colbench {
namespace {

// What `colbench sendrecv` means, and what `all` leaves out.
constexpr std::array<Operation, 3> kSendRecv = {Operation::pingpong, Operation::oneway, Operation::bidirectional};

// What OSU's benchmarks call them.
std::string_view our_name(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kNames = {
      {{"bcast", "broadcast"}, {"latency", "pingpong"}, {"bw", "oneway"}, {"bibw", "bidirectional"}}};
  for (const auto& [theirs, ours] : kNames) {
    if (name == theirs) return ours;
  }
  return name;
}

std::size_t size_or_throw(std::string_view text) {
  const auto size = parse_size(text);
  if (!size) throw UsageError("'{}' is no size; write bytes, or K, M, G for powers of 1024, as 8, 64K, 1.5M", text);
  if (*size == 0) throw UsageError("a size of 0 moves nothing; give at least one element");
  return *size;
}

// "8:256M:x2", "8:1M:+64K", "8:1M".
void add_range(std::string_view text, std::vector<std::size_t>& sizes) {
  const std::size_t first = text.find(':');
  const std::size_t second = text.find(':', first + 1);
  const std::size_t least = size_or_throw(text.substr(0, first));
  const std::size_t most =
      size_or_throw(text.substr(first + 1, second == std::string_view::npos ? second : second - first - 1));
  if (least > most) throw UsageError("the sizes of '{}' go down; put the smaller one first", text);
  const std::string_view step = second == std::string_view::npos ? "x2" : text.substr(second + 1);
  const bool multiplies = step.starts_with('x');
  const auto value =
      step.size() < 2 || (!multiplies && !step.starts_with('+')) ? std::nullopt : parse_size(step.substr(1));
  if (!value || *value < (multiplies ? 2U : 1U))
    throw UsageError("'{}' is no step of sizes; write x2 to multiply, or +64K to add", step);
  constexpr std::size_t kMostSizes = 10'000;
  for (std::size_t size = least; size <= most; size = multiplies ? size * *value : size + *value) {
    sizes.push_back(size);
    if (sizes.size() > kMostSizes) throw UsageError("'{}' are more than {} sizes", text, kMostSizes);
    if (multiplies && size > most / *value) break;
  }
}

std::size_t memory_bytes() {
  return static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(::sysconf(_SC_PAGE_SIZE));
}

// Both buffers of all ranks.
void check_memory(const CellSpec& spec) {
  const bool two = is_message(spec.operation) && spec.groups.empty();
  const std::size_t ranks = static_cast<std::size_t>(two ? 2 : spec.ranks);
  const std::size_t memory = memory_bytes() / (spec.cache == CacheState::rotate ? 2 : 1);
  if (spec.bytes < memory / 2 / ranks) return;
  throw UsageError("{} on {} ranks needs more memory than the {} of this machine; the greatest size is {}",
                   size_text(spec.bytes), ranks, size_text(memory), size_text(memory / 2 / ranks));
}

void check_messages(const Request& request, Operation operation) {
  if (request.groups.starts_with("mod:") || request.groups.starts_with("div:"))
    throw UsageError("{} is between two ranks; --groups pairs or bisect make several of them", to_string(operation));
}

void add_cells(const Request& request, CellSpec spec, std::vector<CellSpec>& cells) {
  const bool is_collective = collective_of(spec.operation).has_value();
  const auto each = [](const auto& values, auto&& visit) {
    for (const auto& value : values) visit(value);
  };
  const auto in_places = has_in_place(spec.operation) ? request.in_place : std::vector<bool>{false};
  const auto orders = has_order(spec.operation) ? request.orders : std::vector{col::Order::any};
  const auto roots = is_rooted(spec.operation) ? request.roots : std::vector<int>{0};
  const auto algorithms = is_collective ? request.algorithms : std::vector<std::string>{"auto"};
  const bool on_gpus = request.device == Device::Type::cuda;
  const auto devices = !on_gpus                     ? std::vector{Devices::cpu}
                       : is_message(spec.operation) ? std::vector{Devices::cuda, Devices::cpu_cuda, Devices::cuda_cpu}
                                                    : std::vector{Devices::cuda};
  const auto cadences = is_message(spec.operation) ? std::vector<Cadence>{Cadence::isolated} : request.cadences;
  each(request.backends, [&](const std::string& backend) {
    each(algorithms, [&](const std::string& algorithm) {
      each(in_places, [&](bool in_place) {
        each(cadences, [&](Cadence cadence) {
          each(roots, [&](int root) {
            each(devices, [&](Devices device) {
              each(orders, [&](col::Order order) {
                spec.backend = backend;
                spec.algorithm = algorithm;
                spec.in_place = in_place;
                spec.cadence = cadence;
                spec.root = root;
                spec.device = device;
                spec.order = order;
                cells.push_back(spec);
              });
            });
          });
        });
      });
    });
  });
}

}  // namespace

std::vector<std::string_view> operation_words() {
  std::vector<std::string_view> words = {"all", "sendrecv"};
  for (int i = 0; i < kOperationCount; ++i) words.push_back(to_string(static_cast<Operation>(i)));
  return words;
}

std::vector<Operation> parse_operations(const std::string& text) {
  const auto names = tools::parse_list(text);
  if (!names) throw UsageError("'{}' has an empty name in it", text);
  std::vector<Operation> operations;
  const auto add = [&](Operation operation) {
    if (std::find(operations.begin(), operations.end(), operation) == operations.end()) operations.push_back(operation);
  };
  for (const std::string& name : *names) {
    const auto operation = operation_from_string(our_name(name));
    if (name == "all") {
      for (int i = 0; i <= static_cast<int>(Operation(Operation::pingpong)); ++i) add(static_cast<Operation>(i));
    } else if (name == "sendrecv") {
      for (const Operation one : kSendRecv) add(one);
    } else if (operation) {
      add(*operation);
    } else {
      std::vector<std::string_view> known = operation_words();
      known.insert(known.end(), kCommandNames.begin(), kCommandNames.end());
      const std::string_view nearest = nearest_name(name, known);
      throw UsageError("unknown collective '{}'{}", name,
                       nearest.empty() ? fmt::format("; there are {}", fmt::join(known, ", "))
                                       : fmt::format("; did you mean '{}'?", nearest));
    }
  }
  return operations;
}

std::vector<std::size_t> parse_sizes(const std::string& text) {
  const auto parts = tools::parse_list(text);
  if (!parts) throw UsageError("'{}' has an empty size in it", text);
  std::vector<std::size_t> sizes;
  for (const std::string& part : *parts) {
    if (part.find(':') != std::string::npos)
      add_range(part, sizes);
    else
      sizes.push_back(size_or_throw(part));
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

std::string rounding_note(const Request& request) {
  const auto note = [&](Operation operation, std::size_t bytes) -> std::string {
    CellSpec spec{
        .operation = operation, .dtype = request.dtype, .ranks = request.method.ranks, .groups = request.groups};
    spec.bytes = bytes;
    const int group = is_message(operation) ? 2 : group_size_of(spec);
    const std::size_t whole = whole_bytes(spec, group);
    if (whole == bytes) return "";
    return fmt::format("{} of {} is measured as {}: every rank has whole elements of {}", to_string(operation),
                       tools::counted(bytes, "byte"), whole, col::to_string(request.dtype));
  };
  std::string first;
  std::size_t more = 0;
  for (const Operation operation : request.operations) {
    for (const std::size_t bytes : operation == Operation::barrier ? std::vector<std::size_t>() : request.sizes) {
      std::string text = note(operation, bytes);
      if (!text.empty() && first.empty())
        first = std::move(text);
      else if (!text.empty())
        ++more;
    }
  }
  return more == 0 ? first : fmt::format("{}; so it is with {} more", first, more);
}

std::vector<CellSpec> cells_of(const Request& request) {
  if (request.method.ranks == 1 && !request.allow_single)
    throw UsageError("one rank has nobody to communicate with; use -n 2 or more, or say --allow-single");
  const bool streams =
      std::find(request.cadences.begin(), request.cadences.end(), Cadence::stream) != request.cadences.end();
  if (request.cache != CacheState::hot && streams)
    throw UsageError("in a stream buffers are used again at once; --cache cold and rotate are for --cadence isolated");
  if (request.cache == CacheState::cold && request.device == Device::Type::cuda)
    throw UsageError("--cache cold flushes the processor's caches; on GPUs, take --cache rotate");
  std::vector<CellSpec> cells;
  for (const Operation operation : request.operations) {
    if (is_message(operation)) check_messages(request, operation);
    CellSpec spec{.operation = operation,
                  .dtype = request.dtype,
                  .op = request.op,
                  .ranks = request.method.ranks,
                  .cache = request.cache,
                  .groups = request.groups};
    if (operation == Operation::barrier) {
      add_cells(request, spec, cells);
      continue;
    }
    if (is_message(operation) && request.method.ranks < 2) continue;
    for (const std::size_t bytes : request.sizes) {
      const int group = is_message(operation) ? 2 : group_size_of(spec);
      spec.bytes = bytes;
      spec.bytes = whole_bytes(spec, group);
      check_memory(spec);
      const bool is_new = cells.empty() || cells.back().bytes != spec.bytes || cells.back().operation != operation;
      if (is_new) add_cells(request, spec, cells);
    }
  }
  return cells;
}

double parse_percent(const std::string& option, const std::string& text) {
  double percent = -1;
  const char* last = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), last, percent, std::chars_format::fixed);
  const bool is_percent = error == std::errc() && last - stop == 1 && *stop == '%';
  if (!is_percent || !(percent >= 0 && percent <= 1000)) {
    throw UsageError("{} '{}' is no percentage; write one such as 3%", option, text);
  }
  return percent / 100;
}

}  // namespace col::colbench
