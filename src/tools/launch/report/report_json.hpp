// The report of a job as JSON (--json), for programs. Members:
//
//   schema          "col.job/1"; the number changes when a member changes its meaning or goes, not when one is added
//   tool, job_id
//   command         arguments: that repeat the run; shell: the same as one line for a shell; directory: where
//   started_at      UTC; seconds: how long it lasted
//   nodes, restarts
//   exit_code       of the tool
//   cause           why the job ended early: none (it did not), rank_failed, interrupted, timed_out, exit_timed_out,
//                   output_closed, node_lost, launcher_failed
//   culprit         the rank to blame: the one that hung while others waited for it, else the one that failed first by
//                   itself, or null
//   first_failure   the rank that failed first by itself, or null
//   signal, signal_number   that interrupted the job, or null and 0
//   error           why the launcher failed, or null
//   processes_left  descendants of the job that could not be killed: 0
//   silent_nodes    node_rank, host, first_rank and ranks of nodes that have not answered; not there if all have
//   waiting         who waits for whom in col, as in the report for people
//   slow            the rank that makes others wait again and again, with a sentence, or null
//   ranks           one object each, by rank:
//     rank, local_rank, node_rank, host, pid
//     outcome       exited, signalled, not_started, not_ended (not even by SIGKILL, or its node was lost)
//     exit_code, signal, wait_status   null where it has none; the last as from waitpid()
//     started, seconds   when it started, from the start of the job, and how long it ran
//     cpu_seconds, peak_rss_bytes
//     exited, collateral, told_to_end, needed_kill, walked_out, out_of_memory   true or false
//     said          code and message of its error file, or null
//     last_call     what it was doing in col when the job began to end, or null
//     burden        resident_bytes, swapped_bytes and waits_for_disk of a rank that did not wait for others; not there
//                   if nothing is swapped out and it waits for no disk
//     stack         source and lines, before it was ended, or null
//     times         its calls by group and kind, how long others waited for it there, and what it did itself: when the
//                   report was asked for
//     last_stderr   its last lines there, when it failed
//
// The same but `waiting` is what nodes send one another of their ranks. Text that is no UTF-8 has the bytes that are
// none replaced (U+FFFD). What is read may come from anybody: every value is checked, and there is a limit to
// everything.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "launch/report/job_story.hpp"

namespace col::launch {

// "rank_failed".
std::string_view to_string(EndCause cause) noexcept;

nlohmann::ordered_json rank_story_to_json(const RankStory& story);
// Throws invalid_argument: "rank story: at /pid: should be a whole number from 0 to 2147483647, and is a text". Members
// that it does not know are left alone; those that only repeat others are not read.
RankStory rank_story_from_json(const nlohmann::json& value);

inline constexpr std::string_view kJobSchema = "col.job/1";

nlohmann::ordered_json story_to_json(const JobStory& story);
// Throws invalid_argument.
JobStory story_from_json(const nlohmann::json& value);

nlohmann::ordered_json report_json(const JobStory& story);

// The same as text, indented, with a newline at its end.
std::string report_json_text(const JobStory& story);

}  // namespace col::launch
