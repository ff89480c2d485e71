// "Rank 0 orders, all ranks answer": how a tool's ranks work together. Orders and answers are texts.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <col/group.hpp>
#include <col/store.hpp>

namespace col::tools {

// Every rank has one over the same store or group. Not thread safe. All that waits ends early with peer_lost if the
// rank that it waits for has died, and with timeout if it does not answer; both errors name the rank.
class Coordinator {
 public:
  // Carries out the order of this number, counted from 0, on this rank. Returns the answer.
  using CarryOut = std::function<std::string(std::uint64_t number, const std::string& order)>;

  virtual ~Coordinator() = default;

  // Rank 0: all ranks carry the order out. Returns their answers, in rank order. Requires: `order` is not empty.
  // `limit`: how much longer than this rank another one may take.
  std::vector<std::string> give(const std::string& order, Duration limit, const CarryOut& carry_out);
  // Rank 0: the other ranks return from follow().
  void dismiss() noexcept;
  // The other ranks: carries out orders until there are no more. Waits `patience` at most for each.
  void follow(Duration patience, const CarryOut& carry_out);

 private:
  virtual void send(const std::string& order) = 0;
  virtual std::string receive(Duration patience) = 0;
  virtual void answer(const std::string& text) = 0;
  virtual std::vector<std::string> gather(const std::string& own, Duration limit) = 0;

 protected:
  std::uint64_t number_ = 0;  // of the order that is being given or carried out
};

// Dismisses the ranks, however rank 0's own work ends.
struct Dismissal {
  Coordinator& coordinator;
  ~Dismissal() { coordinator.dismiss(); }
};

// Needs no collectives. Uses the keys "`name`/…" of the job's store. Both arguments must outlive it.
std::unique_ptr<Coordinator> coordinator_over(Store& store, const ContextSpec& spec, const std::string& name);
// Fast: an order of up to 64 bytes is one broadcast.
std::unique_ptr<Coordinator> coordinator_over(Group group);

}  // namespace col::tools
