// What both stand-ins use: the settings of the environment, a way to end a process that cannot go on, and a log of
// calls.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace fake_gpu {

std::string text_setting(const char* name, const std::string& otherwise);
// A value that is no number ends the process: a test with a misspelt setting must not pass.
long number_setting(const char* name, long otherwise);

// How long anything may wait before the process is ended: FAKE_GPU_TIMEOUT seconds.
std::chrono::seconds longest_wait();

// A number below `bound`, from FAKE_GPU_SEED: the same sequence in every process that makes the same calls in one
// thread.
unsigned random_below(unsigned bound);

// FAKE_GPU_HARSH: everything that the real ones may do, they do. Work takes its time, what it writes is spoilt until it
// has ended, and allocations wait for the device.
bool harsh();
// For who finds that something has not ended: asking again and again would keep the processor from the work that is
// waited for, because here the host does it.
void pause_before_next_look();
// Where harsh: mostly none, at times some hundred microseconds, and seldom milliseconds.
void pause_at_random();

// Says on stderr what is wrong and aborts: for waits without end and for wrong use that would go unnoticed.
[[noreturn]] void die(const std::string& text);

// Counts the calls of a library's entry points and lets single calls fail.
class CallLog {
 public:
  // `variable` names an environment variable with faults: "cuMemAlloc_v2:2:3,cuInit:999" (entry point, code, nth call).
  explicit CallLog(const char* variable);

  // Counts a call; the code it must fail with, if a fault strikes.
  std::optional<int> enter(const char* name);
  void fail(const std::string& name, int code, int nth);
  size_t calls(const std::string& name);
  // The names of all that were called, one a line.
  std::string names();
  void reset();

 private:
  struct Fault {
    int code;
    int calls_left;
  };

  std::mutex mutex_;
  std::map<std::string, size_t, std::less<>> calls_;
  std::map<std::string, std::vector<Fault>, std::less<>> faults_;
};

}  // namespace fake_gpu
