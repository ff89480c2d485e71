#include "unit/epochs/world.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "core/hash.hpp"

namespace col::test {
namespace {

using Phase = EpochRecord::Phase;
using Status = Process::Status;

void add(core::Hash& hash, const RecordPtr& record) {
  if (!record) {
    hash.add(0);
    return;
  }
  hash.add(record->version()).add(static_cast<int>(record->phase)).add(record->token).add(record->members.size());
  for (const auto& seat : record->members) hash.add(seat.incarnation).add(seat.before);
  for (const auto& seat : record->lost) hash.add(seat.incarnation).add(seat.is_excluded);
  hash.add(record->passed_over.size());
  for (const Incarnation one : record->passed_over) hash.add(one);
  hash.add(record->error);
}

void add(core::Hash& hash, const Presence& word) {
  hash.add(word.incarnation).add(word.round).add(word.is_connected).add(word.ticket).add(word.excluded.size());
}

void add(core::Hash& hash, const std::set<Incarnation>& set) {
  std::uint64_t bits = 0;
  for (const Incarnation one : set) bits |= std::uint64_t{1} << one;
  hash.add(bits);
}

void add(core::Hash& hash, const group::ChangeAction& action) {
  hash.add(action.index());
  if (const auto* write = std::get_if<group::WriteRegister>(&action)) {
    add(hash, write->expected);
    add(hash, write->desired);
  }
  if (const auto* say = std::get_if<group::Say>(&action)) add(hash, say->word);
  if (const auto* connect = std::get_if<group::Connect>(&action)) add(hash, connect->record);
  if (const auto* erase = std::get_if<group::Erase>(&action)) {
    for (const Incarnation one : erase->words) hash.add(one);
  }
  if (const auto* finish = std::get_if<group::Finish>(&action)) {
    add(hash, finish->record);
    hash.add(finish->has_left);
    hash.add(finish->error ? finish->error->what() : "");
  }
}

std::string text_of(const group::ChangeAction& action) {
  constexpr std::array kNames{"ends its calls", "ends groups made from it", "writes ", "rings",  "says", "connects",
                              "disconnects",    "begins to count",          "evicts",  "erases", "ends"};
  std::string text = kNames.at(action.index());
  if (const auto* write = std::get_if<group::WriteRegister>(&action)) text += write->desired->encode();
  if (const auto* say = std::get_if<group::Say>(&action)) text += " " + say->word.encode();
  return text;
}

}  // namespace

void Process::set_hash() {
  core::Hash all;
  all.add(static_cast<int>(status)).add(is_ready).add(settled).add(retries);
  all.add(in_group).add(in_derived).add(waits_in_derived).add(patience);
  add(all, epoch);
  add(all, connecting);
  add(all, dead);
  for (const auto& action : to_do) add(all, action);
  if (change) {
    const EpochChange::State& state = change->state();
    all.add(state.connecting ? state.connecting->epoch : 0)
        .add(state.is_connected)
        .add(state.is_writing)
        .add(state.is_wait_over)
        .add(state.is_over);
    all.add(state.giving_up).add(state.said.round).add(state.said.is_connected);
    add(all, state.known);
    add(all, state.dead);
    for (const auto& [incarnation, word] : state.heard) add(all, word);
  }
  hash = all.value();
}

bool Epochs::lives(const World& world, Incarnation incarnation) {
  const auto& process = world.processes[place(incarnation)];
  return process && process->status != Status::ended;
}

World Epochs::first() const {
  World world;
  world.deaths = scenario_.deaths;
  world.accusations = scenario_.accusations;
  world.deadlines = scenario_.deadlines;
  world.cuts = scenario_.cuts;
  std::vector<group::Seat> seats;
  for (std::size_t i = 0; !is_joiner(i); ++i) seats.push_back({.incarnation = id(i)});
  world.registered = std::make_shared<const EpochRecord>(group::first_epoch(std::move(seats), 77));
  History history;
  history.opened.push_back(world.registered);
  world.history = std::make_shared<const History>(std::move(history));
  for (std::size_t i = 0; i < count(); ++i) {
    Process process;
    process.retries = scenario_.retries;
    if (is_joiner(i)) {
      begin(process, i);
    } else {
      process.epoch = world.registered;
      process.waits_in_derived = scenario_.one_is_derived && !is_joiner(i) && is_joiner(i + 1);
      process.in_group = 1;
      process.in_derived = process.waits_in_derived ? 1 : 0;
    }
    process.set_hash();
    world.processes[i] = std::make_shared<const Process>(std::move(process));
  }
  return world;
}

Epochs::Key Epochs::key(const World& world) const {
  core::Hash all;
  for (std::size_t i = 0; i < count(); ++i) all.add(world.processes[i]->hash);
  add(all, world.registered);
  for (const auto& [incarnation, word] : world.words) add(all, word);
  for (const std::uint64_t round : world.said) all.add(round);
  std::uint64_t hellos = 0;  // in any order
  for (const Hello& hello : world.hellos)
    hellos += core::Hash().add(hello.from).add(hello.token).add(hello.epoch).value();
  all.add(hellos);
  add(all, world.history->opened.back());
  add(all, world.history->gone);
  all.add(world.deaths).add(world.accusations).add(world.deadlines).add(world.cuts);
  add(all, world.accused);
  all.add(world.impatient).add(world.rounds_excused).add(world.problem);
  return all.value();
}

// ---- Steps

void Epochs::steps(const World& world, const Take& take) const {
  if (!world.problem.empty()) return;
  for (std::size_t i = 0; i < count(); ++i) {
    if (world.processes[i]->status == Status::ended) continue;
    own_steps(world, i, take);
    faults(world, i, take);
  }
}

void Epochs::own_steps(const World& world, std::size_t i, const Take& take) const {
  const Process& self = *world.processes[i];
  // `name`: in words, which are made only if somebody asks.
  const auto step = [&](const auto& name, const auto& change) {
    World after = world;
    Process process = self;
    change(after, process);
    process.set_hash();
    after.processes[i] = std::make_shared<const Process>(std::move(process));
    take([&] { return fmt::format("{}: {}", i, name()); }, std::move(after));
  };
  // What it has begun, it ends.
  if (!self.to_do.empty())
    return step([&] { return text_of(self.to_do.front()); },
                [&](World& after, Process& process) { act(after, process, i); });
  if (self.is_ready) {
    Process process = self;
    World after = world;
    look(after, process, i);
    // A look that changes nothing but what it has heard may come later as well, with all that is said until then. If
    // words are taken back meanwhile, it may not.
    const bool has_effect =
        !process.to_do.empty() || !self.change || process.change->state().known != self.change->state().known;
    const bool words_go = scenario_.cuts + scenario_.deadlines > 0;
    if (has_effect || words_go || scenario_.has_all_looks) {
      process.set_hash();
      after.processes[i] = std::make_shared<const Process>(std::move(process));
      take([&] { return fmt::format("{}: looks", i); }, std::move(after));
    }
  }
  const bool is_old =
      self.change && self.change->state().known && self.change->state().known->version() < world.registered->version();
  if (self.is_ready && is_old && scenario_.has_all_looks)
    step([] { return "looks at the register alone"; },
         [&](World& after, Process& process) {
           process.change->on_register(after.registered);
           process.take_actions();
         });
  for (std::size_t other = 0; other < count(); ++other) {
    if (other == i || lives(world, id(other)) || self.dead.contains(id(other))) continue;
    if (!is_concerned(self, id(other))) continue;
    step([&] { return fmt::format("learns that {} has ended", other); },
         [&](World&, Process& process) { hear_of_end(process, i, id(other)); });
  }
  if (self.status == Status::waiting && scenario_.planned.contains(self.epoch->epoch))
    step([] { return "calls renew()"; }, [&](World&, Process& process) { begin(process, i); });
  if (self.status != Status::changing) return;
  std::string problem;
  if (is_connected(world, self, problem))
    step([] { return "is connected"; },
         [&](World& after, Process& process) {
           after.problem = problem;
           process.change->on_connected(process.connecting->epoch);
           process.take_actions();
         });
  if (self.patience != 0)
    step([] { return "loses patience"; },
         [&](World& after, Process& process) {
           after.impatient = self.patience;
           ++after.rounds_excused;
           process.change->on_patience_over(std::exchange(process.patience, 0));
           process.take_actions();
         });
  if (scenario_.has_wait && !self.change->state().is_wait_over)
    step([] { return "has waited for joiners"; },
         [&](World&, Process& process) {
           process.change->on_wait_over();
           process.take_actions();
         });
}

// At any moment at which it has nothing left to do, or between two actions.
void Epochs::faults(const World& world, std::size_t i, const Take& take) const {
  const Process& self = *world.processes[i];
  if (world.deaths > 0) {
    World after = world;
    --after.deaths;
    ++after.rounds_excused;
    die(after, i);
    take([&] { return fmt::format("{}: DIES", i); }, std::move(after));
  }
  if (!self.to_do.empty()) return;
  const auto fault = [&](const std::string& name, int World::*left, const auto& happen) {
    if (world.*left == 0) return;
    World after = world;
    --(after.*left);
    ++after.rounds_excused;
    Process process = self;
    happen(after, process);
    process.set_hash();
    after.processes[i] = std::make_shared<const Process>(std::move(process));
    take([&] { return fmt::format("{}: {}", i, name); }, std::move(after));
  };
  for (std::size_t other = 0; other < count(); ++other) {
    if (other == i || self.dead.contains(id(other)) || !lives(world, id(other))) continue;
    if (!is_concerned(self, id(other))) continue;
    fault(fmt::format("TAKES {} FOR DEAD", other), &World::accusations, [&](World& after, Process& process) {
      after.accused.insert(id(other));
      hear_of_end(process, i, id(other));
    });
  }
  if (self.status != Status::changing) return;
  fault("its DEADLINE passes", &World::deadlines, [&](World&, Process& process) {
    process.change->on_deadline();
    process.take_actions();
  });
  fault("the register is CUT off", &World::cuts, [&](World&, Process& process) {
    process.change->on_register_gone(Error(ErrorCode::io, "no route"));
    process.take_actions();
  });
}

// A process hears of the end of others in its group, or in the change that it takes part in. One that waits in a group
// which was made from the world hears nothing of others: it waits for none of them.
bool Epochs::is_concerned(const Process& process, Incarnation other) const {
  if (process.status == Status::waiting) return process.epoch->number_of(other) >= 0 && !process.waits_in_derived;
  const RecordPtr& known = process.change->state().known;
  return (known && (known->number_of(other) >= 0 || known->generation().number_of(other) >= 0)) ||
         process.change->state().heard.contains(other);
}

bool Epochs::is_connected(const World& world, const Process& process, std::string& problem) const {
  if (!process.connecting || process.change->state().is_connected) return false;
  for (const auto& seat : process.connecting->members) {
    const auto found = std::ranges::find_if(world.hellos, [&](const Hello& hello) {
      return id(hello.from) == seat.incarnation && hello.token == process.connecting->token;
    });
    if (found == world.hellos.end()) return false;
    if (found->epoch != process.connecting->epoch)
      problem =
          fmt::format("a connection of epoch {} is taken for one of epoch {}", found->epoch, process.connecting->epoch);
  }
  return true;
}

}  // namespace col::test
