// Writes into a rank's flight recorder as the group layer does.
#pragma once

#include <cstdint>

#include <col/job.hpp>

#include "core/job/call_ring.hpp"

namespace col::test {

inline void note(RankRecord& record, int group, std::uint64_t sequence, Collective op, const CallDetails& details,
                 bool ended, std::uint64_t took_ns = 0) {
  core::CallRing(record).add(core::CallRing::words(group, op, details), sequence,
                             ended ? core::EntryState::ended : core::EntryState::started, took_ns);
}

}  // namespace col::test
