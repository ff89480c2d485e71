// The promises, each looked at where it could be broken. Their numbers are those of docs/decisions/0065-epochs.md.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "unit/epochs/world.hpp"

namespace col::test {
namespace {

using Phase = EpochRecord::Phase;
using Status = Process::Status;

bool has_opened(const EpochRecord& record) {
  return record.phase == Phase::open || record.phase == Phase::over;
}

bool contains(const std::vector<Incarnation>& list, Incarnation one) {
  return std::ranges::find(list, one) != list.end();
}

}  // namespace

// (1), (2), (5): the history of the register.
std::string Epochs::check_write(const World& world, std::size_t writer, const EpochRecord& next) const {
  const EpochRecord& now = *world.registered;
  const auto wrong = [&](std::string_view why) {
    return fmt::format("(1) {} wrote epoch {} over epoch {}: {}", writer, next.epoch, now.epoch, why);
  };
  if (next.version() <= now.version()) return wrong("the register goes back");
  const group::Generation last = now.generation();
  const bool is_member = last.number_of(id(writer)) >= 0 && !(now.has_lost(id(writer)) && !has_opened(now));
  if (!is_member && !(now.number_of(id(writer)) >= 0 && next.phase == Phase::void_))
    return wrong("it is no member, or none any more (6)");
  switch (next.phase) {
    case Phase::over:
      return now.phase == Phase::open && next.epoch == now.epoch ? "" : wrong("over what was not open");
    case Phase::decided:
      if (now.phase == Phase::open || now.phase == Phase::decided || next.epoch != now.epoch + 1)
        return wrong("decided before the one before was over (4)");
      return check_decided(world, writer, next);
    case Phase::open:
      if (now.phase != Phase::decided || next.epoch != now.epoch || next.members != now.members)
        return wrong("opened what was not decided");
      for (const auto& seat : next.members) {
        const bool said = world.said[place(seat.incarnation)] == 2 * next.epoch + 1;
        if (!said) return wrong(fmt::format("opened before {} had connected", seat.incarnation - 1));
      }
      return "";
    case Phase::void_:
      return now.phase == Phase::decided && next.epoch == now.epoch ? check_void(world, next)
                                                                    : wrong("void what was not decided");
    case Phase::failed:
      break;
  }
  const std::uint64_t epoch = now.phase == Phase::decided ? now.epoch : now.epoch + 1;
  return now.phase != Phase::open && next.epoch == epoch ? "" : wrong("failed what was not in change");
}

// (5), (6), (7), (9), (10) and (11): who is in the next epoch.
std::string Epochs::check_decided(const World& world, std::size_t writer, const EpochRecord& next) const {
  const EpochRecord& last = *world.history->opened.back();
  if (next.base != last.epoch) return "(5) it does not come after the epoch that was open";
  const PlannedCall* planned = scenario_.planned.contains(last.epoch) ? &scenario_.planned.at(last.epoch) : nullptr;
  const auto& excluded = planned != nullptr ? planned->excluded : std::vector<int>();
  std::set<Incarnation> seen;
  int survivors = 0;
  for (const auto& seat : next.members) {
    if (!seen.insert(seat.incarnation).second) return fmt::format("(6) {} is in it twice", seat.incarnation - 1);
    if (world.history->gone.contains(seat.incarnation) || next.has_lost(seat.incarnation))
      return fmt::format("(6) {} was left out, and is in it", seat.incarnation - 1);
    if (seat.before < 0) {
      if (last.number_of(seat.incarnation) >= 0) return fmt::format("(10) {} is served twice", seat.incarnation - 1);
      continue;
    }
    ++survivors;
    if (last.number_of(seat.incarnation) != seat.before) return "(11) a survivor had another number";
    if (world.said[place(seat.incarnation)] / 2 != next.epoch)
      return fmt::format("(3) {} has not come for epoch {}", seat.incarnation - 1, next.epoch);
    if (seat.progress != place(seat.incarnation)) return "(9) it has another progress";
  }
  if (survivors == 0) return "(5) nobody of it was in the epoch before";
  for (std::size_t number = 0; number < last.members.size(); ++number) {
    const Incarnation member = last.members[number].incarnation;
    const bool is_excluded = std::ranges::find(excluded, static_cast<int>(number)) != excluded.end();
    if (is_excluded && next.number_of(member) >= 0) return "(6) one that is excluded is in it";
    if (lives(world, member) && !world.accused.contains(member) && !is_excluded && next.number_of(member) < 0)
      return fmt::format("(6) {} lives, and is not in it", member - 1);
  }
  const int min = planned != nullptr ? planned->min : scenario_.min;
  if (static_cast<int>(next.members.size()) < min) return "(7) fewer than min";
  // Those whom the writer has heard of, and who have not been late, fill the gaps.
  const int size = planned != nullptr ? planned->size : scenario_.size;
  const int wanted = size == 0 ? static_cast<int>(last.members.size()) : size;
  for (const auto& [incarnation, word] : world.processes[writer]->change->state().heard) {
    const bool waits = word.ticket >= 0 && lives(world, incarnation) && !world.accused.contains(incarnation) &&
                       !contains(next.passed_over, incarnation) && !world.history->gone.contains(incarnation) &&
                       last.number_of(incarnation) < 0 && world.words.contains(incarnation);
    if (waits && next.number_of(incarnation) < 0 && static_cast<int>(next.members.size()) < wanted)
      return fmt::format("(10) {} waits, and there is room", incarnation - 1);
  }
  if (next.epoch - next.base > static_cast<std::uint64_t>(1 + world.rounds_excused))
    return fmt::format("(7) {} rounds", next.epoch - next.base);
  return check_numbers(next, last.members.size());
}

std::string Epochs::check_numbers(const EpochRecord& next, std::size_t before) const {
  std::vector<int> kept, gaps(next.members.size(), 1);
  bool all_fit = true;
  for (const auto& seat : next.members) {
    if (seat.before >= 0) kept.push_back(seat.before);
    all_fit = all_fit && seat.before < static_cast<int>(next.members.size());
  }
  if (!std::ranges::is_sorted(kept)) return "(11) survivors have changed their order";
  if (next.members.size() >= before && !all_fit) return "(11) a number is too large";
  for (std::size_t i = 0; i < next.members.size(); ++i) {
    const int old = next.members[i].before;
    if (all_fit && old >= 0 && old != static_cast<int>(i)) return "(11) a survivor has another number";
    if (!all_fit && i < kept.size() && old != kept[i]) return "(11) survivors do not come first";
  }
  return "";
}

// (10): a joiner loses its turn only if it was late, or has ended.
std::string Epochs::check_void(const World& world, const EpochRecord& next) const {
  for (const Incarnation one : next.passed_over) {
    const bool was_before = contains(world.registered->passed_over, one);
    const bool is_its_own = lives(world, one) && world.processes[place(one)]->change &&
                            !world.processes[place(one)]->change->state().giving_up.empty();
    if (was_before || is_its_own || !lives(world, one) || world.accused.contains(one)) continue;
    if (world.impatient == next.epoch) continue;
    return fmt::format("(10) the place of {} is used up by a record that is void", one - 1);
  }
  for (const auto& seat : next.lost) {
    const bool is_excluded = world.registered->has_lost(seat.incarnation);
    if (!is_excluded && lives(world, seat.incarnation) && !world.accused.contains(seat.incarnation))
      return fmt::format("(6) {} lives, and is lost", seat.incarnation - 1);
  }
  return "";
}

// A process returns from renew() or join().
std::string Epochs::check_open(const World& world, const Process& process, std::size_t i,
                               const EpochRecord& record) const {
  const auto& opened = world.history->opened;
  const bool is_open = std::ranges::any_of(opened, [&](const RecordPtr& one) { return *one == record; });
  if (!is_open) return fmt::format("(4) {} returns in an epoch {} that is not open", i, record.epoch);
  if (record.number_of(id(i)) < 0) return fmt::format("(6) {} returns in an epoch that it is not in", i);
  if (process.in_group != 0) return fmt::format("(3) {} still has an operation of an older epoch in flight", i);
  if (process.in_derived != 0) return fmt::format("(3) {} still waits in a group of an older epoch", i);
  if (process.epoch && process.epoch->epoch >= record.epoch) return "(2) it returns in an older epoch";
  return "";
}

// A process gives up: only for a reason that there is.
std::string Epochs::check_error(const World& world, std::size_t i, const Error& error) const {
  const auto says = [&](std::string_view words) { return error.message().find(words) != std::string::npos; };
  const bool was_gone = world.history->gone.contains(id(i)) || world.registered->has_lost(id(i));
  if (says("left out in epoch") && was_gone) return "";
  if (says("nobody can take this process in")) {
    const auto members = world.registered->generation().members;
    if (std::ranges::none_of(
            members, [&](Incarnation member) { return lives(world, member) && !world.accused.contains(member); }))
      return "";
  }
  if (says("fewer than min") && scenario_.min > 1 && world.registered->phase == Phase::failed) {
    const auto members = world.registered->generation().members;
    const auto living = std::ranges::count_if(members, [&](Incarnation one) {
      return lives(world, one) && !world.accused.contains(one) && !world.registered->has_lost(one);
    });
    if (living < scenario_.min || scenario_.joiners > 0) return "";
  }
  if (error.code() == ErrorCode::timeout && world.deadlines < scenario_.deadlines) return "";
  if (error.code() == ErrorCode::io && world.cuts < scenario_.cuts) return "";
  if (error.code() == ErrorCode::mismatch && scenario_.one_differs) return "";
  if (says("for which this job has room") && scenario_.most > 0 && scenario_.size > scenario_.most) return "";
  return fmt::format("(7) {} fails without a reason: {}", i, error.what());
}

// Nothing happens any more, unless something goes wrong again.
std::string Epochs::check_rest(const World& world) const {
  const EpochRecord& now = *world.registered;
  for (std::size_t i = 0; i < count(); ++i) {
    const Process& process = *world.processes[i];
    if (process.status == Status::ended) continue;
    if (process.status == Status::changing && process.epoch)
      return fmt::format("(7) {} waits for ever: {}", i, process.change->awaited());
    if (process.status == Status::changing && now.phase != Phase::open)
      return fmt::format("(7) {} waits for ever to join", i);
    if (process.status == Status::waiting && (now.phase != Phase::open || now.epoch != process.epoch->epoch))
      return fmt::format("(7) {} is not told that epoch {} is over", i, process.epoch->epoch);
  }
  // (12): nothing is left of older epochs, but what the next leader finds.
  for (const Hello& hello : world.hellos) {
    const Process& process = *world.processes[hello.from];
    if (process.status == Status::waiting && hello.epoch != process.epoch->epoch)
      return fmt::format("(12) {} has connections of epoch {}", hello.from, hello.epoch);
  }
  const auto leader = std::ranges::find_if(now.members, [](const auto& seat) { return seat.before >= 0; });
  const bool is_clean = leader != now.members.end() && lives(world, leader->incarnation);
  for (const auto& entry : world.words) {
    const Incarnation incarnation = entry.first;
    // One that was left out alive may say something after that, and die: the next leader erases that.
    const bool was_dead = std::ranges::any_of(now.lost, [&](const auto& seat) {
      return seat.incarnation == incarnation && !seat.is_excluded && !world.accused.contains(incarnation);
    });
    const bool is_left = lives(world, incarnation) ? world.processes[place(incarnation)]->status == Status::waiting
                                                   : is_clean && now.phase == Phase::open && was_dead;
    if (is_left) return fmt::format("(12) the word of {} is left", incarnation - 1);
  }
  return "";
}

std::string Epochs::wrong(const World& world) const {
  if (!world.problem.empty()) return world.problem;
  bool members_change = false, joiners_can_move = false;
  for (std::size_t i = 0; i < count(); ++i) {
    const Process& process = *world.processes[i];
    if (process.status == Status::ended) continue;
    bool can_move = !process.to_do.empty();
    if (!can_move) own_steps(world, i, [&](const auto&, const World&) { can_move = true; });
    // One that has not read yet that it is in is a member.
    const bool is_joining = !process.epoch && world.history->opened.back()->number_of(id(i)) < 0;
    if (can_move && !is_joining) return "";
    joiners_can_move = joiners_can_move || can_move;
    members_change = members_change || (!is_joining && process.status == Status::changing);
  }
  if (!joiners_can_move) return check_rest(world);
  return members_change ? "(10) the members wait for one that joins" : "";
}

bool Epochs::is_end(const World& world) const {
  return std::ranges::none_of(world.processes, [](const auto& process) {
    return process && process->status != Status::ended &&
           (!process->to_do.empty() || (process->status == Status::changing && process->epoch));
  });
}

}  // namespace col::test
