// A small world in which processes change the epochs of a group: the real state machines, one register, the words that
// processes say, and connections. Each step is one that could come next; search() takes them in all orders.
//
// A process that is late, or stands still, is one whose steps come late. One that was stopped for so long that others
// take it for dead is accused. Nothing here has a time: a wait ends at any moment after it began, and a deadline passes
// at any moment, as often as the scenario says.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "group/join/epoch_change.hpp"

namespace col::test {

using group::EpochChange;
using group::EpochRecord;
using group::Incarnation;
using group::Presence;
using group::RecordPtr;

// A call of renew() as a program makes it, in some epoch.
struct PlannedCall {
  int size = 0, min = 1;
  std::vector<int> excluded = {};
};

struct Scenario {
  std::string name = {};
  int members = 2, joiners = 0;
  // So often it may happen, at any moment: a process ends; one that lives is taken for dead by another one; the
  // deadline of a call passes; a process cannot reach the register any more.
  int deaths = 0, accusations = 0, deadlines = 0, cuts = 0;
  int size = 0, min = 1, most = 0;
  bool has_wait = false;                              // for joiners
  bool one_is_derived = false;                        // the last member waits in a group that was made from the world
  bool one_differs = false;                           // the last member calls with another min
  int retries = 0;                                    // of a rank whose renewal has failed
  std::map<std::uint64_t, PlannedCall> planned = {};  // by the epoch in which all call it, without a loss
  // Also looks that change nothing, after which a process has to be rung again; and looks at the register alone.
  // Without them, a process looks when it matters, and there are far fewer states.
  bool has_all_looks = false;
};

// Of the steps so far: what a check needs to know beyond the state.
struct History {
  std::vector<RecordPtr> opened;  // records of the epochs that have opened
  std::set<Incarnation> gone;     // no member of the last epoch any more
  bool operator==(const History&) const = default;
};

struct Hello {
  std::size_t from = 0;
  std::uint64_t token = 0, epoch = 0;
  bool operator==(const Hello&) const = default;
};

struct Process {
  enum class Status { waiting, changing, ended };

  Status status = Status::waiting;
  bool is_ready = false;  // somebody has rung
  RecordPtr epoch = {};   // the record of the epoch that it is in
  std::uint64_t settled = 0;
  int retries = 0;
  // Epochs + 1 in which something of its user is in flight: in the group itself, and in one that was made from it.
  std::uint64_t in_group = 0, in_derived = 0;
  bool waits_in_derived = false;
  std::set<Incarnation> dead = {};  // as far as it knows
  std::optional<EpochChange> change = {};
  std::deque<group::ChangeAction> to_do = {};
  std::uint64_t patience = 0;  // the epoch for which it is due
  RecordPtr connecting = {};

  std::uint64_t hash = 0;  // of all of it
  void set_hash();
  void take_actions();  // of its change
};

class World {
 public:
  static constexpr std::size_t kProcesses = 6;

  // By process; shared: a step changes one or two of them.
  std::array<std::shared_ptr<const Process>, kProcesses> processes = {};
  RecordPtr registered = {};
  std::map<Incarnation, Presence> words = {};
  std::array<std::uint64_t, kProcesses> said = {};  // by process: twice the epoch, and 1 if it has connected
  std::vector<Hello> hellos = {};
  std::shared_ptr<const History> history = {};
  int deaths = 0, accusations = 0, deadlines = 0, cuts = 0;  // that may still happen
  std::set<Incarnation> accused = {};
  std::uint64_t impatient = 0;  // the last epoch for which somebody lost its patience
  int rounds_excused = 0;       // for which something has happened since the last epoch opened
  std::string problem = {};
};

// The space for search().
class Epochs {
 public:
  using State = World;
  using Key = std::uint64_t;
  using KeyHash = std::hash<std::uint64_t>;
  using Take = std::function<void(const std::function<std::string()>& name, World after)>;

  explicit Epochs(Scenario scenario) : scenario_(std::move(scenario)) {}

  World first() const;
  Key key(const World& world) const;
  void steps(const World& world, const Take& take) const;
  bool is_end(const World& world) const;
  std::string wrong(const World& world) const;

 private:
  std::size_t count() const { return static_cast<std::size_t>(scenario_.members + scenario_.joiners); }
  bool is_joiner(std::size_t i) const { return i >= static_cast<std::size_t>(scenario_.members); }
  static Incarnation id(std::size_t i) { return i + 1; }
  static std::size_t place(Incarnation incarnation) { return static_cast<std::size_t>(incarnation - 1); }
  static bool lives(const World& world, Incarnation incarnation);

  // What a process can do next, beside what goes wrong.
  void own_steps(const World& world, std::size_t i, const Take& take) const;
  void faults(const World& world, std::size_t i, const Take& take) const;
  bool is_concerned(const Process& process, Incarnation other) const;
  bool is_connected(const World& world, const Process& process, std::string& problem) const;

  void begin(Process& process, std::size_t i) const;
  void look(World& world, Process& process, std::size_t i) const;
  void hear_of_end(Process& process, std::size_t i, Incarnation other) const;
  void act(World& world, Process& process, std::size_t i) const;
  void end(World& world, Process& process, std::size_t i, const group::Finish& finish) const;
  void write(World& world, Process& process, std::size_t i, const group::WriteRegister& action) const;
  void ring(World& world, std::size_t from, bool derived) const;
  void die(World& world, std::size_t i) const;

  // checks.cpp: "" or why it is wrong.
  std::string check_write(const World& world, std::size_t writer, const EpochRecord& next) const;
  std::string check_decided(const World& world, std::size_t writer, const EpochRecord& next) const;
  std::string check_numbers(const EpochRecord& next, std::size_t before) const;
  std::string check_void(const World& world, const EpochRecord& next) const;
  std::string check_open(const World& world, const Process& process, std::size_t i, const EpochRecord& record) const;
  std::string check_error(const World& world, std::size_t i, const Error& error) const;
  std::string check_rest(const World& world) const;
  std::string check_waits(const World& world) const;

  const Scenario scenario_;
};

}  // namespace col::test
