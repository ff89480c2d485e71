// The bytes of a control page. There are only atomics, because any process may read and write at any time, and may be
// killed at any instruction. There are no fences, because ThreadSanitizer does not know them: each word has its own
// release and acquire.
//
//   PageHeader | record of local rank 0 | record of local rank 1 | ... | recorder of local rank 0 | ...
//
// Raise kPageVersion with every change here.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include <col/job.hpp>

#include "core/unique_fd.hpp"

namespace col::core {

inline constexpr std::uint64_t kPageMagic = 0x656761706c6f6321;  // "!colpage" in memory order
inline constexpr std::uint32_t kPageVersion = 10;

using Word = std::atomic<std::uint64_t>;
static_assert(Word::is_always_lock_free && sizeof(Word) == 8, "shared between processes");

// Text of at most kBytes bytes. Readers and writers order its words by the flag that belongs to the text.
template <std::size_t kBytes>
class AtomicText {
 public:
  static_assert(kBytes % 8 == 0);

  // Keeps what fits in kBytes - reserved, and cuts between two UTF-8 characters.
  void store(std::string_view text, std::size_t reserved = 1) noexcept {
    const Words words = words_of(text, reserved);
    for (std::size_t i = 0; i < words.size(); ++i) words_[i].store(words[i], std::memory_order_release);
  }

  void copy(const AtomicText& other) noexcept {
    for (std::size_t i = 0; i < words_.size(); ++i)
      words_[i].store(other.words_[i].load(std::memory_order_acquire), std::memory_order_release);
  }

  bool is_empty() const noexcept { return words_.front().load(std::memory_order_relaxed) == 0; }
  void clear() noexcept { words_.front().store(0, std::memory_order_release); }

  // Whether store(text) would change nothing. Only for the writer.
  bool holds(std::string_view text) const noexcept {
    const Words words = words_of(text, 1);
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words_[i].load(std::memory_order_relaxed) != words[i]) return false;
    }
    return true;
  }

  std::string load() const {
    std::array<char, kBytes> bytes;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      const std::uint64_t word = words_[i].load(std::memory_order_acquire);
      std::memcpy(bytes.data() + i * 8, &word, 8);
    }
    return std::string(bytes.data(), ::strnlen(bytes.data(), kBytes));
  }

 private:
  using Words = std::array<std::uint64_t, kBytes / 8>;

  static Words words_of(std::string_view text, std::size_t reserved) noexcept {
    std::size_t size = text.size();
    if (size > kBytes - reserved) {
      size = kBytes - reserved;
      while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;
    }
    Words words{};
    if (size > 0) std::memcpy(words.data(), text.data(), size);
    return words;
  }

  std::array<Word, kBytes / 8> words_;
};

// Why the job ends. `claimed` decides which process writes. `ready` says that everything is written.
struct AbortSlot {
  Word claimed;  // 0, or the time (CLOCK_MONOTONIC, ns) at which a process won the right to write; CAS once
  std::atomic<std::uint32_t> ready;
  std::atomic<std::int32_t> code;
  std::atomic<std::int32_t> rank;
  AtomicText<ControlPage::kMaxMessage> message;
};

struct alignas(256) PageHeader {
  Word magic;
  std::atomic<std::uint32_t> version;
  std::atomic<std::uint32_t> local_ranks;
  Word job_hash;
  Word made_ns;  // since the epoch
  Word maker;    // ProcessId
  // How often something has happened that may end a wait: the job is aborted, a rank's process has ended. Who waits
  // sleeps on it, too. Before `abort`: one look at one cache line reads both.
  std::atomic<std::uint32_t> news;
  AbortSlot abort;
};

// Each record has its own cache lines, because ranks write their records all the time.
struct alignas(256) RecordLayout {
  Word process;         // ProcessId of the process that holds the record, 0 when none has joined; changed only by CAS
  Word state_and_rank;  // State in the upper half, rank in the lower: right even while a writer is stopped
  Word version;         // of the words below: odd while a process writes them
  Word sequence;
  Word fingerprint;
  Word step_and_peer;
  Word since_ns;
  Word held_up_by;  // global rank + 1; 0: nobody
  AtomicText<48> group;
  AtomicText<16> op;
  Word partner_and_tag;
  Word elements;    // dtype, label, count
  Word seen_alive;  // time at which a process saw the holder alive (CLOCK_MONOTONIC, ms); its pid in the lower 22 bits
  // Written by the launcher, each once for each process of the place.
  Word started;  // the rank + 1 above 32 bits of pid; 0: the launcher has not said
  Word ended;    // twice how often another process was started here, + 1 if this one has ended, above its wait status
  Word entries;  // of the ring that are older than the words above: a call that came later is in the ring alone
  Word rounds_and_method;  // round of the plan and how many it has, 16 bits each; reduction and algorithm
  Word bytes_done;
  AtomicText<56> place;
  Word epoch;  // 1 + RankRecord::epoch(); 0: none
};
static_assert(sizeof(RecordLayout) == 256, "no more than its own cache lines");

// One call or message in the ring of a rank (core/job/call_ring.hpp).
struct RingEntry {
  Word call;             // sequence, operation, group and EntryState; 0: none
  Word partner_and_tag;  // of a collective, reduction and algorithm in the place of the tag
  Word elements;         // dtype, label, count
  Word at_ns;            // when it ended, or was started
  Word took_ns;          // of one that is timed
};

// A label, and the number that belongs to it: another one may take its place.
struct NotedLabel {
  Word number;
  AtomicText<48> text;
};

// A call that a rank has announced, for the others to compare: AnnouncedCalls.
struct AnnouncedCall {
  Word stream;  // of calls that have numbers
  Word number;  // in it; 0 while the others are written
  Word hash;    // of all that must be equal
};

// The ring of a rank, and what its entries name by number: apart from its record, which is read often. All zero before
// the first call.
struct alignas(256) RecorderLayout {
  static constexpr std::size_t kGroups = 64;      // of number 0 nothing is known
  static constexpr std::size_t kAlgorithms = 64;  // the same
  static constexpr std::size_t kLabels = 128;
  Word entries;                           // how many, ever; the last one may be of a call that is under way
  Word waited_ns;                         // RingEntry::took_ns of all, ever
  Word entered;                           // how many groups, ever
  std::array<Word, kGroups> tokens;       // 0: free, 1: being written
  std::array<Word, kGroups> tokens_ever;  // the same, but those of groups that are gone stay
  std::array<Word, kGroups> last;         // number of the last collective
  std::array<AtomicText<48>, kGroups> names;
  std::array<AtomicText<32>, kAlgorithms> algorithms;  // empty: free
  std::array<NotedLabel, kLabels> labels;              // by number
  std::array<RingEntry, RankRecord::kRecordedCalls> calls;
  std::array<AnnouncedCall, 1024> announced;  // each at the place that follows from its stream and number
};

// ---- Its memory: anonymous, or mapped from a file, which appears under its name only when it is complete ------------

// A mapped page with a valid header. Unmapped by the destructor; the file stays.
class PageMapping {
 public:
  PageMapping(void* address, std::size_t size_bytes) noexcept : address_(address), size_bytes_(size_bytes) {}
  PageMapping(PageMapping&& other) noexcept;
  PageMapping& operator=(PageMapping&& other) noexcept;
  ~PageMapping();

  PageHeader& header() const noexcept;
  RecordLayout* record(int local_rank) const noexcept;
  RecorderLayout* recorder(int local_rank) const noexcept;

 private:
  void* address_;
  std::size_t size_bytes_;
};

enum class Publish { replace, keep_existing };

// Creates the page at `path` and replaces an existing file. With keep_existing, returns nothing if a file already
// exists. Throws invalid_argument for a number of ranks that no host has, io, resource.
std::optional<PageMapping> create_page_file(const std::string& path, int local_ranks, std::string_view job_id,
                                            Publish publish);
// Maps the page at `path`; nothing when there is no file. Throws io, resource, mismatch.
std::optional<PageMapping> open_page_file(const std::string& path, std::string_view job_id);
// The same, of any job of this user.
std::optional<PageMapping> open_any_page_file(const std::string& path);
PageMapping create_anonymous_page(int local_ranks);
// A page in a file without a name: other processes open the descriptor as /proc/<pid>/fd/<n> while this one has it. The
// kernel removes the page when the last process has let go of it. Throws as create_page_file().
UniqueFd create_unnamed_page(int local_ranks, std::string_view job_id);

}  // namespace col::core
