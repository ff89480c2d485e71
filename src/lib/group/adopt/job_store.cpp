#include "group/adopt/job_store.hpp"

#include <utility>

namespace col::group::adopt {

JobStore::JobStore(JobKey key, std::string parent, Duration timeout)
    : timeout_(timeout), directory_(std::move(key), std::move(parent)) {}

std::shared_ptr<Store> JobStore::files() {
  const std::lock_guard lock(mutex_);
  if (!files_) {
    directory_.enter(timeout_);
    files_ = make_file_store(directory_.path() + "/store");
  }
  return files_;
}

std::string JobStore::enter() {
  files();
  const std::lock_guard lock(mutex_);
  return directory_.path();
}

void JobStore::leave(Leaving /*why*/) noexcept {
  const std::lock_guard lock(mutex_);
  files_.reset();
  directory_.leave();
}

void JobStore::set(std::string_view key, std::string_view value) {
  files()->set(key, value);
}
std::optional<std::string> JobStore::get(std::string_view key) {
  return files()->get(key);
}
std::string JobStore::wait(std::string_view key, WaitContext& wait) {
  return files()->wait(key, wait);
}
std::int64_t JobStore::add(std::string_view key, std::int64_t delta) {
  return files()->add(key, delta);
}
std::optional<std::string> JobStore::compare_set(std::string_view key, std::optional<std::string_view> expected,
                                                 std::string_view desired) {
  return files()->compare_set(key, expected, desired);
}
bool JobStore::erase(std::string_view key) {
  std::shared_ptr<Store> files;
  {
    const std::lock_guard lock(mutex_);
    files = files_;
  }
  return files && files->erase(key);
}
std::size_t JobStore::num_keys(std::string_view prefix) {
  return files()->num_keys(prefix);
}

}  // namespace col::group::adopt
