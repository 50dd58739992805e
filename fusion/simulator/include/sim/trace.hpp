// The instruction trace: what a scheduler needs to time the same execution. One fixed record per instruction.
#pragma once
#include <cstdint>
#include <cstring>

namespace sim {

// `kind` says which fields count: Run: op, elements, repeats, bytes, gm_*; Set/Wait: pipe (from), other (to), flag;
// CrossSet/CrossWait: pipe, flag, mode in `other`; Barrier: pipe (7 = all); Scalar: op, bytes; End: nothing.
enum class TraceKind : uint8_t { Run, Set, Wait, Barrier, CrossSet, CrossWait, Scalar, SyncAll, End };

struct TraceRecord {
  uint8_t stream = 0, pipe = 0;
  TraceKind kind = TraceKind::Run;
  uint8_t flag = 0;
  uint8_t other = 0;
  uint8_t element_bytes = 0;
  uint16_t op = 0;
  uint32_t line = 0;
  uint32_t elements = 0;
  uint32_t repeats = 0;      // Vector: 256-byte repeats; Cube: fractal steps; copies: bursts
  uint32_t bytes = 0;        // bytes written by the instruction
  uint64_t gm_offset = 0;    // first GM byte, as an offset into the launch's arena
  uint32_t gm_bytes = 0;
  uint32_t m = 0, n = 0, k = 0;  // Mmad and Fixpipe; rows, columns and direction of a reduction or broadcast
  uint64_t moved = 0;            // in the summary of records that were not kept: their GM bytes
};
static_assert(sizeof(TraceRecord) == 56);

// A hash of the records so far and one more, whatever GM address it touches.
inline uint64_t fold(uint64_t hash, TraceRecord record) {
  record.gm_offset = 0;
  uint64_t words[sizeof record / 8];
  std::memcpy(words, &record, sizeof record);
  for (uint64_t w : words) hash = (hash ^ w) * 1099511628211ull, hash ^= hash >> 29;
  return hash;
}

}  // namespace sim
