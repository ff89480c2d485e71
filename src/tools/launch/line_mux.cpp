#include "launch/line_mux.hpp"

#include <algorithm>
#include <utility>

namespace col::launch {

int LineMux::add_source(std::string label) {
  sources_.push_back({.label = std::move(label)});
  return static_cast<int>(sources_.size()) - 1;
}

void LineMux::feed(int source, std::string_view bytes, Time now) {
  Source& from = sources_[static_cast<std::size_t>(source)];
  from.held.append(bytes);
  from.fed_at = now;
  pass_on(source, now);
  pass_on_waiting(now);
}

void LineMux::close(int source, Time now) {
  sources_[static_cast<std::size_t>(source)].closed = true;
  pass_on(source, now);
  pass_on_waiting(now);
}

bool LineMux::wants(int source) const {
  const Source& from = sources_[static_cast<std::size_t>(source)];
  return !from.closed && from.held.size() < kMaxHeld && pending().size() < kMaxQueued;
}

void LineMux::consume(std::size_t bytes) {
  consumed_ += bytes;
  if (consumed_ == queue_.size()) {
    queue_.clear();
    consumed_ = 0;
  } else if (consumed_ >= kMaxQueued) {
    queue_.erase(0, consumed_);
    consumed_ = 0;
  }
}

// Passes on what may go now: whole lines; the rest too when the line is ours already, the source is closed or full.
void LineMux::pass_on(int index, Time now) {
  Source& from = sources_[static_cast<std::size_t>(index)];
  if (open_ != kNobody && open_ != index && sources_[static_cast<std::size_t>(open_)].closed && !from.held.empty()) {
    const bool whole = from.closed || from.held.size() >= kMaxHeld || from.held.find('\n') != std::string::npos;
    if (whole) end_open_line();
  }
  const std::size_t newline = from.held.rfind('\n');
  const std::size_t lines = newline == std::string::npos ? 0 : newline + 1;
  const bool all = open_ == index || from.closed || from.held.size() >= kMaxHeld;
  if (!is_open_for(index)) {
    if ((lines > 0 || all) && !from.held.empty() && !from.waits) {
      if (waiting_.empty()) waiting_since_ = now;
      waiting_.push_back(index);
      from.waits = true;
    }
    return;
  }
  // After whole lines the rest is a new line: it has its own silence to wait for.
  const bool rest_too = all && (lines == 0 || from.closed || from.held.size() - lines >= kMaxHeld);
  emit(index, rest_too ? from.held.size() : lines);
  if (from.closed && open_ == index && !from.label.empty()) end_open_line();
  if (!from.held.empty()) note_partial(index);
}

void LineMux::pass_on_waiting(Time now) {
  while (!waiting_.empty() && is_open_for(waiting_.front())) {
    const int next = waiting_.front();
    waiting_.pop_front();
    sources_[static_cast<std::size_t>(next)].waits = false;
    waiting_since_ = now;
    pass_on(next, now);
  }
  // A closed source's open line is ended as soon as somebody waits behind it.
  if (!waiting_.empty() && sources_[static_cast<std::size_t>(open_)].closed) {
    end_open_line();
    pass_on_waiting(now);
  }
}

// Moves the first `bytes` of what the source holds into the queue, with its label at every line's start.
void LineMux::emit(int index, std::size_t bytes) {
  Source& from = sources_[static_cast<std::size_t>(index)];
  if (bytes == 0) return;
  std::string_view text = std::string_view(from.held).substr(0, bytes);
  bool at_start = open_ != index;
  open_ = text.back() == '\n' ? kNobody : index;
  if (from.label.empty()) {
    queue_.append(text);
  } else {
    while (!text.empty()) {
      const std::size_t length = std::min(text.find('\n'), text.size() - 1) + 1;
      if (at_start) queue_.append(from.label);
      queue_.append(text.substr(0, length));
      text.remove_prefix(length);
      at_start = true;
    }
  }
  from.held.erase(0, bytes);
}

void LineMux::end_open_line() {
  queue_.push_back('\n');
  open_ = kNobody;
}

void LineMux::note_partial(int index) {
  Source& from = sources_[static_cast<std::size_t>(index)];
  if (from.partial) return;
  from.partial = true;
  partial_.push_back(index);
}

std::optional<LineMux::Time> LineMux::deadline() const {
  std::optional<Time> first;
  const auto consider = [&](Time time) { first = first ? std::min(*first, time) : time; };
  if (!waiting_.empty()) consider(waiting_since_ + kPatience);
  if (open_ == kNobody) {
    for (int index : partial_) consider(sources_[static_cast<std::size_t>(index)].fed_at + kSilence);
  }
  return first;
}

void LineMux::tick(Time now) {
  if (!waiting_.empty() && now >= waiting_since_ + kPatience) {
    if (pending().size() >= kMaxQueued) {
      waiting_since_ = now;  // it is our reader who is slow, not the owner of the open line
    } else {
      end_open_line();
      pass_on_waiting(now);
    }
  }
  std::erase_if(partial_, [&](int index) {
    Source& from = sources_[static_cast<std::size_t>(index)];
    const bool due = !from.held.empty() && open_ == kNobody && now >= from.fed_at + kSilence;
    if (due) emit(index, from.held.size());
    from.partial = !from.held.empty();
    return !from.partial;
  });
}

}  // namespace col::launch
