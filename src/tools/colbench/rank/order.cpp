#include "colbench/rank/order.hpp"

#include <nlohmann/json.hpp>

#include "colbench/report/json.hpp"
#include "common/command_line.hpp"

namespace col::colbench {
namespace {

using Json = nlohmann::json;

Json json_of(const Method& method) {
  return {{"ranks", method.ranks},
          {"launches", method.launches},
          {"target_interval", method.target_interval},
          {"min_iterations", method.min_iterations},
          {"max_iterations", method.max_iterations},
          {"warm_ups", method.warm_ups},
          {"max_time", method.max_time.count()},
          {"seed", method.seed},
          {"shuffle", method.shuffle},
          {"barrier_sync", method.barrier_sync},
          {"check", method.check},
          {"skew", method.skew},
          {"delay", method.delay.count()},
          {"delay_fraction", method.delay_fraction},
          {"timeout", method.timeout.count()},
          {"calibrate", method.calibrate},
          {"fits", method.fits}};
}

Method method_of(const Json& json) {
  Method method;
  method.ranks = json.at("ranks");
  method.launches = json.at("launches");
  method.target_interval = json.at("target_interval");
  method.min_iterations = json.at("min_iterations");
  method.max_iterations = json.at("max_iterations");
  method.warm_ups = json.at("warm_ups");
  method.max_time = Duration(json.at("max_time").get<std::int64_t>());
  method.seed = json.at("seed");
  method.shuffle = json.at("shuffle");
  method.barrier_sync = json.at("barrier_sync");
  method.check = json.at("check");
  method.skew = json.at("skew");
  method.delay = Duration(json.at("delay").get<std::int64_t>());
  method.delay_fraction = json.at("delay_fraction");
  method.timeout = Duration(json.at("timeout").get<std::int64_t>());
  method.calibrate = json.at("calibrate");
  method.fits = json.at("fits").get<std::vector<std::string>>();
  return method;
}

}  // namespace

std::string encode(const Order& order) {
  Results cells;
  for (const CellSpec& spec : order.cells) cells.cells.push_back({.spec = spec});
  return Json{{"method", json_of(order.method)},
              {"launch", order.launch},
              {"calibrations", order.calibrations},
              {"cells", json_results(cells)}}
      .dump();
}

Order decode_order(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    Order order{
        .method = method_of(json.at("method")), .launch = json.at("launch"), .calibrations = json.at("calibrations")};
    for (const Cell& cell : parse_json_results(json.at("cells").get<std::string>(), "order").cells)
      order.cells.push_back(cell.spec);
    return order;
  } catch (const Json::exception& error) {
    throw tools::UsageError(std::string("not an order of colbench: ") + error.what());
  }
}

}  // namespace col::colbench
