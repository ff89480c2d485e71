// What is known about a job and its ranks as JSON: for reports, and for sending it to another node.
//
// In text that is not UTF-8, invalid bytes are replaced (U+FFFD). What is read may come from anybody: every value is
// checked, and everything has a limit.
#pragma once

#include <stdexcept>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "launch/report/job_story.hpp"

namespace col::launch {

// The input is not a story. what() is one line: "rank story: 'pid' must be a whole number from 0 to 2147483647".
class StoryError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// "rank_failed".
std::string_view to_string(EndCause cause) noexcept;

nlohmann::ordered_json rank_story_to_json(const RankStory& story);
// Throws StoryError. Unknown members are ignored; members that only repeat others are not read.
RankStory rank_story_from_json(const nlohmann::ordered_json& value);

inline constexpr std::string_view kJobSchema = "col.job/1";

// The whole story; report_json.hpp documents it.
nlohmann::ordered_json story_to_json(const JobStory& story);
// Throws StoryError.
JobStory story_from_json(const nlohmann::ordered_json& value);

}  // namespace col::launch
