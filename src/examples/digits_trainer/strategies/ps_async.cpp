// Strategy "ps-async": rank 0 is the parameter server, all others are workers, and nobody waits for all.
//
//   worker   computes the gradient of its shard of step s, pushes it, and waits for the answer: parameters for s + 1
//   server   takes pushes in the order in which they come, adds each to the parameters at once, and answers
//
// The bound: the server keeps back the answer to a worker that is more than `staleness` steps ahead of the slowest,
// until the slowest has caught up. So gradients are of parameters that lack a few pushes of others, and never many.
//
// The momentum is of steps, not of pushes: the server lets the velocity decay and act once for each step, when its
// first push comes; every push then goes into velocity and parameters. When all pushes of a step are in, that is the
// synchronous step. Therefore staleness 0, where all wait for all, is synchronous training, and the other strategies
// can go on from the state after an epoch.
//
// Ho and others: More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server, NIPS 2013.
#include "strategies/ps_async.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace digits {
namespace {

constexpr int kServer = 0;
constexpr int kPush = 1;  // tags
constexpr int kPull = 2;

}  // namespace

AsyncServer::AsyncServer(Workplace& place, std::uint64_t staleness, std::vector<float> velocity)
    : place_(place),
      staleness_(staleness),
      workers_(static_cast<std::size_t>(place.world.size() - 1)),
      pushed_(velocity.size() + 1) {
  if (place.world.rank() == kServer) {
    velocity_ = std::move(velocity);
    answers_.resize(workers_);
    sent_.resize(workers_);
  } else {
    gradient_.resize(velocity.size());
  }
}

double AsyncServer::train(std::span<const std::uint32_t> order) {
  const Steps steps = batches(order, place_.batch);
  std::array<double, 1> loss{0};
  if (place_.world.rank() == kServer) {
    loss[0] = serve(steps);
  } else {
    work(steps);
  }
  // The epoch ends for all together: it is tested then, and may be saved.
  place_.communication([&] {
    place_.world.broadcast(place_.model.parameters(), {.root = kServer});
    place_.world.broadcast(loss, {.root = kServer});
  });
  return loss[0];
}

void AsyncServer::work(const Steps& steps) {
  for (const auto batch : steps) {
    const Shard mine = shard(batch.size(), place_.world.rank() - 1, static_cast<int>(workers_));
    sum_over_images(place_, batch.subspan(mine.begin, mine.end - mine.begin), gradient_, pushed_);
    place_.communication([&] {
      place_.world.send(pushed_, kServer, {.tag = kPush});
      place_.world.recv(place_.model.parameters(), kServer, {.tag = kPull});
    });
  }
}

double AsyncServer::serve(const Steps& steps) {
  Clocks clocks(workers_, staleness_);
  std::size_t begun = 0;  // steps of which a push has come
  double loss = 0;
  while (clocks.slowest() < steps.size()) {
    int source = 0;
    place_.communication([&] { source = place_.world.recv_any(pushed_, {.tag = kPush}); });
    const auto worker = static_cast<std::size_t>(source - 1);
    const std::size_t step = clocks.steps(worker);
    add_push(step_scale(place_, steps[step].size()), step == begun);
    begun = std::max(begun, step + 1);
    loss += static_cast<double>(pushed_.back());
    for (const std::size_t free : clocks.end_step(worker)) answer(free);
  }
  largest_lead_ = std::max(largest_lead_, clocks.largest_lead());
  place_.communication([&] { col::wait_all(sent_); });
  return loss;
}

void AsyncServer::add_push(float scale, bool first_of_step) {
  const std::span<float> parameters = place_.model.parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (first_of_step) {
      velocity_[i] *= kMomentum;
      parameters[i] += velocity_[i];
    }
    velocity_[i] -= scale * pushed_[i];
    parameters[i] -= scale * pushed_[i];
  }
}

// A copy is sent, and not waited for: the parameters move on meanwhile, and a slow worker holds up nobody.
void AsyncServer::answer(std::size_t worker) {
  sent_[worker].wait();  // it has ended: the worker has pushed since
  const std::span<float> parameters = place_.model.parameters();
  answers_[worker].assign(parameters.begin(), parameters.end());
  sent_[worker] = place_.world.isend(answers_[worker], static_cast<int>(worker) + 1, {.tag = kPull});
}

std::vector<float> AsyncServer::velocity() {
  std::vector<float> whole = velocity_;
  whole.resize(place_.model.parameters().size());
  place_.world.broadcast(whole, {.root = kServer});
  return whole;
}

std::string AsyncServer::introduction() const {
  return "strategy ps-async: rank 0 is the server of " + std::to_string(workers_) +
         (workers_ == 1 ? " worker" : " workers") + ", staleness " + std::to_string(staleness_);
}

std::string AsyncServer::summary() const {
  return "largest lead of a worker over the slowest: " + std::to_string(largest_lead_) +
         (largest_lead_ == 1 ? " step" : " steps") + " (staleness " + std::to_string(staleness_) + ")";
}

}  // namespace digits
