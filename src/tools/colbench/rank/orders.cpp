#include "colbench/rank/orders.hpp"

#include <cstring>
#include <stdexcept>

#include "colbench/report/spec_fields.hpp"
#include "common/command_line.hpp"

namespace col::colbench {

template <class Visit>
void fields(Method& method, Visit& visit) {
  auto& [ranks, launches, target_interval, min_iterations, max_iterations, warm_ups, max_time, seed, shuffle,
         barrier_sync, check, skew, delay, delay_fraction, timeout, calibrate, strict_bound, quiet, fits] = method;
  visit("ranks", ranks);
  visit("launches", launches);
  visit("target_interval", target_interval);
  visit("min_iterations", min_iterations);
  visit("max_iterations", max_iterations);
  visit("warm_ups", warm_ups);
  visit("max_time", max_time);
  visit("seed", seed);
  visit("shuffle", shuffle);
  visit("barrier_sync", barrier_sync);
  visit("check", check);
  visit("skew", skew);
  visit("delay", delay);
  visit("delay_fraction", delay_fraction);
  visit("timeout", timeout);
  visit("calibrate", calibrate);
  visit("fits", fits);
  core::stays(strict_bound, quiet);  // whoever gives orders judges, and speaks
}

template <class Visit>
void fields(Order& order, Visit& visit) {
  auto& [method, launch, calibrations, cells, begun_ns] = order;
  visit("method", method);
  visit("launch", launch);
  visit("calibrations", calibrations);
  visit("cells", cells);
  visit("begun_ns", begun_ns);
}

std::string encode(const Order& order) {
  return core::json_line(order);
}

Order decode_order(const std::string& text) {
  try {
    return core::parsed_json<Order>(text, "order");
  } catch (const Error& error) {
    throw tools::UsageError("not an order of colbench: " + error.message());
  }
}

// ---- Answers --------------------------------------------------------------------------------------------------------

namespace {

// All ranks are of one build: the bytes as they are. Answers have thousands of numbers, between samples: no JSON.
class Writer {
 public:
  void operator()(const std::string& text) { put_list(text); }
  void operator()(const std::vector<double>& numbers) { put_list(numbers); }
  template <class T>
  void operator()(const T& value) {
    put(&value, sizeof value);
  }
  std::string take() { return std::move(bytes_); }

 private:
  template <class List>
  void put_list(const List& list) {
    (*this)(list.size());
    put(list.data(), list.size() * sizeof list[0]);
  }
  void put(const void* from, std::size_t size) { bytes_.append(static_cast<const char*>(from), size); }

  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(const std::string& bytes) : bytes_(bytes) {}
  void operator()(std::string& text) { get_list(text); }
  void operator()(std::vector<double>& numbers) { get_list(numbers); }
  template <class T>
  void operator()(T& value) {
    get(&value, sizeof value);
  }

 private:
  template <class List>
  void get_list(List& list) {
    std::size_t size = 0;
    (*this)(size);
    if (size > (bytes_.size() - at_) / sizeof list[0]) throw std::runtime_error("an answer is cut short");
    list.resize(size);
    get(list.data(), size * sizeof list[0]);
  }
  void get(void* to, std::size_t size) {
    if (size > bytes_.size() - at_) throw std::runtime_error("an answer is cut short");
    if (size > 0) std::memcpy(to, bytes_.data() + at_, size);
    at_ += size;
  }

  const std::string& bytes_;
  std::size_t at_ = 0;
};

template <class Visit>
void visit_all(Visit& visit, auto& answer) {
  auto& [trouble, code, harmless, takes_part, operations, began, ended, on_device, check] = answer;
  auto& [mode, elements, wrong, first] = check;
  visit(trouble);
  visit(code);
  visit(harmless);
  visit(takes_part);
  visit(operations);
  visit(began);
  visit(ended);
  visit(on_device);
  visit(mode);
  visit(elements);
  visit(wrong);
  visit(first);
}

}  // namespace

std::string encode(const Answer& answer) {
  Writer writer;
  visit_all(writer, answer);
  return writer.take();
}

Answer decode_answer(const std::string& bytes) {
  Reader reader(bytes);
  Answer answer;
  visit_all(reader, answer);
  return answer;
}

}  // namespace col::colbench
