// The jobs of this user on this host, found by their directories, or by the descriptors of their ranks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <col/job.hpp>

#include "common/guarded.hpp"

namespace col::coljob {

struct FoundJob {
  std::string id;
  std::string directory = {};              // its own; empty: it has none, and no launcher that could be asked
  std::shared_ptr<ControlPage> page = {};  // null if it cannot be read, or if none of its ranks is on this host
  std::string problem = {};                // why; or, with a page, that the job has ended: "its processes have ended"
  bool lives() const { return problem.empty(); }
};

// There is no such job, or it cannot be looked into.
class NoJob : public tools::ToolError {
 public:
  explicit NoJob(const std::string& what) : ToolError(tools::exit_code::kNoJob, what) {}
};

// In these directories and in $TMPDIR, else /tmp. Directories and pages of others are passed over.
std::vector<FoundJob> find_jobs(const std::vector<std::string>& directories);

// The one that `name` means: a part of its id, the pid of a rank, the path of its control page. Throws NoJob, and
// tools::UsageError if it may be several.
FoundJob choose_job(const std::vector<FoundJob>& jobs, const std::string& name);

// Control pages of jobs whose ranks have met by a store alone (col::ContextSpec::meet(): Ray, torch). They are files
// without a name, and each rank has a descriptor of its own of its page.
struct UnnamedPage {
  std::string id;    // of the job
  std::string path;  // /proc/<pid>/fd/<number>, as long as that process lives
};

// Pages of this user's processes whose pids mean the same here. Each page once.
std::vector<UnnamedPage> find_unnamed_pages();

}  // namespace col::coljob
