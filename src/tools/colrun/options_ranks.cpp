// How many ranks, on which nodes.
#include <algorithm>

#include "colrun/hostfile.hpp"
#include "colrun/option_groups.hpp"
#include "colrun/option_values.hpp"
#include "colrun/read_value.hpp"
#include "colrun/text_lines.hpp"
#include "common/numbers.hpp"
#include "launch/nodes/scheduler.hpp"

namespace col::colrun {
namespace {

std::string read_endpoint(const Given& given) {
  const auto endpoint = parse_endpoint(given.text);
  if (!endpoint) refuse(given, "host or host:port with a port up to 65535 ([…] around an IPv6 address)");
  return endpoint->text();
}

// --master-addr and --master-port; empty when the job's only node needs neither.
std::string read_master(const Values& values) {
  const Given* address = values.find(Option::master_addr);
  const Given* port = values.find(Option::master_port);
  const int number = port == nullptr ? 0 : read_number(*port, 1, 65'535);
  if (address == nullptr || port == nullptr) return {};
  const bool bare_ipv6 = address->text.find(':') != std::string::npos && address->text[0] != '[';
  const auto endpoint =
      parse_endpoint(fmt::format("{}{}{}:{}", bare_ipv6 ? "[" : "", address->text, bare_ipv6 ? "]" : "", number));
  if (!endpoint) refuse(*address, "a host or an address");
  return endpoint->text();
}

std::vector<launch::HostSpec> read_hosts(const Values& values) {
  if (const Given* given = values.find(Option::host)) return parse_host_list(*given);
  if (const Given* given = values.find(Option::hostfile)) return parse_hostfile(read_text(given->text), given->text);
  return {};
}

void read_counts(const Values& values, launch::NodesSpec& nodes) {
  const Given* given = values.find(Option::nnodes);
  if (given == nullptr) return;
  const auto counts = launch::parse_node_counts(given->text);
  if (!counts) refuse(*given, "a number of nodes, or MIN:MAX");
  nodes.min_nodes = counts->first;
  nodes.max_nodes = counts->second;
}

}  // namespace

int ranks_of(const Given& given, const Surroundings& surroundings) {
  if (given.text == "auto" || given.text == "cpu") return std::clamp(surroundings.processors(), 1, launch::kMaxRanks);
  if (given.text == "gpu") {
    const int gpus = surroundings.gpus();
    if (gpus > 0) return std::min(gpus, launch::kMaxRanks);
    throw UsageError(fmt::format("{} gpu: there is no GPU to be seen here; write a number of ranks", given.said_as));
  }
  const auto ranks = tools::parse_whole_number(std::string_view(given.text), 1, launch::kMaxRanks);
  if (!ranks) refuse(given, fmt::format("a whole number from 1 to {}, auto, cpu or gpu", launch::kMaxRanks));
  return *ranks;
}

void read_nodes(const Values& values, launch::NodesSpec& nodes) {
  using launch::Scheduler;
  read_counts(values, nodes);
  if (const Given* given = values.find(Option::node_rank))
    nodes.node_rank = read_number(*given, 0, launch::kMaxNodes - 1);
  const Given* endpoint = values.find(Option::rdzv_endpoint);
  nodes.endpoint = endpoint != nullptr ? read_endpoint(*endpoint) : read_master(values);
  if (const Given* given = values.find(Option::rdzv_id)) nodes.rendezvous_id = given->text;
  if (const Given* given = values.find(Option::rdzv_timeout))
    nodes.rendezvous_timeout = read_time(*given, launch::Milliseconds(1));
  if (const Given* given = values.find(Option::rdzv_backend))
    read_one_of<bool>(*given, {{"static", true}, {"c10d", true}});
  if (const Given* given = values.find(Option::scheduler))
    nodes.scheduler = read_one_of<Scheduler>(*given, {{"auto", Scheduler::automatic},
                                                      {"none", Scheduler::none},
                                                      {"slurm", Scheduler::slurm},
                                                      {"k8s", Scheduler::kubernetes}});
  else if (values.is_on(Option::standalone))
    nodes.scheduler = Scheduler::none;
  nodes.hosts = read_hosts(values);
  if (const Given* given = values.find(Option::ssh)) {
    const auto words = parse_words(given->text);
    if (!words) refuse(*given, "a command such as 'ssh -p 2222', with closed quotes");
    nodes.ssh = *words;
  }
}

}  // namespace col::colrun
