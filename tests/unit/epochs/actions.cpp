// The processes of the model, when a step is theirs: they look, hear, and do the actions of their machines.
#include <chrono>
#include <memory>
#include <utility>

#include "unit/epochs/world.hpp"

namespace col::test {
namespace {

using Phase = EpochRecord::Phase;
using Status = Process::Status;

// Only this process notices.
bool is_private(const group::ChangeAction& action) {
  return std::holds_alternative<group::EndGroup>(action) || std::holds_alternative<group::Patience>(action) ||
         std::holds_alternative<group::Evict>(action) || std::holds_alternative<group::Finish>(action) ||
         std::holds_alternative<group::Ring>(action);
}

}  // namespace

void Process::take_actions() {
  for (auto& action : change->take_actions()) to_do.push_back(std::move(action));
}

void Epochs::begin(Process& process, std::size_t i) const {
  group::ChangeSpec spec{.group = "g", .incarnation = id(i), .settled = process.settled, .most = scenario_.most};
  spec.progress = i;
  if (process.epoch) {
    const auto planned = scenario_.planned.find(process.epoch->epoch);
    const PlannedCall call =
        planned == scenario_.planned.end() ? PlannedCall{scenario_.size, scenario_.min, {}} : planned->second;
    spec.last = process.epoch;
    spec.size = call.size;
    spec.min = call.min + (scenario_.one_differs && !is_joiner(i) && is_joiner(i + 1) ? 1 : 0);
    for (const int number : call.excluded) {
      if (number < static_cast<int>(process.epoch->members.size())) spec.excluded.push_back(number);
    }
    spec.wait = scenario_.has_wait ? std::chrono::seconds(1) : std::chrono::seconds(0);
  } else {
    spec.ticket = static_cast<std::int64_t>(i);
  }
  process.status = Status::changing;
  process.waits_in_derived = false;
  process.is_ready = true;
  process.change.emplace(std::move(spec), process.dead);
  process.take_actions();
}

// At the register, and at what others say.
void Epochs::look(World& world, Process& process, std::size_t i) const {
  process.is_ready = false;
  if (process.status == Status::waiting) {
    if (world.registered->version() > process.epoch->version()) begin(process, i);
    return;
  }
  std::vector<Presence> words;
  for (const auto& [incarnation, word] : world.words) words.push_back(word);
  process.change->on_look(world.registered, words);
  process.take_actions();
}

void Epochs::hear_of_end(Process& process, std::size_t i, Incarnation other) const {
  process.dead.insert(other);
  if (process.status == Status::waiting) return begin(process, i);
  process.change->on_lost(other);
  process.take_actions();
}

// ---- Actions

// One action that others notice, and what only this process does before and after it.
void Epochs::act(World& world, Process& process, std::size_t i) const {
  bool is_noticed = false;
  while (!process.to_do.empty() && (!is_noticed || is_private(process.to_do.front()))) {
    const group::ChangeAction action = std::move(process.to_do.front());
    process.to_do.pop_front();
    is_noticed = is_noticed || !is_private(action);
    if (std::holds_alternative<group::EndGroup>(action)) process.in_group = 0;
    if (std::holds_alternative<group::EndDerived>(action)) {
      process.in_derived = 0;
      ring(world, i, true);
    }
    if (const auto* one = std::get_if<group::WriteRegister>(&action)) write(world, process, i, *one);
    if (std::holds_alternative<group::Ring>(action)) ring(world, i, false);
    if (const auto* one = std::get_if<group::Say>(&action)) {
      world.words.insert_or_assign(id(i), one->word);
      world.said[i] = 2 * one->word.round + (one->word.is_connected ? 1 : 0);
      ring(world, i, false);
    }
    if (const auto* one = std::get_if<group::Connect>(&action)) {
      process.connecting = one->record;
      world.hellos.push_back({i, one->record->token, one->record->epoch});
    }
    if (const auto* one = std::get_if<group::Disconnect>(&action)) {
      std::erase_if(world.hellos, [&](const Hello& hello) { return hello.from == i && hello.epoch == one->epoch; });
      process.connecting = nullptr;
      process.patience = 0;
    }
    if (const auto* one = std::get_if<group::Patience>(&action)) process.patience = one->epoch;
    if (const auto* one = std::get_if<group::Erase>(&action)) {
      for (const Incarnation word : one->words) world.words.erase(word);
    }
    if (const auto* one = std::get_if<group::Finish>(&action)) end(world, process, i, *one);
  }
}

void Epochs::write(World& world, Process& process, std::size_t i, const group::WriteRegister& action) const {
  // Without what is expected, it writes as set() does: only a planted bug does so.
  if (!action.expected || *world.registered == *action.expected) {
    if (world.problem.empty()) world.problem = check_write(world, i, *action.desired);
    world.registered = action.desired;
    if (action.desired->phase == Phase::open) {
      History history = *world.history;
      history.opened.push_back(action.desired);
      for (const auto& seat : action.desired->lost) history.gone.insert(seat.incarnation);
      world.history = std::make_shared<const History>(std::move(history));
      world.rounds_excused = 0;
      world.impatient = 0;
    }
  }
  process.change->on_register(world.registered);
  process.take_actions();
}

// Those who wait in a group that was made from the world hear only that.
void Epochs::ring(World& world, std::size_t from, bool derived) const {
  for (std::size_t i = 0; i < count(); ++i) {
    const auto& other = world.processes[i];
    if (i == from || !other || other->status == Status::ended || other->is_ready) continue;
    if (other->waits_in_derived != derived) continue;
    Process rung = *other;
    rung.is_ready = true;
    rung.set_hash();
    world.processes[i] = std::make_shared<const Process>(std::move(rung));
  }
}

void Epochs::end(World& world, Process& process, std::size_t i, const group::Finish& finish) const {
  process.patience = 0;
  process.settled = finish.settled;
  process.change.reset();
  if (finish.record) {
    if (world.problem.empty()) world.problem = check_open(world, process, i, *finish.record);
    std::erase_if(world.hellos, [&](const Hello& hello) {
      return hello.from == i && process.epoch && hello.epoch == process.epoch->epoch;
    });
    process.status = Status::waiting;
    process.epoch = finish.record;
    process.connecting = nullptr;
    process.in_group = finish.record->epoch + 1;
    process.is_ready = true;
    return;
  }
  if (finish.error && world.problem.empty()) world.problem = check_error(world, i, *finish.error);
  const bool tries_again = finish.settled > 0 && process.epoch && process.retries > 0 && finish.error &&
                           finish.error->code() != ErrorCode::aborted;
  if (tries_again) {
    --process.retries;
    return begin(process, i);
  }
  std::erase_if(world.hellos, [&](const Hello& hello) { return hello.from == i; });
  process = Process{.status = Status::ended};
  ring(world, i, false);
  ring(world, i, true);
}

// What it has said, and the bytes that it has sent, stay. All who wait are told.
void Epochs::die(World& world, std::size_t i) const {
  Process dead{.status = Status::ended};
  dead.set_hash();
  world.processes[i] = std::make_shared<const Process>(std::move(dead));
  ring(world, i, false);
  ring(world, i, true);
}

}  // namespace col::test
