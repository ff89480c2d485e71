#include "support/fake_gpu/nccl/communicator.hpp"

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <thread>

#include "support/fake_gpu/cuda/work.hpp"
#include "support/fake_gpu/nccl/library.hpp"

namespace fake_nccl {

// A launch that a stream holds. It counts until it has run or was dropped.
struct Communicator::Pending {
  explicit Pending(std::shared_ptr<std::atomic<int>> counter) : count(std::move(counter)) {
    ++*count;
    ++running_launches();
  }
  ~Pending() { release(); }
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;
  void release() {
    if (released.exchange(true)) return;
    --*count;
    --running_launches();
  }

  std::shared_ptr<std::atomic<int>> count;
  std::atomic<bool> released{false};
};

// A launch that a graph holds, and its copies. As the real one does when the graph is destroyed, it reads from the
// communicator, which must not have been freed.
struct Communicator::InGraph {
  explicit InGraph(std::shared_ptr<Communicator> of) : communicator(std::move(of)) { ++communicator->graphs_; }
  ~InGraph() {
    if (communicator->freed_) fake_gpu::die("a graph is destroyed whose communicator was freed");
    --communicator->graphs_;
    if (communicator->segment_ != nullptr) communicator->segment_->announce();
  }
  InGraph(const InGraph&) = delete;
  InGraph& operator=(const InGraph&) = delete;

  std::shared_ptr<Communicator> communicator;
};

// A call of the program on a blocking communicator, which takes one at a time.
struct Communicator::Inside {
  explicit Inside(Communicator& of) : communicator(of) {
    if (++communicator.inside_ > 1) fake_gpu::die("two threads are inside of one blocking communicator");
  }
  ~Inside() { --communicator.inside_; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

  Communicator& communicator;
};

void Communicator::require_nobody_inside(const char* what) const {
  if (inside_ > 0) fake_gpu::die(std::string(what) + ": another thread is inside of the communicator, and uses it");
}

std::atomic<size_t>& running_launches() {
  static auto* instance = new std::atomic<size_t>(0);
  return *instance;
}

std::atomic<size_t>& launches_so_far() {
  static auto* instance = new std::atomic<size_t>(0);
  return *instance;
}

namespace {

using std::chrono::milliseconds;

constexpr int kFirstVersionThatLooks = 22703;
// How long the threads of a communicator sleep between two looks at whether they are to end: poll(…, 500).
constexpr long kLookOfThreads = 500;

std::atomic<unsigned>& look_of_threads() {
  static auto* instance =
      new std::atomic<unsigned>(static_cast<unsigned>(fake_gpu::number_setting("FAKE_NCCL_LOOK", kLookOfThreads)));
  return *instance;
}

// The communicator's own, or with FAKE_NCCL_SERIAL one for all on the device: there, ranks that issue the operations of
// two communicators in different orders deadlock, as they may on a device that is full.
std::shared_ptr<LaunchOrder> order_of(int device) {
  static auto* devices = new std::map<int, std::shared_ptr<LaunchOrder>>;
  static auto* mutex = new std::mutex;
  if (fake_gpu::number_setting("FAKE_NCCL_SERIAL", 0) == 0) return std::make_shared<LaunchOrder>();
  std::lock_guard lock(*mutex);
  auto& order = (*devices)[device];
  if (order == nullptr) order = std::make_shared<LaunchOrder>();
  return order;
}

}  // namespace

namespace {

// NCCL_COMM_BLOCKING wins over the configuration.
Config as_environment_has_it(Config config) {
  static const long told = fake_gpu::number_setting("NCCL_COMM_BLOCKING", -1);
  if (told == 0 || told == 1) config.blocking = told == 1;
  return config;
}

}  // namespace

Config read_config(const ncclConfig_t* config, const Config& otherwise) {
  if (config == nullptr) return as_environment_has_it(otherwise);
  const ncclConfig_t fresh = NCCL_CONFIG_INITIALIZER;
  require(config->magic == fresh.magic && config->size >= offsetof(ncclConfig_t, trafficClass),
          "the configuration was not made with NCCL_CONFIG_INITIALIZER");
  auto in_range = [](int value, int least, int most) {
    return value == NCCL_CONFIG_UNDEF_INT || (value >= least && value <= most);
  };
  require(in_range(config->blocking, 0, 1), "the configuration's blocking is neither 0 nor 1");
  // As there, an upper bound that is not set is below every lower one.
  require(in_range(config->minCTAs, 1, 64) && in_range(config->maxCTAs, 1, 64) && config->minCTAs <= config->maxCTAs,
          "the configuration's minCTAs or maxCTAs is out of range");
  Config result = otherwise;
  if (config->blocking != NCCL_CONFIG_UNDEF_INT) result.blocking = config->blocking != 0;
  result.settings.clear();
  result.split_share = config->splitShare == 1;
  if (config->maxCTAs != NCCL_CONFIG_UNDEF_INT) result.max_ctas = config->maxCTAs;
  if (config->commName != NCCL_CONFIG_UNDEF_PTR) result.name = config->commName;
  // A version does not look at what came later, and says nothing.
  const auto take = [&](const char* name, int since, int value, int least, int most) {
    if (value == NCCL_CONFIG_UNDEF_INT || version() < since) return;
    require(in_range(value, least, most), std::string("the configuration's ") + name + " is out of range");
    result.settings += (result.settings.empty() ? "" : " ") + std::string(name) + "=" + std::to_string(value);
  };
  take("minCTAs", 21700, config->minCTAs, 1, 64);
  take("maxCTAs", 21700, config->maxCTAs, 1, 64);
  take("splitShare", 21800, config->splitShare, 0, 1);
  take("cgaClusterSize", 21700, config->cgaClusterSize, 0, 8);
  take("trafficClass", 22600, config->trafficClass, 0, 255);
  take("collnetEnable", 22700, config->collnetEnable, 0, 1);
  take("CTAPolicy", 22700, config->CTAPolicy, 0, version() < 22800 ? 1 : 2);
  take("nvlsCTAs", 22700, config->nvlsCTAs, 1, 64);
  take("nChannelsPerNetPeer", 22800, config->nChannelsPerNetPeer, 1, 64);
  take("nvlinkCentricSched", 22800, config->nvlinkCentricSched, 0, 1);
  return as_environment_has_it(result);
}

Communicator::Communicator(int device, Config config, const Communicator* family)
    : device_(device),
      config_(config),
      aborted_now_([this] { return aborted_.load(); }),
      stopped_now_([this] { return aborted_.load() || revoked_.load() || family_stopped_->load(); }),
      family_stopped_(family != nullptr ? family->family_stopped_ : std::make_shared<std::atomic<bool>>(false)),
      order_(order_of(device)) {}

Communicator::~Communicator() = default;

void Communicator::perform(std::function<void()> job) {
  if (config_.blocking) {
    const Inside inside(*this);
    return job();
  }
  {
    std::lock_guard lock(state_mutex_);
    state_ = ncclInProgress;
    looks_left_ = 1 + fake_gpu::random_below(4);
    seen_ = false;
    ++jobs_;
  }
  std::thread([self = shared_from_this(), job = std::move(job)]() mutable {
    ncclResult_t result = ncclSuccess;
    fake_gpu::pause_at_random();
    try {
      job();
    } catch (const Failure& failure) {
      set_last_error(failure.text);
      result = failure.code;
    }
    job = nullptr;
    std::lock_guard lock(self->state_mutex_);
    --self->jobs_;
    // A revoke may begin while a launch goes on: success needs both.
    const bool settles = result != ncclSuccess || self->jobs_ == 0;
    if (self->state_ == ncclInProgress && settles) self->state_ = result;
    self->state_changed_.notify_all();
  }).detach();
}

ncclResult_t Communicator::state() {
  std::unique_lock lock(state_mutex_);
  if (looks_left_ > 0) {
    --looks_left_;
    return ncclInProgress;
  }
  if (state_ == ncclInProgress) {
    lock.unlock();
    fake_gpu::pause_before_next_look();
    return ncclInProgress;
  }
  if (state_ == ncclSuccess) seen_ = true;
  // Known to the shared segment; the others learn of a lost peer this way.
  if (state_ == ncclSuccess && segment_ != nullptr && segment_->head().lost != 0) return ncclRemoteError;
  return state_;
}

void Communicator::set_state(ncclResult_t code) {
  std::lock_guard lock(state_mutex_);
  state_ = code;
}

void Communicator::require_ready() {
  std::lock_guard lock(state_mutex_);
  if (state_ != ncclSuccess && state_ != ncclInProgress) fail(state_, "the communicator has failed before");
  require(state_ == ncclSuccess && seen_, "the communicator is used before ncclCommGetAsyncError told ncclSuccess");
}

void Communicator::wait_for_jobs(const char* what, int but) {
  std::unique_lock lock(state_mutex_);
  const auto deadline = std::chrono::system_clock::now() + fake_gpu::longest_wait();
  if (state_changed_.wait_until(lock, deadline, [&] { return jobs_ <= but; })) return;
  fake_gpu::die(std::string(what) + " took longer than FAKE_GPU_TIMEOUT");
}

namespace {

// Numbers the releases of what a test made hang.
struct Releases {
  std::mutex mutex;
  std::condition_variable changed;
  int count = 0;
};
Releases& releases() {
  static auto* instance = new Releases;
  return *instance;
}

int releases_so_far() {
  std::lock_guard lock(releases().mutex);
  return releases().count;
}

}  // namespace

void Communicator::look_every(int milliseconds) {
  look_of_threads() = static_cast<unsigned>(milliseconds);
}

void Communicator::wait_for_release(const char* what) {
  std::unique_lock lock(releases().mutex);
  const int before = releases().count;
  if (!releases().changed.wait_for(lock, fake_gpu::longest_wait(), [&] { return releases().count > before; }))
    fake_gpu::die(std::string(what) + ", which a test made hang, was never released");
}

void Communicator::accept_revoke() {
  if (revoke_call_hangs_) wait_for_release("ncclCommRevoke");
  revoked_by_call_ = true;
}

void Communicator::deregister_window(ncclWindow_t window) {
  if (deregister_hangs_) wait_for_release("ncclCommWindowDeregister");
  std::lock_guard lock(mutex);
  require(windows.erase(window) == 1, "not a window of this communicator");
}

void Communicator::revoke() {
  const auto began = std::chrono::steady_clock::now();
  if (revoke_hangs_ && segment_ != nullptr) {
    const bool released = segment_->wait(
        "a revoke that a test made hang", [before = releases_so_far()] { return releases_so_far() > before; },
        aborted_now_);
    if (!released) fail(ncclInternalError, "aborted");
  }
  stop();
  if (segment_ == nullptr) return;
  // A launch that goes on comes first, and gives the stream nothing any more, or what ends at once.
  wait_for_jobs("ncclCommRevoke", config_.blocking ? 0 : 1);
  const bool idle = segment_->wait(
      "ncclCommRevoke", [this] { return *pending_ == 0; }, aborted_now_);
  if (!idle) fail(ncclInternalError, "aborted");
  if (!fake_gpu::harsh()) return;
  const unsigned look = look_of_threads();
  std::this_thread::sleep_until(began + milliseconds(look + fake_gpu::random_below(1 + look / 5)));
}

void Communicator::stop() {
  revoked_ = true;
  *family_stopped_ = true;
  if (segment_ == nullptr) return;
  segment_->announce();
  segment_->wait(
      "the end of what was revoked or aborted", [this] { return executing_ == 0; }, [] { return false; });
}

void Communicator::release_aborts() {
  std::lock_guard lock(releases().mutex);
  ++releases().count;
  releases().changed.notify_all();
}

void Communicator::wait_for_graphs(const char* what) {
  if (segment_ == nullptr) return;
  segment_->wait(
      std::string("graphs that hold NCCL operations, which ") + what + " waits for", [this] { return graphs_ == 0; },
      [] { return false; });
}

void Communicator::abort() {
  require_nobody_inside("ncclCommAbort");
  aborted_ = true;
  if (segment_ != nullptr) segment_->announce();
  if (abort_hangs_) wait_for_release("ncclCommAbort");
  wait_for_jobs("ncclCommAbort");
  stop();
  // What was revoked is freed at once.
  if (!revoked_by_call_) wait_for_graphs("ncclCommAbort");
  freed_ = true;
  leave();
}

void Communicator::join_threads() const {
  // Seldom, or every test would take as long.
  if (!fake_gpu::harsh() || revoked_by_call_ || fake_gpu::random_below(8) > 0) return;
  std::this_thread::sleep_for(milliseconds(fake_gpu::random_below(1 + look_of_threads())));
}

void Communicator::await_streams() {
  if (segment_ == nullptr || !config_.blocking || !revoked_) return;
  segment_->wait(
      "the streams of a communicator that is destroyed", [this] { return *pending_ == 0; }, [] { return false; });
}

void Communicator::close() {
  closed_ = freed_ = true;
  leave();
}

void Communicator::leave() {
  if (left_.exchange(true)) return;
  if (segment_ != nullptr) {
    if (segment_->head().arrived < static_cast<uint32_t>(size_)) segment_->unlink();
    segment_->seat(rank_).finalized = 1;
    segment_->announce();
  }
  fake_gpu_release_device(device_);
}

void Communicator::finalize() {
  auto& seat = segment_->seat(rank_);
  if (seat.finalized.exchange(1) == 0) segment_->announce();
  const bool idle = segment_->wait(
      "ncclCommFinalize", [this] { return *pending_ == 0; }, aborted_now_);
  // Ranks of this process need not be waited for: one thread may finalize all of them, one after another.
  const bool all = idle && segment_->wait(
                               "ncclCommFinalize",
                               [this] {
                                 for (int peer = 0; peer < size_; ++peer) {
                                   const Seat& other = segment_->seat(peer);
                                   if (other.process != getpid() && other.finalized == 0) return false;
                                 }
                                 return true;
                               },
                               aborted_now_);
  if (!all) fail(ncclInternalError, "aborted");
  wait_for_graphs("ncclCommFinalize");
}

bool Communicator::finalized() const {
  return segment_ != nullptr && segment_->seat(rank_).finalized != 0;
}

void Communicator::launch(const std::vector<Operation>& operations, const std::vector<cudaStream_t>& streams) {
  if (!finish_connect()) {
    if (config_.blocking) fail(ncclInternalError, "revoked");
    return;
  }
  auto pending = std::make_shared<Pending>(pending_);
  const bool hangs = take_hang();
  fake_gpu::Launch launch{device_, {}, nullptr, "an NCCL operation"};
  launch.streams = streams;
  auto in_graph = std::make_shared<std::optional<InGraph>>();
  launch.work = [self = shared_from_this(), operations, hangs, pending, in_graph] { self->execute(operations, hangs); };
  std::unique_lock lock(order_->mutex);
  const auto before = order_->last;
  const CUresult result = fake_gpu_launch(launch, order_->last);
  const bool captured = before == order_->last;
  lock.unlock();
  if (captured || result != CUDA_SUCCESS) pending->release();
  // Where graphs hold operations, it looks whether one of them runs, in whatever thread launches, and takes an error
  // for an answer: ncclLaunchPrepare().
  if (!captured && graphs_ > 0 && version() >= kFirstVersionThatLooks) fake_gpu_look_at_event();
  if (captured && result == CUDA_SUCCESS) in_graph->emplace(shared_from_this());
  require_cuda(result, "the stream did not take the operation");
}

void Communicator::execute(const std::vector<Operation>& operations, bool hangs) {
  if (closed_) fake_gpu::die("an operation runs whose communicator was destroyed");
  ++executing_;
  ++running_launches();
  if (hangs) {
    segment_->wait(
        "an NCCL operation that a test made hang", [] { return false; }, stopped_now_);
  } else if (!stopped_now_()) {
    run({*segment_, rank_, *counts_, stopped_now_}, operations);
  }
  --executing_;
  --running_launches();
  segment_->announce();
}

bool Communicator::take_hang() {
  std::lock_guard lock(state_mutex_);
  return std::erase_if(hangs_, [](int& to_go) { return --to_go == 0; }) > 0;
}

void Communicator::hang_launch(int nth) {
  std::lock_guard lock(state_mutex_);
  hangs_.push_back(nth);
}

void Communicator::lose(int peer) {
  if (segment_ == nullptr || peer < 0 || peer >= size_) return;
  segment_->head().lost |= uint64_t{1} << peer;
  segment_->announce();
}

std::string Communicator::next_child(const std::string& kind) {
  return identity_ + "-" + kind + std::to_string(++children_);
}

}  // namespace fake_nccl
