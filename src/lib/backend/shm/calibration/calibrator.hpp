// Who calibrates, and when: rank 0 of the first group of a process, unless the user's cache folder holds what another
// job has measured, and the machine is still in the state that it was in.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "backend/shm/calibration/decide.hpp"
#include "backend/shm/segment/segment.hpp"
#include "backend/shm/segment/tuning.hpp"

namespace col::shm_backend {

// What a group is, from its segment. Large slots are for groups whose ranks could all take them.
GroupShape shape_of(const Segment& segment, int processors);

// COL_CALIBRATE and COL_CMA.
struct CalibrationSettings {
  enum class When { automatic, off, now, kept };
  When when = When::automatic;
  KernelCopies copies = KernelCopies::automatic;

  // Throws invalid_argument, which names the variable.
  static CalibrationSettings of_environment();
};

// Thread safe: ranks may be threads.
class Calibrator {
 public:
  // Tests use others.
  struct Surroundings {
    std::function<std::optional<Costs>()> measure_costs;
    std::function<std::optional<std::uint64_t>()> measure_line;
    std::string folder;
    std::string machine;
    std::int64_t now = 0;  // seconds since 1970
  };

  // By what the group of that shape shall choose. Called on rank 0, while the others wait.
  Tuning tuning(const GroupShape& shape, const CalibrationSettings& settings);
  Tuning tuning(const GroupShape& shape, const CalibrationSettings& settings, const Surroundings& surroundings);
  // What rank 0 of another group has found out serves later ones of this process.
  void learn(const Tuning& tuning);

  // The machine is in another state when a line takes so much more or less, in percent.
  static constexpr std::uint64_t kOtherState = 150;

 private:
  struct Known {
    Tuning::Source source = Tuning::Source::unknown;
    std::optional<Costs> costs;
  };
  static Known find_out(CalibrationSettings::When when, const Surroundings& surroundings);

  std::mutex mutex_;
  std::optional<Known> known_;
};

}  // namespace col::shm_backend
