// What each rank does in a collective over shared memory: recorded from the code that does it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "backend/shm/native/steps.hpp"
#include "support/protocol/happens_before.hpp"

namespace col::test {

struct Call {
  shm_backend::Form form{};
  int root = 0;
  std::uint64_t steps = 1;
  bool scaled = false;                                  // each rank's own input goes through its slot, too
  shm_backend::Place place = shm_backend::Place::slot;  // of the data
};

inline std::string show(const Call& call) {
  constexpr std::array kNames = {"fold_all",   "fold_slices", "fold_slices_at", "fold_at",    "fold_own",
                                 "fold_lower", "from_root",   "to_root",        "between_all"};
  constexpr std::array kPlaces = {", in headers", ", in parts", ""};
  return fmt::format("{}(root {}, {} steps{}{})", kNames[static_cast<std::size_t>(call.form)], call.root, call.steps,
                     call.scaled ? ", scaled" : "", kPlaces[static_cast<std::size_t>(call.place)]);
}

inline shm_backend::Pattern pattern_of(const Call& call, int rank, int size) {
  shm_backend::Pattern pattern = shm_backend::pattern_of(call.form, rank, size, call.root);
  pattern.puts = pattern.puts || (call.scaled && pattern.folds != shm_backend::Peers::none);
  return pattern;
}

// A Port of steps.hpp, which finds everything that it waits for. What Movement reads and writes of the data: slices or
// blocks are parts, by rank; everything else is all parts of it.
class RecordingPort {
 public:
  RecordingPort(const Call& call, int rank, int size, Program& program)
      : call_(call), pattern_(pattern_of(call, rank, size)), rank_(rank), size_(size), program_(program) {}

  bool wait_done(std::uint64_t step) {
    for (int peer = 0; peer < size_; ++peer) {
      if (peer != rank_) add({Event::Kind::wait_done, CounterKind::done, peer, step});
    }
    return true;
  }
  void put(std::uint64_t /*index*/, std::uint64_t step) {
    for (int part = 0; part < size_; ++part) {
      if (part != rank_ || !in_parts() || call_.scaled) add({Event::Kind::write, {}, rank_, step, part});
    }
    add({Event::Kind::note, CounterKind::done, rank_, step});
  }
  void tell_ready(std::uint64_t step) { tell(CounterKind::ready, step); }
  void tell_folded(std::uint64_t step) { tell(CounterKind::folded, step); }
  void tell_done(std::uint64_t step) { tell(CounterKind::done, step); }
  bool wait_ready(int peer, std::uint64_t step) {
    add({Event::Kind::wait, CounterKind::ready, peer, step});
    add({Event::Kind::learn, CounterKind::done, peer, step});
    return true;
  }
  bool wait_folded(int peer, std::uint64_t step) {
    add({Event::Kind::wait, CounterKind::folded, peer, step});
    return true;
  }
  void fold(std::uint64_t /*index*/, std::uint64_t step) {
    const int end = pattern_.folds == shm_backend::Peers::lower ? rank_ + 1 : size_;
    for (int peer = 0; peer < end; ++peer) {
      if (peer == rank_ && !call_.scaled) continue;
      find(peer, step);
      for (int part = 0; part < size_; ++part) {
        if (part == rank_ || !in_parts()) add({Event::Kind::read, {}, peer, step, part});
      }
    }
    if (pattern_.shows_result) add({Event::Kind::write, {}, rank_, step, rank_});
  }
  void take(std::uint64_t /*index*/, std::uint64_t step, int peer) {
    find(peer, step);
    for (int part = 0; part < size_; ++part) {
      if (part == peer || !pattern_.takes_results) add({Event::Kind::read, {}, peer, step, part});
    }
  }

 protected:
  void add(Event event) {
    event.place = call_.place;
    program_.push_back(event);
  }
  // Where data is that has a whole slot, its header says.
  void find(int peer, std::uint64_t step) {
    if (call_.place == shm_backend::Place::slot) add({Event::Kind::look, {}, peer, step});
  }
  void tell(CounterKind counter, std::uint64_t step) { add({Event::Kind::tell, counter, rank_, step}); }
  bool in_parts() const {
    return call_.form == shm_backend::Form::fold_slices || call_.form == shm_backend::Form::fold_slices_at ||
           call_.form == shm_backend::Form::fold_own;
  }

  const Call call_;
  const shm_backend::Pattern pattern_;
  const int rank_, size_;
  Program& program_;
};

}  // namespace col::test
