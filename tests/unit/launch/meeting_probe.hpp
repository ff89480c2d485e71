// A meeting as tests see it: members that come, speak and are lost, and the letters that each gets.
#pragma once

#include <chrono>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "launch/nodes/meeting.hpp"
#include "launch/nodes/node_messages.hpp"
#include "launch/report/report_json.hpp"
#include "support/catch.hpp"

namespace col::test {

using launch::EndCause;
using launch::JobStory;
using launch::Meeting;
using launch::MeetingSpec;
using launch::Milliseconds;
using nlohmann::json;

struct Newcomer {
  int ranks = 2;
  int wanted_rank = -1;
  std::string id = "run";
  std::string secret = "sesame";
  int protocol = launch::kNodeProtocol;
  bool wants_stories = true;
  std::string address = "10.0.0.9";
  std::string host = {};  // empty: "n" and the number of the member
};

inline MeetingSpec nodes(int least, int most, int max_restarts = 0) {
  return {.min_nodes = least,
          .max_nodes = most,
          .id = "run",
          .secret = "sesame",
          .job_id = "job",
          .join_timeout = Milliseconds(60'000),
          .max_restarts = max_restarts};
}

// Those members of `message` that `wanted` has, to be compared with it.
inline json picked(const json& message, const json& wanted) {
  json found = json::object();
  for (const auto& [name, value] : wanted.items()) found[name] = message.value(name, json());
  return found;
}

// What a node says of its ranks when they have ended; `codes`: their exit codes, from `first_rank` on.
inline json story_of(int node_rank, int first_rank, const std::vector<int>& codes, EndCause cause = EndCause::none) {
  JobStory story;
  story.job_id = "job";
  story.directory = "/home/ada";
  story.command_line = {"colrun", "node" + std::to_string(node_rank)};
  story.result.cause = cause;
  for (std::size_t index = 0; index < codes.size(); ++index) {
    launch::RankStory rank;
    rank.local_rank = static_cast<int>(index);
    rank.rank = first_rank + rank.local_rank;
    rank.node_rank = node_rank;
    rank.host = "n" + std::to_string(node_rank);
    rank.status.pid = 100 + rank.rank;
    rank.status.exited = true;
    rank.status.wait_status = codes[index] << 8;
    story.ranks.push_back(rank);
  }
  return launch::story_to_json(story);
}

class MeetingProbe {
 public:
  explicit MeetingProbe(MeetingSpec spec)
      : meeting(
            std::move(spec),
            [this](int generation) {
              stores.push_back(generation);
              return launch::MeetingStore{7000 + static_cast<int>(stores.size()),
                                          "salt" + std::to_string(stores.size())};
            },
            now) {}

  // What `who` answers when it has connected as `member`, and was asked who it is.
  json hello(const Newcomer& who, int member) {
    meeting.on_call(member);
    collect();
    const std::string nonce = make_nonce();
    const ProofSubject subject = launch::node_proof_subject(who.id, challenges.at(member), nonce);
    return {{"say", "hello"},
            {"protocol", who.protocol},
            {"id", who.id},
            {"nonce", nonce},
            {"proof", make_proof(who.secret, ProofRole::client, subject)},
            {"node_rank", who.wanted_rank},
            {"host", who.host.empty() ? "n" + std::to_string(member) : who.host},
            {"local_ranks", who.ranks},
            {"master_port", 5000 + member},
            {"wants_stories", who.wants_stories}};
  }
  void come(int member, const Newcomer& who = {}) {
    meeting.on_message(member, who.address, hello(who, member), now);
    collect();
  }
  void say(int member, const json& message) {
    meeting.on_message(member, "10.0.0.9", message, now);
    collect();
  }
  void lose(int member) {
    meeting.on_lost(member, "the cable was cut", now);
    collect();
  }
  void fail(int member, int rank, bool collateral = false) {
    say(member, {{"say", "failed"},
                 {"restart", generation()},
                 {"rank", rank},
                 {"collateral", collateral},
                 {"what", "rank " + std::to_string(rank) + " fell"}});
  }
  // All ranks of `member` have ended, with these exit codes.
  void end(int member, const std::vector<int>& codes, EndCause cause = EndCause::none) {
    const json started = last(member, "start");
    say(member, {{"say", "ended"},
                 {"restart", started.value("restart", 0)},
                 {"story", story_of(started.value("node_rank", 0), started.value("first_rank", 0), codes, cause)}});
  }
  // The same of members that have node ranks of the same number, and two ranks each.
  void end_all(std::initializer_list<int> members, const std::vector<int>& codes, EndCause cause = EndCause::none) {
    for (const int member : members)
      say(member, {{"say", "ended"}, {"story", story_of(member, 2 * member, codes, cause)}});
  }
  void wait(std::chrono::milliseconds time) {
    now += time;
    meeting.tick(now);
    collect();
  }
  int generation() const { return stores.empty() ? 0 : static_cast<int>(stores.size()) - 1; }

  // All that was said to a member, as "refused", "start", …
  std::vector<std::string> said(int member) {
    std::vector<std::string> words;
    for (const json& message : letters[member]) words.push_back(message.at("say"));
    return words;
  }
  // The last letter of that kind; an empty object when there is none.
  json last(int member, const std::string& say) {
    json found = json::object();
    for (const json& message : letters[member]) {
      if (message.at("say") == say) found = message;
    }
    return found;
  }
  int count(int member, const std::string& say) {
    int found = 0;
    for (const json& message : letters[member]) found += message.at("say") == say ? 1 : 0;
    return found;
  }
  JobStory done(int member) {
    const json message = last(member, "done");
    REQUIRE(message.contains("story"));
    return launch::story_from_json(message.at("story"));
  }
  void collect() {
    for (Meeting::Letter& letter : meeting.take_letters()) {
      if (letter.message.at("say") == "challenge") {
        challenges.insert_or_assign(letter.to, letter.message.at("nonce").get<std::string>());
        continue;
      }
      if (letter.message.at("say") == "welcome") {
        welcomes.insert_or_assign(letter.to, letter.message);
        continue;
      }
      if (letter.last) lasts.insert_or_assign(letter.to, letter.message.at("say"));
      letters[letter.to].push_back(std::move(letter.message));
    }
  }

  Meeting::Time now{std::chrono::hours(1)};
  std::vector<int> stores;  // the generations for which one was made
  std::map<int, std::vector<json>> letters;
  std::map<int, std::string> challenges;  // the nonce that each was sent
  std::map<int, json> welcomes;
  std::map<int, std::string> lasts;  // by member: the letter after which its connection closes
  Meeting meeting;
};

}  // namespace col::test
