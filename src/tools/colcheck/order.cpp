#include "colcheck/order.hpp"

#include <nlohmann/json.hpp>

namespace col::colcheck {

using Json = nlohmann::json;

std::string encode(const Order& order) {
  Json tokens = Json::array();
  for (const Case& c : order.cases) tokens.push_back(token_of(c));
  return Json{{"kind", static_cast<int>(order.kind)},
              {"devices", to_string(order.devices)},
              {"backend", order.backend},
              {"ranks", order.ranks},
              {"cases", std::move(tokens)}}
      .dump();
}

Order decode_order(const std::string& text) {
  const Json json = Json::parse(text);
  Order order;
  order.kind = static_cast<Order::Kind>(json.at("kind").get<int>());
  order.devices = devices_from_string(json.at("devices").get<std::string>()).value();
  order.backend = json.at("backend").get<std::string>();
  order.ranks = json.at("ranks").get<int>();
  for (const Json& token : json.at("cases")) order.cases.push_back(parse_token(token.get<std::string>()));
  return order;
}

std::string encode(const Answer& answer) {
  Json entries = Json::array();
  for (const auto& [index, finding] : answer.entries) {
    Json entry{{"index", index}, {"verdict", static_cast<int>(finding.verdict)}, {"text", finding.text}};
    if (finding.digest) entry["digest"] = *finding.digest;
    entries.push_back(std::move(entry));
  }
  Json natives = Json::object();
  for (const auto& [collective, names] : answer.natives) natives[std::string(to_string(collective))] = names;
  const RankGpu& gpu = answer.gpu;
  // A message may quote bytes that are no UTF-8.
  return Json{
      {"entries", std::move(entries)},
      {"done", answer.done},
      {"trouble", answer.trouble},
      {"natives", std::move(natives)},
      {"gpu",
       {gpu.host, gpu.gpu.name, gpu.gpu.bus, std::to_string(gpu.of_host), gpu.nccl, gpu.why_not, gpu.why_no_nccl}}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

Answer decode_answer(const std::string& text) {
  const Json json = Json::parse(text);
  Answer answer;
  for (const Json& entry : json.at("entries")) {
    Finding finding{static_cast<Finding::Verdict>(entry.at("verdict").get<int>()), entry.at("text").get<std::string>(),
                    std::nullopt};
    if (entry.contains("digest")) finding.digest = entry.at("digest").get<std::uint64_t>();
    answer.entries.push_back({entry.at("index").get<std::size_t>(), std::move(finding)});
  }
  answer.done = json.at("done").get<std::size_t>();
  answer.trouble = json.at("trouble").get<std::string>();
  for (const auto& [name, names] : json.at("natives").items())
    answer.natives[collective_from_string(name)] = names.get<std::vector<std::string>>();
  const auto gpu = json.at("gpu").get<std::vector<std::string>>();
  answer.gpu = {gpu.at(0), {gpu.at(1), gpu.at(2)}, std::stoi(gpu.at(3)), gpu.at(4), gpu.at(5), gpu.at(6)};
  return answer;
}

}  // namespace col::colcheck
