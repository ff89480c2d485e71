// How a job ended: the result, everything that is known for the report, and the report itself.
#pragma once

#include "launch/supervise/node_job.hpp"

namespace col::launch {

// Tells of the ranks of this node, which have ended. Requires: an attempt.
JobStory story_of(const NodeJob& job);

void say_report(NodeJob& job, const JobStory& story);
// --report-json; does nothing if nobody asked for it, or another node writes it.
void write_json(NodeJob& job, const JobStory& story);

// Output that could not be written decides the exit code of a job that was good otherwise.
void tell_lost_output(const NodeJob& job, JobResult& outcome);

}  // namespace col::launch
