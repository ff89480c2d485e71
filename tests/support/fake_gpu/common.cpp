#include "support/fake_gpu/common.hpp"

#include <cstdio>
#include <cstdlib>
#include <random>
#include <sstream>
#include <string_view>
#include <thread>

namespace fake_gpu {

std::string text_setting(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

long number_setting(const char* name, long otherwise) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return otherwise;
  char* end = nullptr;
  long number = std::strtol(value, &end, 10);
  if (*end != '\0') die(std::string(name) + "=" + value + " is not a number");
  return number;
}

std::chrono::seconds longest_wait() {
  static const long seconds = number_setting("FAKE_GPU_TIMEOUT", 60);
  return std::chrono::seconds(seconds);
}

unsigned random_below(unsigned bound) {
  static std::mutex mutex;
  static std::mt19937 engine(static_cast<unsigned>(number_setting("FAKE_GPU_SEED", 1)));
  std::lock_guard lock(mutex);
  return static_cast<unsigned>(engine() % bound);
}

bool harsh() {
  static const bool is_harsh = number_setting("FAKE_GPU_HARSH", 1) != 0;
  return is_harsh;
}

void pause_before_next_look() {
  std::this_thread::sleep_for(std::chrono::microseconds(100));
}

void pause_at_random() {
  if (!harsh()) return;
  const unsigned kind = random_below(64);
  if (kind >= 16) return;
  std::this_thread::sleep_for(std::chrono::microseconds(random_below(kind == 0 ? 3000 : 300)));
}

void die(const std::string& text) {
  std::fprintf(stderr, "fake_gpu: %s; FAKE_GPU_SEED=%s\n", text.c_str(), text_setting("FAKE_GPU_SEED", "1").c_str());
  std::fflush(stderr);
  std::abort();
}

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
  const std::string_view entry(name);
  const auto counted = calls_.find(entry);
  ++(counted != calls_.end() ? counted : calls_.try_emplace(name).first)->second;
  auto found = faults_.find(entry);
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

std::string CallLog::names() {
  std::lock_guard lock(mutex_);
  std::string lines;
  for (const auto& [name, calls] : calls_) lines += name + '\n';
  return lines;
}

void CallLog::reset() {
  std::lock_guard lock(mutex_);
  calls_.clear();
  faults_.clear();
}

}  // namespace fake_gpu
