// A rank dies in an allreduce of 1,000 floats: when does each other rank have an error, and when a right sum without
// it?
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <vector>

namespace contest {

// Appends "WORD NANOSECONDS" of the monotonic clock, which all ranks of a host share.
inline bool note(const char* path, const char* word) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  char line[64];
  const int length = std::snprintf(line, sizeof line, "%s %lld\n", word,
                                   static_cast<long long>(now.tv_sec) * 1'000'000'000 + now.tv_nsec);
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const bool written = file >= 0 && write(file, line, static_cast<std::size_t>(length)) == length;
  return close(file) == 0 && written;
}

// `sum(in, out)` gives false if it failed; `recover()` makes a group of those that live. The last rank dies.
template <class Sum, class Recover>
int lose_the_last(const char* path, int rank, int size, const Sum& sum, const Recover& recover) {
  constexpr int kCalls = 200;
  std::vector<float> in(1000, 1.0f), out(in.size());
  const auto right = [&](int ranks) { return out.front() == static_cast<float>(ranks) && out.back() == out.front(); };
  for (int call = 0; call < kCalls; ++call)
    if (!sum(in, out) || !right(size)) return 2;
  if (rank == size - 1 && note(path, "killed")) kill(getpid(), SIGKILL);
  if (sum(in, out)) return 3;
  if (!note(path, "caught")) return 4;
  do recover();
  while (!sum(in, out));
  return right(size - 1) && note(path, "right") ? 0 : 5;
}

}  // namespace contest
