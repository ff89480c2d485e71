#include "colcheck/order.hpp"

#include "json/json_fields.hpp"

namespace col::colcheck {
namespace {

// A case is its token.
struct Token {
  void write(core::JsonBuilder& out, const Case& c) const { out.add(token_of(c)); }
  void read(const core::JsonPlace& place, Case& c) const { c = parse_token(place.text()); }
};

}  // namespace

template <class Visit>
void fields(Order& order, Visit& visit) {
  auto& [kind, devices, backend, ranks, cases] = order;
  visit("kind", kind, core::Numbered{Order::Kind::share});
  visit("devices", devices, core::Named{Devices::mixed, to_string});
  visit("backend", backend);
  visit("ranks", ranks);
  visit("cases", cases, Token());
}

template <class Visit>
void fields(Answer::Entry& entry, Visit& visit) {
  auto& [index, finding] = entry;
  auto& [verdict, text, digest] = finding;
  visit("index", index);
  visit("verdict", verdict, core::Numbered{Finding::Verdict::fail});
  visit("text", text);
  visit("digest", digest);
}

template <class Visit>
void fields(RankGpu& rank, Visit& visit) {
  auto& [host, gpu, of_host, nccl, why_not, why_no_nccl] = rank;
  auto& [name, bus] = gpu;
  visit("host", host);
  visit("name", name);
  visit("bus", bus);
  visit("of_host", of_host);
  visit("nccl", nccl);
  visit("why_not", why_not);
  visit("why_no_nccl", why_no_nccl);
}

template <class Visit>
void fields(Answer& answer, Visit& visit) {
  auto& [entries, done, trouble, natives, gpu] = answer;
  visit("entries", entries);
  visit("done", done);
  visit("trouble", trouble);
  visit("natives", natives, core::Named{Collective{kCollectiveCount - 1}, col::to_string});
  visit("gpu", gpu);
}

// A message may quote bytes that are no UTF-8: they are replaced.
std::string encode(const Order& order) {
  return core::json_line(order);
}

std::string encode(const Answer& answer) {
  return core::json_line(answer);
}

Order decode_order(const std::string& text) {
  return core::parsed_json<Order>(text, "order");
}

Answer decode_answer(const std::string& text) {
  return core::parsed_json<Answer>(text, "answer");
}

}  // namespace col::colcheck
