// Stores that the ranks of an adopted job make by themselves, and that each of them leaves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <col/store.hpp>

#include "core/clock/lock.hpp"
#include "group/adopt/job_directory.hpp"
#include "store/base/run.hpp"

namespace col::group::adopt {

// Why a rank leaves, which decides how long leaving may take.
enum class Leaving {
  finished,  // all is well, probably for the others too
  failed,    // something is wrong with the job, and the others may never leave
  exiting,   // the process ends
};

// A rank that has left and uses the store again comes back, so that col::init() after col::finalize() works. Only
// erase() does not bring it back, because late clean-up consists of it: it does nothing then.
class AdoptedStore : public Store, public store::RunExtension {
 public:
  // This rank no longer needs the store. Does nothing in a process that was forked from the one that is in it.
  virtual void leave(Leaving why) noexcept = 0;

  void set(std::string_view key, std::string_view value) final { reach()->set(key, value); }
  std::optional<std::string> get(std::string_view key) final { return reach()->get(key); }
  std::string wait(std::string_view key, WaitContext& wait) final { return reach(wait)->wait(key, wait); }
  std::int64_t add(std::string_view key, std::int64_t delta) final { return reach()->add(key, delta); }
  std::optional<std::string> compare_set(std::string_view key, std::optional<std::string_view> expected,
                                         std::string_view desired) final {
    return reach()->compare_set(key, expected, desired);
  }
  void run(std::span<store::Call> calls, WaitContext& wait, const store::Answered& answered) final {
    store::run(*reach(wait), calls, wait, answered);
  }
  std::size_t num_keys(std::string_view prefix = {}) final { return reach()->num_keys(prefix); }
  bool erase(std::string_view key) final {
    const std::shared_ptr<Store> store = reached();
    return store && store->erase(key);
  }

 private:
  // The store behind it, which this rank comes back to if it has left. It is shared with calls that are running.
  virtual std::shared_ptr<Store> reach() = 0;
  virtual std::shared_ptr<Store> reach(WaitContext& wait) = 0;
  // Null while this rank is not in it.
  virtual std::shared_ptr<Store> reached() const = 0;
};

// The store of a job whose ranks meet in a directory of their own: a FileStore in this directory, as long as this rank
// stays. A rank that comes back enters the same directory if a rank is still in it, otherwise a new one. So any call
// can fail with the errors of JobDirectory::enter().
class JobStore final : public AdoptedStore {
 public:
  // Does not enter yet. `timeout` is for entering.
  JobStore(JobKey key, std::string parent, Duration timeout);

  // Enters the job's directory if this rank is not in it, and returns its path.
  std::string enter();
  // JobDirectory::why_apart().
  std::optional<Error> why_apart(Duration timeout, bool is_last_look) const;
  // JobDirectory::leave().
  void leave(Leaving why = Leaving::finished) noexcept override;

 private:
  std::shared_ptr<Store> reach() override;
  std::shared_ptr<Store> reach(WaitContext& /*wait*/) override { return reach(); }
  std::shared_ptr<Store> reached() const override;

  const Duration timeout_;
  mutable core::Mutex mutex_;  // guards the two members below, but for directory_.why_apart()
  JobDirectory directory_;
  std::shared_ptr<Store> files_;  // null while this rank is not in the directory; shared with calls that are running
};

}  // namespace col::group::adopt
