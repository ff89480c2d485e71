// The errors with which the change of an epoch ends. Each is one line that says what to do.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <col/error.hpp>

#include "group/join/epoch_record.hpp"

namespace col::group {

Error fewer_than_min(std::string_view group, int survivors, int newcomers, int min);
Error more_than_most(std::string_view group, int size, int most);
Error nobody_stays(std::string_view group);
Error unequal_wishes(std::string_view group, const Generation& last, const std::vector<const Presence*>& words);
Error register_gone(std::string_view group, std::string_view why);
// For the process itself, which is none of the members of that epoch. `known`: the record that says so.
Error left_out(std::string_view group, const EpochRecord& known, Incarnation self);
// At the deadline: ranks that have not called renew(), or that do not connect for the next epoch, by their numbers in
// the last one; none: newcomers alone.
Error late_for_renewal(std::string_view group, const std::vector<int>& ranks);
Error late_to_connect(std::string_view group, std::uint64_t epoch, const std::vector<int>& ranks);
Error register_slow(std::string_view group);
// For who wants to join.
Error no_such_group(std::string_view group);
Error not_taken(std::string_view group, int size, int most);
Error nobody_lives(std::string_view group, std::uint64_t epoch);

}  // namespace col::group
