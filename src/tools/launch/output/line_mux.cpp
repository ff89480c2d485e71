#include "launch/output/line_mux.hpp"

#include <string.h>

#include <algorithm>
#include <utility>

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

}  // namespace

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
  if (bytes.empty() || (open_ != index && !options_.one_source)) return bytes;
  decorate(from, bytes, stamp, queue_);
  open_ = index;
  return {};
}

// Appends the text to `to`, with stamp and label at every line's start.
void LineMux::decorate(Source& from, std::string_view text, std::string_view stamp, std::string& to) {
  if (text.empty()) return;
  if (from.label.empty() && stamp.empty()) {
    to.append(text);
    from.at_start = text.back() == '\n';
    return;
  }
  prefix_.assign(stamp).append(from.label);
  while (!text.empty()) {
    if (from.at_start) to.append(prefix_);
    const std::size_t newline = text.find('\n');
    from.at_start = newline != std::string_view::npos;
    const std::size_t length = from.at_start ? newline + 1 : text.size();
    to.append(text.data(), length);
    text.remove_prefix(length);
  }
}

void LineMux::hold(Source& from, std::string_view text, std::string_view stamp) {
  if (text.empty()) return;
  const std::size_t before = from.held.size();
  if (const std::size_t lines = whole_lines(text); lines > 0) {
    decorate(from, text.substr(0, lines), stamp, from.held);
    from.whole = from.held.size();
    text.remove_prefix(lines);
  }
  decorate(from, text, stamp, from.held);
  held_ += from.held.size() - before;
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
  return open_ == source || (from.held.size() < kMaxHeld && held_ < options_.max_held);
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

// Passes on what may go now of what the source holds: whole lines; the rest too when the source is closed or full.
void LineMux::pass_on(int index, Time now) {
  Source& from = at(index);
  const bool all = from.closed || from.silent || is_full(from);
  const bool some = !from.held.empty() && (from.whole > 0 || all);
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
  const bool rest_too = all && (from.whole == 0 || from.closed || from.held.size() - from.whole >= kMaxHeld);
  emit(index, rest_too ? from.held.size() : from.whole);
  if (from.closed && open_ == index && from.decorated) end_open_line();
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
  from.whole -= std::min(from.whole, bytes);
  held_ -= bytes;
  if (from.held.empty()) release_if_large(from.held, kKeptPerSource);
}

void LineMux::end_open_line() {
  queue_.push_back('\n');
  at(open_).at_start = true;  // should it go on, then with its label
  open_ = kNobody;
}

void LineMux::note_partial(int index) {
  Source& from = at(index);
  if (from.held.empty() || from.partial || from.waits) return;
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

}  // namespace col::launch
