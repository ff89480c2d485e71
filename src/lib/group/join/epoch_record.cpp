#include "group/join/epoch_record.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "group/diagnosis/failure.hpp"
#include "group/join/decoded.hpp"
#include "json/json_fields.hpp"

namespace col::group {
namespace {

// More than any job has: a text that says more is somebody else's.
constexpr auto kNumber = core::within(0, 1'000'000);

std::string_view name_of(EpochRecord::Phase phase) {
  using Phase = EpochRecord::Phase;
  switch (phase) {
    case Phase::decided:
      return "decided";
    case Phase::open:
      return "open";
    case Phase::void_:
      return "void";
    case Phase::failed:
      return "failed";
    case Phase::over:
      break;
  }
  return "over";
}

template <class List, class Projection>
int place_of(const List& list, Incarnation incarnation, const Projection& projection) {
  const auto found = std::ranges::find(list, incarnation, projection);
  return found == list.end() ? -1 : static_cast<int>(found - list.begin());
}

}  // namespace

// A record goes to each member: names are short, and what is as usual is left out.
template <class Visit>
void fields(Seat& seat, Visit& visit) {
  auto& [incarnation, before, progress, address] = seat;
  visit("i", incarnation);
  visit.if_set("was", before, before >= 0, kNumber);
  visit.if_set("at", progress, progress != 0);
  visit("a", address);
}

template <class Visit>
void fields(LostSeat& seat, Visit& visit) {
  auto& [incarnation, number, is_excluded] = seat;
  visit("i", incarnation);
  visit("was", number, kNumber);
  visit.if_set("excluded", is_excluded, is_excluded);
}

template <class Visit>
void fields(EpochRecord& record, Visit& visit) {
  auto& [epoch, phase, base, token, members, lost, passed_over, error] = record;
  visit("epoch", epoch);
  visit("phase", phase, core::Named{EpochRecord::Phase::over, name_of});
  visit("base", base);
  visit("token", token);
  visit("members", members);
  visit.if_set("lost", lost, !lost.empty());
  visit.if_set("passed_over", passed_over, !passed_over.empty());
  visit.if_set("error", error, !error.empty());
}

template <class Visit>
void fields(Presence& presence, Visit& visit) {
  auto& [incarnation, round, is_connected, ticket, progress, address, size, min, excluded] = presence;
  visit("i", incarnation);
  visit("round", round);
  visit.if_set("connected", is_connected, is_connected);
  visit.if_set("ticket", ticket, ticket >= 0);
  visit.if_set("at", progress, progress != 0);
  visit("a", address);
  visit.if_set("size", size, size != 0);
  visit.if_set("min", min, min != 1);
  visit.if_set("excluded", excluded, !excluded.empty());
}

int Generation::number_of(Incarnation incarnation) const {
  return place_of(members, incarnation, std::identity());
}

std::uint64_t EpochRecord::version() const {
  const std::uint64_t step = phase == Phase::decided ? 0 : phase == Phase::over ? 2 : 1;
  return 3 * epoch + step;
}

int EpochRecord::number_of(Incarnation incarnation) const {
  return place_of(members, incarnation, &Seat::incarnation);
}

bool EpochRecord::has_lost(Incarnation incarnation) const {
  return place_of(lost, incarnation, &LostSeat::incarnation) >= 0;
}

// An epoch that did not open has in it who was in the one before: its survivors, and those it has lost. One that was
// lost after the record was decided is in both lists.
Generation EpochRecord::generation() const {
  Generation last;
  const bool has_opened = phase == Phase::open || phase == Phase::over;
  last.epoch = has_opened ? epoch : base;
  const auto put = [&last](int number, Incarnation incarnation) {
    const auto place = static_cast<std::size_t>(number);
    if (last.members.size() <= place) last.members.resize(place + 1);
    last.members[place] = incarnation;
  };
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (has_opened) put(static_cast<int>(i), members[i].incarnation);
    if (!has_opened && members[i].before >= 0) put(members[i].before, members[i].incarnation);
  }
  for (const LostSeat& seat : lost) {
    if (!has_opened) put(seat.number, seat.incarnation);
  }
  return last;
}

std::vector<int> EpochRecord::newcomers() const {
  std::vector<int> ranks;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i].before < 0) ranks.push_back(static_cast<int>(i));
  }
  return ranks;
}

int EpochRecord::source() const {
  int source = -1;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i].before < 0) continue;
    if (source < 0 || members[i].progress > members[static_cast<std::size_t>(source)].progress)
      source = static_cast<int>(i);
  }
  return std::max(source, 0);
}

std::string EpochRecord::encode() const {
  return core::json_line(*this);
}

EpochRecord EpochRecord::decode(std::string_view text) {
  constexpr std::string_view kWhat = "record of an epoch";
  auto record = decoded<EpochRecord>(text, kWhat);
  // compare_set compares texts: what reads as this record, and has another text, could never be followed by the next.
  if (record.encode() != text) throw unreadable(kWhat, "this version of col would write it otherwise");
  if (record.generation().number_of(0) >= 0) throw unreadable(kWhat, "numbers of the last epoch are missing");
  if (record.phase == Phase::failed && !decode_error(record.error))
    throw unreadable(kWhat, "it has failed, and does not say why");
  return record;
}

std::string Presence::encode() const {
  return core::json_line(*this);
}

Presence Presence::decode(std::string_view text) {
  return decoded<Presence>(text, "word of a rank that renews a group");
}

EpochRecord first_epoch(std::vector<Seat> members, std::uint64_t token) {
  EpochRecord record;
  record.token = token;
  record.members = std::move(members);
  return record;
}

EpochRecord in_phase(const EpochRecord& record, EpochRecord::Phase phase) {
  EpochRecord later = record;
  later.phase = phase;
  return later;
}

}  // namespace col::group
