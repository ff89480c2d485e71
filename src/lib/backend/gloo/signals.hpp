// Signals around foreign code.
#pragma once

#include <csignal>

namespace col::gloo_backend {

// Blocks every signal, so that a thread that is started meanwhile inherits the mask. So signals of the process are
// never delivered to a thread that the program does not know about.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() noexcept;
  ~AllSignalsBlocked();
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace col::gloo_backend
