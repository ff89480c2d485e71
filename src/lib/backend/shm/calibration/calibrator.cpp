#include "backend/shm/calibration/calibrator.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <ctime>

#include <fmt/format.h>

#include <col/error.hpp>

#include "backend/shm/calibration/kept_costs.hpp"
#include "backend/shm/calibration/measure.hpp"
#include "backend/shm/calibration/processors_nearby.hpp"
#include "backend/shm/segment/memory_room.hpp"
#include "core/clock/clock.hpp"
#include "core/env.hpp"
#include "core/log.hpp"

namespace col::shm_backend {
namespace {

constexpr Duration kMostProbing = std::chrono::microseconds(500);

[[noreturn]] void refuse(const char* name, const std::string& value, const char* allowed) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{}={} is none of {}", name, value, allowed));
}

bool is_same_state(std::uint64_t one, std::uint64_t other) {
  return std::max(one, other) * 100 <= std::min(one, other) * Calibrator::kOtherState;
}

}  // namespace

GroupShape shape_of(const Segment& segment, int processors) {
  const std::size_t small = segment.small_slot_bytes(), largest = segment.area().slot_bytes();
  const std::size_t more = static_cast<std::size_t>(segment.size()) * kSlots * (largest - small);
  return {.size = segment.size(),
          .processors = processors,
          .small_slot = small,
          .largest_slot = lack_of_memory(more) ? small : largest,
          .cache_bytes = Area::cache_bytes(),
          .last_caches = last_caches_of(processors, std::max(0, ::sched_getcpu()))};
}

CalibrationSettings CalibrationSettings::of_environment() {
  CalibrationSettings settings;
  const std::string when = core::env::get("COL_CALIBRATE").value_or("auto");
  if (when == "off")
    settings.when = When::off;
  else if (when == "now")
    settings.when = When::now;
  else if (when == "kept")
    settings.when = When::kept;
  else if (when != "auto")
    refuse("COL_CALIBRATE", when, "auto, off, now, kept");
  const std::string copies = core::env::get("COL_CMA").value_or("auto");
  if (copies == "off")
    settings.copies = KernelCopies::off;
  else if (copies == "on")
    settings.copies = KernelCopies::on;
  else if (copies != "auto")
    refuse("COL_CMA", copies, "auto, off, on");
  return settings;
}

Tuning Calibrator::tuning(const GroupShape& shape, const CalibrationSettings& settings) {
  return tuning(shape, settings,
                {.measure_costs = [] { return measure_costs(kMostMeasuring, kPatience); },
                 .measure_line = [] { return measure_line(kMostProbing); },
                 .folder = KeptCosts::usual_folder(),
                 .machine = machine_kind(shape.size),
                 .now = std::chrono::system_clock::to_time_t(core::wall_now())});
}

Tuning Calibrator::tuning(const GroupShape& shape, const CalibrationSettings& settings,
                          const Surroundings& surroundings) {
  if (settings.when == CalibrationSettings::When::off) return decide(shape, std::nullopt, settings.copies);
  const std::lock_guard lock(mutex_);
  if (!known_) known_ = find_out(settings.when, surroundings);
  Tuning tuning = decide(shape, known_->costs, settings.copies);
  tuning.source = known_->source;
  // Who believes a file whatever it says wants to see what it leads to.
  if (settings.when == CalibrationSettings::When::kept) tuning.before_trials = 0;
  return tuning;
}

void Calibrator::learn(const Tuning& tuning) {
  if (tuning.source == Tuning::Source::off) return;
  const std::lock_guard lock(mutex_);
  if (known_) return;
  known_ = Known{tuning.source, std::nullopt};
  if (tuning.source != Tuning::Source::unknown) known_->costs = tuning.costs;
}

Calibrator::Known Calibrator::find_out(CalibrationSettings::When when, const Surroundings& surroundings) {
  using When = CalibrationSettings::When;
  const KeptCosts kept(surroundings.folder, surroundings.machine, surroundings.now);
  std::string why = "COL_CALIBRATE=now";
  if (when != When::now) {
    if (auto costs = kept.read(why)) {
      if (when == When::kept) return {Tuning::Source::kept, costs};
      const auto line = surroundings.measure_line();
      // Where nothing can be measured, nothing speaks against what was.
      if (!line || is_same_state(*line, costs->line)) return {Tuning::Source::kept, costs};
      why = fmt::format("a line of memory takes {} ps to the other processor, and then took {}", *line, costs->line);
    }
  }
  core::log::debug("calibration: '{}' for '{}' is not used: {}", kept.path(), surroundings.machine, why);
  if (when == When::kept) {
    core::log::info("COL_CALIBRATE=kept: no calibration is kept for this machine ({}), so this job goes without", why);
    return {};
  }
  const KeptCosts::Lock lock = kept.lock();
  if (lock.is_taken) {
    core::log::info("another job calibrates on this machine; this one goes without");
    return {};
  }
  const auto begin = core::Clock::now();
  const auto costs = surroundings.measure_costs();
  const auto time = std::chrono::duration_cast<std::chrono::microseconds>(core::Clock::now() - begin);
  if (!costs) {
    core::log::info(
        "calibration: given up after {} us, as no second processor was free in time; what the caches hold goes through "
        "slots of the smallest size",
        time.count());
    return {};
  }
  const std::string failed = kept.write(*costs);
  core::log::info("calibrated in {} us{}", time.count(),
                  failed.empty() ? fmt::format(", kept in '{}'", kept.path())
                                 : fmt::format("; cannot keep it in '{}': {}", kept.path(), failed));
  return {Tuning::Source::measured, costs};
}

}  // namespace col::shm_backend
