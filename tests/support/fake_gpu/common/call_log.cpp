#include "support/fake_gpu/common/call_log.hpp"

#include <cstdlib>
#include <sstream>

#include "support/fake_gpu/common/settings.hpp"

namespace fake_gpu {

CallLog::CallLog(const char* variable) {
  std::istringstream entries(text_setting(variable, ""));
  for (std::string entry; std::getline(entries, entry, ',');) {
    std::istringstream fields(entry);
    std::string name, code, nth = "1";
    std::getline(fields, name, ':');
    std::getline(fields, code, ':');
    std::getline(fields, nth, ':');
    fail(name, std::atoi(code.c_str()), std::atoi(nth.c_str()));
  }
}

std::optional<int> CallLog::enter(const char* name) {
  std::lock_guard lock(mutex_);
  ++calls_[name];
  auto found = faults_.find(name);
  if (found == faults_.end()) return std::nullopt;
  std::optional<int> code;
  std::erase_if(found->second, [&](Fault& fault) {
    if (--fault.calls_left > 0) return false;
    code = fault.code;
    return true;
  });
  return code;
}

void CallLog::fail(const std::string& name, int code, int nth) {
  if (name.empty() || nth < 1) die("a fault needs the name of an entry point and a call from 1 on, not '" + name + "'");
  std::lock_guard lock(mutex_);
  faults_[name].push_back({code, nth});
}

size_t CallLog::calls(const std::string& name) {
  std::lock_guard lock(mutex_);
  auto found = calls_.find(name);
  return found == calls_.end() ? 0 : found->second;
}

void CallLog::reset() {
  std::lock_guard lock(mutex_);
  calls_.clear();
  faults_.clear();
}

}  // namespace fake_gpu
