// The parts of a job that a launcher on another host needs. Each struct has one list of its fields, for writing and for
// reading.
//
// A list begins with the names of all members of its struct. So if a member is added to a struct, this does not compile
// until somebody has decided whether the member travels or stays.
#pragma once

#include "json/json_fields.hpp"
#include "launch/job/job_spec.hpp"
#include "launch/nodes/rendezvous.hpp"

namespace col::launch {

// Of members that only the launcher needs which the user has started.
using core::stays;

template <class Visit>
void fields(Program& program, Visit& visit) {
  auto& [command, ranks, environment] = program;
  visit("command", command);
  visit("ranks", ranks);
  visit("environment", environment);
}

template <class Visit>
void fields(OutputSpec& output, Visit& visit) {
  auto& [label, timestamps, file_pattern, tee, console_ranks, merge, pty] = output;
  visit("label", label);
  visit("timestamps", timestamps);
  visit("file", file_pattern);
  visit("tee", tee);
  visit("console_ranks", console_ranks);
  visit("merge", merge);
  visit("pty", pty);
}

template <class Visit>
void fields(InputSpec& input, Visit& visit) {
  auto& [to, rank] = input;
  visit("to", to, core::Numbered{InputSpec::To::none});
  visit("rank", rank);
}

template <class Visit>
void fields(LifecycleSpec& lifecycle, Visit& visit) {
  auto& [timeout, start_timeout, exit_timeout, grace, term_grace, max_restarts, keep_going, exit_policy] = lifecycle;
  visit("timeout_ms", timeout);
  visit("exit_timeout_ms", exit_timeout);
  visit("grace_ms", grace);
  visit("term_grace_ms", term_grace);
  visit("max_restarts", max_restarts);
  visit("keep_going", keep_going);
  stays(start_timeout, exit_policy);  // the meeting's
}

template <class Visit>
void fields(EnvironmentSpec& environment, Visit& visit) {
  auto& [set, remove, per_rank, mpi_names] = environment;
  visit("set", set);
  visit("remove", remove);
  visit("per_rank", per_rank);
  visit("mpi_names", mpi_names);
}

template <class Visit>
void fields(BindingSpec& binding, Visit& visit) {
  auto& [to, lists, map_by, gpus_per_rank] = binding;
  visit("to", to, core::Numbered{BindingSpec::To::list});
  visit("lists", lists);
  visit("map_by", map_by, core::Numbered{BindingSpec::MapBy::numa});
  visit("gpus_per_rank", gpus_per_rank);
}

template <class Visit>
void fields(Injection& injection, Visit& visit) {
  auto& [kind, rank, at, duration, factor] = injection;
  visit("kind", kind, core::Numbered{Injection::Kind::slow});
  visit("rank", rank);
  visit("at_ms", at);
  visit("duration_ms", duration);
  visit("factor", factor);
}

template <class Visit>
void fields(InspectSpec& inspect, Visit& visit) {
  auto& [dry_run, display_map, report_bindings, print_environment, report, stacks_on_timeout, stacks_on_failure,
         json_path, debugger, debug_ranks] = inspect;
  visit("report_bindings", report_bindings);
  visit("stacks_on_timeout", stacks_on_timeout);
  visit("stacks_on_failure", stacks_on_failure);
  visit("debugger", debugger);
  visit("debug_ranks", debug_ranks);
  stays(dry_run, display_map, print_environment, report, json_path);
}

template <class Visit>
void fields(JobSpec& job, Visit& visit) {
  auto& [programs, output, input, lifecycle, environment, binding, nodes, inspect, injections, tool, command_line,
         stdin_fd, stdout_fd, stderr_fd, keep_fds, title] = job;
  visit("programs", programs);
  visit("output", output);
  visit("input", input);
  visit("lifecycle", lifecycle);
  visit("environment", environment);
  visit("binding", binding);
  visit("inspect", inspect);
  visit("injections", injections);
  visit("tool", tool);
  stays(nodes, command_line, stdin_fd, stdout_fd, stderr_fd, keep_fds, title);
}

template <class Visit>
void fields(Endpoint& endpoint, Visit& visit) {
  auto& [host, port] = endpoint;
  visit("host", host);
  visit("port", port);
}

template <class Visit>
void fields(Rendezvous& meeting, Visit& visit) {
  auto& [alone, may_serve, endpoints, id, secret, min_nodes, max_nodes, node_rank, timeout, remotes, program_ranks,
         reports] = meeting;
  visit("endpoints", endpoints);
  visit("id", id);
  visit("secret", secret);
  visit("node_rank", node_rank);
  visit("timeout_ms", timeout);
  stays(alone, may_serve, min_nodes, max_nodes, remotes, program_ranks, reports);
}

}  // namespace col::launch
