// What one thread of every rank does together: groups of their own, and programs in them.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include <col/col.hpp>

#include "part.hpp"
#include "program.hpp"

namespace programs {

struct Settings {
  std::uint64_t seed = 0;
  double seconds = 5;
  std::uint64_t first = 0;     // number of the first program
  std::uint64_t programs = 0;  // how many; 0: as many as the time allows
  int events = 40;             // of a program
  int lanes = 2;               // threads of a rank
  Extras extras = {};
  bool interrupted = false;  // by signals, again and again
  std::vector<std::string> backends = {"shm"};
};

class Lane {
 public:
  Lane(const Settings& settings, int number) : settings_(settings), number_(number) {}

  // Plays programs until time is up, or `stopped` by another lane of this process. Returns what went wrong, with all
  // that is needed to repeat it; empty when nothing did.
  std::string run(std::atomic<bool>& stopped);
  std::uint64_t programs() const { return programs_; }
  std::uint64_t events() const { return events_; }

 private:
  void make_base_groups();
  void derive_groups(std::uint64_t program);
  void drop_derived_groups();
  void add(col::Group group, std::size_t size);
  void share_memory(Place& place);
  bool goes_on(std::uint64_t program, double seconds, std::atomic<bool>& stopped);
  std::string command(std::uint64_t program) const;

  const Settings& settings_;
  int number_;
  std::size_t base_groups_ = 0;
  std::vector<Place> places_ = {};  // the base groups, one of each backend, then those made from them
  std::vector<int> sizes_ = {};     // of all, also of those that this rank is not in
  std::uint64_t programs_ = 0, events_ = 0;
};

}  // namespace programs
