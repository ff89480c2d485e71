// Who sees that a process has ended, where no launcher does.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include <col/job.hpp>

#include "core/clock/clock.hpp"
#include "group/join/end_watch.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace core = col::core;
using col::ControlPage;
using col::group::watch_ends;

namespace {

struct Page {
  col::test::TempDir directory;
  std::string path = directory / "control";
  std::shared_ptr<ControlPage> page = ControlPage::create(path, 5, "job");
};

// A process that has joined a page, and waits for a signal.
class Sleeper {
 public:
  Sleeper(const Page& shared, int local_rank) {
    int ends[2] = {};
    REQUIRE(::pipe(ends) == 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      shared.page->record(local_rank).join(local_rank);
      if (::write(ends[1], "", 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    ::close(ends[1]);
    char joined = 1;
    REQUIRE(::read(ends[0], &joined, 1) == 1);
    ::close(ends[0]);
  }
  ~Sleeper() { end(); }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  void kill() const { ::kill(pid_, SIGKILL); }
  void end() const {
    kill();
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_ = -1;
};

// Sleeps until the page has as many news, however long that takes.
void await_news(const ControlPage& page, std::uint32_t wanted) {
  for (std::uint32_t seen = page.news(); seen < wanted; seen = page.news())
    core::wait_on_word(page.news(), seen, col::Deadline::kMaxBudget);
}

// Numbers, not how many: a thread that an earlier case has joined is listed for a moment more.
std::set<std::string> threads() {
  std::set<std::string> found;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) found.insert(task.path().filename());
  return found;
}
void await_new_threads(const std::set<std::string>& before, long wanted) {
  const auto is_new = [&](const std::string& thread) { return !before.contains(thread); };
  while (std::ranges::count_if(threads(), is_new) != wanted) core::yield();
}

}  // namespace

TEST_CASE("end watch: each end is told at once, in whatever order processes end", "[group]") {
  const auto before = threads();
  const Page shared;
  ControlPage& page = *shared.page;
  const Sleeper first(shared, 0), second(shared, 2), third(shared, 4);  // nobody has joined at 3
  page.record(1).join(1);
  const auto watch = watch_ends(page, 1);
  REQUIRE(watch);
  await_new_threads(before, 1);
  CHECK(page.news() == 0);
  third.kill();  // nobody looks at it yet
  second.kill();
  await_news(page, 2);
  CHECK(page.record(2).lost());
  CHECK(page.record(4).lost());
  CHECK_FALSE(page.record(0).lost());
  first.kill();
  await_news(page, 3);
  CHECK(page.record(0).lost());
  // One thread for all pages.
  const Page another;
  const Sleeper fourth(another, 3);
  another.page->record(0).join(0);
  auto second_watch = watch_ends(*another.page, 0);
  REQUIRE(second_watch);
  await_new_threads(before, 1);
  second_watch = nullptr;
  fourth.kill();
  CHECK(another.page->news() == 0);
}

TEST_CASE("end watch: the thread ends with the last page, and without one there is none", "[group]") {
  const auto before = threads();
  const Page shared;
  shared.page->record(0).join(0);
  shared.page->record(1).join(1);
  CHECK(watch_ends(*shared.page, 0) == nullptr);  // threads of this process end with it
  const Sleeper other(shared, 2);
  auto watch = watch_ends(*shared.page, 0);
  REQUIRE(watch);
  await_new_threads(before, 1);
  watch = nullptr;
  await_new_threads(before, 0);
  other.kill();
  CHECK(shared.page->news() == 0);
}

TEST_CASE("end watch: who has ended before is told, and who has left is not watched", "[group]") {
  const Page shared;
  shared.page->record(0).join(0);
  const Sleeper gone(shared, 1), left(shared, 2);
  shared.page->record(2).finish();
  gone.end();
  CHECK(watch_ends(*shared.page, 0) == nullptr);
  CHECK(shared.page->news() == 1);
}

TEST_CASE("end watch: a forked child has no thread, and leaves the parent's alone", "[group]") {
  const Page shared;
  shared.page->record(0).join(0);
  const Sleeper other(shared, 1);
  auto watch = watch_ends(*shared.page, 0);
  REQUIRE(watch);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto before = threads();
    watch = nullptr;
    const Page of_child;
    of_child.page->record(0).join(0);
    const Sleeper own(of_child, 1);
    const auto anew = watch_ends(*of_child.page, 0);
    own.kill();
    await_news(*of_child.page, 1);
    await_new_threads(before, 1);
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
  other.kill();
  await_news(*shared.page, 1);
}
