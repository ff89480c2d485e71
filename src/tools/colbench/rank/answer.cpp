#include <cstring>
#include <stdexcept>

#include "colbench/rank/player.hpp"

namespace col::colbench {
namespace {

// All ranks are of one build: the bytes as they are.
class Writer {
 public:
  template <class T>
  void put(const T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put_text(const std::string& text) {
    put(text.size());
    bytes_ += text;
  }
  void put_numbers(const std::vector<double>& numbers) {
    put(numbers.size());
    bytes_.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(double));
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(const std::string& bytes) : bytes_(bytes) {}
  template <class T>
  void get(T& value) {
    copy(&value, sizeof value);
  }
  void get_text(std::string& text) {
    std::size_t size = 0;
    get(size);
    if (size > bytes_.size() - at_) throw std::runtime_error("an answer is cut short");
    text.assign(bytes_, at_, size);
    at_ += size;
  }
  void get_numbers(std::vector<double>& numbers) {
    std::size_t size = 0;
    get(size);
    if (size > (bytes_.size() - at_) / sizeof(double)) throw std::runtime_error("an answer is cut short");
    numbers.resize(size);
    copy(numbers.data(), size * sizeof(double));
  }

 private:
  void copy(void* to, std::size_t size) {
    if (size > bytes_.size() - at_) throw std::runtime_error("an answer is cut short");
    if (size > 0) std::memcpy(to, bytes_.data() + at_, size);
    at_ += size;
  }

  const std::string& bytes_;
  std::size_t at_ = 0;
};

}  // namespace

std::string encode(const Answer& answer) {
  Writer writer;
  writer.put_text(answer.trouble);
  writer.put(answer.code);
  writer.put(answer.harmless);
  writer.put(answer.takes_part);
  writer.put(answer.operations);
  writer.put_numbers(answer.began);
  writer.put_numbers(answer.ended);
  writer.put_numbers(answer.on_device);
  writer.put_text(answer.check.mode);
  writer.put(answer.check.elements);
  writer.put(answer.check.wrong);
  writer.put_text(answer.check.first);
  return writer.take();
}

Answer decode_answer(const std::string& bytes) {
  Reader reader(bytes);
  Answer answer;
  reader.get_text(answer.trouble);
  reader.get(answer.code);
  reader.get(answer.harmless);
  reader.get(answer.takes_part);
  reader.get(answer.operations);
  reader.get_numbers(answer.began);
  reader.get_numbers(answer.ended);
  reader.get_numbers(answer.on_device);
  reader.get_text(answer.check.mode);
  reader.get(answer.check.elements);
  reader.get(answer.check.wrong);
  reader.get_text(answer.check.first);
  return answer;
}

}  // namespace col::colbench
