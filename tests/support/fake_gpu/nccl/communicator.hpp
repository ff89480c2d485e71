// A rank's communicator.
//
// Its state is what ncclCommGetAsyncError tells: ncclSuccess, ncclInProgress while a job (initialisation, a launch,
// finalisation) goes on, or an error. Jobs of a non-blocking communicator run on a thread of their own; those of a
// blocking one on the caller's. A program must have seen ncclSuccess before its next call, so after a job began the
// first looks at the state, a random number of them, always find ncclInProgress.
#pragma once

#include <nccl.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "support/fake_gpu/nccl/operation.hpp"

namespace fake_nccl {

// What of ncclConfig_t the stand-in heeds.
struct Config {
  bool blocking = true;
  bool split_share = false;
  int max_ctas = 0;            // 0: not told
  std::string settings = {};   // what else it was told: "CTAPolicy=1 trafficClass=3"
  const char* name = nullptr;  // the program's, which keeps it as long as the communicator lives
};
Config read_config(const ncclConfig_t* config, const Config& otherwise);

// One of a communicator's own operators.
struct OwnOperator {
  Reduction reduction;
  ncclDataType_t type;
};

// A piece of memory that all ranks have registered together.
struct Window {
  uintptr_t begin;
  size_t bytes;
  uint32_t number;  // alike on all ranks
  bool symmetric;
};

// Launches that come one after another, whatever their streams.
struct LaunchOrder {
  std::mutex mutex;
  std::shared_ptr<void> last;
};

class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  // `family`: the communicator that it shares connections with, and its end by abort or revoke; null for none.
  Communicator(int device, Config config, const Communicator* family = nullptr);
  ~Communicator();

  int rank() const { return rank_; }
  int size() const { return size_; }
  int device() const { return device_; }
  const Config& config() const { return config_; }
  bool revoked() const { return revoked_; }

  // Runs the job now, or, of a non-blocking communicator, on a thread. Throws what the job throws in the first case; in
  // the second the state becomes the job's result.
  void perform(std::function<void()> job);
  // Ends the process if a call on a blocking communicator goes on in another thread, which would use it after its end.
  void require_nobody_inside(const char* what) const;
  ncclResult_t state();
  void set_state(ncclResult_t code);
  // Throws unless the program has seen that the last job is done.
  void require_ready();

  // Jobs. They end early, with a failure, when the communicator is aborted.
  // `parent`: as long as this one is part of a split of it.
  void join(const std::string& identity, int rank, int size, const Communicator* parent = nullptr);
  void join_split(Communicator& parent, const std::string& board, int color, int key);
  // Registers memory once all ranks do, writes the window to `window`, and only then lets go of it.
  void register_window(const void* memory, size_t bytes, bool symmetric, ncclWindow_t* window);
  void finalize();
  bool joined() const { return joined_; }
  bool finalized() const;
  // Makes the others' connections possible before any is waited for; then launches.
  void begin_connect(const std::vector<Operation>& operations);
  void launch(const std::vector<Operation>& operations, const std::vector<cudaStream_t>& streams);

  // Of buffers in symmetric windows, where in them they are; 0 unless both are in one. See TransferHead.
  uint64_t symmetry_of(const void* input, const void* output);

  // Waits for jobs that go on, but for so many: a job that waits for the others.
  void wait_for_jobs(const char* what, int but = 0);
  // The call was accepted: from now on, the communicator is freed without a look at graphs.
  void accept_revoke();
  // Ends what runs, and lets no operation run any more; returns when their streams are past all of them, and the
  // communicator's threads have ended, which look for that every 500 ms, or as look_every() says.
  void revoke();
  void abort();
  // What waits by now, in a call on a blocking communicator, for the others to make it, or to connect, fails: before
  // 2.28.7, nothing else would end it.
  static void end_waits();
  // For one that is destroyed: its threads may have just looked. A revoked one has none any more.
  void join_threads() const;
  // What a thread of the program's gave a stream before it came out: destroying waits for the device.
  void await_streams();
  // The rank has no more to do with the others. A graph must not run its operations again.
  void close();

  // The `nth` next launch ends only by abort or revoke.
  void hang_launch(int nth);
  // The communicator's abort ends only by release_aborts().
  void hang_abort() { abort_hangs_ = true; }
  static void release_aborts();
  // revoke() ends only by abort.
  void hang_revoke() { revoke_hangs_ = true; }
  // accept_revoke() ends only by release_aborts().
  void hang_revoke_call() { revoke_call_hangs_ = true; }
  // deregister_window() ends only by release_aborts().
  void hang_deregister() { deregister_hangs_ = true; }
  void deregister_window(ncclWindow_t window);
  // How long its threads sleep between two looks whether they are to end.
  static void look_every(int milliseconds);
  void lose(int peer);
  // The children made so far name the next one, alike on all ranks.
  std::string next_child(const std::string& kind);

  std::mutex mutex;  // guards these
  std::map<int, OwnOperator> operators;
  int next_operator = ncclNumOps;
  std::map<ncclWindow_t, Window> windows;
  std::map<void*, std::pair<void*, size_t>> registrations;

 private:
  struct Pending;
  struct InGraph;
  struct Inside;

  bool finish_connect();  // false when revoked
  // True of a blocking one after end_waits(), since a wait that began by then.
  std::function<bool()> given_up() const;
  bool take_hang();
  void wait_for_graphs(const char* what);
  void execute(const std::vector<Operation>& operations, bool hangs);
  void check_devices() const;
  static void wait_for_release(const char* what);
  void stop();
  void leave();

  const int device_;
  const Config config_;
  int rank_ = -1;
  int size_ = 0;
  std::string identity_;
  std::unique_ptr<Segment> segment_;
  std::function<bool()> aborted_now_;
  std::function<bool()> stopped_now_;  // aborted or revoked
  std::atomic<bool> aborted_{false};
  std::atomic<bool> revoked_{false};
  std::shared_ptr<std::atomic<bool>> family_stopped_;  // one of those that share was aborted or revoked
  std::atomic<bool> revoke_hangs_{false};
  std::atomic<bool> revoke_call_hangs_{false};
  std::atomic<bool> abort_hangs_{false};
  std::atomic<bool> deregister_hangs_{false};
  std::atomic<bool> revoked_by_call_{false};
  std::atomic<bool> freed_{false};
  std::atomic<bool> closed_{false};
  std::atomic<bool> left_{false};
  std::atomic<bool> joined_{false};  // has met the other ranks
  std::atomic<int> children_{0};
  uint64_t wanted_peers_ = 0;  // connected, or about to be

  std::mutex state_mutex_;  // guards these
  std::condition_variable state_changed_;
  ncclResult_t state_ = ncclSuccess;
  unsigned looks_left_ = 0;  // that find the last job in progress, whatever it is
  bool seen_ = true;         // its success
  int jobs_ = 0;
  std::vector<int> hangs_;  // launches until one hangs

  // The launches use these one after another.
  std::unique_ptr<TransferCounts> counts_;
  std::shared_ptr<LaunchOrder> order_;
  std::shared_ptr<std::atomic<int>> pending_ = std::make_shared<std::atomic<int>>(0);  // given to a stream, not ended
  std::atomic<int> executing_{0};
  std::atomic<int> inside_{0};  // calls that go on in the program's threads; of a blocking one
  std::atomic<int> graphs_{0};  // launches that graphs hold
};

// The launches of this process that have not ended.
std::atomic<size_t>& running_launches();
// Those that have been given to streams so far.
std::atomic<size_t>& launches_so_far();

}  // namespace fake_nccl
