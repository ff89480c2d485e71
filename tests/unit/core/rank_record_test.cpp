// What a rank says about itself, who may say it, and what is left of it when it is killed.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include <col/job.hpp>

#include "core/job/call_ring.hpp"
#include "core/job/page.hpp"
#include "core/job/process.hpp"
#include "helpers.hpp"
#include "support/call_ring.hpp"
#include "support/catch.hpp"
#include "support/prompt.hpp"
#include "support/soon.hpp"
#include "support/temp_dir.hpp"

using col::ControlPage;
using col::ErrorCode;
using col::core::CallRing;
using col::core::ProcessId;
using col::test::note;
using core_test::check_error;
using core_test::Child;
using core_test::error_of;
using State = col::RankActivity::State;
using namespace std::chrono_literals;

TEST_CASE("rank record: follows an operation from beginning to end", "[job]") {
  const auto page = ControlPage::in_memory(2);
  auto& record = page->record(1);
  CHECK(record.read().state == State::absent);
  CHECK(record.read().rank == -1);
  CHECK(record.read().pid == 0);

  record.join(7);
  auto activity = record.read();
  CHECK(activity.state == State::joined);
  CHECK(activity.rank == 7);
  CHECK(activity.pid == ::getpid());
  CHECK(activity.pid_start == ProcessId::self().start());

  record.begin("default", 42, "allreduce", 0xfeed);
  activity = record.read();
  CHECK(activity.state == State::running);
  CHECK(activity.group == "default");
  CHECK(activity.sequence == 42);
  CHECK(activity.op == "allreduce");
  CHECK(activity.fingerprint == 0xfeed);
  CHECK(activity.step == -1);
  CHECK(activity.peer == -1);

  record.waiting(3, 5);
  activity = record.read();
  CHECK(activity.state == State::waiting);
  CHECK(activity.step == 3);
  CHECK(activity.peer == 5);
  const auto since = activity.since_ns;
  record.waiting(4, -1);
  activity = record.read();
  CHECK(activity.step == 4);
  CHECK(activity.peer == -1);
  CHECK(activity.since_ns == since);  // it has been waiting all the time

  record.end();
  activity = record.read();
  CHECK(activity.state == State::joined);
  CHECK(activity.step == -1);
  CHECK(activity.sequence == 42);  // the last one

  record.finish();
  CHECK(record.read().state == State::finished);
  record.end();  // of a thread that is late
  CHECK(record.read().state == State::finished);
  CHECK(page->record(0).read().state == State::absent);
}

TEST_CASE("rank record: a call that does not wait is in the ring alone, and the later one is shown", "[job]") {
  using col::Collective;
  const auto page = ControlPage::in_memory(1);
  auto& record = page->record(0);
  record.join(0);
  CallRing ring(record);
  const int rows = record.enter_group("rows", 5), columns = record.enter_group("columns", 6);
  record.begin("rows", 1, "allreduce", 0xfeed);
  record.end();

  const auto barrier = CallRing::words(columns, Collective::barrier, {});
  std::uint64_t entry = ring.begin(barrier, 2);
  auto activity = record.read();
  CHECK(activity.state == State::running);
  CHECK(activity.group == "columns");
  CHECK(activity.sequence == 2);
  CHECK(activity.op == "barrier");
  CHECK(activity.fingerprint == 0);
  CHECK(record.history().calls.empty());  // it has not ended
  CHECK(record.times_since(0).noted == 0);
  ring.end(entry, barrier, 2);
  activity = record.read();
  CHECK(activity.state == State::joined);
  CHECK(activity.group == "columns");
  CHECK(activity.sequence == 2);
  CHECK(activity.op == "barrier");
  REQUIRE(record.history().calls.size() == 1);
  CHECK(record.history().calls[0].ended);
  CHECK(record.times_since(0).noted == 1);

  const auto recv = CallRing::words(rows, Collective::recv, {col::DType::int8, 7, 3, 99});
  entry = ring.begin(recv, 3);
  CHECK(record.read().details.count == 7);
  record.begin("columns", 8, "send", 0xbeef);  // another thread's call, which is the later one
  ring.end(entry, recv, 3);
  activity = record.read();
  CHECK(activity.state == State::running);
  CHECK(activity.group == "columns");
  CHECK(activity.sequence == 8);
  CHECK(activity.op == "send");
  CHECK(activity.fingerprint == 0xbeef);
  note(record, columns, 8, Collective::send, {}, true);
  record.end("columns");
  entry = ring.begin(recv, 4);
  note(record, columns, 9, Collective::send, {}, true);  // of another thread, beside it
  CHECK(record.read().op == "recv");
  ring.end(entry, recv, 4);
  CHECK(record.read().sequence == 4);

  // One that is waited for later, in two entries.
  ring.add(recv, 5, col::core::EntryState::brief_started);
  CHECK(record.read().state == State::running);
  CHECK(record.read().sequence == 5);
  CHECK_FALSE(record.history().calls.back().ended);
  ring.add(recv, 5, col::core::EntryState::brief);
  CHECK(record.read().state == State::joined);
  CHECK(record.history().calls.back().ended);

  // A wait that is of no call leaves what the ring says of the last one.
  record.waiting(-1, -1);
  activity = record.read();
  CHECK(activity.state == State::waiting);
  CHECK(activity.group == "rows");
  CHECK(activity.sequence == 5);
  CHECK(activity.op == "recv");
  CHECK(activity.details.tag == 99);
  record.resume();
  CHECK(record.read().state == State::running);
  record.finish();
  CHECK(record.read().state == State::finished);
}

TEST_CASE("rank record: a call that turns out to wait has its entry when it ends", "[job]") {
  using col::Collective;
  const auto page = ControlPage::in_memory(1);
  auto& record = page->record(0);
  record.join(0);
  CallRing ring(record);
  const int group = record.enter_group("g", 5);
  const auto words = CallRing::words(group, Collective::allreduce, {col::DType::float32, 3, -1, -1});
  ring.take_back(ring.begin(words, 1), words, 1);
  record.begin("g", 1, "allreduce", 1);
  note(record, group, 0, Collective::send, {}, true);  // started before, and ends meanwhile
  ring.add(words, 1, col::core::EntryState::ended, 5000);
  record.end("g");
  auto times = record.times_since(0);
  REQUIRE(times.calls.size() == 2);
  CHECK(times.calls[0].op == Collective::send);
  CHECK(times.calls[1].sequence == 1);
  CHECK(times.calls[1].took_ns == 5000);
  CHECK(record.read().fingerprint == 1);

  // Another thread's entry has come in between: nothing is left of the first one.
  const std::uint64_t entry = ring.begin(words, 2);
  note(record, group, 7, Collective::send, {}, true);
  ring.take_back(entry, words, 2);
  times = record.times_since(0);
  REQUIRE(times.calls.size() == 3);
  CHECK(times.calls[2].sequence == 7);
  CHECK(times.noted == 4);

  // Another thread's call has its place: it stays.
  const std::uint64_t taken = ring.begin(words, 3);
  ring.take_back(taken, words, 4);
  ring.end(taken, words, 3);
  CHECK(record.times_since(4).calls.size() == 1);
  // Entries that others add while a call is under way are told with it, when it has ended.
  const std::uint64_t running = ring.begin(words, 5);
  note(record, group, 8, Collective::send, {}, true);
  CHECK(record.times_since(5).calls.empty());
  CHECK(record.times_since(5).noted == 5);
  ring.end(running, words, 5);
  CHECK(record.times_since(5).calls.size() == 2);

  // The ring has gone round meanwhile: it gets a new entry, and the one in its place stays.
  const std::uint64_t lost = ring.begin(words, 8);
  for (std::uint64_t call = 0; call < CallRing::kPlaces; ++call)
    note(record, group, 100 + call, Collective::send, {}, true);
  ring.end(lost, words, 8);
  const auto calls = record.history().calls;
  CHECK(calls.back().sequence == 8);
  CHECK(calls.back().op == Collective::allreduce);
  CHECK(std::ranges::count_if(calls, [](const auto& call) { return call.op == Collective::allreduce; }) == 1);
}

TEST_CASE("rank record: a rank that is stopped in a brief call says what it does", "[job]") {
  const col::test::TempDir directory;
  const auto page = ControlPage::create(directory / "page", 1, "job");
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    auto& record = page->record(0);
    record.join(3);
    CallRing(record).begin(CallRing::words(record.enter_group("g", 5), col::Collective::allreduce, {}), 2);
    ::raise(SIGSTOP);
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, WUNTRACED) == child);
  CHECK(WIFSTOPPED(status));
  const auto activities = page->activities();
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  REQUIRE(activities.size() == 1);
  CHECK(activities[0].stopped);
  CHECK(activities[0].state == State::running);
  CHECK(activities[0].rank == 3);
  CHECK(activities[0].group == "g");
  CHECK(activities[0].sequence == 2);
  CHECK(activities[0].op == "allreduce");
}

TEST_CASE("rank record: a wait that is over is over, whatever is still in flight", "[job]") {
  const auto page = ControlPage::in_memory(1);
  auto& record = page->record(0);
  record.join(0);
  record.begin("a", 1, "iallreduce", 1);
  record.begin("b", 1, "iallreduce", 1);
  {
    col::WaitContext wait(col::Deadline::after(1min), page.get(), &record);
    CHECK(record.read().state == State::running);
    wait.waiting(-1, 3);
    record.held_up_by(7);
    CHECK(record.read().state == State::waiting);
    CHECK(record.read().held_up_by == 7);
  }
  CHECK(record.read().state == State::running);  // the user's code computes
  CHECK(record.read().held_up_by == -1);
  record.end("a");  // `b` is in flight
  CHECK(record.read().state == State::running);
  record.end("b");
  CHECK(record.read().state == State::joined);
}

TEST_CASE("rank record: who was waited for in vain stays known until the next call", "[job]") {
  const auto page = ControlPage::in_memory(1);
  auto& record = page->record(0);
  record.join(0);
  record.begin("a", 1, "allreduce", 1);
  {
    col::WaitContext wait(col::Deadline::after(1min), page.get(), &record);
    wait.waiting(-1, -1);
    record.held_up_by(5);
    record.fail(-1);
  }
  CHECK(record.read().state == State::running);
  CHECK(record.read().held_up_by == 5);
  record.begin("b", 1, "barrier", 1);
  CHECK(record.read().held_up_by == -1);
}

TEST_CASE("rank record: the launcher's word about a process does not touch what the rank says", "[job]") {
  const auto page = ControlPage::in_memory(1);
  auto& record = page->record(0);
  CHECK_FALSE(record.process());
  CHECK(record.started_as() == -1);
  record.started(9, ::getpid());
  REQUIRE(record.process());
  CHECK(record.process()->rank == 9);
  CHECK(record.process()->pid == ::getpid());
  CHECK_FALSE(record.process()->stopped);
  CHECK_FALSE(record.process()->wait_status);
  CHECK(record.read().state == State::absent);
  record.ended(7 << 8);
  CHECK(record.has_ended());
  CHECK(record.process()->wait_status == 7 << 8);
  record.join(9);  // a program of which the launcher's own process has ended
  CHECK(record.read().state == State::joined);
}

TEST_CASE("rank record: a chain of waits ends at the one that does not wait, or stands still", "[job]") {
  std::vector<col::RankActivity> ranks(4);
  for (int rank = 0; rank < 4; ++rank) ranks[static_cast<std::size_t>(rank)].rank = rank;
  const auto waits = [&](std::size_t rank, int whom) {
    ranks[rank].state = State::waiting;
    ranks[rank].held_up_by = whom;
  };
  const auto last = [&](int first) {
    const col::RankActivity* const end = col::last_in_chain(ranks, first);
    return end != nullptr ? end->rank : -1;
  };
  ranks[3].state = State::running;
  waits(0, 1);
  waits(1, 2);
  waits(2, 3);
  CHECK(last(0) == 3);
  CHECK(last(3) == 3);
  ranks[1].stopped = true;  // in the middle of its wait
  CHECK(last(0) == 1);
  ranks[1].stopped = false;
  ranks[1].state = State::running;  // its wait has failed, and for want of rank 2
  CHECK(last(0) == 3);
  waits(3, 0);
  CHECK(last(0) == -1);
  waits(3, -1);
  CHECK(last(0) == -1);
  waits(3, 17);
  CHECK(last(0) == -1);
}

TEST_CASE("rank record: long names are cut", "[job]") {
  const auto page = ControlPage::in_memory(1);
  auto& record = page->record(0);
  record.join(0);
  record.begin(std::string(100, 'g'), std::numeric_limits<std::uint64_t>::max(), std::string(100, 'o'), 1);
  const auto activity = record.read();
  CHECK(activity.group == std::string(47, 'g'));
  CHECK(activity.op == std::string(15, 'o'));
  CHECK(activity.sequence == std::numeric_limits<std::uint64_t>::max());
}

TEST_CASE("rank record: the threads of one process may share it and join again", "[job]") {
  const auto page = ControlPage::in_memory(1);
  page->record(0).join(0);
  page->record(0).begin("g", 1, "barrier", 1);
  page->record(0).join(4);
  const auto activity = page->record(0).read();
  CHECK(activity.rank == 4);
  CHECK(activity.state == State::joined);
  CHECK(activity.group.empty());
  CHECK_FALSE(page->record(0).lost());
}

TEST_CASE_METHOD(core_test::PageFile, "rank record: a rank that is started twice is refused, until the first is gone",
                 "[job]") {
  Child first([this](Child& self) {
    ControlPage::open(path, "job")->record(0).join(3);
    self.signal();
    self.wait_for_signal();
    return 0;
  });
  REQUIRE(first.wait_for_signal());
  check_error(ErrorCode::already_initialized, {"rank 3", "process " + std::to_string(first.pid())},
              [&] { page->record(0).join(3); });
  CHECK(error_of([&] { page->record(0).join(3); }).rank() == 3);
  check_error(ErrorCode::already_initialized, {"ranks 2 and 3 (process " + std::to_string(first.pid()), "local rank"},
              [&] { page->record(0).join(2); });
  CHECK(page->record(0).read().pid == first.pid());

  first.kill_without_reaping();
  page->record(0).join(3);  // a zombie holds nothing
  CHECK(page->record(0).read().pid == ::getpid());
}

// The launcher has taken its exit status, so that its pid may be another process's.
TEST_CASE("rank record: a process that the launcher has seen end is lost", "[job]") {
  const auto page = ControlPage::in_memory(2);
  col::RankRecord& record = page->record(0);
  record.started(0, ::getpid());
  record.join(0);
  CHECK_FALSE(record.lost());
  record.ended(SIGKILL);
  CHECK(record.lost());
  record.finish();
  CHECK_FALSE(record.lost());
  // Another process, as of a rank that was started in a shell of the launcher's.
  page->record(1).started(1, ::getpid() + 1);
  page->record(1).join(1);
  page->record(1).ended(SIGKILL);
  CHECK_FALSE(page->record(1).lost());
}

TEST_CASE_METHOD(core_test::PageFile, "rank record: a killed process is lost, as a zombie and after", "[job]") {
  CHECK_FALSE(page->record(0).lost());  // nobody has joined
  Child child([this](Child& self) {
    const auto mine = ControlPage::open(path, "job");
    mine->record(0).join(0);
    mine->record(0).begin("default", 9, "broadcast", 1);
    self.signal();
    self.wait_for_signal();
    return 0;
  });
  REQUIRE(child.wait_for_signal());
  CHECK_FALSE(page->record(0).lost());
  child.kill_without_reaping();
  CHECK(page->record(0).lost());
  CHECK(child.wait() == 128 + SIGKILL);
  CHECK(page->record(0).lost());
  // What it was doing can still be read.
  CHECK(page->record(0).read().state == State::running);
  CHECK(page->record(0).read().op == "broadcast");
  CHECK(page->record(0).read().sequence == 9);
}

TEST_CASE_METHOD(core_test::PageFile,
                 "rank record: what another process has seen alive is believed for a moment at most", "[job]") {
  Child holder([this](Child& self) {
    ControlPage::open(path, "job")->record(0).join(0);
    self.signal();
    self.wait_for_signal();
    return 0;
  });
  REQUIRE(holder.wait_for_signal());
  Child looker([this](Child&) { return ControlPage::open(path, "job")->record(0).lost() ? 1 : 0; });
  REQUIRE(looker.wait() == 0);
  CHECK_FALSE(page->record(0).lost());
  holder.kill_without_reaping();
  CHECK(col::test::soon([&] { return page->record(0).lost(); }));
}

TEST_CASE_METHOD(core_test::PageFile,
                 "rank record: a process that exits without finish is lost, one that finished is not", "[job]") {
  const bool finishes = GENERATE(true, false);
  Child child([this, finishes](Child&) {
    const auto mine = ControlPage::open(path, "job");
    mine->record(0).join(0);
    if (finishes) mine->record(0).finish();
    return 0;
  });
  REQUIRE(child.wait() == 0);
  CHECK(page->record(0).lost() == !finishes);
}

TEST_CASE("process: a reused pid is another process", "[job]") {
  const auto self = ProcessId::self();
  CHECK(self.pid() == ::getpid());
  CHECK(self.start() != 0);
  CHECK(self.alive());
  CHECK_FALSE(ProcessId(self.pid(), self.start() + 1).alive());
  CHECK_FALSE(ProcessId().alive());
  CHECK(ProcessId::from_word(self.word()) == self);
  // The largest values the kernel gives.
  const ProcessId large((1 << 22) - 1, (std::uint64_t{1} << 42) - 1);
  CHECK(large.pid() == (1 << 22) - 1);
  CHECK(large.start() == (std::uint64_t{1} << 42) - 1);
}

TEST_CASE("rank record: readers see whole operations while the writer hammers", "[job][threads]") {
  const auto page = ControlPage::in_memory(1);
  auto& record = page->record(0);
  record.join(0);
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (std::uint64_t i = 1; !stop.load(); ++i) {
      const std::string name(1 + i % 40, static_cast<char>('a' + i % 26));
      record.begin(name, i, name.substr(0, 15), i * 3);
      if (i % 2 == 0) record.waiting(static_cast<std::int32_t>(i % 1000), static_cast<std::int32_t>(i % 1000));
    }
  });
  int whole = 0;
  int torn = 0;
  const auto deadline = col::Deadline::after(20s);
  while (whole < 2000 && !deadline.expired()) {
    const auto seen = record.read();
    if (seen.group.empty()) continue;  // before the first, or the writer was not given a processor for too long
    const std::uint64_t i = seen.sequence;
    const std::string name(1 + i % 40, static_cast<char>('a' + i % 26));
    const bool step_fits =
        seen.state == State::waiting ? seen.step == static_cast<std::int32_t>(i % 1000) : seen.step == -1;
    const bool good = seen.group == name && seen.op == name.substr(0, 15) && seen.fingerprint == i * 3 &&
                      seen.step == seen.peer && step_fits;
    ++(good ? whole : torn);
  }
  stop = true;
  writer.join();
  CHECK(torn == 0);
  // How many there are depends on the machine: a reader that finds the writer busy for long gives up, as it should.
  CHECK(whole > 0);
}

TEST_CASE("rank record: two threads of a process may write", "[job][threads]") {
  const auto page = ControlPage::in_memory(1);
  auto& record = page->record(0);
  record.join(0);
  std::vector<std::thread> writers;
  for (const char* name : {"left", "right"})
    writers.emplace_back([&record, name] {
      for (std::uint64_t i = 0; i < 2000; ++i) {
        record.begin(name, i, name, i);
        record.end();
      }
    });
  for (auto& writer : writers) writer.join();
  const auto activity = record.read();
  CHECK(activity.state == State::joined);
  CHECK((activity.group == "left" || activity.group == "right"));
  CHECK(activity.op == activity.group);
  CHECK(activity.sequence == 1999);
}

TEST_CASE_METHOD(core_test::PageFile,
                 "rank record: a writer killed in the middle blocks neither readers nor its successor", "[job]") {
  auto& record = page->record(0);
  record.join(2);
  record.begin("default", 5, "allgather", 1);
  // What it leaves behind: an odd version.
  const auto mapping = col::core::open_page_file(path, "job");
  mapping->record(0)->version.fetch_add(1);

  const auto deadline = col::Deadline::after(col::test::kDeadline);
  const auto activity = record.read();
  CHECK_FALSE(deadline.expired());
  CHECK(activity.state == State::running);
  CHECK(activity.rank == 2);
  CHECK(record.rank() == 2);
  CHECK(activity.pid == ::getpid());
  CHECK(activity.group.empty());
  CHECK(activity.op.empty());
  CHECK_FALSE(record.lost());

  record.begin("default", 6, "barrier", 2);
  CHECK(record.read().op == "barrier");
  CHECK(record.read().sequence == 6);
}

TEST_CASE("flight recorder: the last calls, with their groups, also when it has gone round", "[job]") {
  using col::Collective;
  const auto page = ControlPage::in_memory(1);
  auto& record = page->record(0);
  record.join(0);
  CHECK(record.history().calls.empty());
  const int rows = record.enter_group("rows", 5), columns = record.enter_group("columns", 6);
  note(record, rows, 1, Collective::allreduce, {col::DType::float32, 1000, 2, -1}, true);
  note(record, columns, 0, Collective::send, {col::opaque(24), 8, 3, 99}, false);
  auto history = record.history();
  REQUIRE(history.calls.size() == 2);
  CHECK(history.calls[0].group == "rows");
  CHECK(history.calls[0].op == Collective::allreduce);
  CHECK(history.calls[0].sequence == 1);
  CHECK(history.calls[0].ended);
  CHECK(history.calls[0].details.dtype == col::DType::float32);
  CHECK(history.calls[0].details.count == 1000);
  CHECK(history.calls[0].details.partner == 2);
  CHECK(history.calls[0].details.tag == -1);
  CHECK(history.calls[1].group == "columns");
  CHECK_FALSE(history.calls[1].ended);
  CHECK(history.calls[1].details.dtype == col::DType::bytes);
  CHECK(history.calls[1].details.tag == 99);
  REQUIRE(history.groups.size() == 2);
  CHECK(history.groups[0].name == "rows");
  CHECK(history.groups[0].token == 5);
  CHECK(history.groups[0].last == 1);

  record.leave_group(columns);
  CHECK(record.history().groups.size() == 1);
  CHECK(record.history().calls[1].group == "columns");

  constexpr std::uint64_t kMany = 5000;
  for (std::uint64_t call = 2; call <= kMany; ++call) note(record, rows, call, Collective::barrier, {}, true);
  history = record.history();
  // One place is kept for the call that comes next.
  REQUIRE(history.calls.size() == col::RankRecord::kRecordedCalls - 1);
  CHECK(history.calls.back().sequence == kMany);
  CHECK(history.calls.front().sequence == kMany - history.calls.size() + 1);
  CHECK(history.groups[0].last == kMany);
  CHECK(record.history(3).calls.size() == 3);
  CHECK(record.history(3).calls.front().sequence == kMany - 2);
}

TEST_CASE("flight recorder: how long calls took, for those that have waited", "[job]") {
  using col::Collective;
  const auto page = ControlPage::in_memory(1);
  auto& record = page->record(0);
  record.join(0);
  const int group = record.enter_group("g", 5);
  note(record, group, 1, Collective::allreduce, {col::DType::float32, 1000, -1, -1}, true);
  note(record, group, 2, Collective::allreduce, {}, true, 3'000'000);
  note(record, group, 3, Collective::allreduce, {}, false);
  auto times = record.times_since(0);
  REQUIRE(times.calls.size() == 3);
  CHECK(times.noted == 3);
  CHECK(times.calls[0].took_ns == 0);
  CHECK(times.calls[0].token == 5);
  CHECK(times.calls[0].details.count == 1000);
  CHECK(times.calls[1].took_ns == 3'000'000);
  CHECK(times.calls[1].sequence == 2);
  CHECK(times.calls[1].ended);
  CHECK_FALSE(times.calls[2].ended);
  CHECK(times.waited_ns == times.calls[1].took_ns);
  CHECK(record.times_since(2).calls.size() == 1);
  CHECK(record.times_since(3).calls.empty());
  CHECK(record.times_since(0, false).calls.empty());
  CHECK(record.times_since(0, false).noted == 3);

  // The times of calls that were overwritten are not those of the calls in their place.
  record.leave_group(group);
  CHECK(record.history().groups.empty());
  REQUIRE(record.groups_ever().size() == 1);
  CHECK(record.groups_ever()[0].name == "g");
  CHECK(record.groups_ever()[0].token == 5);
  for (std::uint64_t call = 4; call < 4 + col::RankRecord::kRecordedCalls; ++call)
    note(record, group, call, Collective::barrier, {}, true);
  times = record.times_since(3);
  CHECK(times.calls.size() == col::RankRecord::kRecordedCalls - 1);
  CHECK(std::all_of(times.calls.begin(), times.calls.end(),
                    [](const col::TimedCall& call) { return call.took_ns == 0 && call.token == 5; }));
  // A clock that has gone back is no wait of centuries.
  CHECK(CallRing::time_since(col::core::clock_ns() + 1'000'000'000) == 1);
  // A long call that has not waited.
  CallRing ring(record);
  const auto words = CallRing::words(group, Collective::barrier, {});
  ring.end(ring.begin(words, 2000), words, 2000, 70);
  CHECK(record.times_since(times.noted).calls.at(0).took_ns == 70);
  CHECK(record.times_since(times.noted).waited_ns == 3'000'070);
}

TEST_CASE("flight recorder: more groups than it has names for", "[job]") {
  using col::Collective;
  const auto page = ControlPage::in_memory(1);
  auto& record = page->record(0);
  record.join(0);
  std::vector<int> groups;
  for (std::uint64_t group = 0; group < 100; ++group)
    groups.push_back(record.enter_group("g" + std::to_string(group), 10 + group));
  CHECK(groups[62] == 63);
  CHECK(groups[63] == 0);
  CHECK(groups[99] == 0);
  note(record, groups[99], 4, Collective::barrier, {}, true);
  CHECK(record.history().calls[0].group.empty());
  CHECK(record.history().groups.size() == 63);
  record.leave_group(groups[99]);
  record.leave_group(groups[10]);
  CHECK(record.enter_group("new", 500) == groups[10]);
}

TEST_CASE("flight recorder: what another process reads while calls are noted is whole", "[job]") {
  using col::Collective;
  const col::test::TempDir directory;
  const auto page = ControlPage::create(directory / "page", 1, "job");
  const Child writer([&](Child&) -> int {
    const auto same = ControlPage::open(directory / "page", "job");
    auto& record = same->record(0);
    record.join(0);
    const int group = record.enter_group("g", 9);
    for (std::uint64_t call = 1;; ++call) {
      const auto number = static_cast<std::int32_t>(call % 1'000'000);
      note(record, group, call, Collective::send, {col::DType::int8, call, number, number}, true);
    }
  });
  std::size_t seen = 0;
  bool whole = true, in_order = true;
  for (int look = 0; look < 200 || seen < 1000; ++look) {
    std::uint64_t before = 0;
    for (const auto& call : page->record(0).history().calls) {
      ++seen;
      whole = whole && call.details.count == call.sequence && call.details.partner == call.details.tag &&
              call.details.tag == static_cast<std::int32_t>(call.sequence % 1'000'000);
      in_order = in_order && (before == 0 || call.sequence == before + 1);
      before = call.sequence;
    }
  }
  CHECK(whole);
  CHECK(in_order);
}

TEST_CASE("flight recorder: what another process reads while calls begin and end is whole", "[job]") {
  using col::Collective;
  const col::test::TempDir directory;
  const auto page = ControlPage::create(directory / "page", 1, "job");
  const Child writer([&](Child&) -> int {
    const auto same = ControlPage::open(directory / "page", "job");
    auto& record = same->record(0);
    record.join(0);
    CallRing ring(record);
    const int group = record.enter_group("g", 9);
    for (std::uint64_t call = 1;; ++call) {
      const auto number = static_cast<std::int32_t>(call % 1'000'000);
      const auto words = CallRing::words(group, Collective::send, {col::DType::int8, call, number, number});
      const std::uint64_t entry = ring.begin(words, call);
      if (call % 2 == 0) {  // this one waits
        record.begin("g", call, "send", call, {col::DType::int8, call, number, number});
        ring.take_back(entry, words, call);
        ring.add(words, call, col::core::EntryState::ended, call);
        record.end("g");
      } else {
        ring.end(entry, words, call);
      }
    }
  });
  std::size_t running = 0, ended = 0, timed = 0;
  bool whole = true, in_order = true, complete = true;
  std::uint64_t noted = 0, latest = 0;
  for (int look = 0; look < 200000 || running == 0 || ended == 0 || timed == 0; ++look) {
    const auto activity = page->record(0).read();
    if (activity.sequence > 0) {
      running += activity.state == State::running ? 1 : 0;
      ended += activity.state == State::joined ? 1 : 0;
      whole = whole && activity.details.count == activity.sequence && activity.details.partner == activity.details.tag;
      in_order = in_order && activity.sequence >= latest;
      latest = activity.sequence;
    }
    const auto times = page->record(0).times_since(noted);
    std::uint64_t before = 0;
    for (const auto& call : times.calls) {
      whole = whole && call.details.count == call.sequence && call.details.partner == call.details.tag &&
              (call.sequence % 2 == 0 ? call.took_ns == call.sequence : call.took_ns == 0);
      complete = complete && (before == 0 || call.sequence == before + 1);
      before = call.sequence;
      timed += call.took_ns != 0 ? 1 : 0;
    }
    complete = complete && times.noted >= noted;
    noted = times.noted;
  }
  CHECK(whole);
  CHECK(in_order);
  CHECK(complete);
}

TEST_CASE("flight recorder: a call's reduction, algorithm and label have names", "[job]") {
  const auto page = ControlPage::in_memory(1);
  auto& record = page->record(0);
  record.join(0);
  const int group = record.enter_group("default", 5);
  const std::uint8_t ring = record.algorithm("ring"),
                     tree = record.algorithm("a tree of which the name is too long for its place");
  CHECK(ring != 0);
  CHECK(tree != ring);
  CHECK(record.algorithm("ring") == ring);
  CHECK(record.algorithm("") == 0);
  CHECK(record.label("backward", 300) == 300);
  CHECK(record.label("", 300) == 0);
  CHECK(record.label("nothing", 0) == 0);
  const col::CallDetails details{.dtype = col::DType::float32,
                                 .count = std::uint64_t{1} << 39,
                                 .partner = 3,
                                 .reduction = 1 + static_cast<int>(col::ReduceOp::max),
                                 .algorithm = ring,
                                 .label = 300};
  note(record, group, (std::uint64_t{1} << 40) + 1, col::Collective::reduce, details, true);
  note(record, group, 2, col::Collective::send, {.count = 8, .partner = 1, .tag = -5, .label = 300}, true);
  auto calls = record.history().calls;
  REQUIRE(calls.size() == 2);
  CHECK(calls[0].sequence == (std::uint64_t{1} << 40) + 1);
  CHECK(calls[0].details.count == std::uint64_t{1} << 39);
  CHECK(calls[0].details.partner == 3);
  CHECK(calls[0].details.tag == -1);
  CHECK(calls[0].names.reduction == "max");
  CHECK(calls[0].names.algorithm == "ring");
  CHECK(calls[0].names.label == "backward");
  CHECK(calls[1].details.tag == -5);
  CHECK(calls[1].names.algorithm.empty());
  CHECK(calls[1].names.reduction.empty());
  CHECK(calls[1].names.label == "backward");
  // Another label has taken its place: then none is better than the wrong one.
  record.label("forward", 300 + 128);
  CHECK(record.history().calls[0].names.label.empty());

  record.begin("default", 9, "reduce", 1, details);
  CHECK(record.read().names.algorithm == "ring");
  CHECK(record.read().progress.rounds == -1);
  record.place("a/long/path/of/which/the/beginning/is/cut/off/to/fit/train.py:88");
  record.waiting(4, 1, {.round = 2, .rounds = 70'000, .bytes = 4096});
  const auto activity = record.read();
  CHECK(activity.progress.round == 2);
  CHECK(activity.progress.rounds == 65'534);
  CHECK(activity.progress.bytes == 4096);
  CHECK(activity.place.ends_with("to/fit/train.py:88"));
  CHECK(activity.place.size() == 55);
  record.begin("default", 10, "barrier", 1);
  CHECK(record.read().place.empty());
  CHECK(record.read().names.algorithm.empty());
  CHECK(record.read().progress.rounds == -1);
}

TEST_CASE("rank record: the epoch of its process, and another process in its place", "[job]") {
  const auto page = ControlPage::in_memory(1);
  auto& record = page->record(0);
  CHECK_FALSE(record.epoch());
  record.started(4, 1'000'000);
  record.join(4);
  CHECK((record.holder() == ::getpid() && record.restarts() == 0));
  record.enter_epoch(0);
  CHECK(record.epoch() == 0U);
  record.enter_epoch(7);
  record.finish();
  record.join(4);  // the same process: it is in it still
  CHECK(record.epoch() == 7U);
  record.leave_epochs();
  CHECK_FALSE(record.epoch());
  record.enter_epoch(8);
  record.ended(9);
  CHECK((record.has_ended() && record.process()->wait_status == 9 && record.restarts() == 0));

  for (int restart = 1; restart <= 2; ++restart) {
    record.started(4, 1'000'000 + restart);
    CHECK((!record.has_ended() && !record.process()->wait_status && record.restarts() == restart));
    CHECK_FALSE(record.epoch());
    record.ended(0);
    CHECK((record.has_ended() && record.process()->wait_status == 0 && record.restarts() == restart));
  }
}
