#include "colcheck/mailbox.hpp"

#include <fmt/format.h>

#include <col/job.hpp>

namespace col::colcheck {
namespace {

std::string order_key(std::uint64_t number) {
  return fmt::format("colcheck/order/{}", number);
}

std::string answer_key(std::uint64_t number, int rank) {
  return fmt::format("colcheck/answer/{}/{}", number, rank);
}

// Looks after the rank that is waited for.
class Watch final : public WaitObserver {
 public:
  Watch(const ContextSpec& spec, int rank) : spec_(spec), rank_(rank) {}

  bool on_slow(Duration) override {
    // One host: a rank's number in the job is that among its local ranks.
    if (!spec_.control || rank_ >= spec_.control->local_ranks()) return false;
    const RankRecord& record = spec_.control->record(rank_);
    if (record.lost())
      throw Error(ErrorCode::peer_lost, fmt::format("rank {} (pid {}) has died", rank_, record.read().pid), {}, rank_);
    return false;
  }

  void on_timeout(Duration budget) override {
    throw Error(ErrorCode::timeout,
                fmt::format("rank {} has not answered for {} s", rank_,
                            std::chrono::duration_cast<std::chrono::seconds>(budget).count()),
                {}, rank_);
  }

 private:
  const ContextSpec& spec_;
  int rank_;
};

}  // namespace

std::uint64_t Mailbox::post_order(const std::string& text) {
  store_.set(order_key(posted_), text);
  return posted_++;
}

void Mailbox::dismiss() noexcept {
  try {
    store_.set(order_key(posted_), "");
  } catch (const std::exception&) {  // they will find out that the lead is gone
  }
}

std::optional<std::string> Mailbox::wait_for_order(std::uint64_t number, Duration limit) {
  std::string text = wait(order_key(number), 0, limit);
  if (text.empty()) return std::nullopt;
  return text;
}

void Mailbox::post_answer(std::uint64_t number, const std::string& text) {
  store_.set(answer_key(number, spec_.rank), text);
}

std::string Mailbox::wait_for_answer(std::uint64_t number, int rank, Duration limit) {
  return wait(answer_key(number, rank), rank, limit);
}

void Mailbox::forget(std::uint64_t number) {
  store_.erase(order_key(number));
  for (int rank = 1; rank < spec_.world_size; ++rank) store_.erase(answer_key(number, rank));
}

std::string Mailbox::wait(const std::string& key, int rank, Duration limit) {
  Watch watch(spec_, rank);
  WaitContext context(Deadline::after(limit), spec_.control.get(), nullptr, &watch);
  return store_.wait(key, context);
}

}  // namespace col::colcheck
