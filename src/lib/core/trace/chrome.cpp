// The trace event format of Chrome, which Perfetto reads too. A rank is a process there. Its blocking calls in a group
// are a track, and those that it has started and waits for later are tracks beside it, as many as overlap. The rounds
// of a plan lie within their call. An arrow goes from each message's sender to its receiver.
#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include <col/collective.hpp>
#include <col/types.hpp>

#include "core/hash.hpp"
#include "core/job/record_words.hpp"
#include "core/trace/traced_events.hpp"

namespace col::core {
namespace {

// Tracks of one group of a rank.
constexpr int kTracks = 64;
// Points of the counter of one rank.
constexpr std::size_t kPoints = 512;
constexpr std::array<std::string_view, 5> kSteps = {"send", "recv", "reduce", "copy", "convert"};

using Events = std::vector<const TracedEvent*>;
// What the steps of a call have in common.
using CallKey = std::tuple<std::int32_t, std::uint32_t, std::uint64_t>;  // rank, group, sequence

bool is_kind(const TracedEvent& event, TraceKind kind) {
  return event.kind == static_cast<std::uint8_t>(kind);
}
bool is_message(const TracedEvent& event) {
  return static_cast<Collective>(event.op) >= Collective::send;
}
std::uint64_t bytes_of(const TracedEvent& event) {
  return event.dtype < kDTypeCount ? event.count * size_of(static_cast<DType>(event.dtype)) : event.count;
}

// For an arrow: viewers add begin and duration in microseconds, and an arrow at the very end is then outside.
std::int64_t within(std::int64_t at, std::int64_t begin, std::int64_t end) {
  return std::clamp(at, begin, std::max(begin, end - 1));
}

// How many bytes the UTF-8 character at the front of the text has; 0: there is none.
std::size_t character_at(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t bytes = first < 0x80   ? 1
                            : first < 0xc2 ? 0
                            : first < 0xe0 ? 2
                            : first < 0xf0 ? 3
                            : first < 0xf5 ? 4
                                           : 0;
  if (bytes > text.size()) return 0;
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
  }
  return bytes;
}

class Writer {
 public:
  Writer(const TracedEvents& all, std::int64_t base_ns) : all_(all), base_ns_(base_ns) {}

  std::string text(std::uint64_t most_bytes);

 private:
  struct Track {
    int rank = 0, number = 0;
    std::string name;
  };

  std::string micros(std::int64_t ns) const {
    const std::int64_t since = std::max<std::int64_t>(ns - base_ns_, 0);
    return fmt::format("{}.{:03}", since / 1000, since % 1000);
  }
  const std::string& name(std::uint32_t number) const { return all_.names[number]; }
  void sort();
  int track_of(const TracedEvent& call);
  std::string call_text(const TracedEvent& call);
  void add_rounds(std::string& out, const TracedEvent& call, int track, const Events& steps) const;
  void add_arrow(std::string& out, const TracedEvent& at, bool from, int track, std::uint64_t id,
                 std::int64_t ns) const;
  void add_arguments(std::string& out, const TracedEvent& call) const;
  std::string heads() const;
  std::string counters() const;

  const TracedEvents& all_;
  const std::int64_t base_ns_;
  Events calls_;  // by begin
  std::map<CallKey, Events> steps_;
  std::map<std::pair<int, std::uint32_t>, int> groups_;            // of a rank: its number there
  std::map<std::pair<int, int>, std::vector<std::int64_t>> busy_;  // until when tracks are, by rank and group
  std::map<std::pair<int, int>, std::string> tracks_;
};

void Writer::sort() {
  for (const TracedEvent& event : all_.events) {
    if (is_kind(event, TraceKind::step))
      steps_[{event.rank, event.group, event.sequence}].push_back(&event);
    else
      calls_.push_back(&event);
  }
  // The longer one first of two that begin together: the other lies within it.
  std::ranges::sort(calls_, [](const TracedEvent* a, const TracedEvent* b) {
    return std::tuple(a->begin_ns, -a->end_ns, a->rank) < std::tuple(b->begin_ns, -b->end_ns, b->rank);
  });
}

// Blocking calls of a group do not overlap. Others take the first track that is free.
int Writer::track_of(const TracedEvent& call) {
  const auto [group, is_new] = groups_.emplace(std::pair(call.rank, call.group), 0);
  if (is_new) {
    group->second = static_cast<int>(std::ranges::count_if(
                        groups_, [&](const auto& known) { return known.first.first == call.rank; })) -
                    1;
  }
  const int first = group->second * kTracks;
  int number = first;
  if (is_kind(call, TraceKind::started)) {
    std::vector<std::int64_t>& busy = busy_[{call.rank, group->second}];
    std::size_t lane = 0;
    while (lane < busy.size() && busy[lane] > call.begin_ns) ++lane;
    lane = std::min<std::size_t>(lane, kTracks - 2);
    if (lane == busy.size()) busy.push_back(0);
    busy[lane] = std::max(busy[lane], call.end_ns);
    number += 1 + static_cast<int>(lane);
  }
  auto& track = tracks_[{call.rank, number}];
  if (track.empty()) {
    track = fmt::format("group '{}'{}", name(call.group),
                        number == first ? "" : fmt::format(", in flight {}", number - first));
  }
  return number;
}

void Writer::add_arguments(std::string& out, const TracedEvent& call) const {
  const auto into = std::back_inserter(out);
  fmt::format_to(into, R"("args":{{"call":{},"bytes":{})", call.sequence, bytes_of(call));
  if (call.dtype < kDTypeCount)
    fmt::format_to(into, R"(,"elements":"{} {}")", call.count, to_string(static_cast<DType>(call.dtype)));
  if (is_message(call)) {
    fmt::format_to(into, R"(,"{}":{},"tag":{})", call.op == static_cast<std::uint8_t>(Collective::send) ? "to" : "from",
                   call.partner, call.tag);
  } else {
    if (call.partner >= 0) fmt::format_to(into, R"(,"root":{})", call.partner);
    if (call.algorithm != 0) fmt::format_to(into, R"(,"algorithm":{})", json_text(name(call.algorithm)));
    if (call.reduction != 0)
      fmt::format_to(into, R"(,"op":"{}")",
                     call.reduction <= kReduceOpCount ? to_string(static_cast<ReduceOp>(call.reduction - 1)) : "other");
  }
  if (call.label != 0) fmt::format_to(into, R"(,"label":{})", json_text(name(call.label)));
  out += '}';
}

void Writer::add_arrow(std::string& out, const TracedEvent& at, bool from, int track, std::uint64_t id,
                       std::int64_t ns) const {
  fmt::format_to(std::back_inserter(out),
                 R"({{"ph":"{}","cat":"message","name":"message","id":"{:x}","pid":{},"tid":{},"ts":{}{}}},)"
                 "\n",
                 from ? 's' : 'f', id, at.rank, track, micros(ns), from ? "" : R"(,"bp":"e")");
}

void Writer::add_rounds(std::string& out, const TracedEvent& call, int track, const Events& steps) const {
  struct Round {
    std::int64_t begin = 0, end = 0;
    std::map<std::string, std::uint64_t> bytes;  // by what is done with them
  };
  std::map<std::int32_t, Round> rounds;
  for (const TracedEvent* step : steps) {
    const auto [place, is_new] = rounds.emplace(step->tag, Round{step->begin_ns, step->end_ns, {}});
    Round& round = place->second;
    round.begin = std::min(round.begin, step->begin_ns);
    round.end = std::max(round.end, step->end_ns);
    std::string what(kSteps[std::min<std::size_t>(step->dtype, kSteps.size() - 1)]);
    if (step->partner >= 0) what += fmt::format(" {} {}", step->dtype == 0 ? "to" : "from", step->partner);
    round.bytes[what] += step->count;
  }
  // Receives are posted early, and a round begins when the one before has ended.
  std::int64_t free = call.begin_ns;
  for (auto& [number, round] : rounds) {
    round.begin = std::clamp(round.begin, free, std::max(free, call.end_ns));
    round.end = std::clamp(round.end, round.begin, std::max(round.begin, call.end_ns));
    free = round.end;
    std::string arguments;
    for (const auto& [what, bytes] : round.bytes)
      arguments += fmt::format(R"({}"{}":"{} B")", arguments.empty() ? "" : ",", what, bytes);
    fmt::format_to(std::back_inserter(out),
                   R"({{"ph":"X","cat":"round","name":"round {}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}},)"
                   "\n",
                   number, call.rank, track, micros(round.begin), micros(base_ns_ + round.end - round.begin),
                   arguments);
  }
  // The k-th message between two ranks in a call is the same on both sides.
  Events messages;
  std::ranges::copy_if(steps, std::back_inserter(messages), [](const TracedEvent* step) { return step->dtype <= 1; });
  std::ranges::sort(messages, {}, &TracedEvent::number);
  std::map<std::pair<int, std::int32_t>, std::uint64_t> counts;
  for (const TracedEvent* step : messages) {
    const bool sends = step->dtype == 0;
    const std::uint64_t id = Hash()
                                 .add(name(call.group))
                                 .add(call.sequence)
                                 .add(sends ? call.rank : step->partner)
                                 .add(sends ? step->partner : call.rank)
                                 .add(counts[{step->dtype, step->partner}]++)
                                 .value();
    const Round& round = rounds[step->tag];
    const std::int64_t at = sends ? step->begin_ns : step->end_ns;
    add_arrow(out, call, sends, track, id, within(at, round.begin, round.end));
  }
}

std::string Writer::call_text(const TracedEvent& call) {
  const int track = track_of(call);
  std::string out = fmt::format(
      R"({{"ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":{},"dur":{},)",
      is_message(call) ? "message" : "collective",
      json_text(call.label == 0 ? std::string(to_string(static_cast<Collective>(call.op)))
                                : fmt::format("{} {}", to_string(static_cast<Collective>(call.op)), name(call.label))),
      call.rank, track, micros(call.begin_ns), micros(base_ns_ + call.end_ns - call.begin_ns));
  add_arguments(out, call);
  out += "},\n";
  if (is_message(call)) {
    if (call.partner < 0 || call.number == 0) return out;
    const bool sends = static_cast<Collective>(call.op) == Collective::send;
    const std::uint64_t id = Hash()
                                 .add(name(call.group))
                                 .add(sends ? call.rank : call.partner)
                                 .add(sends ? call.partner : call.rank)
                                 .add(call.tag)
                                 .add(call.number)
                                 .value();
    const std::int64_t at = sends ? call.begin_ns : call.end_ns;
    add_arrow(out, call, sends, track, id, within(at, call.begin_ns, call.end_ns));
  } else if (const auto steps = steps_.find({call.rank, call.group, call.sequence}); steps != steps_.end()) {
    add_rounds(out, call, track, steps->second);
  }
  return out;
}

std::string Writer::heads() const {
  std::string out;
  for (const TracedProcess& process : all_.processes) {
    if (process.rank < 0) continue;
    const std::string clock =
        process.error_ns > 0 ? fmt::format(", clock ± {} µs", (process.error_ns + 999) / 1000) : std::string();
    fmt::format_to(std::back_inserter(out),
                   R"({{"ph":"M","name":"process_name","pid":{0},"args":{{"name":{1}}}}},)"
                   "\n"
                   R"({{"ph":"M","name":"process_sort_index","pid":{0},"args":{{"sort_index":{0}}}}},)"
                   "\n",
                   process.rank,
                   json_text(fmt::format("rank {} ({}, pid {}{})", process.rank, process.host, process.pid, clock)));
  }
  for (const auto& [track, text] : tracks_) {
    fmt::format_to(std::back_inserter(out),
                   R"({{"ph":"M","name":"thread_name","pid":{0},"tid":{1},"args":{{"name":{2}}}}},)"
                   "\n"
                   R"({{"ph":"M","name":"thread_sort_index","pid":{0},"tid":{1},"args":{{"sort_index":{1}}}}},)"
                   "\n",
                   track.first, track.second, json_text(text));
  }
  return out;
}

// Bytes of the calls that are under way, for each rank. Of many points, each stands for the most of its share.
std::string Writer::counters() const {
  std::map<int, std::vector<std::pair<std::int64_t, std::int64_t>>> changes;
  for (const TracedEvent* call : calls_) {
    const auto bytes = static_cast<std::int64_t>(bytes_of(*call));
    if (bytes == 0) continue;
    changes[call->rank].emplace_back(call->begin_ns, bytes);
    changes[call->rank].emplace_back(call->end_ns, -bytes);
  }
  std::string out;
  for (auto& [rank, list] : changes) {
    std::ranges::sort(list);
    const std::size_t share = list.size() / kPoints + 1;
    std::int64_t now = 0, most = 0;
    for (std::size_t i = 0; i < list.size(); ++i) {
      now += list[i].second;
      most = std::max(most, now);
      const bool is_last = i + 1 == list.size();
      if ((i + 1) % share != 0 && !is_last) continue;
      fmt::format_to(std::back_inserter(out),
                     R"({{"ph":"C","name":"bytes in flight","pid":{},"ts":{},"args":{{"bytes":{}}}}},)"
                     "\n",
                     rank, micros(list[i].first),
                     is_last      ? now
                     : share == 1 ? now
                                  : most);
      most = now;
    }
  }
  return out;
}

std::string Writer::text(std::uint64_t most_bytes) {
  sort();
  std::vector<std::string> texts;
  texts.reserve(calls_.size());
  std::uint64_t bytes = 0;
  for (const TracedEvent* call : calls_) {
    texts.push_back(call_text(*call));
    bytes += texts.back().size();
  }
  std::string out = heads() + counters();
  bytes += out.size();
  std::size_t first = 0;
  for (; first < texts.size() && bytes > most_bytes; ++first) bytes -= texts[first].size();
  out.reserve(bytes);
  for (std::size_t i = first; i < texts.size(); ++i) out += texts[i];
  if (out.ends_with(",\n")) out.resize(out.size() - 2);
  return out;
}

}  // namespace

std::string json_text(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const char letter = text.front();
    const auto code = static_cast<unsigned char>(letter);
    const std::size_t bytes = character_at(text);
    if (letter == '"' || letter == '\\')
      out.append({'\\', letter});
    else if (code < 0x20 || code == 0x7f)
      out += fmt::format("\\u{:04x}", code);
    else if (bytes == 0)
      out += '?';
    else
      out += text.substr(0, bytes);
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return out + '"';
}

std::string chrome_events(const TracedEvents& all, std::int64_t base_ns, std::uint64_t most_bytes) {
  return Writer(all, base_ns).text(most_bytes);
}

std::string chrome_head(std::string_view job, std::int64_t base_real_ns, const TracedEvents& all) {
  std::uint64_t error_ns = 0;
  for (const TracedProcess& process : all.processes) error_ns = std::max(error_ns, process.error_ns);
  return fmt::format(
      R"({{"otherData":{{"job":{},"begins_ns":"{:019}","clock_error_ns":"{}","col":"{}"}},"displayTimeUnit":"ns","traceEvents":[)"
      "\n",
      json_text(job), base_real_ns, error_ns, COL_VERSION);
}

}  // namespace col::core
