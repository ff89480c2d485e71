// Which directories a file store takes, which it refuses, and what it says; and what holds when the disk is full.
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <col/store.hpp>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"
#include "unit/store/child.hpp"

using namespace col;
using namespace col::test;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

constexpr uid_t kNobody = 65534;

mode_t mode_of(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
}

// A write of `store` in `path` that cannot fit: the right error, and everything as it was before.
void overfill(Store& store, const std::string& path, const std::string& reason) {
  store.set("key", "value");
  for (const std::string& key : {std::string("key"), std::string("new"), std::string(500, 'l')}) {
    require_error(ErrorCode::resource, {path, reason}, [&] { store.set(key, std::string(4'000'000, 'x')); });
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

TEST_CASE("file store: a directory is created with its parents, for this user alone", "[store]") {
  const TempDir directory;
  const std::string path = directory / "a/b/store";
  const auto store = make_file_store(path + "/");
  store->set("key", "value");
  CHECK(mode_of(path) == 0700);
  CHECK(mode_of(path + "/keys/key") == 0600);
  CHECK(fs::is_empty(path + "/tmp"));
}

TEST_CASE("file store: an existing directory is used as it is, with what is in it", "[store]") {
  const TempDir directory;
  fs::create_directory(directory / "store");
  fs::permissions(directory / "store", fs::perms(0755));
  std::ofstream(directory / "store/notes.txt") << "mine";
  make_file_store(directory / "store")->set("key", "value");
  const auto again = make_file_store(directory / "store");
  CHECK(again->get("key") == "value");
  CHECK(again->num_keys() == 1);
  CHECK(mode_of(directory / "store") == 0755);
  CHECK(fs::file_size(directory / "store/notes.txt") == 4);
}

TEST_CASE("file store: a relative path is taken once, from where the process was", "[store]") {
  const TempDir directory;
  Child child([&] {
    require(::chdir(directory.path().c_str()) == 0, "chdir");
    const auto store = make_file_store("store");
    require(::chdir("/") == 0, "chdir");
    store->set("key", "value");
    require_error(ErrorCode::timeout, {"key 'other'"}, [&] { store->wait_for("other", 5ms); });
  });
  CHECK(child.outcome() == "");
  CHECK(make_file_store(directory / "store")->get("key") == "value");
}

TEST_CASE("file store: a directory that cannot be made is an error that names it", "[store]") {
  const TempDir directory;
  std::ofstream(directory / "file") << "a regular file";
  CHECK_NOTHROW(require_error(ErrorCode::io, {directory / "file", "Not a directory", "set COL_STORE to a directory"},
                              [&] { make_file_store(directory / "file"); }));
  CHECK_NOTHROW(require_error(ErrorCode::io, {directory / "file/store", "Not a directory", "COL_STORE"},
                              [&] { make_file_store(directory / "file/store"); }));
  CHECK_NOTHROW(
      require_error(ErrorCode::io, {"/proc/col-store", "COL_STORE"}, [] { make_file_store("/proc/col-store"); }));
  CHECK_NOTHROW(require_error(ErrorCode::invalid_argument, {"no directory"}, [] { make_file_store(""); }));
  CHECK_NOTHROW(require_error(ErrorCode::invalid_argument, {"no directory"},
                              [] { make_file_store(std::string("/tmp/a\0b", 8)); }));
}

TEST_CASE("file store: a directory that this user cannot write is an error that names it", "[store]") {
  const TempDir directory;
  fs::permissions(directory.path(), fs::perms(0755));
  fs::create_directory(directory / "locked");
  fs::permissions(directory / "locked", fs::perms(0555));
  Child child([&] {
    if (::geteuid() == 0) require(::setresuid(kNobody, kNobody, kNobody) == 0, "setresuid");
    for (const std::string path : {"locked", "locked/store", "locked/a/b"}) {
      require_error(ErrorCode::io,
                    {directory / path, "Permission denied", "set COL_STORE to a directory that this user"},
                    [&] { make_file_store(directory / path); });
    }
  });
  CHECK(child.outcome() == "");
}

TEST_CASE("file store: a store that another user made is refused", "[store]") {
  if (::geteuid() != 0) {
    WARN("not run: it takes root to be two users");
    return;
  }
  const TempDir directory;
  fs::permissions(directory.path(), fs::perms(0755));
  fs::create_directory(directory / "shared");
  fs::permissions(directory / "shared", fs::perms(01777));
  Child other([&] {
    require(::setresuid(kNobody, kNobody, kNobody) == 0, "setresuid");
    make_file_store(directory / "shared")->set("key", "theirs");
    make_file_store(directory / "shared")->set("key", "theirs again");
  });
  REQUIRE(other.outcome() == "");
  CHECK_NOTHROW(require_error(ErrorCode::io, {directory / "shared", "belong to user id 65534", "COL_STORE"},
                              [&] { make_file_store(directory / "shared"); }));
}

TEST_CASE("file store: a symbolic link is followed, unless it is another user's", "[store]") {
  const TempDir directory;
  fs::create_directory(directory / "real");
  fs::create_symlink(directory / "real", directory / "link");
  make_file_store(directory / "link")->set("key", "value");
  CHECK(make_file_store(directory / "real")->get("key") == "value");
  if (::geteuid() != 0) {
    WARN("not run: another user's link, which takes root to make");
    return;
  }
  REQUIRE(::lchown((directory / "link").c_str(), kNobody, kNobody) == 0);
  for (const char* ending : {"", "/", "/.", "/./"}) {
    CHECK_NOTHROW(require_error(ErrorCode::io, {directory / "link", "symbolic link", "65534", "COL_STORE"},
                                [&] { make_file_store((directory / "link") + ending); }));
  }
}

TEST_CASE("file store: a directory that is removed while in use is an error, not an absent key", "[store]") {
  const TempDir directory;
  const auto store = make_file_store(directory / "store");
  store->set("waiting", "");
  std::string outcome = "the wait was not ended";
  std::jthread waiter([&] {
    try {
      require_error(ErrorCode::io, {directory / "store", "removed while in use"}, [&] { store->wait_for("key", 20s); });
      outcome.clear();
    } catch (const std::exception& error) {
      outcome = error.what();
    }
  });
  fs::remove_all(directory / "store");
  fs::create_directory(directory / "store");  // a new one of that name is not the store
  const std::vector<std::string> parts{directory / "store", "COL_STORE"};
  CHECK_NOTHROW(require_error(ErrorCode::io, parts, [&] { store->get("key"); }));
  CHECK_NOTHROW(require_error(ErrorCode::io, parts, [&] { store->set("key", "value"); }));
  CHECK_NOTHROW(require_error(ErrorCode::io, parts, [&] { store->add("key", 1); }));
  CHECK_NOTHROW(require_error(ErrorCode::io, parts, [&] { store->erase("key"); }));
  CHECK_NOTHROW(require_error(ErrorCode::io, parts, [&] { store->num_keys(); }));
  waiter.join();
  CHECK(outcome == "");
  CHECK(fs::is_empty(directory / "store"));
}

TEST_CASE("file store: no descriptors left is a resource error, and nothing is lost", "[store]") {
  const TempDir directory;
  Child child([&] {
    const auto store = make_file_store(directory.path());
    store->set("key", "value");
    rlimit limit{};
    require(::getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
    const int lowest_free = ::dup(0);
    ::close(lowest_free);
    const rlimit none_left{static_cast<rlim_t>(lowest_free), limit.rlim_max};
    require(::setrlimit(RLIMIT_NOFILE, &none_left) == 0, "setrlimit");
    const std::vector<std::string> parts{directory.path(), "Too many open files", "ulimit -n"};
    require_error(ErrorCode::resource, parts, [&] { store->get("key"); });
    require_error(ErrorCode::resource, parts, [&] { store->set("key", "other"); });
    require_error(ErrorCode::resource, parts, [&] { store->add("counter", 1); });
    require_error(ErrorCode::resource, parts, [&] { store->num_keys(); });
    require_error(ErrorCode::resource, parts, [&] { store->wait_for("absent", 5s); });
    require_error(ErrorCode::resource, parts, [&] { make_file_store(directory.path()); });
    require(::setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
    require(store->get("key") == "value", "the value before");
  });
  CHECK(child.outcome() == "");
}

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
