// What an event of the supervisor's epoll is about: the kind is in the upper half, an index in the lower half.
#pragma once

#include <cstdint>

namespace col::launch::epoll_tag {

inline constexpr std::uint64_t kLifeline = 1ULL << 32;
inline constexpr std::uint64_t kSignals = 2ULL << 32;
inline constexpr std::uint64_t kRank = 3ULL << 32;  // local rank
inline constexpr std::uint64_t kPipe = 4ULL << 32;
inline constexpr std::uint64_t kSink = 5ULL << 32;
inline constexpr std::uint64_t kInput = 6ULL << 32;
inline constexpr std::uint64_t kStacks = 7ULL << 32;
inline constexpr std::uint64_t kLink = 8ULL << 32;
inline constexpr std::uint64_t kRemote = 9ULL << 32;
inline constexpr std::uint64_t kSharedInput = 10ULL << 32;
inline constexpr std::uint64_t kIndexMask = 0xffffffffULL;

}  // namespace col::launch::epoll_tag
