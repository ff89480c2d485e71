#include "group/join/epoch_record.hpp"

#include <string>

#include <col/error.hpp>

#include "group/diagnosis/failure.hpp"
#include "support/catch.hpp"

using namespace col::group;
using Phase = EpochRecord::Phase;

namespace {

EpochRecord decided() {
  EpochRecord record{.epoch = 5, .phase = Phase::decided, .base = 3, .token = 0xfedc'ba98'7654'3210};
  record.members = {{.incarnation = 10, .before = 0, .progress = 7, .address = "a:1"},
                    {.incarnation = 40, .address = "\"b\"\n2"},
                    {.incarnation = 30, .before = 2, .progress = 9, .address = "c"}};
  record.lost = {{.incarnation = 20, .number = 1, .is_excluded = true}};
  record.passed_over = {50, 60};
  return record;
}

}  // namespace

TEST_CASE("epoch record: its text says all of it, and equal records have equal texts", "[epochs]") {
  EpochRecord record = decided();
  record.error = encode_error(col::Error(col::ErrorCode::io, "the store is gone"));
  const EpochRecord read = EpochRecord::decode(record.encode());
  CHECK(read == record);
  CHECK(read.encode() == record.encode());
  for (const Phase phase : {Phase::decided, Phase::open, Phase::void_, Phase::failed, Phase::over})
    CHECK(EpochRecord::decode(in_phase(record, phase).encode()).phase == phase);
}

TEST_CASE("epoch record: a text that is none is refused with what it should be", "[epochs]") {
  CHECK_THROWS_WITH(EpochRecord::decode("{\"epoch\":1}"),
                    Catch::Matchers::StartsWith("internal: the record of an epoch in the store cannot be read"));
  CHECK_THROWS_AS(
      EpochRecord::decode(R"({"epoch":1,"phase":"void","base":0,"token":1,"members":[{"i":1,"was":9000000,"a":""}]})"),
      col::Error);
  CHECK_THROWS_AS(Presence::decode(""), col::Error);
}

TEST_CASE("epoch record: a text that no compare_set of this version could follow is refused", "[epochs]") {
  const auto refused = [](const std::string& text, const std::string& why) {
    CHECK_THROWS_WITH(EpochRecord::decode(text), Catch::Matchers::StartsWith("internal: the record of an epoch in the "
                                                                             "store cannot be read (" +
                                                                             why));
  };
  const std::string text = decided().encode();
  const std::string of_a_later_version = text.substr(0, text.size() - 1) + ",\"more\":1}";
  refused(of_a_later_version, "this version of col would write it otherwise");
  refused(" " + text, "this version of col would write it otherwise");
  EpochRecord record = decided();
  record.lost.clear();  // who was number 1
  refused(record.encode(), "numbers of the last epoch are missing");
  record = in_phase(decided(), Phase::failed);
  refused(record.encode(), "it has failed, and does not say why");
  record.error = "no error";
  refused(record.encode(), "it has failed, and does not say why");
}

TEST_CASE("epoch record: a word says all of itself", "[epochs]") {
  const Presence word{.incarnation = 3,
                      .round = 4,
                      .is_connected = true,
                      .ticket = 2,
                      .progress = 5,
                      .address = "x",
                      .size = 8,
                      .min = 2,
                      .excluded = {1, 9}};
  CHECK(Presence::decode(word.encode()) == word);
  const Presence plain{.incarnation = 3};
  CHECK(Presence::decode(plain.encode()) == plain);
}

TEST_CASE("epoch record: each phase of an epoch comes after the one before", "[epochs]") {
  const EpochRecord record = decided();
  const auto version = [&](Phase phase) { return in_phase(record, phase).version(); };
  CHECK(version(Phase::decided) < version(Phase::open));
  CHECK(version(Phase::open) == version(Phase::void_));
  CHECK(version(Phase::open) == version(Phase::failed));
  CHECK(version(Phase::open) < version(Phase::over));
  EpochRecord next = record;
  next.epoch = 6;
  CHECK(version(Phase::over) < next.version());
}

TEST_CASE("epoch record: from any phase follows who was in the last epoch that was open", "[epochs]") {
  const EpochRecord record = decided();
  const Generation before{.epoch = 3, .members = {10, 20, 30}}, after{.epoch = 5, .members = {10, 40, 30}};
  CHECK(record.generation() == before);
  CHECK(in_phase(record, Phase::failed).generation() == before);
  CHECK(in_phase(record, Phase::open).generation() == after);
  CHECK(in_phase(record, Phase::over).generation() == after);
  EpochRecord gone = in_phase(record, Phase::void_);  // one that was lost after the decision is in both lists
  gone.lost.push_back({.incarnation = 30, .number = 2});
  CHECK(gone.generation() == before);
}

TEST_CASE("epoch record: the state comes from the survivor that has come furthest, never from a newcomer", "[epochs]") {
  EpochRecord record = decided();
  CHECK(record.newcomers() == std::vector<int>{1});
  CHECK(record.source() == 2);
  record.members[0].progress = 9;
  CHECK(record.source() == 0);
  record.members[0] = {.incarnation = 70};
  record.members[2].progress = 0;
  CHECK(record.source() == 2);
  CHECK(first_epoch({{.incarnation = 1}, {.incarnation = 2}}, 1).source() == 0);
}
