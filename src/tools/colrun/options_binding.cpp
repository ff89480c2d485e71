// Processors and devices.
#include "colrun/option_groups.hpp"
#include "colrun/option_values.hpp"
#include "colrun/read_value.hpp"

namespace col::colrun {
namespace {

using launch::JobSpec;

constexpr std::string_view kList = "list:";
constexpr int kMaxGpus = 64;

void read_bind_to(const Given& given, JobSpec& job) {
  using To = launch::BindingSpec::To;
  launch::BindingSpec& binding = job.binding;
  if (given.text.starts_with(kList)) {
    const auto lists = parse_processor_lists(std::string_view(given.text).substr(kList.size()));
    if (!lists) refuse(given, "list: and processors for each rank, such as 'list:0-1;2,3'");
    binding.to = To::list;
    binding.lists = *lists;
  } else if (given.text == "none" || given.text == "core" || given.text == "numa") {
    binding.to = read_one_of<To>(given, {{"none", To::none}, {"core", To::core}, {"numa", To::numa}});
  } else {
    refuse(given, "none, core, numa or a list such as 'list:0-1;2-3'");
  }
}

}  // namespace

std::vector<OptionRow> binding_rows() {
  using enum OptionRow::Takes;
  using enum OptionRow::Shown;
  using MapBy = launch::BindingSpec::MapBy;
  return {
      {"--bind-to", "WHAT", value, everyday, "none, core, numa, or list:0-1;2-3 (by rank); default: none",
       read_bind_to},
      {"--map-by", "WHAT", value, all, "core: fill one NUMA node after the other; numa: take turns",
       [](const Given& given, JobSpec& job) {
         job.binding.map_by = read_one_of<MapBy>(given, {{"core", MapBy::core}, {"numa", MapBy::numa}});
       },
       Option::map_by},
      {"--report-bindings", "", nothing, all, "say which processors each rank may use",
       [](const Given&, JobSpec& job) { job.inspect.report_bindings = true; }},
      {"--gpus-per-rank", "K", value, everyday, "each rank sees K GPUs of its own (CUDA_VISIBLE_DEVICES)",
       [](const Given& given, JobSpec& job) { job.binding.gpus_per_rank = read_number(given, 0, kMaxGpus); }},
  };
}

}  // namespace col::colrun
