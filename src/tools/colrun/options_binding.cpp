// Processors and devices.
#include "colrun/option_groups.hpp"
#include "colrun/option_values.hpp"
#include "colrun/read_value.hpp"

namespace col::colrun {
namespace {

constexpr std::string_view kList = "list:";
constexpr int kMaxGpus = 64;

}  // namespace

void read_binding(const Values& values, launch::BindingSpec& binding) {
  using To = launch::BindingSpec::To;
  using MapBy = launch::BindingSpec::MapBy;
  if (const Given* given = values.find(Option::bind_to)) {
    if (given->text.starts_with(kList)) {
      const auto lists = parse_processor_lists(std::string_view(given->text).substr(kList.size()));
      if (!lists) refuse(*given, "list: and processors for each rank, such as 'list:0-1;2,3'");
      binding.to = To::list;
      binding.lists = *lists;
    } else if (given->text == "none" || given->text == "core" || given->text == "numa") {
      binding.to = read_one_of<To>(*given, {{"none", To::none}, {"core", To::core}, {"numa", To::numa}});
    } else {
      refuse(*given, "none, core, numa or a list such as 'list:0-1;2-3'");
    }
  }
  if (const Given* given = values.find(Option::map_by))
    binding.map_by = read_one_of<MapBy>(*given, {{"core", MapBy::core}, {"numa", MapBy::numa}});
  if (const Given* given = values.find(Option::gpus_per_rank)) binding.gpus_per_rank = read_number(*given, 0, kMaxGpus);
}

}  // namespace col::colrun
