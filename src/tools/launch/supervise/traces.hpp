// The calls that ranks have kept (--trace), of the last start: collected from all nodes, and written by one of
// them.
#pragma once

#include <col/trace.hpp>

#include "launch/nodes/node_link.hpp"
#include "launch/supervise/node_job.hpp"

namespace col::launch {

class Traces {
 public:
  explicit Traces(NodeJob& job) : job_(job) {}

  // Takes all that the ranks of this node have kept, before their directory is removed.
  void take();
  // A part from another node.
  void add(const LinkEvent& event);
  void write(const JobStory& story);

 private:
  void forget(int restart);
  bool writes() const;
  void send(Timeline& own);

  NodeJob& job_;
  Timeline timeline_;
  int restart_ = 0;  // of which start it is
};

}  // namespace col::launch
