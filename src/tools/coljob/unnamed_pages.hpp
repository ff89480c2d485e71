// Control pages of jobs whose ranks have met by a store alone (col::ContextSpec::meet(): Ray, torch). They are files
// without a name, and each rank has a descriptor of its own of its page.
#pragma once

#include <string>
#include <vector>

namespace col::coljob {

struct UnnamedPage {
  std::string id;    // of the job
  std::string path;  // /proc/<pid>/fd/<number>, as long as that process lives
};

// Of processes of this user whose pids mean the same here. Each page once.
std::vector<UnnamedPage> find_unnamed_pages();

}  // namespace col::coljob
