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

using launch::JobSpec;

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

void read_counts(const Given& given, JobSpec& job) {
  const auto counts = launch::parse_node_counts(given.text);
  if (!counts) refuse(given, "a number of nodes, or MIN:MAX");
  job.nodes.min_nodes = counts->first;
  job.nodes.max_nodes = counts->second;
}

void read_scheduler(const Given& given, JobSpec& job) {
  using launch::Scheduler;
  job.nodes.scheduler = read_one_of<Scheduler>(given, {{"auto", Scheduler::automatic},
                                                       {"none", Scheduler::none},
                                                       {"slurm", Scheduler::slurm},
                                                       {"k8s", Scheduler::kubernetes}});
}

void read_hostfile(const Given& given, JobSpec& job) {
  if (job.nodes.hosts.empty()) job.nodes.hosts = parse_hostfile(read_text(given.text), given.text);
}

void read_ssh(const Given& given, JobSpec& job) {
  const auto words = parse_words(given.text);
  if (!words) refuse(given, "a command such as 'ssh -p 2222', with closed quotes");
  job.nodes.ssh = *words;
}

}  // namespace

std::vector<OptionRow> node_rows() {
  using enum OptionRow::Takes;
  using enum OptionRow::Shown;
  return {
      {"-n,--np,--nproc-per-node", "N", value, everyday, "ranks per node: number, auto, cpu, gpu; default: auto",
       nullptr, Option::ranks_per_node},
      {"--nnodes", "N|MIN:MAX", value, everyday, "how many nodes; start colrun on each of them", read_counts,
       Option::nnodes},
      {"--node-rank", "R", value, all, "this node's number; default: by order of arrival",
       [](const Given& given, JobSpec& job) { job.nodes.node_rank = read_number(given, 0, launch::kMaxNodes - 1); },
       Option::node_rank},
      {"--rdzv-endpoint", "HOST:PORT", value, everyday, "where they meet: an address of node 0 and a free port",
       [](const Given& given, JobSpec& job) { job.nodes.endpoint = read_endpoint(given); }, Option::rdzv_endpoint},
      {"--rdzv-id", "ID", value, all, "the job's name: nodes of another one are refused",
       [](const Given& given, JobSpec& job) { job.nodes.rendezvous_id = given.text; }},
      {"--rdzv-timeout", "TIME", value, all, "how long nodes wait for one another; default: 10m",
       [](const Given& given, JobSpec& job) {
         job.nodes.rendezvous_timeout = read_time(given, launch::Milliseconds(1));
       }},
      {"--rdzv-backend", "NAME", value, all, "static or c10d, as torchrun has it; they are one here",
       [](const Given& given, JobSpec&) {
         read_one_of<bool>(given, {{"static", true}, {"c10d", true}});
       }},
      {"--master-addr", "HOST", value, all, "with --master-port: the same as --rdzv-endpoint", nullptr,
       Option::master_addr},
      {"--master-port", "PORT", value, all, "see --master-addr; one node needs none", nullptr, Option::master_port},
      {"--standalone", "", nothing, all, "one node, whatever a scheduler says",
       [](const Given&, JobSpec& job) { job.nodes.scheduler = launch::Scheduler::none; }, Option::standalone},
      {"--scheduler", "NAME", value, all, "whose word on nodes counts: auto, none, slurm, k8s; default: auto",
       read_scheduler, Option::scheduler},
      {"-H,--host", "LIST", value, everyday, "start on these hosts over ssh: a:4,ada@b (a gets 4 ranks)",
       [](const Given& given, JobSpec& job) { job.nodes.hosts = parse_host_list(given); }, Option::host},
      {"--hostfile", "FILE", value, all, "the same from a file: one host a line, 'b slots=4'", read_hostfile,
       Option::hostfile},
      {"--ssh", "COMMAND", value, all, "how hosts are reached: 'ssh -p 2222'; default: ssh", read_ssh},
  };
}

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

void read_meeting_place(const Values& values, launch::NodesSpec& nodes) {
  if (nodes.endpoint.empty()) nodes.endpoint = read_master(values);
}

}  // namespace col::colrun
