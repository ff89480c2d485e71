// Capture of streams into graphs.
//
// A capture begins on one stream, the origin, and spreads to a stream that waits for an event recorded inside it. Each
// piece of work becomes a node that depends on the stream's frontier. A graph runs its nodes one after another in the
// order in which they were captured, which is one of the orders the dependencies allow.
#pragma once

#include <thread>

#include "support/fake_gpu/cuda/stream.hpp"

namespace fake_gpu {

struct GraphNode {
  Work work;
  const char* label;
  std::set<size_t> after;
};

struct Graph {
  std::vector<GraphNode> nodes;
};

struct GraphExec {
  std::shared_ptr<const Graph> graph;
  Ticket last_launch;
};

struct Capture {
  CUstreamCaptureMode mode;
  std::thread::id thread;
  std::shared_ptr<Stream> origin;
  std::shared_ptr<Graph> graph;
  CUgraph handle;
  std::vector<std::shared_ptr<Stream>> streams;  // the origin first
  bool invalid = false;
};

struct Event {
  std::shared_ptr<Context> context;
  unsigned flags;
  Ticket ticket;
  // When the latest record was reached; a record holds its own, so that an older one cannot write a newer one's.
  std::shared_ptr<std::chrono::steady_clock::time_point> reached;
  // Set when the latest record was inside a capture.
  std::shared_ptr<Capture> capture;
  std::set<size_t> frontier;
};

// All of these: the machine is locked.
CUresult begin_capture(Machine& machine, const std::shared_ptr<Stream>& stream, CUstreamCaptureMode mode);
// `graph` is null unless the capture is good.
CUresult end_capture(Machine& machine, const std::shared_ptr<Stream>& stream, CUgraph* graph);
void add_node(Stream& stream, Work work, const char* label);
// A stream, captured or not, waits for an event recorded inside a capture.
CUresult join_capture(const std::shared_ptr<Stream>& stream, const Event& event);

// What cuThreadExchangeStreamCaptureMode has made of the calling thread.
CUstreamCaptureMode& mode_of_thread();

// Calls that a capture forbids; when one is forbidden, the captures it touches are of no use any more.
CUresult forbid_unsafe_call(Machine& machine);
CUresult forbid_null_stream(Machine& machine, const Context& context);
// True if it would be forbidden. To ask spoils no capture.
bool orders_with_capture(const Machine& machine, const Context& context);
CUresult forbid_wait_for_stream(Stream& stream);
CUresult forbid_wait_for_context(Machine& machine, const Context& context);

}  // namespace fake_gpu
