#include "support/fake_gpu/common/settings.hpp"

#include <cstdio>
#include <cstdlib>

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

void die(const std::string& text) {
  std::fprintf(stderr, "fake_gpu: %s\n", text.c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace fake_gpu
