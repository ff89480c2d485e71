// A program that was compiled with the headers of a baseline: what it passes to libcol and gets from it has the shape
// of then.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <col/col.hpp>
#include <col/store.hpp>

namespace {

// libcol calls the virtual functions of a class of the program, and the program those of libcol's.
class Forwarding : public col::Store {
 public:
  void set(std::string_view key, std::string_view value) override { inner_->set(key, value); }
  std::optional<std::string> get(std::string_view key) override { return inner_->get(key); }
  std::string wait(std::string_view key, col::WaitContext& wait) override { return inner_->wait(key, wait); }
  std::int64_t add(std::string_view key, std::int64_t delta) override { return inner_->add(key, delta); }
  std::optional<std::string> compare_set(std::string_view key, std::optional<std::string_view> expected,
                                         std::string_view desired) override {
    return inner_->compare_set(key, expected, desired);
  }
  bool erase(std::string_view key) override { return inner_->erase(key); }
  std::size_t num_keys(std::string_view prefix) override { return inner_->num_keys(prefix); }

 private:
  std::shared_ptr<col::Store> inner_ = col::make_memory_store();
};

int failed(const char* what) {
  std::fprintf(stderr, "older_program: %s\n", what);
  return 1;
}

}  // namespace

int main() {
  auto store = std::make_shared<Forwarding>();
  auto view = col::make_prefix_store(store, "job/");
  view->set("a", "1");
  if (view->add("a", 2) != 3 || store->num_keys({}) != 1 || !view->erase("a")) return failed("a store of its own");

  col::Group world = col::init({.backend = col::Backend::automatic, .timeout = std::chrono::minutes(1)});
  std::vector<std::int32_t> values{world.rank(), -world.rank()};
  world.allreduce(values,
                  {.op = col::ReduceOp::max, .timeout = std::chrono::minutes(1), .tag = 0, .deterministic = true});
  if (values != std::vector{world.size() - 1, 0}) return failed("allreduce");
  std::vector<double> sent(5, world.rank());
  world.broadcast(sent, {.root = world.size() - 1});
  if (sent[4] != world.size() - 1) return failed("broadcast");
  try {
    world.broadcast(sent, {.root = 1000});
    return failed("a root that is none");
  } catch (const col::Error& error) {
    if (error.code() != col::ErrorCode::invalid_argument || std::string(error.what()).empty())
      return failed("an error");
  }
  col::finalize();
  std::printf("rank is done\n");
}
