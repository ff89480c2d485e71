// Waiting with inotify and without.
#include "store/watcher.hpp"

#include <sys/inotify.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/unique_fd.hpp"
#include "store/file_store.hpp"
#include "support/catch.hpp"
#include "support/prompt.hpp"
#include "support/temp_dir.hpp"
#include "unit/store/child.hpp"

using namespace col;
using namespace col::store;
using namespace col::test;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;

// A file `name` renamed into directory/keys.
void publish(const TempDir& directory, const std::string& name) {
  std::ofstream(directory / name) << "content";
  fs::rename(directory / name, directory / ("keys/" + name));
}

std::ptrdiff_t open_files() {
  const auto files = fs::directory_iterator("/proc/self/fd");
  return std::distance(begin(files), end(files));
}

}  // namespace

TEST_CASE("watcher: a file renamed in ends the sleep, also one from before it", "[store]") {
  const TempDir directory;
  fs::create_directory(directory / "keys");
  if (!core::UniqueFd(::inotify_init1(IN_CLOEXEC)) && errno == EMFILE) {
    WARN("this user's programs have used up fs.inotify.max_user_instances");
    return;
  }
  Watcher watcher(true);
  REQUIRE(watcher.notified());
  const auto start = Clock::now();
  for (int i = 0; i < 3; ++i) {  // again after a stop: the events of the earlier watch are no news
    watcher.start(directory / "keys");
    publish(directory, "key");
    watcher.sleep_for("key", 20s);
    std::jthread publisher([&] { publish(directory, "key"); });
    watcher.sleep_for("key", 20s);
    publisher.join();
    publish(directory, "key");
    watcher.stop();
  }
  CHECK(Clock::now() - start < kPrompt);
}

TEST_CASE("watcher: other files and events of an earlier watch do not end the sleep", "[store]") {
  const TempDir directory;
  fs::create_directory(directory / "keys");
  Watcher watcher(true);
  watcher.start(directory / "keys");
  publish(directory, "key");
  watcher.stop();
  watcher.start(directory / "keys");
  publish(directory, "other");
  publish(directory, "key2");
  const auto start = Clock::now();
  watcher.sleep_for("key", 50ms);
  CHECK(Clock::now() - start >= 50ms);
}

TEST_CASE("watcher: the end of the directory ends the sleep", "[store]") {
  const TempDir directory;
  fs::create_directory(directory / "keys");
  Watcher watcher(true);
  watcher.start(directory / "keys");
  fs::remove(directory / "keys");
  const auto start = Clock::now();
  watcher.sleep_for("key", 20s);
  CHECK(Clock::now() - start < kPrompt);
}

TEST_CASE("watcher: more events than the kernel keeps end the sleep", "[store]") {
  const TempDir directory;
  fs::create_directory(directory / "keys");
  std::size_t queue = 0;
  std::ifstream("/proc/sys/fs/inotify/max_queued_events") >> queue;
  if (queue == 0 || queue > 100'000) {
    WARN("not run: the queue holds " << queue << " events");
    return;
  }
  Watcher watcher(true);
  watcher.start(directory / "keys");
  std::ofstream(directory / "a") << "content";
  // To and fro between two names, as the kernel merges equal events.
  fs::rename(directory / "a", directory / "keys/a");
  for (std::size_t i = 0; i <= queue / 2; ++i) {
    fs::rename(directory / "keys/a", directory / "keys/b");
    fs::rename(directory / "keys/b", directory / "keys/a");
  }
  publish(directory, "key");  // lost
  const auto start = Clock::now();
  watcher.sleep_for("key", 20s);
  CHECK(Clock::now() - start < kPrompt);
}

TEST_CASE("watcher: an idle one is used again, but not by the child of a fork, whose events the parent would take",
          "[store]") {
  const TempDir directory;
  fs::create_directory(directory / "keys");
  WatcherPool pool(true);
  const Watcher* first = nullptr;
  {
    auto watcher = pool.take();
    first = watcher.get();
    pool.give_back(std::move(watcher));
  }
  Child child([&] {
    const auto watcher = pool.take();
    watcher->start(directory / "keys");
    publish(directory, "key");
    ::_exit(0);  // without stop(): what it was told stays in its queue, were that the parent's
  });
  REQUIRE(child.outcome() == "");
  const auto again = pool.take();
  CHECK(again.get() == first);
  again->start(directory / "keys");
  const auto start = Clock::now();
  again->sleep_for("key", 50ms);
  CHECK(Clock::now() - start >= 50ms);
}

TEST_CASE("watcher: without inotify, or in no directory, it sleeps for its time", "[store]") {
  Watcher polling(false);
  CHECK_FALSE(polling.notified());
  Watcher lost(true);
  for (Watcher* watcher : {&polling, &lost}) {
    watcher->start("/no/such/directory");
    const auto start = Clock::now();
    watcher->sleep_for("key", 20ms);
    CHECK(Clock::now() - start >= 20ms);
    watcher->stop();
  }
}

TEST_CASE("file store: waits end in time without inotify too", "[store]") {
  const TempDir directory;
  const auto store = store::make_file_store(directory.path(), {.use_inotify = false});
  const auto start = Clock::now();
  std::jthread other([&] {
    for (int i = 0; i < 20; ++i) {
      store->wait_for("ping/" + std::to_string(i), 20s);
      store->set("pong/" + std::to_string(i), "");
    }
  });
  for (int i = 0; i < 20; ++i) {
    store->set("ping/" + std::to_string(i), "");
    store->wait_for("pong/" + std::to_string(i), 20s);
  }
  CHECK(Clock::now() - start < kPrompt);
  const auto before_timeout = Clock::now();
  CHECK_THROWS_AS(store->wait_for("never", 80ms), Error);
  CHECK(Clock::now() - before_timeout >= 80ms);
  CHECK(Clock::now() - before_timeout < kPrompt);
}

TEST_CASE("file store: a thousand waits leave no descriptor behind", "[store]") {
  const auto before = open_files();
  for (const bool use_inotify : {true, false}) {
    const TempDir directory;
    const auto store = store::make_file_store(directory.path(), {.use_inotify = use_inotify});
    CHECK_THROWS_AS(store->wait_for("never", 1us), Error);
    const auto after_one = open_files();
    for (int i = 0; i < 1000; ++i) {
      if (i % 2 == 0) {
        store->set("key/" + std::to_string(i), "");
        store->wait_for("key/" + std::to_string(i), 20s);
      } else {
        CHECK_THROWS_AS(store->wait_for("never", 1us), Error);
      }
    }
    CHECK(open_files() == after_one);
  }
  CHECK(open_files() == before);
}

TEST_CASE("file store: many waits at once keep few descriptors", "[store]") {
  const TempDir directory;
  const auto store = make_file_store(directory.path());
  const auto before = open_files();
  {
    std::vector<std::jthread> waiters;
    for (int i = 0; i < 20; ++i) {
      waiters.emplace_back([&store, i] {
        store->set("waiting/" + std::to_string(i), "");
        store->wait_for("key", 20s);
      });
    }
    for (int i = 0; i < 20; ++i) store->wait_for("waiting/" + std::to_string(i), 20s);
    store->set("key", "");
  }
  CHECK(open_files() <= before + 8);
}
