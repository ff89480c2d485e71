// How a program that was started says when it had passed its first barrier.
#pragma once

#include <time.h>

#include <cstdio>

namespace contest {

inline bool leave_time(const char* path) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  std::FILE* file = std::fopen(path, "w");
  if (file == nullptr) return false;
  const bool written =
      std::fprintf(file, "%lld\n", static_cast<long long>(now.tv_sec) * 1'000'000'000 + now.tv_nsec) > 0;
  return std::fclose(file) == 0 && written;
}

}  // namespace contest
