// The store of a job whose ranks meet in a directory of their own: a FileStore in this directory, as long as this rank
// stays.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "group/adopt/adopted_store.hpp"
#include "group/adopt/job_directory.hpp"

namespace col::group::adopt {

// A rank that comes back enters the same directory if a rank is still in it, otherwise a new one. So any call can fail
// with the errors of JobDirectory::enter().
class JobStore final : public AdoptedStore {
 public:
  // Does not enter yet. `timeout` is for entering.
  JobStore(JobKey key, std::string parent, Duration timeout);

  // Enters the job's directory if this rank is not in it, and returns its path.
  std::string enter();
  // JobDirectory::leave().
  void leave(Leaving why = Leaving::finished) noexcept override;

  void set(std::string_view key, std::string_view value) override;
  std::optional<std::string> get(std::string_view key) override;
  std::string wait(std::string_view key, WaitContext& wait) override;
  std::int64_t add(std::string_view key, std::int64_t delta) override;
  std::optional<std::string> compare_set(std::string_view key, std::optional<std::string_view> expected,
                                         std::string_view desired) override;
  bool erase(std::string_view key) override;
  std::size_t num_keys(std::string_view prefix = {}) override;

 private:
  std::shared_ptr<Store> files();

  const Duration timeout_;
  std::mutex mutex_;  // guards the two members below
  JobDirectory directory_;
  std::shared_ptr<Store> files_;  // null while this rank is not in the directory; shared with calls that are running
};

}  // namespace col::group::adopt
