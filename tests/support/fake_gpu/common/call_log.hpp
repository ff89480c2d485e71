// Counts the calls of a library's entry points and lets single calls fail.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace fake_gpu {

class CallLog {
 public:
  // `variable` names an environment variable with faults: "cuMemAlloc_v2:2:3,cuInit:999" (entry point, code, nth call).
  explicit CallLog(const char* variable);

  // Counts a call; the code it must fail with, if a fault strikes.
  std::optional<int> enter(const char* name);
  void fail(const std::string& name, int code, int nth);
  size_t calls(const std::string& name);
  void reset();

 private:
  struct Fault {
    int code;
    int calls_left;
  };

  std::mutex mutex_;
  std::map<std::string, size_t> calls_;
  std::map<std::string, std::vector<Fault>> faults_;
};

}  // namespace fake_gpu
