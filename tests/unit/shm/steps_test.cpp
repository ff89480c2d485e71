// A proof by computation of the protocol of the collectives over shared memory: steps.hpp says what is proved, and
// support/protocol/happens_before.hpp how.
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "backend/shm/segment/layout.hpp"
#include "support/catch.hpp"
#include "support/protocol/happens_before.hpp"
#include "support/protocol/recorded_steps.hpp"

using namespace col;
using namespace col::test;
using shm_backend::Course;
using shm_backend::Form;
using shm_backend::kHeaders;
using shm_backend::kSlots;
using shm_backend::Place;
using shm_backend::Reuse;

namespace {

constexpr std::array kForms = {Form::fold_all,  Form::fold_slices, Form::fold_slices_at,
                               Form::fold_at,   Form::fold_own,    Form::fold_lower,
                               Form::from_root, Form::to_root,     Form::between_all};

bool is_rooted(Form form) {
  return form == Form::fold_slices_at || form == Form::fold_at || form == Form::from_root || form == Form::to_root;
}
bool is_fold(Form form) {
  return form != Form::from_root && form != Form::to_root && form != Form::between_all;
}

const std::vector<Place> kPlaces = {Place::slot, Place::part, Place::header};

std::vector<Call> all_calls(int size, const std::vector<std::uint64_t>& steps, bool scaled_too = true,
                            const std::vector<Place>& places = kPlaces) {
  std::vector<Call> calls;
  for (const Place place : places) {
    for (const Form form : kForms) {
      for (int root = 0; root < (is_rooted(form) ? size : 1); ++root) {
        for (const std::uint64_t count : steps) {
          calls.push_back({form, root, count, false, place});
          if (scaled_too && is_fold(form)) calls.push_back({form, root, count, true, place});
        }
      }
    }
  }
  return calls;
}

const std::vector<std::uint64_t> kAllLengths = {1, 2, 3, 4, 5, 9, 17};

template <class Port, int kRanks>
void record(const Call& call, std::uint64_t first, std::uint64_t reuse, std::array<Program, kRanks>& programs) {
  for (int rank = 0; rank < kRanks; ++rank) {
    Program& program = programs[static_cast<std::size_t>(rank)];
    program.clear();
    Port port(call, rank, kRanks, program);
    Course({pattern_of(call, rank, kRanks), {rank, kRanks, call.root}, call.steps}, first, reuse).move_on(port);
  }
}

// What was found in all sequences of `depth` calls, up to the first problem.
struct Finding {
  std::string problem;
  std::uint64_t sequences = 0, events = 0;
};

// In memory with kSlotCount slots and kHeaderCount headers.
template <class Port, int kRanks, int kSlotCount = static_cast<int>(kSlots),
          int kHeaderCount = static_cast<int>(kHeaders)>
class Search {
 public:
  using Run = Execution<kRanks, kSlotCount, kHeaderCount>;

  // The courses take what they use to be as `places` says.
  Search(std::vector<Call> calls, int depth, std::uint64_t base = 0, Reuse places = Reuse(kSlotCount, kHeaderCount))
      : calls_(std::move(calls)), depth_(depth) {
    descend(Run(base), base + 1, places, depth);
  }
  const Finding& finding() const { return finding_; }

 private:
  // All continuations of what `begun` has done. That a sequence comes to its end does not depend on later calls, so
  // each call is run to its end before the next one begins.
  void descend(const Run& begun, std::uint64_t first, const Reuse& before, int depth) {
    if (depth == 0) {
      ++finding_.sequences;
      return;
    }
    for (const Call& call : calls_) {
      Reuse places = before;
      record<Port, kRanks>(call, first, places.of(call.place, first, call.steps), programs_);
      Run run = begun;
      run.run(programs_);
      path_[static_cast<std::size_t>(depth_ - depth)] = &call;
      finding_.events += run.events() - begun.events();
      if (!run.problem().empty()) {
        for (int i = 0; i <= depth_ - depth; ++i) finding_.problem += show(*path_[static_cast<std::size_t>(i)]) + ", ";
        finding_.problem += run.problem();
      } else {
        descend(run, first + call.steps, places, depth - 1);
      }
      if (!finding_.problem.empty()) return;
    }
  }

  const std::vector<Call> calls_;
  const int depth_;
  std::array<Program, kRanks> programs_;
  std::array<const Call*, 8> path_{};
  Finding finding_;
};

template <int kRanks, int kSlotCount = static_cast<int>(kSlots), int kHeaderCount = static_cast<int>(kHeaders)>
void check_all(const std::vector<Call>& calls, int depth, std::uint64_t base = 0) {
  const Search<RecordingPort, kRanks, kSlotCount, kHeaderCount> search(calls, depth, base);
  INFO(kRanks << " ranks, " << depth << " of " << calls.size() << " calls");
  CHECK(search.finding().problem == "");
  std::uint64_t expected = 1;
  for (int i = 0; i < depth; ++i) expected *= calls.size();
  CHECK(search.finding().sequences == expected);
}

template <int kRanks>
std::string random_run(std::uint64_t seed, std::uint64_t base, int calls) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return std::uniform_int_distribution<std::uint64_t>(0, n - 1)(random); };
  Execution<kRanks, kSlots, kHeaders> run(base);
  std::array<Program, kRanks> programs;
  Reuse places(kSlots, kHeaders);
  std::uint64_t first = base + 1;
  std::string path;
  for (int i = 0; i < calls; ++i) {
    const Form form = kForms[below(kForms.size())];
    const Call call{form, is_rooted(form) ? static_cast<int>(below(kRanks)) : 0,
                    below(4) == 0 ? 1 + below(20) : 1 + below(3), is_fold(form) && below(3) == 0,
                    kPlaces[below(kPlaces.size())]};
    record<RecordingPort, kRanks>(call, first, places.of(call.place, first, call.steps), programs);
    run.run(programs);
    first += call.steps;
    if (!run.problem().empty()) return fmt::format("call {}: {}: {}", i, show(call), run.problem());
  }
  return {};
}

template <int... kRanks>
void check_random(std::integer_sequence<int, kRanks...>, std::uint64_t seed) {
  for (const std::uint64_t base : {std::uint64_t{0}, (std::uint64_t{1} << 32) - 37, (std::uint64_t{1} << 63) - 38}) {
    for (const std::string& problem : {random_run<kRanks>(seed + kRanks, base, 400)...}) CHECK(problem == "");
  }
}

// ---- Courses that stop

// A Port for which what it waits for comes late: it records what a rank does, as the Port that finds everything.
class LatePort : public RecordingPort {
 public:
  LatePort(const Call& call, int rank, int size, Program& program, std::mt19937_64& random)
      : RecordingPort(call, rank, size, program), random_(random) {}

  bool wait_done(std::uint64_t step) { return !is_late() && RecordingPort::wait_done(step); }
  bool wait_ready(int peer, std::uint64_t step) { return !is_late() && RecordingPort::wait_ready(peer, step); }
  bool wait_folded(int peer, std::uint64_t step) { return !is_late() && RecordingPort::wait_folded(peer, step); }

 private:
  bool is_late() { return std::uniform_int_distribution(0, 2)(random_) > 0; }

  std::mt19937_64& random_;
};

// ---- Planted bugs: Ports that leave something out, or do it too early

struct NeverWaitsForDone : RecordingPort {
  using RecordingPort::RecordingPort;
  bool wait_done(std::uint64_t) { return true; }
};
struct WaitsForOneStepEarlier : RecordingPort {
  using RecordingPort::RecordingPort;
  bool wait_done(std::uint64_t step) { return step <= 1 || RecordingPort::wait_done(step - 1); }
};
struct TellsReadyBeforePut : RecordingPort {
  using RecordingPort::RecordingPort;
  void put(std::uint64_t, std::uint64_t) {}
  void tell_ready(std::uint64_t step) {
    RecordingPort::tell_ready(step);
    RecordingPort::put(0, step);
  }
};
struct NeverWaitsForReady : RecordingPort {
  using RecordingPort::RecordingPort;
  bool wait_ready(int, std::uint64_t) { return true; }
};
struct NeverWaitsForFolded : RecordingPort {
  using RecordingPort::RecordingPort;
  bool wait_folded(int, std::uint64_t) { return true; }
};
struct TellsFoldedBeforeFold : RecordingPort {
  using RecordingPort::RecordingPort;
  void fold(std::uint64_t index, std::uint64_t step) {
    if (!pattern_.shows_result) RecordingPort::fold(index, step);
  }
  void tell_folded(std::uint64_t step) {
    RecordingPort::tell_folded(step);
    RecordingPort::fold(0, step);
  }
};
struct TellsDoneBeforeTheLastTake : RecordingPort {
  using RecordingPort::RecordingPort;
  void take(std::uint64_t, std::uint64_t step, int peer) {
    flush();
    taken_step_ = step, taken_from_ = peer;
  }
  void tell_done(std::uint64_t step) {
    RecordingPort::tell_done(step);
    flush();
  }
  void flush() {
    if (taken_from_ >= 0) RecordingPort::take(0, taken_step_, taken_from_);
    taken_from_ = -1;
  }
  std::uint64_t taken_step_ = 0;
  int taken_from_ = -1;
};
struct TellsDoneBeforeFold : RecordingPort {
  using RecordingPort::RecordingPort;
  void fold(std::uint64_t index, std::uint64_t step) {
    if (!pattern_.takes_results) RecordingPort::tell_done(step);
    RecordingPort::fold(index, step);
  }
};
struct TellsDoneOnceTooOften : RecordingPort {
  using RecordingPort::RecordingPort;
  void tell_done(std::uint64_t step) { RecordingPort::tell_done(step + 1); }
};
struct FoldsIntoItsWholeSlot : RecordingPort {
  using RecordingPort::RecordingPort;
  void fold(std::uint64_t index, std::uint64_t step) {
    RecordingPort::fold(index, step);
    for (int part = 0; pattern_.shows_result && part < size_; ++part) add({Event::Kind::write, {}, rank_, step, part});
  }
};
struct NotesAStepThatIsNotDone : RecordingPort {
  using RecordingPort::RecordingPort;
  void put(std::uint64_t index, std::uint64_t step) {
    RecordingPort::put(index, step);
    program_.back().part = 1;  // added to what the note says
  }
};
// At the end of a call, the next slot is asked for (Collectives::want_next_slot()). To touch it would be another thing.
struct WritesTheSlotThatItOnlyWants : RecordingPort {
  using RecordingPort::RecordingPort;
  void tell_done(std::uint64_t step) {
    RecordingPort::tell_done(step);
    if (pattern_.puts) add({Event::Kind::write, {}, rank_, step + 1, 0});
  }
};
struct ForgetsToTellDone : RecordingPort {
  using RecordingPort::RecordingPort;
  void tell_done(std::uint64_t step) {
    if (pattern_.puts) RecordingPort::tell_done(step);
  }
};

// No bug: what a rank puts where it will fold only takes time.
struct PutsItsOwnSliceToo : RecordingPort {
  using RecordingPort::RecordingPort;
  void put(std::uint64_t index, std::uint64_t step) {
    add({Event::Kind::write, {}, rank_, step, rank_});
    RecordingPort::put(index, step);
  }
};

template <class Port>
std::string found() {
  const auto calls = [](int size) { return all_calls(size, {1, 2, 5, 9}); };
  const Search<Port, 2> two(calls(2), 2);
  const Search<Port, 3> three(calls(3), 2);
  return two.finding().problem.empty() || three.finding().problem.empty() ? "" : three.finding().problem;
}

const std::string kUnordered = "nothing orders it", kUnwritten = "reads what nobody has written",
                  kForEver = "waits for ever";

bool says(const std::string& problem, const std::string& what) {
  return problem.find(what) != std::string::npos;
}

}  // namespace

TEST_CASE("steps: after any two calls of two ranks, every pair of accesses that conflict is ordered", "[shm]") {
  check_all<2>(all_calls(2, kAllLengths), 2);
}

TEST_CASE("steps: after any two calls of three ranks", "[shm][rest]") {
  check_all<3>(all_calls(3, kAllLengths), 2);
}

TEST_CASE("steps: after any three calls", "[shm][rest]") {
  check_all<2>(all_calls(2, {1, 5, 17}, false), 3);
  check_all<3>(all_calls(3, {1, 2, 5}, false, {Place::slot}), 3);
  check_all<3>(all_calls(3, {1}, false), 3);
}

TEST_CASE("steps: after any five calls of one step, the fifth of which uses the slots of the first again",
          "[shm][rest]") {
  check_all<2>(all_calls(2, {1}, false, {Place::slot}), 5);
  check_all<3>(all_calls(3, {1}, false, {Place::slot}), 5);
}

// With fewer of both, for a smaller space: nothing depends on how many there are.
TEST_CASE("steps: after any calls of one step that use the slots and then their parts and the headers again",
          "[shm][rest]") {
  check_all<2, 1, 2>(all_calls(2, {1}, false), 4);
  check_all<2, 2, 4>(all_calls(2, {1}, false, {Place::slot, Place::part}), 5);
  check_all<2, 2, 4>(all_calls(2, {1}, false, {Place::header}), 5);
  check_all<3, 1, 2>(all_calls(3, {1}, false), 3);
}

TEST_CASE("steps: in long random sequences of calls of up to nine ranks, with counters of any size", "[shm]") {
  const std::uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  check_random(std::integer_sequence<int, 2, 3, 4, 5, 6, 7, 8, 9>{}, seed);
}

TEST_CASE("steps: nothing depends on how far the counters have come", "[shm][rest]") {
  for (const std::uint64_t base : {(std::uint64_t{1} << 32) - 3, (std::uint64_t{1} << 63) - 4}) {
    check_all<2>(all_calls(2, {1, 5, 9}), 2, base);
    check_all<3>(all_calls(3, {1, 5, 9}), 2, base);
  }
}

TEST_CASE("steps: a course that stops at its waits does the same, in the same order", "[shm]") {
  const std::uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  constexpr int kRanks = 4;
  constexpr std::uint64_t kFirst = 10;
  int stops = 0;
  for (const Call& call : all_calls(kRanks, kAllLengths)) {
    INFO(show(call));
    std::array<Program, kRanks> whole;
    const std::uint64_t reuse = Reuse(kSlots, kHeaders).of(call.place, kFirst, call.steps);
    record<RecordingPort, kRanks>(call, kFirst, reuse, whole);
    for (int rank = 0; rank < kRanks; ++rank) {
      Program parts;
      LatePort port(call, rank, kRanks, parts, random);
      Course course({pattern_of(call, rank, kRanks), {rank, kRanks, call.root}, call.steps}, kFirst, reuse);
      while (!course.move_on(port)) ++stops;
      CHECK((parts == whole[static_cast<std::size_t>(rank)]));
    }
  }
  CHECK(stops > 0);
}

TEST_CASE("steps: planted bugs are found", "[shm]") {
  CHECK(says(found<NeverWaitsForDone>(), kUnordered));
  CHECK(says(found<WaitsForOneStepEarlier>(), kUnordered));
  CHECK(says(found<TellsReadyBeforePut>(), kUnordered));
  CHECK(says(found<NeverWaitsForReady>(), kUnwritten));
  CHECK(says(found<NeverWaitsForFolded>(), kUnwritten));
  CHECK(says(found<TellsFoldedBeforeFold>(), kUnordered));
  CHECK(says(found<TellsDoneBeforeTheLastTake>(), kUnordered));
  CHECK(says(found<TellsDoneBeforeFold>(), kUnordered));
  CHECK(says(found<TellsDoneOnceTooOften>(), kUnordered));
  CHECK(says(found<FoldsIntoItsWholeSlot>(), kUnordered));
  CHECK(says(found<NotesAStepThatIsNotDone>(), kUnordered));
  CHECK(says(found<WritesTheSlotThatItOnlyWants>(), kUnordered));
  CHECK(says(found<ForgetsToTellDone>(), kForEver));
  CHECK(found<PutsItsOwnSliceToo>() == "");
}

TEST_CASE("steps: fewer slots, parts or headers than a course takes there to be are found", "[shm]") {
  constexpr int kS = static_cast<int>(kSlots), kH = static_cast<int>(kHeaders);
  const auto problem = [](Place place, const auto& search_in) {
    return search_in(all_calls(2, kAllLengths, true, {place}));
  };
  const auto fewer_slots = [](const std::vector<Call>& calls) {
    return Search<RecordingPort, 2, kS / 2, kH>(calls, 1, 20, Reuse(kSlots, kHeaders)).finding().problem;
  };
  const auto fewer_headers = [](const std::vector<Call>& calls) {
    return Search<RecordingPort, 2, kS, kH - kS>(calls, 1, 20, Reuse(kSlots, kHeaders)).finding().problem;
  };
  CHECK(says(problem(Place::slot, fewer_slots), kUnordered));
  CHECK(says(problem(Place::part, fewer_headers), kUnordered));
  CHECK(says(problem(Place::header, fewer_headers), kUnordered));
}

TEST_CASE("steps: a part that takes no notice of whole slots before it is found", "[shm]") {
  struct Forgetful {
    std::uint64_t of(Place place, std::uint64_t, std::uint64_t) const {
      return place == Place::slot ? kSlots : kHeaders;
    }
  };
  const Call whole{Form::from_root, 0, 1, false, Place::slot}, part{Form::from_root, 0, 5, false, Place::part};
  const auto run = [&](auto places) {
    Execution<2, kSlots, kHeaders> both(20);
    std::array<Program, 2> programs;
    record<RecordingPort, 2>(whole, 21, places.of(whole.place, 21, 1), programs);
    both.run(programs);
    record<RecordingPort, 2>(part, 22, places.of(part.place, 22, 5), programs);
    both.run(programs);
    return both.problem();
  };
  CHECK(run(Reuse(kSlots, kHeaders)) == "");
  CHECK(says(run(Forgetful{}), kUnordered));
}

TEST_CASE("steps: sixteen steps in a row have sixteen parts, inside of the smallest slot", "[shm]") {
  using shm_backend::Area;
  const auto place = [](std::uint64_t step) { return std::pair(Area::index(step), Area::part_at(step)); };
  std::set<std::pair<std::size_t, std::size_t>> places;
  for (std::uint64_t step = 5; step < 5 + kHeaders; ++step) {
    places.insert(place(step));
    CHECK(place(step) == place(step + kHeaders));
    CHECK(Area::part_at(step) % shm_backend::kPartBytes == 0);
    CHECK(Area::part_at(step) + shm_backend::kPartBytes <= Area::small_slot_bytes_for(1000));
  }
  CHECK(places.size() == kHeaders);
  CHECK(Area::place_of(shm_backend::kInlineBytes) == Place::header);
  CHECK(Area::place_of(shm_backend::kInlineBytes + 1) == Place::part);
  CHECK(Area::place_of(shm_backend::kPartBytes) == Place::part);
  CHECK(Area::place_of(shm_backend::kPartBytes + 1) == Place::slot);
}

TEST_CASE("steps: a rank that only puts waits for others after sixteen steps, of slots after four", "[shm]") {
  const auto most = [](Place place) {
    std::uint64_t steps = 0;
    struct Alone : RecordingPort {
      using RecordingPort::RecordingPort;
      bool wait_done(std::uint64_t step) { return step <= 20; }  // all that was before
    };
    Reuse places(kSlots, kHeaders);
    for (bool goes = true; goes; ++steps) {
      Program program;
      Alone port({Form::from_root, 0, 1, false, place}, 0, 2, program);
      const std::uint64_t step = 21 + steps;
      Course course({shm_backend::pattern_of(Form::from_root, 0, 2, 0), {0, 2, 0}, 1}, step, places.of(place, step, 1));
      goes = course.move_on(port);
    }
    return steps - 1;
  };
  CHECK(most(Place::header) == kHeaders);
  CHECK(most(Place::part) == kHeaders);
  CHECK(most(Place::slot) == kSlots);
}
