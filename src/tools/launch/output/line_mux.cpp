#include "launch/output/line_mux.hpp"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/unique_fd.hpp"

namespace col::launch {
namespace {

// A source that holds nothing gives back more memory than this.
constexpr std::size_t kKeptPerSource = 4 * 1024;

void release_if_large(std::string& text, std::size_t kept) {
  if (text.capacity() > kept) std::string().swap(text);
}

// How many of the bytes are whole lines.
std::size_t whole_lines(std::string_view bytes) {
  const void* newline = bytes.empty() ? nullptr : ::memrchr(bytes.data(), '\n', bytes.size());
  return newline == nullptr ? 0 : static_cast<std::size_t>(static_cast<const char*>(newline) - bytes.data()) + 1;
}

// Where the last kLines ended lines of the bytes and what follows them begin, or 0.
std::size_t start_of_last_lines(std::string_view bytes) {
  std::size_t end = bytes.size();
  for (std::size_t count = 0; count <= LineTail::kLines; ++count) {
    const void* newline = end == 0 ? nullptr : ::memrchr(bytes.data(), '\n', end);
    if (newline == nullptr) return 0;
    end = static_cast<std::size_t>(static_cast<const char*>(newline) - bytes.data());
  }
  return end + 1;
}

}  // namespace

std::string_view LineStamp::text(std::chrono::system_clock::time_point time) {
  const auto microseconds = std::chrono::floor<std::chrono::microseconds>(time.time_since_epoch());
  const auto seconds = std::chrono::floor<std::chrono::seconds>(microseconds);
  if (const auto second = static_cast<std::time_t>(seconds.count()); second != second_) {
    std::tm local{};
    ::localtime_r(&second, &local);
    fmt::format("{:02}:{:02}:{:02}.", local.tm_hour, local.tm_min, local.tm_sec).copy(text_, 9);
    second_ = second;
  }
  fmt::format("{:06} ", (microseconds - seconds).count()).copy(text_ + 9, 7);
  return {text_, 16};
}

int LineMux::add_source(std::string label) {
  const bool decorated = !label.empty();
  Source source{.label = std::move(label), .decorated = decorated};
  for (int index = 0; forgotten_ > 0 && index < static_cast<int>(sources_.size()); ++index) {
    if (!is_unused(index)) continue;
    at(index) = std::move(source);
    --forgotten_;
    return index;
  }
  sources_.push_back(std::move(source));
  return static_cast<int>(sources_.size()) - 1;
}

bool LineMux::is_unused(int index) const {
  const Source& source = at(index);
  return source.forgotten && source.held.empty() && !source.waits && !source.partial && open_ != index;
}

void LineMux::forget(int source) {
  at(source).forgotten = true;
  ++forgotten_;
}

void LineMux::feed(int source, std::string_view bytes, Time now, std::string_view stamp) {
  Source& from = at(source);
  from.fed_at = now;
  from.decorated = from.decorated || !stamp.empty();
  hold(from, is_open_for(source) ? queue_directly(source, bytes, stamp) : bytes, stamp);
  pass_on(source, now);
  pass_on_waiting(now);
}

// Most bytes take this way: they are copied once. Returns what has to be held.
std::string_view LineMux::queue_directly(int index, std::string_view bytes, std::string_view stamp) {
  Source& from = at(index);
  if (const std::size_t lines = whole_lines(bytes); lines > 0) {
    emit(index, from.held.size());
    decorate(from, bytes.substr(0, lines), stamp, queue_);
    open_ = kNobody;
    bytes.remove_prefix(lines);
  }
  // After whole lines the rest is a new line: it has its own silence to wait for.
  if (bytes.empty() || (open_ != index && options_.unfinished != Unfinished::passed)) return bytes;
  decorate(from, bytes, stamp, queue_);
  open_ = index;
  return {};
}

// Appends the text to `to`, with stamp and label at every line's start.
void LineMux::decorate(Source& from, std::string_view text, std::string_view stamp, std::string& to) {
  if (text.empty()) return;
  if (from.label.empty() && stamp.empty() && !from.cut) {
    to.append(text);
    from.at_start = text.back() == '\n';
    return;
  }
  prefix_.assign(stamp).append(from.label);
  while (!text.empty()) {
    if (from.at_start) to.append(prefix_);
    if (std::exchange(from.cut, false)) to.append(kGoneOn);
    const std::size_t newline = text.find('\n');
    from.at_start = newline != std::string_view::npos;
    const std::size_t length = from.at_start ? newline + 1 : text.size();
    to.append(text.data(), length);
    text.remove_prefix(length);
  }
}

void LineMux::hold(Source& from, std::string_view text, std::string_view stamp) {
  if (const std::size_t lines = whole_lines(text); lines > 0) {
    decorate(from, text.substr(0, lines), stamp, from.held);
    whole_ += from.held.size() - from.whole;
    from.whole = from.held.size();
    text.remove_prefix(lines);
  }
  decorate(from, text, stamp, from.held);
}

void LineMux::close(int source, Time now) {
  at(source).closed = true;
  pass_on(source, now);
  pass_on_waiting(now);
}

bool LineMux::wants(int source) const {
  const Source& from = at(source);
  if (from.closed || pending().size() >= kMaxQueued) return false;
  // The source with the open line must be able to end it, however much the others hold.
  return open_ == source || (from.held.size() < kMaxHeld && whole_ < options_.max_held);
}

void LineMux::consume(std::size_t bytes) {
  consumed_ += bytes;
  if (consumed_ == queue_.size()) {
    queue_.clear();
    consumed_ = 0;
    release_if_large(queue_, options_.kept);
  } else if (consumed_ >= kMaxQueued) {
    queue_.erase(0, consumed_);
    consumed_ = 0;
  }
}

// Passes on what may go now of what the source holds: whole lines; the rest too when the source is closed or full, or
// nobody else writes there.
void LineMux::pass_on(int index, Time now) {
  Source& from = at(index);
  const bool all = from.closed || is_full(from) || options_.unfinished == Unfinished::passed;
  const bool rest_too = all || (from.silent && from.whole == 0);
  const bool some = !from.held.empty() && (from.whole > 0 || rest_too);
  if (some && !is_open_for(index) && at(open_).closed) end_open_line();
  if (!is_open_for(index)) {
    if (some) {
      wait(index, now);
    } else {
      note_partial(index);
    }
    return;
  }
  from.silent = false;
  emit(index, rest_too ? from.held.size() : from.whole);
  if (from.closed && open_ == index && (from.decorated || options_.ends_lines)) end_open_line();
  note_partial(index);
}

void LineMux::wait(int index, Time now) {
  if (at(index).waits) return;
  if (waiting_.empty()) waiting_since_ = now;
  waiting_.push_back(index);
  at(index).waits = true;
}

void LineMux::pass_on_waiting(Time now) {
  while (!waiting_.empty()) {
    // A closed source's open line is ended as soon as somebody waits behind it.
    if (!is_open_for(waiting_.front()) && at(open_).closed) end_open_line();
    if (!is_open_for(waiting_.front())) return;
    const int next = waiting_.front();
    waiting_.pop_front();
    at(next).waits = false;
    waiting_since_ = now;
    pass_on(next, now);
  }
}

// Moves the first `bytes` of what the source holds into the queue.
void LineMux::emit(int index, std::size_t bytes) {
  Source& from = at(index);
  if (bytes == 0) return;
  queue_.append(from.held, 0, bytes);
  open_ = queue_.back() == '\n' ? kNobody : index;
  from.held.erase(0, bytes);
  const std::size_t whole = std::min(from.whole, bytes);
  from.whole -= whole;
  whole_ -= whole;
  if (from.held.empty()) release_if_large(from.held, kKeptPerSource);
}

void LineMux::end_open_line() {
  Source& owner = at(open_);
  owner.at_start = true;  // should it go on, then with its label
  owner.cut = !owner.closed && options_.unfinished != Unfinished::shown;
  if (owner.cut) queue_.append(kGoesOn);
  queue_.push_back('\n');
  open_ = kNobody;
}

void LineMux::note_partial(int index) {
  Source& from = at(index);
  if (options_.unfinished != Unfinished::shown || from.held.empty() || from.partial || from.waits) return;
  from.partial = true;
  partial_.push_back(index);
}

std::optional<LineMux::Time> LineMux::deadline() const {
  std::optional<Time> first;
  const auto consider = [&](Time time) { first = first ? std::min(*first, time) : time; };
  if (!waiting_.empty()) consider(waiting_since_ + kPatience);
  for (int index : partial_) consider(at(index).fed_at + kSilence);
  return first;
}

void LineMux::tick(Time now) {
  if (!waiting_.empty() && now >= waiting_since_ + kPatience) {
    if (pending().size() >= kMaxQueued) {
      waiting_since_ = now;  // our reader is slow, not the owner of the open line
    } else {
      end_open_line();
      pass_on_waiting(now);
    }
  }
  std::vector<int> silent;
  std::erase_if(partial_, [&](int index) {
    Source& from = at(index);
    const bool is_silent = now >= from.fed_at + kSilence;
    if (is_silent && !from.held.empty()) silent.push_back(index);
    from.partial = !is_silent && !from.held.empty() && !from.waits;
    return !from.partial;
  });
  for (int index : silent) {
    at(index).silent = true;
    pass_on(index, now);
  }
}

void LineTail::feed(std::string_view bytes) {
  if (const std::size_t start = start_of_last_lines(bytes); start > 0) {
    ended_.clear();
    open_.clear();
    bytes_ = 0;
    bytes.remove_prefix(start);
  }
  for (std::size_t newline = bytes.find('\n'); newline != std::string_view::npos; newline = bytes.find('\n')) {
    append(bytes.substr(0, newline));
    end_line();
    bytes.remove_prefix(newline + 1);
  }
  append(bytes);
}

void LineTail::append(std::string_view text) {
  while (text.ends_with("\r\r")) text.remove_suffix(1);
  if (text.empty() || (text == "\r" && open_.ends_with('\r'))) return;
  // A return at the end may belong to a "\r\n"; whether it does shows with the next byte.
  const std::size_t last_return = text.substr(0, text.size() - 1).rfind('\r');
  if (last_return != std::string_view::npos || open_.ends_with('\r')) open_.clear();
  if (last_return != std::string_view::npos) text.remove_prefix(last_return + 1);
  open_.append(text.substr(0, kLineBytes - open_.size()));
  if (text.ends_with('\r')) open_.back() = '\r';
}

void LineTail::end_line() {
  if (open_.ends_with('\r')) open_.pop_back();
  bytes_ += open_.size();
  ended_.push_back(std::move(open_));
  open_.clear();
  while (ended_.size() > kLines || (bytes_ > max_bytes_ && ended_.size() > 1)) {
    bytes_ -= ended_.front().size();
    ended_.pop_front();
  }
}

std::vector<std::string> LineTail::lines() const {
  std::vector<std::string> lines(ended_.begin(), ended_.end());
  if (!open_.empty()) lines.push_back(open_.ends_with('\r') ? open_.substr(0, open_.size() - 1) : open_);
  if (lines.size() > kLines) lines.erase(lines.begin());
  return lines;
}

std::vector<std::string> last_lines_of_file(const std::string& path, off_t first) {
  const tools::UniqueFd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  constexpr auto kWindow = static_cast<off_t>((LineTail::kLines + 1) * LineTail::kLineBytes);
  const off_t start = std::max(first, info.st_size - kWindow);
  std::string text(static_cast<std::size_t>(std::max<off_t>(info.st_size - start, 0)), '\0');
  const ssize_t length = ::pread(file.get(), text.data(), text.size(), start);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  std::string_view lines = text;
  // The first line has lost its beginning; unless it is all there is, leave it out.
  const std::size_t newline = lines.find('\n');
  if (start > first && newline != std::string_view::npos && newline + 1 < lines.size())
    lines.remove_prefix(newline + 1);
  LineTail tail;
  tail.feed(lines);
  return tail.lines();
}

}  // namespace col::launch
