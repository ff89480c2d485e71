// Texts between the lead and the ranks, through the job's store.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <col/group.hpp>
#include <col/store.hpp>

namespace col::colcheck {

// As thread safe as the store. Every wait ends early, with peer_lost, if the rank that it waits for is found to be
// dead.
class Mailbox {
 public:
  // Both must outlive it.
  Mailbox(Store& store, const ContextSpec& spec) : store_(store), spec_(spec) {}

  // For the lead. Returns the order's number, counted from 0.
  std::uint64_t post_order(const std::string& text);
  // The last order: the ranks must end.
  void dismiss() noexcept;
  // For the other ranks. Returns nothing after the last order. Throws col::Error: timeout, peer_lost, aborted.
  std::optional<std::string> wait_for_order(std::uint64_t number, Duration limit);
  void post_answer(std::uint64_t number, const std::string& text);
  std::string wait_for_answer(std::uint64_t number, int rank, Duration limit);
  // The lead calls it when it has all answers.
  void forget(std::uint64_t number);

 private:
  std::string wait(const std::string& key, int rank, Duration limit);

  Store& store_;
  const ContextSpec& spec_;
  std::uint64_t posted_ = 0;
};

}  // namespace col::colcheck
