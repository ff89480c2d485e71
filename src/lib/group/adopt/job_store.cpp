#include "group/adopt/job_store.hpp"

#include <utility>

namespace col::group::adopt {

JobStore::JobStore(JobKey key, std::string parent, Duration timeout)
    : timeout_(timeout), directory_(std::move(key), std::move(parent)) {}

std::shared_ptr<Store> JobStore::reached() const {
  const std::lock_guard lock(mutex_);
  return files_;
}

std::shared_ptr<Store> JobStore::reach() {
  const std::lock_guard lock(mutex_);
  if (!files_) {
    directory_.enter(timeout_);
    files_ = make_file_store(directory_.path() + "/store");
  }
  return files_;
}

std::string JobStore::enter() {
  reach();
  const std::lock_guard lock(mutex_);
  return directory_.path();
}

std::optional<Error> JobStore::why_apart(Duration timeout, bool is_last_look) const {
  std::string path;
  {
    const std::lock_guard lock(mutex_);
    if (!directory_.entered()) return std::nullopt;
    path = directory_.path();
  }
  return directory_.why_apart(path, timeout, is_last_look);
}

void JobStore::leave(Leaving /*why*/) noexcept {
  const std::lock_guard lock(mutex_);
  files_.reset();
  directory_.leave();
}

}  // namespace col::group::adopt
