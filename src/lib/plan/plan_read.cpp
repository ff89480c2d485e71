// Reads a plan file. Everything that can be told without executing the plan is checked here; verify() does the rest.
#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/hash.hpp"
#include "core/joined.hpp"
#include "core/nearest_name.hpp"
#include "json/strict_json.hpp"
#include "plan/plan_content.hpp"

namespace col::plan {
namespace {

using core::JsonPlace;
using Names = std::span<const std::string_view>;

constexpr std::size_t kIntMax = std::numeric_limits<int>::max();

std::string_view unit_of(const PlanContent& content) {
  return content.in_chunks ? "chunk" : "element";
}

Collective read_collective(const JsonPlace& place) {
  std::vector<std::string_view> names;
  for (int i = 0; i < kCollectiveCount; ++i) {
    const auto collective = static_cast<Collective>(i);
    if (row_of(collective).is_message) continue;
    names.push_back(to_string(collective));
    if (names.back() == place.text()) return collective;
  }
  std::string hint = core::did_you_mean(place.text(), names);
  if (hint.empty()) hint = fmt::format("; use one of {}", core::joined(names, ", "));
  place.fail(fmt::format("unknown collective {}{}", core::in_quotes(place.text()), hint));
}

std::vector<std::size_t> read_counts(const JsonPlace& place, std::size_t ranks) {
  if (place.size("counts, one per rank") != ranks)
    place.fail(fmt::format("has {} counts for {} ranks", place.size("counts"), ranks));
  std::vector<std::size_t> counts;
  for (std::size_t i = 0; i < ranks; ++i) counts.push_back(place.at(i).number(0, kMostElements));
  return counts;
}

// The sizes of all blocks together must be a number that a JSON reader keeps exact, too: no sum below can overflow.
void check_total(const JsonPlace& place, const std::vector<std::size_t>& counts) {
  std::size_t left = kMostElements;
  for (const std::size_t count : counts) {
    if (count > left) place.fail(fmt::format("all counts together should be {} elements at most", kMostElements));
    left -= count;
  }
}

void read_blocks(const JsonPlace& root, PlanProblem::Spec& spec) {
  const auto ranks = static_cast<std::size_t>(spec.size);
  if (!row_of(spec.collective).has_data()) return;
  if (!row_of(spec.collective).has_counts()) {
    spec.count = root["count"].number(0, kMostElements / ranks);
    return;
  }
  const JsonPlace counts = root["counts"];
  if (row_of(spec.collective).counts != BlockCounts::pairs) {
    spec.counts = read_counts(counts, ranks);
  } else {
    if (counts.size("lists: row r is what rank r sends to each") != ranks)
      counts.fail(fmt::format("has {} rows for {} ranks", counts.size("lists"), ranks));
    for (std::size_t row = 0; row < ranks; ++row) {
      const std::vector<std::size_t> of_row = read_counts(counts.at(row), ranks);
      spec.counts.insert(spec.counts.end(), of_row.begin(), of_row.end());
    }
  }
  check_total(counts, spec.counts);
}

// Unit and collective decide which of the other members there may be.
void check_members(const JsonPlace& root, Collective collective, bool in_chunks) {
  const CollectiveRow& row = row_of(collective);
  const bool has_count = !in_chunks && row.has_data();
  const auto check = [&](std::string_view name, bool wanted, bool optional = false) {
    if (root.has(name) && !wanted)
      root.fail(fmt::format("member '{}' has no meaning for {} in {}", name, to_string(collective),
                            in_chunks ? "chunks" : "elements"));
    if (wanted && !optional) (void)root[name];
  };
  check("root", row.rooted);
  check("count", has_count && !row.has_counts());
  check("counts", has_count && row.has_counts());
  check("chunks", in_chunks && row.has_data(), true);
  for (const std::string_view name : {"in_place", "widens", "wide_input"}) check(name, !in_chunks, true);
}

bool read_unit(const JsonPlace& place, Collective collective) {
  constexpr std::array<std::string_view, 2> kUnits = {"elements", "chunks"};
  const auto unit = std::find(kUnits.begin(), kUnits.end(), place.text());
  if (unit == kUnits.end())
    place.fail(fmt::format("unknown unit {}; use 'elements' or 'chunks'", core::in_quotes(place.text())));
  const bool in_chunks = unit == kUnits.begin() + 1;
  if (in_chunks && row_of(collective).has_counts())
    place.fail(fmt::format("a plan of {} cannot be in chunks, for its blocks differ in length; use 'elements'",
                           to_string(collective)));
  return in_chunks;
}

PlanContent read_header(const JsonPlace& root) {
  // Before all else: another version may have other members.
  const std::size_t version = root["version"].number(0, kIntMax);
  if (version != kPlanVersion)
    root["version"].fail(fmt::format("is {}, and this version of col reads {}", version, kPlanVersion));
  constexpr std::array<std::string_view, 15> kMembers = {"version", "name",     "collective", "ranks",      "unit",
                                                         "plans",   "root",     "chunks",     "count",      "counts",
                                                         "scratch", "in_place", "widens",     "wide_input", "wide"};
  root.expect_members(kMembers);
  const Collective collective = read_collective(root["collective"]);
  const bool in_chunks = read_unit(root["unit"], collective);
  check_members(root, collective, in_chunks);

  PlanProblem::Spec spec{.collective = collective};
  const std::size_t ranks = root["ranks"].number(1, kIntMax);
  // First of all numbers: what follows may then be proportional to the ranks, which is to the text.
  if (const std::size_t lists = root["plans"].size("plans, one per rank"); lists != ranks)
    root["plans"].fail(fmt::format("has {} lists for {} ranks; there should be one per rank", lists, ranks));
  spec.size = static_cast<int>(ranks);
  if (row_of(collective).rooted) spec.root = static_cast<int>(root["root"].number(0, ranks - 1));
  if (in_chunks) {
    spec.count = root.has("chunks") ? root["chunks"].number(1, kMostChunks / std::min(ranks, kMostChunks)) : 1;
  } else {
    const auto flag = [&](std::string_view name) { return root.has(name) && root[name].flag(); };
    spec.in_place = flag("in_place");
    spec.widens = flag("widens");
    spec.wide_input = flag("wide_input");
    read_blocks(root, spec);
  }
  // A barrier has no count that could be cut, so its temporary buffers are in elements whatever the unit.
  return {.name = root["name"].text(),
          .in_chunks = in_chunks && row_of(collective).has_data(),
          .problem = PlanProblem(std::move(spec))};
}

// Reads the steps of one rank.
class StepReader {
 public:
  StepReader(const PlanContent& content, int rank)
      : content_(content),
        rank_(rank),
        input_(content.problem.input_count(rank)),
        output_(content.problem.output_count(rank)) {}

  void read_round(const JsonPlace& place) {
    const std::size_t steps = place.size("steps");
    for (std::size_t i = 0; i < steps; ++i) steps_.steps.push_back(read_step(place.at(i)));
    steps_.round_ends.push_back(steps_.steps.size());
  }
  // How far the slices reach into the two temporary buffers.
  RankSteps take() { return std::move(steps_); }

 private:
  enum class Use { read, written };

  Step read_step(const JsonPlace& place) {
    constexpr std::array<std::string_view, 5> kKinds = {"send", "recv", "reduce", "copy", "convert"};
    constexpr std::array<std::string_view, 8> kKnown = {"send",    "recv", "reduce", "copy",
                                                        "convert", "to",   "from",   "into"};
    place.expect_members(kKnown);
    const auto kind =
        std::find_if(kKinds.begin(), kKinds.end(), [&](std::string_view name) { return place.has(name); });
    if (kind == kKinds.end()) place.fail(fmt::format("a step needs one of {}", core::joined(kKinds, ", ")));
    Step step{.kind = static_cast<Step::Kind>(kind - kKinds.begin())};
    const JsonPlace operand = place[*kind];
    if (step.is_message()) {
      const std::string_view whom = step.kind == Step::Kind::send ? "to" : "from";
      place.expect_members(std::array{*kind, whom});
      step.peer = read_peer(place[whom]);
      const bool is_signal = operand.is_array() && operand.size("") == 0;
      if (is_signal) return step;
      (step.kind == Step::Kind::send ? step.left : step.to) =
          read_slice(operand, step.kind == Step::Kind::send ? Use::read : Use::written);
      return step;
    }
    place.expect_members(std::array<std::string_view, 2>{*kind, "into"});
    step.to = read_slice(place["into"], Use::written);
    if (step.kind == Step::Kind::reduce) {
      if (operand.size("two slices, left and right") != 2) operand.fail("should be two slices, left and right");
      step.left = read_slice(operand.at(0), Use::read);
      step.right = read_slice(operand.at(1), Use::read);
    } else {
      step.left = read_slice(operand, Use::read);
    }
    const bool fits =
        step.left.count == step.to.count && (step.kind != Step::Kind::reduce || step.right.count == step.to.count);
    if (!fits) place.fail(fmt::format("the slices of a {} should have the same number of {}s", *kind, unit()));
    return step;
  }

  int read_peer(const JsonPlace& place) {
    const std::size_t peer = place.number(0, static_cast<std::size_t>(content_.problem.size()) - 1);
    if (static_cast<int>(peer) == rank_)
      place.fail(fmt::format("rank {} names itself; use a copy instead of a message", rank_));
    return static_cast<int>(peer);
  }

  Slice read_slice(const JsonPlace& place, Use use) {
    constexpr std::array kBuffers = {Buffer::input, Buffer::output, Buffer::scratch, Buffer::wide};
    if (place.size("buffer, first, number") != 3)
      place.fail(fmt::format("a slice is [buffer, first {0}, number of {0}s]", unit()));
    const std::string& name = place.at(0).text();
    const auto buffer = std::find_if(kBuffers.begin(), kBuffers.end(), [&](Buffer b) { return to_string(b) == name; });
    if (buffer == kBuffers.end()) {
      constexpr std::array<std::string_view, 4> kNames = {"input", "output", "scratch", "wide"};
      place.at(0).fail(fmt::format("unknown buffer {}{}; use one of {}", core::in_quotes(name),
                                   core::did_you_mean(name, kNames), core::joined(kNames, ", ")));
    }
    const std::size_t most = content_.in_chunks ? kMostChunks : kMostElements;
    const Slice slice{*buffer, place.at(1).number(0, most), place.at(2).number(1, most)};
    if (slice.buffer == Buffer::input && use == Use::written) place.fail("the input is never written");
    check_range(place, slice, most);
    return slice;
  }

  void check_range(const JsonPlace& place, const Slice& slice, std::size_t most) {
    const std::size_t end = slice.offset + slice.count;
    const bool temporary = slice.buffer == Buffer::scratch || slice.buffer == Buffer::wide;
    const std::size_t limit = temporary ? most : slice.buffer == Buffer::input ? input_ : output_;
    if (end > limit)
      place.fail(fmt::format("ends at {0} {1}, and {2} of rank {3} has {4} {0}s", unit(), end, to_string(slice.buffer),
                             rank_, limit));
    if (slice.buffer == Buffer::scratch) steps_.scratch = std::max(steps_.scratch, end);
    if (slice.buffer == Buffer::wide) steps_.wide = std::max(steps_.wide, end);
  }

  std::string_view unit() const { return unit_of(content_); }

  const PlanContent& content_;
  int rank_;
  std::size_t input_, output_;
  RankSteps steps_;
};

// "scratch" or "wide": one number for all ranks or one per rank. What is left out is as large as the slices reach.
void read_temporary(const JsonPlace& root, std::string_view name, std::size_t RankSteps::*size, PlanContent& content) {
  if (!root.has(name)) return;
  const JsonPlace place = root[name];
  const std::size_t most = content.in_chunks ? kMostChunks : kMostElements;
  if (place.is_array() && place.size("numbers") != content.ranks.size())
    place.fail(fmt::format("has {} numbers for {} ranks", place.size("numbers"), content.ranks.size()));
  for (std::size_t rank = 0; rank < content.ranks.size(); ++rank) {
    const JsonPlace here = place.is_array() ? place.at(rank) : place;
    const std::size_t given = here.number(0, most);
    std::size_t& reached = content.ranks[rank].*size;
    if (given < reached)
      here.fail(fmt::format("is {}, and the plan of rank {} uses {} {}s of {}", given, rank, reached, unit_of(content),
                            name));
    reached = given;
  }
}

}  // namespace

PlanContent read_plan(std::string_view text, std::string source) {
  const core::JsonDocument document = core::JsonDocument::parse(text, std::move(source));
  const JsonPlace root = document.root();
  PlanContent content = read_header(root);
  const JsonPlace plans = root["plans"];
  for (int rank = 0; rank < content.problem.size(); ++rank) {
    const JsonPlace rounds = plans.at(static_cast<std::size_t>(rank));
    StepReader reader(content, rank);
    const std::size_t count = rounds.size("rounds");
    for (std::size_t index = 0; index < count; ++index) reader.read_round(rounds.at(index));
    content.ranks.push_back(reader.take());
  }
  read_temporary(root, "scratch", &RankSteps::scratch, content);
  read_temporary(root, "wide", &RankSteps::wide, content);
  if (content.in_chunks) check_chunk_lengths(content, document.source());
  content.hash = core::Hash().add(text).value();
  return content;
}

}  // namespace col::plan
