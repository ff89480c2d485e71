// Text files that are read line by line: configuration, variables, hosts.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "colrun/settings.hpp"
#include "launch/job/job_spec.hpp"

namespace col::colrun {

// The whole content of a file, or of a pipe such as a shell's `<(…)`. Throws UsageError if it cannot be read, is larger
// than 1 MiB, or contains a NUL byte, or if a pipe does not end within 10 seconds.
std::string read_text(const std::string& path);

// Calls `use` with every line that is neither empty nor a comment (a comment begins with #), trimmed, and with its
// number, counted from 1.
void each_line(std::string_view text, const std::function<void(int number, std::string_view line)>& use);

// The content of a value in quotes; any other value unchanged. In '…', every character stands for itself. In "…", there
// are \" \\ \n and \t. Nothing if a quote is not closed, or if text follows it.
std::optional<std::string> unquoted(std::string_view text);

// The variables of a file of lines NAME=value: "NAME=value" for each line, in order. A line may begin with "export ". A
// value may be in quotes. Nothing is expanded. `path` is for messages. Throws UsageError that names the line.
std::vector<std::string> parse_env_file(std::string_view text, const std::string& path);

// The hosts of a hostfile. One host on each line: "h", "h:4", "h slots=4", "user@h". A # begins a comment anywhere.
// `path` is for messages. Throws UsageError that names the line.
std::vector<launch::HostSpec> parse_hostfile(std::string_view text, const std::string& path);

// True if `scheduler` gives a list of hosts, so that colrun has to start itself on the others: PBS and LSF do. Slurm
// and Kubernetes start a colrun on each node.
bool gives_hosts(launch::Scheduler scheduler);

// PBS: the file PBS_NODEFILE, with a line for each rank. LSF: the file LSB_DJOB_HOSTFILE, likewise, or LSB_MCPU_HOSTS,
// "a 4 b 2". In the order of the list; a host has as many slots as the list says. Throws UsageError that names the
// variable.
std::vector<launch::HostSpec> scheduler_hosts(launch::Scheduler scheduler, const Surroundings& surroundings);

}  // namespace col::colrun
