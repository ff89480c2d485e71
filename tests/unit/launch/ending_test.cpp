// When ranks are ended, and harmed on purpose.
#include <csignal>
#include <vector>

#include "launch/supervise/ending.hpp"
#include "support/catch.hpp"

using col::launch::EndCause;
using col::launch::Ending;
using std::chrono::milliseconds;
using Phase = Ending::Phase;
using namespace col::launch;
using Injected = Injection::Kind;

namespace {

const Ending::Time kStart{std::chrono::hours(1)};
constexpr milliseconds kGrace{5'000};
constexpr milliseconds kTermGrace{25'000};
const Ending::Rules kRules{};

}  // namespace

TEST_CASE("ending: after a failure others that use col get a moment, then TERM, then KILL", "[launch]") {
  Ending ending(kRules);
  CHECK_FALSE(ending.is_ending());
  CHECK_FALSE(ending.deadline());
  ending.on_failure({.rank = 2, .others_may_notice = true}, kStart);
  CHECK(ending.phase() == Phase::settling);
  CHECK(ending.due(kStart) == 0);
  auto now = kStart + Ending::kSettle;
  REQUIRE(ending.deadline() == now);
  CHECK(ending.due(now - milliseconds(1)) == 0);
  CHECK(ending.due(now) == SIGTERM);
  CHECK(ending.due(now) == 0);
  now += kGrace;
  REQUIRE(ending.deadline() == now);
  CHECK(ending.due(now) == SIGKILL);
  now += Ending::kKillWait;
  CHECK(ending.due(now) == 0);
  CHECK(ending.phase() == Phase::given_up);
  CHECK_FALSE(ending.deadline());
  CHECK(ending.culprit() == 2);
  CHECK(ending.cause() == EndCause::rank_failed);
}

TEST_CASE("ending: ranks that do not use col have nothing to notice", "[launch]") {
  Ending ending(kRules);
  ending.on_failure({.rank = 0}, kStart);
  CHECK(ending.due(kStart) == SIGTERM);
}

TEST_CASE("ending: the graces are those that were asked for", "[launch]") {
  const Ending::Rules rules{.grace = milliseconds(70), .term_grace = milliseconds(900)};
  Ending failed(rules), told(rules), asked(rules);
  failed.on_failure({.rank = 0}, kStart);
  CHECK(failed.due(kStart) == SIGTERM);
  CHECK(failed.due(kStart + milliseconds(69)) == 0);
  CHECK(failed.due(kStart + milliseconds(70)) == SIGKILL);
  told.on_signal(SIGTERM, kStart);
  CHECK(told.due(kStart) == SIGTERM);
  CHECK(told.due(kStart + milliseconds(899)) == 0);
  CHECK(told.due(kStart + milliseconds(900)) == SIGKILL);
  asked.on_signal(SIGINT, kStart);
  CHECK(asked.due(kStart) == SIGINT);
  CHECK(asked.due(kStart + milliseconds(70)) == SIGTERM);
  CHECK(asked.due(kStart + milliseconds(140)) == SIGKILL);
}

TEST_CASE("ending: the first rank to fail on its own is the culprit", "[launch]") {
  Ending ending(kRules);
  SECTION("later failures change nothing") {
    ending.on_failure({.rank = 3, .others_may_notice = true}, kStart);
    ending.on_failure({.rank = 1}, kStart);
    CHECK(ending.culprit() == 3);
  }
  SECTION("a collateral one that was seen first gives way") {
    ending.on_failure({.rank = 0, .collateral = true}, kStart);
    CHECK(ending.due(kStart) == 0);
    ending.on_failure({.rank = 2}, kStart + milliseconds(10));
    CHECK(ending.culprit() == 2);
  }
  SECTION("collateral ones alone: the first of them") {
    ending.on_failure({.rank = 4, .collateral = true}, kStart);
    ending.on_failure({.rank = 2, .collateral = true}, kStart);
    CHECK(ending.culprit() == 4);
  }
  SECTION("how ranks end once told to is no cause, a crash still is") {
    ending.on_failure({.rank = 0, .collateral = true}, kStart);
    REQUIRE(ending.due(kStart + Ending::kSettle) == SIGTERM);
    ending.on_failure({.rank = 1}, kStart + Ending::kSettle);
    ending.on_failure({.rank = 2, .by_signal = SIGTERM}, kStart + Ending::kSettle);
    CHECK(ending.culprit() == 0);
    ending.on_failure({.rank = 3, .by_signal = SIGSEGV}, kStart + Ending::kSettle);
    CHECK(ending.culprit() == 3);
  }
  SECTION("the highest signal is a signal as well") {
    ending.on_failure({.rank = 0, .by_signal = 64}, kStart);
    CHECK(ending.culprit() == 0);
  }
}

TEST_CASE("ending: with keep-going a failed rank ends nobody, here or on another node", "[launch]") {
  Ending ending({.keep_going = true});
  ending.on_failure({.rank = 1}, kStart);
  CHECK_FALSE(ending.is_ending());
  CHECK(ending.due(kStart) == 0);
  CHECK_FALSE(ending.deadline());
  CHECK(ending.culprit() == 1);
  SECTION("a time limit still ends all") {
    ending.on_limit(EndCause::timed_out, kStart);
    CHECK(ending.due(kStart) == SIGTERM);
    CHECK(ending.cause() == EndCause::timed_out);
  }
  SECTION("a signal still does") {
    ending.on_signal(SIGTERM, kStart);
    CHECK(ending.due(kStart) == SIGTERM);
    CHECK(ending.cause() == EndCause::interrupted);
  }
}

TEST_CASE("ending: a failure on another node ends the ranks of this one, with no culprit here", "[launch]") {
  for (const bool notice : {false, true}) {
    Ending ending(kRules);
    ending.on_failure_elsewhere(notice, kStart);
    CHECK(ending.cause() == EndCause::rank_failed);
    CHECK(ending.culprit() == -1);
    CHECK(ending.due(kStart) == (notice ? 0 : SIGTERM));
    if (notice) CHECK(ending.due(kStart + Ending::kSettle) == SIGTERM);
    const auto later = ending.deadline();
    ending.on_failure_elsewhere(true, kStart + milliseconds(1));  // heard already
    CHECK(ending.deadline() == later);
  }
  Ending own(kRules);
  own.on_failure({.rank = 5, .others_may_notice = true}, kStart);
  own.on_failure_elsewhere(false, kStart);
  CHECK(own.phase() == Phase::settling);
  CHECK(own.culprit() == 5);
}

TEST_CASE("ending: stacks are taken before anybody is ended, where that is wanted", "[launch]") {
  using Event = void (*)(Ending&);
  struct Case {
    Event event;
    bool settles;  // after the stacks
  };
  const std::vector<Case> cases = {
      {[](Ending& ending) { ending.on_failure({.rank = 0, .others_may_notice = true}, kStart); }, true},
      {[](Ending& ending) { ending.on_failure({.rank = 0}, kStart); }, false},
      {[](Ending& ending) { ending.on_failure_elsewhere(true, kStart); }, true},
      {[](Ending& ending) { ending.on_failure_elsewhere(false, kStart); }, false},
      {[](Ending& ending) { ending.on_limit(EndCause::exit_timed_out, kStart); }, false},
  };
  for (const Case& one : cases) {
    const Ending::Rules rules{.examine_failures = true, .examine_time_limits = true};
    Ending taken(rules), slow(rules), impatient(rules);
    for (Ending* ending : {&taken, &slow, &impatient}) {
      one.event(*ending);
      REQUIRE(ending->phase() == Phase::examining);
      CHECK(ending->due(kStart) == 0);
      CHECK(ending->deadline() == kStart + Ending::kExamine);
    }
    taken.on_examined(kStart);
    CHECK(taken.due(kStart) == (one.settles ? 0 : SIGTERM));
    if (one.settles) CHECK(taken.due(kStart + Ending::kSettle) == SIGTERM);
    CHECK(slow.due(kStart + Ending::kExamine) == (one.settles ? 0 : SIGTERM));
    if (one.settles) CHECK(slow.due(kStart + Ending::kExamine + Ending::kSettle) == SIGTERM);
    impatient.on_signal(SIGINT, kStart);
    CHECK(impatient.due(kStart) == SIGTERM);
    impatient.on_examined(kStart);
    CHECK(impatient.phase() == Phase::terminating);
  }
}

TEST_CASE("ending: each kind of stack taking is asked for on its own", "[launch]") {
  Ending failure({.examine_time_limits = true});
  failure.on_failure({.rank = 0}, kStart);
  CHECK(failure.phase() == Phase::terminating);
  Ending limit({.examine_failures = true});
  limit.on_limit(EndCause::timed_out, kStart);
  CHECK(limit.phase() == Phase::terminating);
  Ending lost({.examine_failures = true, .examine_time_limits = true});
  lost.on_cut_off(false, kStart);  // neither
  CHECK(lost.phase() == Phase::terminating);
  CHECK(lost.cause() == EndCause::node_lost);
  Ending noticed({});
  noticed.on_cut_off(true, kStart);
  CHECK(noticed.phase() == Phase::settling);
}

TEST_CASE("ending: SIGINT escalates with every further one, and by itself", "[launch]") {
  Ending ending(kRules);
  ending.on_signal(SIGINT, kStart);
  CHECK(ending.due(kStart) == SIGINT);
  CHECK_FALSE(ending.signalled_after());
  SECTION("impatient") {
    ending.on_signal(SIGINT, kStart);
    CHECK(ending.due(kStart) == SIGTERM);
    ending.on_signal(SIGINT, kStart);
    CHECK(ending.due(kStart) == SIGKILL);
    ending.on_signal(SIGINT, kStart);
    CHECK(ending.due(kStart) == 0);
    CHECK(ending.signalled_after());
  }
  SECTION("patient") {
    CHECK(ending.due(kStart + kGrace) == SIGTERM);
    CHECK(ending.due(kStart + 2 * kGrace) == SIGKILL);
  }
  CHECK(ending.signal() == SIGINT);
  CHECK(ending.cause() == EndCause::interrupted);
}

TEST_CASE("ending: a supervisor's signals are forwarded, given the long grace, and may come twice", "[launch]") {
  for (const int signal : {SIGTERM, SIGHUP, SIGQUIT}) {
    Ending ending(kRules);
    ending.on_signal(signal, kStart);
    CHECK(ending.due(kStart) == signal);
    ending.on_signal(SIGTERM, kStart + milliseconds(1));
    CHECK(ending.due(kStart + milliseconds(1)) == 0);
    CHECK(ending.due(kStart + kTermGrace - milliseconds(1)) == 0);
    CHECK(ending.due(kStart + kTermGrace) == SIGKILL);
    CHECK(ending.signal() == signal);
  }
}

TEST_CASE("ending: what began first is the cause", "[launch]") {
  using Event = void (*)(Ending&);
  const std::vector<std::pair<EndCause, Event>> events = {
      {EndCause::interrupted, [](Ending& ending) { ending.on_signal(SIGTERM, kStart); }},
      {EndCause::rank_failed, [](Ending& ending) { ending.on_failure({.rank = 1}, kStart); }},
      {EndCause::rank_failed, [](Ending& ending) { ending.on_failure_elsewhere(true, kStart); }},
      {EndCause::timed_out, [](Ending& ending) { ending.on_limit(EndCause::timed_out, kStart); }},
      {EndCause::output_closed, [](Ending& ending) { ending.on_output_closed(kStart); }},
      {EndCause::launcher_failed, [](Ending& ending) { ending.kill(EndCause::launcher_failed, kStart); }},
  };
  for (const auto& [cause, first] : events) {
    for (const auto& [later_cause, later] : events) {
      Ending ending(kRules);
      first(ending);
      later(ending);
      CHECK(ending.cause() == cause);
      if (cause != EndCause::interrupted) CHECK(ending.signal() == 0);
      if (cause != EndCause::rank_failed) CHECK(ending.culprit() == -1);
    }
  }
}

TEST_CASE("ending: an unread output ends all with TERM, a launcher that is gone with KILL, once", "[launch]") {
  Ending closed(kRules);
  closed.on_output_closed(kStart);
  CHECK(closed.due(kStart) == SIGTERM);
  CHECK(closed.due(kStart + kGrace) == SIGKILL);
  Ending ending(kRules);
  ending.kill(EndCause::launcher_failed, kStart);
  CHECK(ending.due(kStart) == SIGKILL);
  const auto deadline = ending.deadline();
  ending.kill(EndCause::launcher_failed, kStart + milliseconds(5));
  CHECK(ending.due(kStart) == 0);
  CHECK(ending.deadline() == deadline);
}

namespace {

const Injector::Time kInjectorStart{std::chrono::hours(1)};

Injection injection(Injected kind, int rank, Milliseconds at, Milliseconds duration = Milliseconds(0),
                    double factor = 1) {
  return {.kind = kind, .rank = rank, .at = at, .duration = duration, .factor = factor};
}

}  // namespace

TEST_CASE("ending: every event in every phase", "[launch]") {
  using enum Ending::Phase;
  const Ending::Rules rules{.examine_failures = true, .examine_time_limits = true};
  using Event = void (*)(Ending&);
  const std::vector<Event> events = {
      [](Ending& e) { e.on_failure({.rank = 1}, kStart); },
      [](Ending& e) { e.on_failure_elsewhere(false, kStart); },
      [](Ending& e) { e.on_cut_off(false, kStart); },
      [](Ending& e) { e.on_limit(EndCause::timed_out, kStart); },
      [](Ending& e) { e.on_output_closed(kStart); },
      [](Ending& e) { e.on_signal(SIGINT, kStart); },
      [](Ending& e) { e.on_signal(SIGTERM, kStart); },
      [](Ending& e) { e.kill(EndCause::launcher_failed, kStart); },
      [](Ending& e) { e.on_examined(kStart); },
      [](Ending& e) { e.due(e.deadline().value_or(kStart)); },
  };
  struct Row {
    Phase phase;
    Event reach;              // from `running`
    std::vector<Phase> then;  // after each event
  };
  const std::vector<Row> rows = {
      {running,
       [](Ending&) {},
       {examining, examining, terminating, examining, terminating, interrupted, terminating, killing, running,
        running}},
      {examining,
       [](Ending& e) { e.on_failure({.rank = 0}, kStart); },
       {examining, examining, examining, examining, examining, terminating, terminating, killing, terminating,
        terminating}},
      {settling,
       [](Ending& e) { e.on_cut_off(true, kStart); },
       {settling, settling, settling, settling, settling, terminating, terminating, killing, settling, terminating}},
      {interrupted,
       [](Ending& e) { e.on_signal(SIGINT, kStart); },
       {interrupted, interrupted, interrupted, interrupted, interrupted, terminating, terminating, killing, interrupted,
        terminating}},
      {terminating,
       [](Ending& e) { e.on_output_closed(kStart); },
       {terminating, terminating, terminating, terminating, terminating, killing, terminating, killing, terminating,
        killing}},
      {killing,
       [](Ending& e) { e.kill(EndCause::launcher_failed, kStart); },
       {killing, killing, killing, killing, killing, killing, killing, killing, killing, given_up}},
      {given_up,
       [](Ending& e) {
         e.kill(EndCause::launcher_failed, kStart);
         e.due(kStart + Ending::kKillWait);
       },
       std::vector<Phase>(events.size(), given_up)},
  };
  for (const Row& row : rows) {
    for (std::size_t event = 0; event < events.size(); ++event) {
      CAPTURE(static_cast<int>(row.phase), event);
      Ending ending(rules);
      row.reach(ending);
      REQUIRE(ending.phase() == row.phase);
      const EndCause cause = ending.cause();
      events[event](ending);
      CHECK(ending.phase() == row.then[event]);
      CHECK((cause == EndCause::none || ending.cause() == cause));  // the first one stays
    }
  }
}

TEST_CASE("injector: a rank is killed at its time, once, and no other is", "[launch]") {
  Injector injector({injection(Injected::kill, 5, Milliseconds(100)), injection(Injected::kill, 9, Milliseconds(0))}, 4,
                    4);
  CHECK_FALSE(injector.deadline());
  injector.on_started(4, kInjectorStart);
  CHECK_FALSE(injector.deadline());
  injector.on_started(5, kInjectorStart);
  REQUIRE(injector.deadline() == kInjectorStart + Milliseconds(100));
  CHECK(injector.due(kInjectorStart + Milliseconds(99)).empty());
  const auto acts = injector.due(kInjectorStart + Milliseconds(100));
  REQUIRE(acts.size() == 1);
  CHECK(acts[0].rank == 5);
  CHECK(acts[0].signal == SIGKILL);
  CHECK_FALSE(injector.deadline());
  injector.on_started(9, kInjectorStart);  // a rank of another node
  CHECK(injector.due(kInjectorStart + Milliseconds(1000)).empty());
}

TEST_CASE("injector: a stopped rank goes on after its time, or never", "[launch]") {
  Injector injector({injection(Injected::stop, 0, Milliseconds(10), Milliseconds(30)),
                     injection(Injected::stop, 1, Milliseconds(10))},
                    0, 2);
  injector.on_started(0, kInjectorStart);
  injector.on_started(1, kInjectorStart);
  auto acts = injector.due(kInjectorStart + Milliseconds(10));
  REQUIRE(acts.size() == 2);
  CHECK(acts[0].signal == SIGSTOP);
  CHECK(acts[1].signal == SIGSTOP);
  REQUIRE(injector.deadline() == kInjectorStart + Milliseconds(40));
  acts = injector.due(kInjectorStart + Milliseconds(40));
  REQUIRE(acts.size() == 1);
  CHECK(acts[0].rank == 0);
  CHECK(acts[0].signal == SIGCONT);
  CHECK_FALSE(injector.deadline());
}

TEST_CASE("injector: a slowed rank runs for its part of each period, and is announced once", "[launch]") {
  Injector injector({injection(Injected::slow, 0, Milliseconds(0), Milliseconds(0), 4)}, 0, 1);
  injector.on_started(0, kInjectorStart);
  Milliseconds stopped{0}, all{0};
  int announced = 0;
  auto now = kInjectorStart;
  bool is_stopped = false;
  for (int act = 0; act < 20; ++act) {
    const auto due = *injector.deadline();
    const auto passed = std::chrono::duration_cast<Milliseconds>(due - now);
    all += passed;
    if (is_stopped) stopped += passed;
    now = due;
    const auto acts = injector.due(now);
    REQUIRE(acts.size() == 1);
    CHECK(acts[0].signal == (is_stopped ? SIGCONT : SIGSTOP));
    announced += acts[0].announced ? 1 : 0;
    is_stopped = !is_stopped;
  }
  CHECK(announced == 1);
  CHECK(stopped.count() * 4 >= all.count() * 3 - 4 * Injector::kPeriod.count());
  CHECK(stopped < all);
  // A launcher that was late does not make up for it.
  now += std::chrono::seconds(10);
  CHECK(injector.due(now).size() == 1);
  CHECK(*injector.deadline() > now);
  injector.on_ended(0);
  CHECK_FALSE(injector.deadline());
}

TEST_CASE("ending: those that nobody can take in any more are ended, and nobody is to blame", "[launch]") {
  Ending ending(kRules);
  ending.on_over(kStart);
  CHECK(ending.due(kStart) == SIGTERM);
  CHECK((ending.cause() == EndCause::none && !ending.is_ending() && ending.culprit() == -1));
  ending.on_over(kStart);  // told once
  CHECK(ending.due(kStart) == 0);
  CHECK(ending.due(kStart + kGrace) == SIGKILL);
  // A job that is ending ends them with it.
  Ending failed(kRules);
  failed.on_failure({.rank = 0, .others_may_notice = true}, kStart);
  failed.on_over(kStart);
  CHECK(failed.due(kStart) == 0);
  CHECK(failed.due(kStart + Ending::kSettle) == SIGTERM);
}
