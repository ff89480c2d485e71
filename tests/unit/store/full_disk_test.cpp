// What holds when the disk is full.
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include <col/store.hpp>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"
#include "unit/store/child.hpp"

using namespace col;
using namespace col::test;

namespace {

// A write of `store` in `path` that cannot fit: the right error, and everything as it was before.
void overfill(Store& store, const std::string& path, const std::string& reason) {
  store.set("key", "value");
  for (const std::string& key : {std::string("key"), std::string("new"), std::string(500, 'l')}) {
    std::optional<ErrorCode> code;
    std::string text;
    try {
      store.set(key, std::string(4'000'000, 'x'));
    } catch (const Error& error) {
      code = error.code();
      text = error.message();
    }
    require(code == ErrorCode::resource, "no resource error: " + text);
    require(text.find(path) != std::string::npos && text.find(reason) != std::string::npos, text);
    require(!store.get("new").has_value() && !store.get(std::string(500, 'l')).has_value(), "a part was left");
    require(store.get("key") == "value", "the old value was lost");
  }
  require(std::filesystem::is_empty(path + "/tmp"), "temporary files were left");
  store.set("key", "another");
  require(store.get("key") == "another", "the store does not work afterwards");
  require(store.num_keys() == 1, "keys were left");
}

// A mount namespace of this process's own: root just takes one, others need a user namespace, with their ids in it.
bool enter_mount_namespace() {
  if (::unshare(CLONE_NEWNS) == 0) return true;
  const auto map = [](uid_t id) { return std::to_string(id) + " " + std::to_string(id) + " 1"; };
  const std::string users = map(::geteuid());
  const std::string groups = map(::getegid());
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  std::ofstream("/proc/self/uid_map") << users;
  std::ofstream("/proc/self/setgroups") << "deny";
  std::ofstream("/proc/self/gid_map") << groups;
  return true;
}

}  // namespace

TEST_CASE("file store: a file size limit is a resource error and changes nothing", "[store]") {
  const TempDir directory;
  Child child([&] {
    ::signal(SIGXFSZ, SIG_DFL);  // some shells and test harnesses pass it on ignored
    const rlimit limit{100'000, 100'000};
    require(::setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
    const auto store = make_file_store(directory.path());
    overfill(*store, directory.path(), "ulimit -f");
  });
  CHECK(child.outcome() == "");
}

TEST_CASE("file store: a full disk is a resource error and changes nothing", "[store]") {
  const TempDir directory;
  constexpr const char* kNoMount = "cannot mount";
  Child child([&] {
    require(enter_mount_namespace(), kNoMount);
    require(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, kNoMount);
    require(::mount("tmpfs", directory.path().c_str(), "tmpfs", 0, "size=1m,mode=700") == 0, kNoMount);
    const auto store = make_file_store(directory / "store");
    overfill(*store, directory / "store", "No space left on device");
  });
  const std::string outcome = child.outcome();
  if (outcome == kNoMount) {
    WARN("not run: this user cannot mount a small file system");
    return;
  }
  CHECK(outcome == "");
}
