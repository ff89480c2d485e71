// Collectives of a backend's own that do not keep our numerics: where they are used, and where they are not.
#include <array>
#include <cstdlib>
#include <fstream>
#include <span>
#include <vector>

#include <col/col.hpp>
#include <col/device.hpp>

#include "colcheck/engine/special_inputs.hpp"
#include "support/catch.hpp"
#include "support/memory_channel.hpp"
#include "support/reductions.hpp"
#include "support/temp_dir.hpp"

namespace {

using namespace col::colcheck;
using namespace col::test;
using col::NativeEntry;
using col::ReduceOp;

// The memory backend's channel, with three allreduces of its own. All add in the order in which they list the ranks;
// "rounding" in 16 bits, "dropping" with comparisons that a NaN loses.
class CarelessChannel : public col::Channel {
 public:
  CarelessChannel(std::unique_ptr<col::Channel> inner, int rank, int size, const col::Capabilities& can = {})
      : Channel(can), inner_(std::move(inner)), rank_(rank), size_(size) {}

  col::Ticket post_send(int peer, std::uint64_t slot, col::ConstTensorView data) override {
    return inner_->post_send(peer, slot, data);
  }
  col::Ticket post_recv(int peer, std::uint64_t slot, col::TensorView data) override {
    return inner_->post_recv(peer, slot, data);
  }
  std::optional<int> test(col::Ticket ticket) override { return inner_->test(ticket); }
  int wait(col::Ticket ticket, col::WaitContext& wait) override { return inner_->wait(ticket, wait); }
  std::span<const NativeEntry> native_entries() const override { return kEntries; }
  void abort(const col::Error& cause) noexcept override { inner_->abort(cause); }

  col::Ticket start_native(const col::Request& request, col::WaitContext& wait) override {
    const std::size_t bytes = request.in.bytes();
    std::vector<std::vector<std::byte>> all(static_cast<std::size_t>(size_), std::vector<std::byte>(bytes));
    std::vector<col::Ticket> tickets;
    for (int peer = 0; peer < size_; ++peer) {
      auto& block = all[static_cast<std::size_t>(peer)];
      if (peer == rank_) {
        const auto* own = static_cast<const std::byte*>(request.in.data);
        block.assign(own, own + bytes);
        continue;
      }
      tickets.push_back(
          inner_->post_recv(peer, request.fingerprint, {block.data(), request.in.count, request.in.dtype}));
      tickets.push_back(inner_->post_send(peer, request.fingerprint, request.in));
    }
    for (const col::Ticket ticket : tickets) inner_->wait(ticket, wait);
    if (request.in.dtype == col::DType::bfloat16)
      combine<col::bfloat16>(request, all);
    else
      combine<float>(request, all);
    return col::kEnded;
  }

  static constexpr std::array kEntries = {
      NativeEntry{col::Collective::allreduce, "rounding", true, false},
      NativeEntry{col::Collective::allreduce, "dropping", false, true},
      NativeEntry{.collective = col::Collective::allreduce, .name = "careful", .built_in_only = true},
  };

 private:
  template <class T>
  void combine(const col::Request& request, const std::vector<std::vector<std::byte>>& all) const {
    auto* const out = static_cast<T*>(request.out.data);
    for (std::size_t i = 0; i < request.in.count; ++i) {
      const auto element = [&](int rank) {
        return static_cast<float>(reinterpret_cast<const T*>(all[static_cast<std::size_t>(rank)].data())[i]);
      };
      float partial = element(0);
      for (int rank = 1; rank < size_; ++rank) {
        const float next = element(rank);
        if (request.op.reduce_op() != ReduceOp::min)
          partial += next;
        else if (request.algorithm == "dropping")
          partial = partial < next ? partial : next;  // a NaN on the left is forgotten
        else
          partial = col::tools::extreme(false, partial, next);
        if (request.algorithm == "rounding") partial = static_cast<float>(T(partial));
      }
      out[i] = T(partial);
    }
  }

  std::unique_ptr<col::Channel> inner_;
  int rank_, size_;
};

// The same over what it says is the memory of a device.
class CarelessDeviceChannel final : public CarelessChannel, public col::DeviceOps {
 public:
  CarelessDeviceChannel(std::unique_ptr<col::Channel> inner, int rank, int size)
      : CarelessChannel(std::move(inner), rank, size, {.device = this}) {}
  col::Device device() const override { return {col::Device::Type::cuda, 0}; }
  void check(const col::Request&) const override {}
  bool is_captured(col::Stream) const override { return false; }
  void post_after(col::Stream) override {}
  std::vector<col::Ticket> start_together(std::span<const col::Request* const> requests,
                                          col::WaitContext& wait) override {
    std::vector<col::Ticket> tickets;
    for (const col::Request* request : requests) tickets.push_back(start_native(*request, wait));
    return tickets;
  }
  col::MultiChannel* multi() override { return nullptr; }
};

class CarelessBackend final : public col::BackendFactory {
 public:
  explicit CarelessBackend(bool on_device) : on_device_(on_device) {}
  std::string_view name() const override { return on_device_ ? "careless_device" : "careless"; }
  col::Device::Type device() const override { return on_device_ ? col::Device::Type::cuda : col::Device::Type::cpu; }
  std::optional<std::string> unavailable_reason() const override { return std::nullopt; }
  std::unique_ptr<col::Channel> connect(const col::ConnectRequest& request, col::WaitContext& wait) override {
    auto inner = inner_->connect(request, wait);
    if (on_device_) return std::make_unique<CarelessDeviceChannel>(std::move(inner), request.rank, request.size);
    return std::make_unique<CarelessChannel>(std::move(inner), request.rank, request.size);
  }
  std::string describe(const col::ConnectRequest&) const override { return "memory of this process"; }

 private:
  const bool on_device_;
  std::unique_ptr<col::BackendFactory> inner_ = make_memory_backend();
};

// A variable of the environment for the life of the object.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) { ::setenv(name, value.c_str(), 1); }
  ~Environment() { ::unsetenv(name_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
};

// A table whose first rule asks for `algorithm`, whatever the call.
std::string table_with(const TempDir& dir, const std::string& algorithm) {
  const std::string path = dir / algorithm;
  std::ofstream(path)
      << R"({"version": 1, "evidence": {"machine": "none", "date": "none", "command": "none"}, "rules": [)"
      << R"({"collective": "allreduce", "algorithm": ")" << algorithm << R"("}]})";
  return path;
}

void on_careless(const std::function<void(col::Group& group)>& body, const std::string& backend = "careless") {
  if (col::find_backend(backend) == nullptr)
    col::register_backend(std::make_unique<CarelessBackend>(backend == "careless_device"));
  const auto outcomes = run_threads(3, [&](int rank, col::Context& context) {
    col::Group group = context.init_group({.name = "g", .rank = rank, .world_size = 3, .backend_name = backend});
    body(group);
  });
  INFO(show(outcomes));
  CHECK(all_good(outcomes));
}

std::string explain(const col::Group& group, col::DType dtype, ReduceOp op, bool deterministic = false) {
  return group.explain(col::Collective::allreduce, 64, dtype, {.op = op, .deterministic = deterministic});
}

void expect_refused(col::Group& group, col::DType dtype, ReduceOp op, std::string_view name, const std::string& why) {
  try {
    group.explain(col::Collective::allreduce, 64, dtype, {.op = op, .algorithm = name});
  } catch (const col::Error& error) {
    expect(error.code() == col::ErrorCode::invalid_argument, error.what());
    expect(error.message().find(why) != std::string::npos, error.what());
    return;
  }
  expect(false, fmt::format("{} was not refused", name));
}

}  // namespace

TEST_CASE("native: one that rounds at every hop is never chosen for narrow floats", "[numerics]") {
  const TempDir dir;
  const Environment table("COL_SELECTION", table_with(dir, "rounding"));
  on_careless([](col::Group& group) {
    expect(explain(group, col::DType::float32, ReduceOp::sum).starts_with("rounding: "));
    for (const auto dtype : {col::DType::bfloat16, col::DType::float16, col::DType::float8_e4m3fn}) {
      const std::string text = explain(group, dtype, ReduceOp::sum);
      expect(!text.starts_with("rounding: ") &&
                 text.find(fmt::format("rounds {} at every hop", to_string(dtype))) != std::string::npos,
             text);
    }
    std::vector<col::bfloat16> data(3, col::bfloat16(group.rank() == 0 ? 256.0F : 1.5F));
    group.allreduce(data);
    expect(static_cast<float>(data[1]) == 260.0F, "rounded once: 259, between 258 and 260");
  });
}

TEST_CASE("native: one that may lose a NaN is never chosen for min and max", "[numerics]") {
  const TempDir dir;
  const Environment table("COL_SELECTION", table_with(dir, "dropping"));
  on_careless([](col::Group& group) {
    expect(explain(group, col::DType::float32, ReduceOp::sum).starts_with("dropping: "));
    for (const auto op : {ReduceOp::min, ReduceOp::max}) {
      const std::string text = explain(group, col::DType::float32, op);
      expect(!text.starts_with("dropping: ") && text.find("may lose a NaN") != std::string::npos, text);
    }
    std::vector<float> data(3, group.rank() == 0 ? Encoding<float>::nan(0) : 1.0F);
    group.allreduce(data, {.op = ReduceOp::min});
    expect(std::isnan(data[2]), "the NaN is gone");
  });
}

TEST_CASE("native: by name it runs and shows its weakness; strict numerics refuse it", "[numerics]") {
  on_careless([](col::Group& group) {
    std::vector<col::bfloat16> data(3, col::bfloat16(group.rank() == 0 ? 256.0F : 0.5F));
    group.allreduce(data, {.algorithm = "rounding"});
    expect(static_cast<float>(data[1]) == 256.0F, "both halves are lost");
    std::vector<float> numbers(3, group.rank() == 0 ? Encoding<float>::nan(0) : 1.0F);
    group.allreduce(numbers, {.op = ReduceOp::min, .algorithm = "dropping"});
    expect(numbers[0] == 1.0F, "the NaN is lost");
  });
  const Environment strict("COL_NUMERICS", "strict");
  on_careless([](col::Group& group) {
    expect_refused(group, col::DType::bfloat16, ReduceOp::sum, "rounding", "rounds bfloat16 at every hop");
    expect_refused(group, col::DType::float32, ReduceOp::max, "dropping", "may lose a NaN");
    // What it keeps in any case, it may do.
    std::vector<float> data(3, 2.0F);
    group.allreduce(data, {.algorithm = "rounding"});
    group.allreduce(data, {.algorithm = "dropping"});
    group.allreduce(data, {.op = ReduceOp::min, .algorithm = "careful"});
    expect(data[0] == 18.0F);
  });
}

TEST_CASE("native: one that takes built-in operators alone is never given a function", "[numerics]") {
  const TempDir dir;
  const Environment table("COL_SELECTION", table_with(dir, "careful"));
  on_careless([](col::Group& group) {
    const auto sum = [](const void* left, const void* right, void* result, std::size_t count, col::DType) {
      for (std::size_t i = 0; i < count; ++i)
        static_cast<float*>(result)[i] = static_cast<const float*>(left)[i] + static_cast<const float*>(right)[i];
    };
    const col::Op mine = col::Op::user(sum, true, "mine");
    const std::string text = group.explain(col::Collective::allreduce, 64, col::DType::float32, {.op = mine});
    expect(text.find("careful does not take the operator 'mine'") != std::string::npos, text);
    expect(explain(group, col::DType::int32, ReduceOp::bxor).starts_with("careful: "));
    std::vector<float> data(3, 2.0F);
    group.allreduce(data, {.op = mine});
    expect(data[0] == 6.0F);
  });
}

TEST_CASE("native: none is deterministic, not even one without a weakness", "[numerics]") {
  const TempDir dir;
  const Environment table("COL_SELECTION", table_with(dir, "careful"));
  on_careless([](col::Group& group) {
    expect(explain(group, col::DType::float32, ReduceOp::sum).starts_with("careful: "));
    const std::string text = explain(group, col::DType::float32, ReduceOp::sum, true);
    expect(text.find("careful does not promise rank order") != std::string::npos, text);
  });
  const Environment deterministic("COL_NUMERICS", "deterministic");
  on_careless([](col::Group& group) {
    expect_refused(group, col::DType::float32, ReduceOp::sum, "careful", "does not promise rank order");
    expect_refused(group, col::DType::float32, ReduceOp::sum, "ring", "rank order");
    std::vector<float> data(3, group.rank() == 0 ? 0x1p24F : 1.0F);
    group.allreduce(data);
    expect(data[0] == 0x1p24F, "(2^24 + 1) + 1 is 2^24 in this order alone");
  });
}

TEST_CASE("native: a backend on a device is worth its weaknesses, whatever its name, unless numerics are strict",
          "[numerics]") {
  const auto by = [](const col::Group& group, col::DType dtype, ReduceOp op) {
    const std::string text = explain(group, dtype, op);
    return text.substr(0, text.find(':'));
  };
  on_careless(
      [&](col::Group& group) {
        expect(group.device().type == col::Device::Type::cuda, "the group is one of the device");
        expect(by(group, col::DType::bfloat16, ReduceOp::sum) == "rounding", "it rounds, and is taken");
        expect(by(group, col::DType::float32, ReduceOp::min) == "rounding", "the first that can serve");
      },
      "careless_device");
  const Environment strict("COL_NUMERICS", "strict");
  on_careless(
      [&](col::Group& group) {
        expect(by(group, col::DType::bfloat16, ReduceOp::sum) == "dropping", "the first that does not round");
        expect(by(group, col::DType::float32, ReduceOp::min) == "rounding", "the first that keeps a NaN");
      },
      "careless_device");
}
