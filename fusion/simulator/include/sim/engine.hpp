// The launch-wide state, and the cold paths of the engine, which are compiled once (runtime.cpp).
#pragma once
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core.hpp"

namespace sim {

struct Options {
  std::string kernel;
  bool order = true;
  bool deferred = false;
  bool trace = false;
  bool binary_flags = false;
  bool outline = false;                   // only issue: no arithmetic on large tiles, and a trace of one block of each kind
  size_t kept = SIZE_MAX;                 // records of a stream that are kept; further ones are only counted
  bool probe = false;                     // outline: only the block in the middle
  std::set<int64_t> chosen;               // outline: the blocks to issue; empty: all
  uint64_t seed = 0;
  int vectors = 2, threads = 1;
  int64_t blocks = 0;
  std::set<std::pair<int, int>> dropped;  // (line, ordinal), ordinal -1 = all of the line
};

struct Engine {
  Options options;
  Gm gm;
  std::vector<LocalBuffer> locals;        // the address map; extents refer to it by index + 1
  std::map<int, uint16_t> local_of;         // line of the declaration -> extent
  std::mutex merge;
  std::condition_variable turn;
  std::map<int, int64_t> merged;          // per epoch: blocks merged so far
  Findings findings;
};
inline Engine engine;

inline void keep_record(Stream& s, const TraceRecord& record) {
  if (s.trace.size() < engine.options.kept) return s.trace.push_back(record);
  ++s.beyond, s.beyond_hash = fold(s.beyond_hash, record);
  if (!record.gm_bytes) return;
  for (const GmBuffer& b : engine.gm.buffers)
    if (b.lo <= record.gm_offset && record.gm_offset < b.hi) s.beyond_moved[{b.lo, record.pipe}] += record.gm_bytes;
}

// Cold paths. `report_conflict` gets the earlier access, the later instruction and which of the two wrote.
void report_conflict(Stream& s, Mem mem, const Extent& extent, uint64_t at, const Touch& earlier, char earlier_kind, char later_kind,
                     const Probe& probe, int line, Op op);
void report_duplicate(Stream& s, const Extent& extent, const Touch& earlier, const Probe& probe, int line, Op op);
void report(Stream& s, const char* rule, const char* kind, const char* severity, Mem mem, const Extent& extent, std::string message,
            int line, Op op, int pipe, uint64_t lo = 0, uint64_t hi = 0);
void report_clobbered(Stream& s, Mem mem, const Extent& extent, uint64_t at, const Touch& writer, int line, Op op, int pipe);
uint32_t new_snapshot(Stream& s);
std::string extent_name(Mem mem, const Extent& extent);
[[noreturn]] void stop(const std::string& message);

GmPage& open_page(Core& core, uint64_t page);
void flush_adds(Core& core, bool wait);
void push_deferred(Stream& s, int pipe, Deferred item);
void wait_until(Stream& s, std::function<bool()> ready, std::string what, int line);
void drain(Stream& s);

inline GmPage& gm_page(Core& core, uint64_t page) {
  const int32_t index = core.page_of[page];
  return index >= 0 ? *core.pages[index] : open_page(core, page);
}

}  // namespace sim
