// Tests what the groups of a process know about the store, in simulated time.
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include <col/error.hpp>
#include <col/store.hpp>

#include "core/clock/clock.hpp"
#include "group/call/call_settings.hpp"
#include "group/diagnosis/diagnosis.hpp"
#include "group/diagnosis/failure.hpp"
#include "group/flight/core.hpp"
#include "simulation/simulator.hpp"
#include "support/catch.hpp"

namespace {

using namespace std::chrono_literals;
using col::test::Simulator;

template <class Act>
void simulate(const Act& act) {
  col::test::Trace trace;
  Simulator simulator(1, trace);
  simulator.add_process([&act] { act(); }, {});
  CHECK(simulator.run() == Simulator::End::all_ended);
}

// As others read it when a group breaks some time after another one has found the store mute.
std::optional<col::Error> told_of(col::ErrorCode code, col::Duration after) {
  std::optional<col::Error> told;
  simulate([&] {
    col::group::Core::Spec spec;
    spec.surroundings.group = "row";
    spec.surroundings.peers.resize(2);
    spec.surroundings.scope = col::make_memory_store();
    spec.settings = std::make_shared<col::group::CallSettings>();
    col::group::Core core(std::move(spec));
    core.set_on_break([](const col::Error&) {});
    core.surroundings().store->has_not_answered();
    col::core::sleep_for(after);
    core.break_with(col::Error(code, "why", "row", 0));
    told = col::group::published_failure(*core.surroundings().scope, 1);
  });
  return told;
}

}  // namespace

TEST_CASE("store health: a store that has not answered is left alone for a while") {
  simulate([] {
    col::group::StoreHealth store;
    CHECK_FALSE(store.is_mute());
    store.has_not_answered();
    CHECK(store.is_mute());
    col::core::sleep_for(4s);
    CHECK(store.is_mute());
    col::core::sleep_for(1s);
    CHECK_FALSE(store.is_mute());
  });
}

TEST_CASE("store health: at the end of a wait it is asked again, unless it was asked a moment ago") {
  simulate([] {
    col::group::StoreHealth store;
    store.has_not_answered();
    store.ask_again();
    CHECK(store.is_mute());
    col::core::sleep_for(200ms);
    store.ask_again();
    CHECK_FALSE(store.is_mute());
    store.has_not_answered();
    CHECK(store.is_mute());
  });
}

TEST_CASE("store health: a group that breaks tells why, though another one has found the store mute") {
  const auto told = told_of(col::ErrorCode::mismatch, 200ms);
  REQUIRE(told);
  CHECK(told->code() == col::ErrorCode::mismatch);
  CHECK(told->message() == "why");
  // At once, the store is most likely still mute; and the end of a wait has asked it again before.
  CHECK_FALSE(told_of(col::ErrorCode::mismatch, 50ms));
  CHECK_FALSE(told_of(col::ErrorCode::timeout, 200ms));
}
