// A trace of a simulated job: each decision and each event on a line, with the time. Nothing in it depends on an
// address, so that two runs of one seed have the same.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace col::test {

class Trace {
 public:
  // The lines go to `file`, too, unless it is null.
  explicit Trace(std::FILE* file = nullptr) noexcept : file_(file) {}

  // `what`: a word; `more`: of an event, its text.
  void add(std::int64_t ns, int process, int thread, std::string_view what, std::string_view more = {}) noexcept {
    ++lines_;
    mix(static_cast<std::uint64_t>(ns));
    mix(static_cast<std::uint64_t>(process) << 32 | static_cast<std::uint32_t>(thread));
    mix(what);
    mix(more);
    if (file_ == nullptr) return;
    std::fprintf(file_, "%lld.%09lld ", static_cast<long long>(ns / 1'000'000'000),
                 static_cast<long long>(ns % 1'000'000'000));
    if (process >= 0) std::fprintf(file_, "%d.%d ", process, thread);
    std::fwrite(what.data(), 1, what.size(), file_);
    if (!more.empty()) std::fputc(' ', file_);
    std::fwrite(more.data(), 1, more.size(), file_);
    std::fputc('\n', file_);
  }

  std::uint64_t hash() const noexcept { return hash_; }
  std::uint64_t lines() const noexcept { return lines_; }
  bool is_written() const noexcept { return file_ != nullptr; }

 private:
  void mix(std::uint64_t value) noexcept {
    hash_ = (hash_ ^ value) * 0x9e37'79b9'7f4a'7c15;
    hash_ ^= hash_ >> 29;
  }
  void mix(std::string_view text) noexcept {
    for (const char c : text) hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x0000'0100'0000'01b3;
  }

  std::FILE* const file_;
  std::uint64_t hash_ = 0xcbf2'9ce4'8422'2325;
  std::uint64_t lines_ = 0;
};

}  // namespace col::test
