// Strategy "pipeline": the two layers of the network are two stages, each with a rank of its own. The first half of the
// ranks has the hidden layer, the second half the output layer; rank r and rank r + n/2 are one pipeline. The pipelines
// train data-parallel: each takes its shard of a batch, and the ranks of a stage add up their gradients.
//
// A pipeline cuts its shard into micro-batches, so that both of its ranks have work. The schedule is 1F1B, "one
// forward, one backward": after its first micro-batch, each stage goes forward through one and backward through one in
// turns. So stage 0 keeps the activations of two micro-batches, however many there are.
//
//   stage 0   F0  F1  B0  F2  B1  F3  B2      B3     F: sends activations    B: receives their gradients
//   stage 1       FB0     FB1     FB2     FB3
//
// Micro-batches are added up in the order of their images, so a pipeline of two ranks has the bits of one process.
//
// Narayanan and others: PipeDream: Generalized Pipeline Parallelism for DNN Training, SOSP 2019.
#include "strategies/pipeline.hpp"

#include <algorithm>
#include <array>

namespace digits {
namespace {

constexpr std::size_t kMicroBatches = 4;  // of a pipeline in a step; fewer for fewer images

}  // namespace

Pipeline::Pipeline(Workplace& place, std::span<const float> velocity)
    : place_(place),
      pipelines_(place.world.size() / 2),
      stage_(place.world.rank() / pipelines_),
      peer_((place.world.rank() + pipelines_) % place.world.size()),
      replicas_(place.world.split(stage_)),
      gradient_(velocity.size()) {
  const std::size_t cut = place.model.shape().hidden_parameters();
  own_ = stage_ == 0 ? Shard{0, cut} : Shard{cut, velocity.size()};
  const auto mine = velocity.subspan(own_.begin, own_.end - own_.begin);
  velocity_.assign(mine.begin(), mine.end());
  fused_.resize(mine.size() + 1);
}

double Pipeline::train(std::span<const std::uint32_t> order) {
  std::array<double, 1> loss{0};
  for (const auto batch : batches(order, place_.batch)) loss[0] += step(batch);
  place_.communication([&] {
    place_.world.broadcast(loss, {.root = pipelines_});  // the first of stage 1
    join_stages(place_.model.parameters());              // for the test, which has no stages
  });
  return loss[0];
}

double Pipeline::step(std::span<const std::uint32_t> batch) {
  const Shard mine = shard(batch.size(), place_.world.rank() % pipelines_, pipelines_);
  const auto images = batch.subspan(mine.begin, mine.end - mine.begin);
  const MicroBatches micro =
      batches(images, std::max<std::size_t>(1, (images.size() + kMicroBatches - 1) / kMicroBatches));
  std::fill(gradient_.begin(), gradient_.end(), 0.0);
  double loss = 0;
  if (!micro.empty()) {
    if (stage_ == 0) {
      hidden_stage(micro);
    } else {
      loss = output_stage(micro);
    }
  }

  for (std::size_t i = own_.begin; i < own_.end; ++i) fused_[i - own_.begin] = static_cast<float>(gradient_[i]);
  fused_.back() = static_cast<float>(loss);
  place_.communication([&] { replicas_.allreduce(fused_); });
  const float scale = step_scale(place_, batch.size());
  const std::span<float> parameters = place_.model.parameters().subspan(own_.begin, velocity_.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    velocity_[i] = kMomentum * velocity_[i] - scale * fused_[i];
    parameters[i] += velocity_[i];
  }
  return static_cast<double>(fused_.back());
}

void Pipeline::hidden_stage(const MicroBatches& micro) {
  const std::size_t width = place_.model.shape().hidden;
  std::array<std::vector<float>, 2> hidden;  // of the micro-batches that are on their way: even and odd ones
  std::vector<float> delta;
  const auto forward = [&](std::size_t m) {
    std::vector<float>& out = hidden[m % 2];
    out.resize(micro[m].size() * width);
    for (std::size_t i = 0; i < micro[m].size(); ++i) {
      place_.model.hidden_forward(place_.dataset.train[micro[m][i]], std::span(out).subspan(i * width, width));
    }
  };
  const auto backward = [&](std::size_t m) {
    for (std::size_t i = 0; i < micro[m].size(); ++i) {
      place_.model.hidden_backward(place_.dataset.train[micro[m][i]],
                                   std::span(hidden[m % 2]).subspan(i * width, width),
                                   std::span(delta).subspan(i * width, width), gradient_);
    }
  };

  forward(0);
  place_.communication([&] { place_.world.send(hidden[0], peer_); });
  for (std::size_t m = 0; m < micro.size(); ++m) {
    delta.resize(micro[m].size() * width);
    if (m + 1 < micro.size()) {
      forward(m + 1);
      place_.communication([&] { place_.world.sendrecv(hidden[(m + 1) % 2], peer_, delta, peer_); });
    } else {
      place_.communication([&] { place_.world.recv(delta, peer_); });
    }
    backward(m);
  }
}

double Pipeline::output_stage(const MicroBatches& micro) {
  const std::size_t width = place_.model.shape().hidden;
  std::array<std::vector<float>, 2> hidden;  // this micro-batch's and the next one's
  std::vector<float> delta;
  double loss = 0;
  hidden[0].resize(micro[0].size() * width);
  place_.communication([&] { place_.world.recv(hidden[0], peer_); });
  for (std::size_t m = 0; m < micro.size(); ++m) {
    delta.resize(micro[m].size() * width);
    for (std::size_t i = 0; i < micro[m].size(); ++i) {
      loss += place_.model.output_step(std::span(hidden[m % 2]).subspan(i * width, width),
                                       place_.dataset.train[micro[m][i]].label,
                                       std::span(delta).subspan(i * width, width), gradient_);
    }
    if (m + 1 < micro.size()) {
      std::vector<float>& next = hidden[(m + 1) % 2];
      next.resize(micro[m + 1].size() * width);
      place_.communication([&] { place_.world.sendrecv(delta, peer_, next, peer_); });
    } else {
      place_.communication([&] { place_.world.send(delta, peer_); });
    }
  }
  return loss;
}

void Pipeline::join_stages(std::span<float> values) {
  const std::size_t cut = place_.model.shape().hidden_parameters();
  place_.world.broadcast(values.first(cut), {.root = 0});
  place_.world.broadcast(values.subspan(cut), {.root = pipelines_});
}

std::vector<float> Pipeline::velocity() {
  std::vector<float> whole(gradient_.size());
  std::copy(velocity_.begin(), velocity_.end(), whole.begin() + static_cast<std::ptrdiff_t>(own_.begin));
  join_stages(whole);
  return whole;
}

std::string Pipeline::introduction() const {
  return "strategy pipeline: " + std::to_string(pipelines_) + (pipelines_ == 1 ? " pipeline" : " pipelines") +
         " of 2 stages; rank 0 has the hidden layer, rank " + std::to_string(pipelines_) + " the output layer";
}

}  // namespace digits
