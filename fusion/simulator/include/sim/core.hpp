// The state of one AI core while it runs a block: three streams, their clocks, memories, flags and logs.
#pragma once
#include <deque>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "fiber.hpp"
#include "findings.hpp"
#include "gm.hpp"
#include "trace.hpp"

namespace sim {

struct Core;

// A buffer of the address map, as the generated code declares it.
struct LocalBuffer {
  std::string name;
  Mem mem = Mem::UB;
  uint64_t lo = 0, hi = 0;
};

struct LocalMemory {
  std::vector<uint8_t> data;
  std::vector<Cell> cells;
  uint64_t limit = 0;   // bytes that the kernel may use
  uint64_t used = 0;    // high-water mark of this block, so that a reset costs what was used
};

// A local flag that is set: what the setter had done, and where.
struct FlagSet {
  Clock clock;
  int line = 0;
};

// One loop of the generated code that is running: its variable and where the value lives.
struct LoopVar {
  const char* name;
  const void* value;
  int size;
};

// The loop counters at one moment: up to four, outermost first.
struct Snapshot {
  int size = 0;
  const char* name[4] = {};
  int64_t value[4] = {};
};

struct LogEntry {
  uint16_t line;
  Op op;
  uint32_t loops;  // index of a snapshot of the loop counters
};

// An item queued on a pipe when execution is deferred.
struct Deferred {
  enum Kind { Run, Set, Wait, CrossSet } kind = Run;
  std::function<void()> run;
  int flag = -1, line = 0;
};

struct Stream {
  int id = 0;
  Core* core = nullptr;
  Fiber fiber;
  int line = 0;
  int sync_ordinal = 0;                 // how many synchronizations this line has executed, to name one for removal
  std::vector<LoopVar> loops;
  uint64_t loop_version = 0;

  Clock clock[kPipes];                  // what each pipe knows to be complete when its next instruction starts
  std::vector<LogEntry> log[kPipes];    // one entry per instruction of this block
  uint32_t log_base[kPipes] = {};       // time of the entry before the first
  std::vector<Snapshot> snapshots;
  uint64_t snapshot_version = ~0ull;

  LocalMemory mem[kMems];
  std::vector<FlagSet> flags[kPipes][kPipes][kLocalFlags];
  int wait_line[kPipes][kPipes][kLocalFlags] = {};   // a wait that no set has answered yet
  int last_set_line[kPipes][kPipes][kLocalFlags] = {};

  int atomic = 0;                       // 0 none, else the width code of SetAtomicAdd
  uint64_t mask[2] = {~0ull, ~0ull};
  float deq_scale = 1.0f;

  std::function<bool()> blocked;        // empty, or tells whether the stream may go on
  std::string waits_for;
  int waits_line = 0;
  bool at_sync_all = false;

  std::deque<Deferred> queue[kPipes];   // deferred mode: what waits on each pipe, and which flags are up
  int raised[kPipes][kPipes][kLocalFlags] = {};
  std::vector<TraceRecord> trace;
  uint64_t beyond = 0, beyond_hash = 0;  // records that were not kept: how many, their hash,
  std::map<std::pair<uint64_t, uint8_t>, uint64_t> beyond_moved;  // and the bytes they move, by start of the GM buffer and pipe
};

// Cross-core flag `id` as one stream sees it: the sets that arrived and were not taken, and the history for the limits.
struct CrossCounter {
  std::deque<FlagSet> pending;
  std::deque<std::pair<int, uint32_t>> taken;  // (actor, time) of the waits, oldest first, not yet known to the setter
  uint64_t sets = 0, known = 0;
  int raised = 0;                              // deferred mode
  std::set<int> set_lines;
};

struct AtomicAdd {
  int code;
  uint64_t off;
  uint32_t bytes;
};

struct Core {
  int64_t block = -1;
  int vectors = 2;
  uint32_t time[kActors] = {};
  Stream streams[kStreams];
  CrossCounter cross[kStreams][kCrossFlags];
  std::deque<FlagSet> half_set[2][2][kCrossFlags];  // [mode - 1][Vector stream]: sets that wait for the other stream's

  std::vector<int32_t> page_of;         // per GM page: index into pages, or -1
  std::vector<std::unique_ptr<GmPage>> pages;
  std::vector<uint64_t> touched;        // GM page numbers; pages[i] belongs to touched[i]
  std::vector<AtomicAdd> adds;
  std::vector<uint8_t> add_values;
  std::set<uint16_t> add_extents;

  Findings findings;
  std::mt19937_64 random;
  int epoch = 0;
  bool finished = true;
  uint64_t counts[kStreams][kPipes] = {};
  std::vector<uint64_t> op_counts, op_elements;
};

inline thread_local Stream* current = nullptr;

}  // namespace sim
