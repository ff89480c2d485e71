#include "launch/report/report_json.hpp"

#include <utility>

#include <nlohmann/json.hpp>

#include "common/text.hpp"
#include "launch/report/report_calls.hpp"
#include "launch/report/story_json.hpp"

namespace col::launch {

using Json = nlohmann::ordered_json;

Json report_json(const JobStory& story) {
  Json report = story_to_json(story);
  Json waiting = Json::array();
  for (const std::string& line : describe_calls(story)) waiting.push_back(tools::clean(line));
  // What is long comes last.
  Json ranks = std::move(report["ranks"]);
  report.erase("ranks");
  report["waiting"] = std::move(waiting);
  report["ranks"] = std::move(ranks);
  return report;
}

std::string report_json_text(const JobStory& story) {
  return report_json(story).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace col::launch
