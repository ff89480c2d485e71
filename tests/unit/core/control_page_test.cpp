// The page as a file, and the abort cause in it, between threads and between processes.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <col/job.hpp>

#include "core/job/page.hpp"
#include "helpers.hpp"
#include "support/catch.hpp"
#include "support/prompt.hpp"
#include "support/temp_dir.hpp"

using col::ControlPage;
using col::ErrorCode;
using core_test::check_error;
using core_test::Child;
using core_test::entries;
using core_test::error_of;
using namespace std::chrono_literals;

TEST_CASE("control page: created whole, mode 0600, nothing left beside it", "[job]") {
  const col::test::TempDir directory;
  const std::string path = directory / "page";
  const mode_t old_mask = ::umask(0);
  const auto page = ControlPage::create(path, 3, "job");
  ::umask(old_mask);
  struct stat status;
  REQUIRE(::stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0600);
  CHECK(status.st_size % 256 == 0);
  CHECK(entries(directory.path()) == 1);
  CHECK(page->local_ranks() == 3);
  CHECK(ControlPage::open(path, "job")->local_ranks() == 3);
  CHECK_FALSE(page->aborted());
  CHECK_FALSE(page->abort_cause().has_value());
  // A new page replaces the old file; who has that mapped keeps it.
  const auto replacement = ControlPage::create(path, 2, "job");
  CHECK(page->abort({ErrorCode::aborted, 0, "old"}));
  CHECK_FALSE(replacement->aborted());
}

TEST_CASE("control page: what is no page of this job is refused", "[job]") {
  const col::test::TempDir directory;
  const std::string path = directory / "page";
  const auto code_of_open = [&](const std::string& job) {
    const auto error = error_of([&] { ControlPage::open(path, job); });
    CHECK(error.message().find(path) != std::string::npos);
    return error.code();
  };
  SECTION("no file") {
    CHECK(code_of_open("job") == ErrorCode::io);
  }
  SECTION("another job's") {
    ControlPage::create(path, 2, "job");
    check_error(ErrorCode::mismatch, {"'other'"}, [&] { ControlPage::open(path, "other"); });
    check_error(ErrorCode::mismatch, {}, [&] { ControlPage::open_or_create(path, 2, "other"); });
  }
  SECTION("a text") {
    core_test::write_file(path, "hello");
    CHECK(code_of_open("job") == ErrorCode::mismatch);
  }
  SECTION("garbage of the right size") {
    core_test::write_file(path, std::string(4096, '\x5a'));
    CHECK(code_of_open("job") == ErrorCode::mismatch);
  }
  SECTION("an empty file") {
    core_test::write_file(path, "");
    CHECK(code_of_open("job") == ErrorCode::mismatch);
  }
  SECTION("a directory") {
    REQUIRE(::mkdir(path.c_str(), 0700) == 0);
    CHECK(code_of_open("job") == ErrorCode::io);
  }
  SECTION("a FIFO, without waiting for its other end") {
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    CHECK(code_of_open("job") == ErrorCode::mismatch);
  }
  SECTION("a truncated page") {
    ControlPage::create(path, 4, "job");
    struct stat status;
    REQUIRE(::stat(path.c_str(), &status) == 0);
    REQUIRE(::truncate(path.c_str(), status.st_size - 256) == 0);
    CHECK(code_of_open("job") == ErrorCode::mismatch);
  }
  SECTION("another version") {
    ControlPage::create(path, 1, "job");
    col::core::open_page_file(path, "job")->header().version.store(77);
    check_error(ErrorCode::mismatch, {"layout 77"}, [&] { ControlPage::open(path, "job"); });
  }
}

TEST_CASE("control page: wrong arguments and impossible places", "[job]") {
  const col::test::TempDir directory;
  for (const int ranks : {0, -1, 1 << 20}) {
    check_error(ErrorCode::invalid_argument, {}, [&] { ControlPage::create(directory / "page", ranks, ""); });
    check_error(ErrorCode::invalid_argument, {}, [&] { ControlPage::in_memory(ranks); });
  }
  const std::string nowhere = directory / "no/such/page";
  check_error(ErrorCode::io, {nowhere}, [&] { ControlPage::create(nowhere, 1, ""); });
  const auto page = ControlPage::in_memory(2);
  for (const int rank : {-1, 2}) {
    check_error(ErrorCode::invalid_argument, {"local rank " + std::to_string(rank)},
                [&] { static_cast<void>(page->record(rank)); });
  }
  CHECK(entries(directory.path()) == 0);
}

TEST_CASE("control page: no space is an error of code resource that names the file", "[job]") {
  const col::test::TempDir directory;
  const std::string path = directory / "page";
  Child child([&](Child&) {
    // The limit on file sizes stands in for a full disk: both refuse the allocation.
    ::signal(SIGXFSZ, SIG_DFL);  // some shells and test harnesses pass it on ignored
    const rlimit limit{256, 256};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      ControlPage::create(path, 4, "job");
    } catch (const col::Error& error) {
      return error.code() == ErrorCode::resource && error.message().find(path) != std::string::npos ? 0 : 1;
    }
    return 2;
  });
  CHECK(child.wait() == 0);
  CHECK(entries(directory.path()) == 0);
}

TEST_CASE("control page: of many that open or create it at once, all get one page", "[job]") {
  const col::test::TempDir directory;
  const std::string path = directory / "page";
  constexpr int kRanks = 8;
  std::vector<std::unique_ptr<Child>> children;
  for (int rank = 0; rank < kRanks; ++rank) {
    children.push_back(std::make_unique<Child>([&path, rank](Child& self) {
      if (!self.wait_for_signal()) return 1;
      const auto page = ControlPage::open_or_create(path, kRanks, "job");
      page->record(rank).join(100 + rank);
      page->record(rank).finish();
      return 0;
    }));
  }
  for (const auto& child : children) child->signal();
  for (const auto& child : children) CHECK(child->wait() == 0);
  CHECK(entries(directory.path()) == 1);
  const auto page = ControlPage::open(path, "job");
  for (int rank = 0; rank < kRanks; ++rank) CHECK(page->record(rank).read().rank == 100 + rank);

  check_error(ErrorCode::mismatch, {"8 local ranks"}, [&] { ControlPage::open_or_create(path, kRanks + 1, "job"); });
}

TEST_CASE_METHOD(core_test::PageFile, "control page: the first cause wins, in all processes", "[job]") {
  constexpr int kProcesses = 6;
  std::vector<std::unique_ptr<Child>> children;
  for (int i = 0; i < kProcesses; ++i) {
    children.push_back(std::make_unique<Child>([this, i](Child& self) {
      const auto mine = ControlPage::open(path, "job");
      if (!self.wait_for_signal()) return 1;
      const bool won = mine->abort({ErrorCode::peer_lost, i, "rank " + std::to_string(i) + " died"});
      const auto cause = mine->abort_cause();
      if (!cause || !mine->aborted()) return 2;
      return won ? 10 : 20;
    }));
  }
  for (const auto& child : children) child->signal();
  int winner = -1;
  for (int i = 0; i < kProcesses; ++i) {
    const int code = children[static_cast<std::size_t>(i)]->wait();
    CHECK((code == 10 || code == 20));
    if (code != 10) continue;
    CHECK(winner == -1);
    winner = i;
  }
  const auto cause = page->abort_cause();
  REQUIRE(cause.has_value());
  CHECK(page->aborted());
  CHECK(cause->code == ErrorCode::peer_lost);
  CHECK(cause->rank == winner);
  CHECK(cause->message == "rank " + std::to_string(winner) + " died");
  CHECK_FALSE(page->abort({ErrorCode::io, 99, "too late"}));
  CHECK(page->abort_cause()->rank == winner);
}

TEST_CASE("control page: readers never see half of a cause", "[job]") {
  const std::string message(ControlPage::kMaxMessage, 'm');
  for (int round = 0; round < 50; ++round) {
    const auto page = ControlPage::in_memory(1);
    std::atomic<int> wrong = 0;
    std::vector<std::thread> readers;
    for (int i = 0; i < 2; ++i)
      readers.emplace_back([&] {
        const auto deadline = col::Deadline::after(20s);
        while (!page->aborted())
          if (deadline.expired()) return void(++wrong);
        const auto cause = page->abort_cause();
        wrong += !cause || cause->message != message || cause->rank != 5 || cause->code != ErrorCode::timeout;
      });
    page->abort({ErrorCode::timeout, 5, message});
    for (auto& reader : readers) reader.join();
    REQUIRE(wrong == 0);
  }
}

TEST_CASE("control page: a long message is cut, between two characters", "[job]") {
  const auto page = ControlPage::in_memory(1);
  // 479 bytes and a character of two: the limit falls into the middle of it.
  page->abort({ErrorCode::aborted, -1, std::string(479, 'a') + "\xc3\xa4 tail"});
  CHECK(page->abort_cause()->message == std::string(479, 'a'));
}

TEST_CASE_METHOD(core_test::PageFile, "control page: an aborter that was killed while writing does not hide the abort",
                 "[job]") {
  // What such a process leaves behind: the claim, and nothing ready.
  const auto mapping = col::core::open_page_file(path, "job");
  const auto now = std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  mapping->header().abort.claimed.store(static_cast<std::uint64_t>(now));
  CHECK(page->aborted());
  const auto deadline = col::Deadline::after(col::test::kDeadline);
  const auto cause = page->abort_cause();
  CHECK_FALSE(deadline.expired());
  REQUIRE(cause.has_value());
  CHECK(cause->code == ErrorCode::aborted);
  CHECK(cause->message.find("died before it could say why") != std::string::npos);
  CHECK_FALSE(page->abort({ErrorCode::io, 1, "second"}));
  // A claimer whose clock runs ahead (another time namespace) changes nothing.
  mapping->header().abort.claimed.store(static_cast<std::uint64_t>(now) + 3'600'000'000'000u);
  const auto ahead = col::Deadline::after(col::test::kDeadline);
  CHECK(page->abort_cause().has_value());
  CHECK_FALSE(ahead.expired());
}
