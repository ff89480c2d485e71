// Jobs of three ranks that hang, each in its way: shows what coljob says of them.
//
//   planted_hang --list      a line for each: name, cause, culprits, and words that the sentence must have, between
//   tabs planted_hang NAME DIR    one rank of it; creates DIR/<rank> when the rank comes to the place
//
// PLANTED_MEMORY=cuda: its buffers are in the memory of GPUs, one for each rank. PLANTED_STORE=URL: the ranks meet by
// that store alone, as in Ray, and COL_RANK is all that each has of a launcher.
#include <dlfcn.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <col/col.hpp>

namespace {

using col::Group;
using col::Options;

constexpr int kRanks = 3;
constexpr std::size_t kSmall = 8;
constexpr std::size_t kLarge = std::size_t{1} << 22;  // no channel takes so much on trust

// Where a rank is when it does not come: in its own code.
void stay_away() {
  for (;;) ::pause();
}

// Memory of the GPU that has this rank's number, by the driver, which needs no header for so little.
void* gpu_memory(std::size_t bytes, int gpu) {
  static void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) throw std::runtime_error("no driver of GPUs");
  const auto call = [](const char* name, auto... arguments) {
    const auto function = reinterpret_cast<int (*)(decltype(arguments)...)>(::dlsym(driver, name));
    if (function == nullptr || function(arguments...) != 0) throw std::runtime_error(std::string("the GPU: ") + name);
  };
  static void* context = nullptr;
  if (context == nullptr) {
    int device = 0;
    call("cuInit", 0U);
    call("cuDeviceGet", &device, gpu);
    call("cuDevicePrimaryCtxRetain", &context, device);
    call("cuCtxSetCurrent", context);
  }
  void* memory = nullptr;
  call("cuMemAlloc_v2", &memory, bytes);
  return memory;
}

bool is_on_gpu() {
  const char* const memory = std::getenv("PLANTED_MEMORY");
  return memory != nullptr && memory == std::string_view("cuda");
}

int rank_of_environment() {
  return std::atoi(std::getenv("COL_RANK"));
}

// A buffer, which lives as long as the process.
col::TensorView make_buffer(std::size_t count) {
  if (!is_on_gpu()) return {new float[count](), count, col::DType::float32};
  const int gpu = rank_of_environment();
  return {gpu_memory(count * sizeof(float), gpu), count, col::DType::float32, {col::Device::Type::cuda, gpu}};
}

// Room for one rank's part, and for the parts of all.
struct Room {
  explicit Room(std::size_t count = kSmall)
      : one(make_buffer(count)),
        all(make_buffer(count * kRanks)),
        result(make_buffer(count)),
        results(make_buffer(count * kRanks)),
        counts(kRanks, count) {}
  col::TensorView one, all, result, results;
  std::vector<std::size_t> counts;
};

struct Hang {
  std::string_view name, cause, culprits, words;
  std::function<void(Group&, int)> act;
};

using Call = std::function<void(Group&, Room&)>;

// All but `away` make the call, and then have nothing more to do.
std::function<void(Group&, int)> all_but(int away, Call call, std::size_t count = kSmall) {
  return [=](Group& world, int rank) {
    Room room(count);
    if (rank != away) call(world, room);
    stay_away();
  };
}

// Rank 2 starts the operation, and does not wait for it.
std::function<void(Group&, int)> unwaited(std::function<col::Work(Group&, Room&)> start) {
  return [=](Group& world, int rank) {
    Room room(kLarge);
    col::Work work = start(world, room);
    if (rank != 2) work.wait();
    stay_away();
  };
}

void collectives(std::vector<Hang>& hangs) {
  const auto add = [&](std::string_view name, int away, Call call) {
    const std::string_view culprit = away == 0 ? "0" : "2";
    hangs.push_back(
        {name, "own_code", culprit, "has not called it: it is in its own code", all_but(away, std::move(call))});
  };
  add("allreduce", 2, [](Group& g, Room& r) { g.allreduce(r.one, r.result); });
  add("reduce", 2, [](Group& g, Room& r) { g.reduce(r.one, r.result, {.root = 1}); });
  add("broadcast", 2, [](Group& g, Room& r) { g.broadcast(r.one, {.root = 2}); });
  add("allgather", 2, [](Group& g, Room& r) { g.allgather(r.one, r.results); });
  add("allgatherv", 2, [](Group& g, Room& r) { g.allgatherv(r.one, r.results, r.counts); });
  add("reduce_scatter", 2, [](Group& g, Room& r) { g.reduce_scatter(r.all, r.result); });
  add("reduce_scatterv", 2, [](Group& g, Room& r) { g.reduce_scatterv(r.all, r.result, r.counts); });
  add("gather", 2, [](Group& g, Room& r) { g.gather(r.one, r.results); });
  add("gatherv", 2, [](Group& g, Room& r) { g.gatherv(r.one, r.results, r.counts); });
  add("scatter", 2, [](Group& g, Room& r) { g.scatter(r.all, r.result, {.root = 2}); });
  add("scatterv", 2, [](Group& g, Room& r) { g.scatterv(r.all, r.counts, r.result, {.root = 2}); });
  add("alltoall", 2, [](Group& g, Room& r) { g.alltoall(r.all, r.results); });
  add("alltoallv", 2, [](Group& g, Room& r) { g.alltoallv(r.all, r.counts, r.results, r.counts); });
  add("scan", 0, [](Group& g, Room& r) { g.scan(r.one, r.result); });
  add("exscan", 0, [](Group& g, Room& r) { g.exscan(r.one, r.result); });
  add("barrier", 2, [](Group& g, Room&) { g.barrier(); });
  add("iallreduce", 2, [](Group& g, Room& r) { g.iallreduce(r.one, r.result).wait(); });
  add("ibarrier", 2, [](Group& g, Room&) { g.ibarrier().wait(); });
  add("ibroadcast", 2, [](Group& g, Room& r) { g.ibroadcast(r.one, {.root = 2}).wait(); });
  add("split", 2, [](Group& g, Room&) { g.split(0); });
  add("dup", 0, [](Group& g, Room&) { g.dup(); });
}

void unwaited_ones(std::vector<Hang>& hangs) {
  const auto add = [&](std::string_view name, std::function<col::Work(Group&, Room&)> start) {
    hangs.push_back({name, "not_waited", "2", "has started it and does not wait for it", unwaited(std::move(start))});
  };
  add("unwaited_allreduce", [](Group& g, Room& r) { return g.iallreduce(r.one, r.result); });
  add("unwaited_allgather", [](Group& g, Room& r) { return g.iallgather(r.one, r.results); });
  add("unwaited_alltoall", [](Group& g, Room& r) { return g.ialltoall(r.all, r.results); });
}

void messages(std::vector<Hang>& hangs) {
  const auto add = [&](std::string_view name, std::string_view cause, std::string_view culprits, std::string_view words,
                       std::function<void(Group&, int, Room&)> act, std::size_t count = kSmall) {
    hangs.push_back({name, cause, culprits, words, [=](Group& world, int rank) {
                       Room room(count);
                       act(world, rank, room);
                       stay_away();
                     }});
  };
  add("never_sent", "own_code", "0", "from rank 0 of group 'default': rank 0 .* has not sent it: it is in its own code",
      [](Group& g, int rank, Room& r) {
        if (rank == 1) g.recv(r.one, 0, {.tag = 5});
      });
  add(
      "never_received", "own_code", "1", "to rank 1 of group 'default': rank 1 .* does not receive it",
      [](Group& g, int rank, Room& r) {
        if (rank == 0) g.send(r.one, 1);
      },
      kLarge);
  add("wrong_tag", "wrong_tag", "0",
      "with tag 5 from rank 0 .*: rank 0 .* (has sent|waits to send) one with tag 6, which nobody receives",
      [](Group& g, int rank, Room& r) {
        if (rank == 0) g.send(r.one, 1, {.tag = 6});
        if (rank == 1) g.recv(r.one, 0, {.tag = 5});
      });
  add("wrong_tag_after_right_ones", "wrong_tag", "0", "with tag 5 .* (has sent|waits to send) one with tag 7, which",
      [](Group& g, int rank, Room& r) {
        for (const int tag : {5, 6, 5, 7}) {
          if (rank == 0) g.send(r.one, 1, {.tag = tag});
          if (rank == 1) g.recv(r.one, 0, {.tag = tag == 7 ? 5 : tag});
        }
      });
  add(
      "wrong_tag_large", "wrong_tag", "0", "with tag 5 from rank 0 .*: rank 0 .* waits to send one with tag 6",
      [](Group& g, int rank, Room& r) {
        if (rank == 0) g.send(r.one, 1, {.tag = 6});
        if (rank == 1) g.recv(r.one, 0, {.tag = 5});
      },
      kLarge);
  add("wrong_tag_of_irecv", "wrong_tag", "0", "with tag 1 from rank 0 .* (has sent|waits to send) one with tag 2",
      [](Group& g, int rank, Room& r) {
        if (rank == 0) g.send(r.one, 2, {.tag = 2});
        if (rank == 2) g.irecv(r.one, 0, {.tag = 1}).wait();
      });
  add(
      "circle_of_sends", "circle", "0,1,2",
      "in a circle.*: rank 0 for rank 1 in send .*; rank 1 for rank 2 .*; rank 2 for rank 0",
      [](Group& g, int rank, Room& r) { g.send(r.one, (rank + 1) % kRanks); }, kLarge);
  add("circle_of_receives", "circle", "0,1,2", "rank 0 for rank 2 in recv .*; rank 2 for rank 1 .*; rank 1 for rank 0",
      [](Group& g, int rank, Room& r) { g.recv(r.one, (rank + kRanks - 1) % kRanks); });
  add(
      "two_send_to_each_other", "circle", "0,1", "ranks 0-1 wait for one another",
      [](Group& g, int rank, Room& r) {
        if (rank < 2) g.send(r.one, 1 - rank);
      },
      kLarge);
  add("anybody", "own_code", "0,2", "in recv_any .*: ranks 0, 2 have sent none", [](Group& g, int rank, Room& r) {
    if (rank == 1) g.recv_any(r.one, {.tag = 3});
  });
  add("sendrecv", "own_code", "0", "in sendrecv .*: rank 0 .* does not take part", [](Group& g, int rank, Room& r) {
    if (rank == 1) g.sendrecv(r.one, 0, r.result, 0);
  });
  add("chain_of_receives", "own_code", "2",
      "in recv .* from rank 2 .*: rank 2 .* has not sent it.*; rank 0 waits for rank 1",
      [](Group& g, int rank, Room& r) {
        if (rank < 2) g.recv(r.one, rank + 1);
      });
  // Whom rank 2 waits for depends on the barrier's algorithm: if for rank 0, the one that has waited for longer has the
  // word.
  add("message_then_barrier", "own_code", "0",
      "(in recv .* from rank 0 .*: rank 0 .* has not sent it.*; rank 2 waits for|"
      "in barrier .*: rank 0 .* has not called it.*; rank 1 waits for rank 0 in recv)",
      [](Group& g, int rank, Room& r) {
        if (rank == 1) g.recv(r.one, 0);
        if (rank == 2) g.barrier();
      });
}

void several_groups(std::vector<Hang>& hangs) {
  hangs.push_back(
      {"crossed", "circle", "0,1",
       "rank 0 for rank 1 in barrier #1 of group 'rows'; rank 1 for rank 0 in barrier #1 of group 'columns'",
       [](Group& world, int rank) {
         const std::vector<int> ranks = {0, 1};
         Group rows = world.subgroup(ranks, "rows"), columns = world.subgroup(ranks, "columns");
         if (rank == 2) stay_away();
         (rank == 0 ? rows : columns).barrier();
         (rank == 0 ? columns : rows).barrier();
       }});
  hangs.push_back(
      {"across_groups", "own_code", "2",
       "rank 1 has waited .* in barrier .*: rank 2 .* has not called it.*; rank 0 waits for rank 1 in barrier",
       [](Group& world, int rank) {
         const std::vector<int> front = {0, 1}, back = {1, 2};
         Group of_front = world.subgroup(front, "front"), of_back = world.subgroup(back, "back");
         if (rank == 1) of_back.barrier();
         if (rank < 2) of_front.barrier();
         stay_away();
       }});
  hangs.push_back(
      {"in_a_subgroup", "own_code", "1", "of group 'pair'.*: rank 1 .* has not called it", [](Group& world, int rank) {
         const std::vector<int> ranks = {0, 1};
         Group pair = world.subgroup(ranks, "pair");
         if (rank == 0) pair.barrier();
         stay_away();
       }});
  hangs.push_back({"subgroup_renumbers", "wrong_tag", "2",
                   "with tag 1 from rank 2 of group 'tail': rank 2 .* (has sent|waits to send) one with tag 4",
                   [](Group& world, int rank) {
                     const std::vector<int> ranks = {1, 2};
                     Room room;
                     Group tail = world.subgroup(ranks, "tail");
                     if (rank == 2) tail.send(room.one, 0, {.tag = 4});
                     if (rank == 1) tail.recv(room.one, 1, {.tag = 1});
                     stay_away();
                   }});
}

void others(std::vector<Hang>& hangs) {
  hangs.push_back(
      {"stopped_before", "stopped", "2", "rank 2 .* stands still: a signal .SIGSTOP", [](Group& world, int rank) {
         if (rank == 2) ::raise(SIGSTOP);
         world.barrier();
       }});
  hangs.push_back({"stopped_in_calls", "stopped", "2", "rank 2 .* stands still", [](Group& world, int rank) {
                     Room room;
                     for (int call = 0;; ++call) {
                       // From a thread of no call: it may strike anywhere.
                       if (rank == 2 && call == 1000) ::kill(::getpid(), SIGSTOP);
                       world.allreduce(room.one, room.result);
                     }
                   }});
  hangs.push_back({"after_many_calls", "own_code", "1", "rank 1 .* has not called it: .*last: allreduce #5000\\)",
                   [](Group& world, int rank) {
                     Room room;
                     for (int call = 0; call < 5000; ++call) world.allreduce(room.one, room.result);
                     if (rank != 1) world.barrier();
                     stay_away();
                   }});
  hangs.push_back({"two_away", "own_code", "1,2", "ranks 1-2 have not called it: they are in their own code",
                   [](Group& world, int rank) {
                     if (rank == 0) world.barrier();
                     stay_away();
                   }});
}

std::vector<Hang> all_hangs() {
  std::vector<Hang> hangs;
  collectives(hangs);
  unwaited_ones(hangs);
  messages(hangs);
  several_groups(hangs);
  others(hangs);
  hangs.push_back(
      {"not_joined", "own_code", "2", "in the making of group 'default': rank 2 .* has not joined", nullptr});
  return hangs;
}

void say_there(const std::string& directory, int rank) {
  std::ofstream(directory + "/" + std::to_string(rank));
}

Group join() {
  const char* const url = std::getenv("PLANTED_STORE");
  if (url == nullptr) return col::init();
  const int rank = rank_of_environment();
  static col::Context context(col::ContextSpec::meet(col::open_store(url), rank, kRanks, "planted"));
  return context.init_group({.rank = rank, .world_size = kRanks});
}

void run(const std::string& name, const std::string& directory) {
  for (const Hang& hang : all_hangs()) {
    if (hang.name != name) continue;
    if (hang.act == nullptr) {
      const int rank = rank_of_environment();
      say_there(directory, rank);
      if (rank == 2) stay_away();
      join();
      return;
    }
    Group world = join();
    say_there(directory, world.rank());
    hang.act(world, world.rank());
    return;
  }
  throw std::runtime_error("no such hang");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 2 && argv[1] == std::string_view("--list")) {
      for (const Hang& hang : all_hangs())
        std::printf("%s\t%s\t%s\t%s\n", std::string(hang.name).c_str(), std::string(hang.cause).c_str(),
                    std::string(hang.culprits).c_str(), std::string(hang.words).c_str());
      return 0;
    }
    if (argc != 3) return 2;
    run(argv[1], argv[2]);
    return 0;
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
