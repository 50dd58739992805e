// Order checker: for every 32-byte cell of a memory, who wrote and who read which of its bytes last, and which are set.
//
// An earlier access by pipe a at its time t is ordered before an instruction whose clock is c iff c.t[a] >= t.
// Times only grow, also from one block to the next, so records of an earlier block on the same core never conflict.
#pragma once
#include <cstdint>
#include <cstring>
#include <vector>

#include "clock.hpp"

namespace sim {

struct Touch {
  uint32_t time = 0;
  uint32_t mask = 0;  // bytes of the cell
  uint8_t actor = 0;
  uint8_t flags = 0;  // kAtomic: adds, which do not conflict with each other
  uint16_t extent = 0;
};
constexpr uint8_t kAtomic = 1;

struct Cell {
  Touch write[2];
  Touch read[3];
  uint32_t init = 0;
};
static_assert(sizeof(Cell) == 64);

// One access as the checker sees it.
struct Probe {
  const Clock* clock;
  uint32_t time;
  uint8_t actor;
  uint8_t flags;
  uint16_t extent;
};

// An instruction is ordered with itself: reading what it overwrites is no conflict.
inline bool ordered(const Touch& touch, const Probe& probe) {
  return probe.clock->t[touch.actor] >= touch.time || (touch.actor == probe.actor && touch.time == probe.time);
}

// Stores `touch` into the first slot that it may replace: its own equal mask, an empty or covered one, or the last.
template <int N>
inline void store(Touch (&slots)[N], const Touch& touch, const Probe& probe) {
  for (Touch& slot : slots)
    if (slot.actor == touch.actor && (slot.mask | touch.mask) == touch.mask && slot.time <= touch.time) { slot = touch; return; }
  for (Touch& slot : slots)
    if (slot.mask == 0 || (ordered(slot, probe) && (slot.mask | touch.mask) == touch.mask)) { slot = touch; return; }
  for (Touch& slot : slots)
    if (slot.actor == touch.actor && slot.flags == touch.flags && slot.extent == touch.extent) {
      slot.mask |= touch.mask, slot.time = touch.time;
      return;
    }
  slots[N - 1] = touch;
}

// report(earlier, kind) with kind 'W' when the earlier access was a write, 'R' when it was a read.
template <class Report>
inline void check_read(Cell& cell, uint32_t mask, const Probe& probe, Report&& report) {
  // A byte is safe if any writer of the same value is ordered before; two unordered writers only remain when they agree.
  const Touch &a = cell.write[0], &b = cell.write[1];
  const uint32_t bad_a = ordered(a, probe) ? 0 : a.mask & mask, bad_b = ordered(b, probe) ? 0 : b.mask & mask;
  if (bad_a & ~(b.mask & ~bad_b)) report(a, 'W');
  if (bad_b & ~(a.mask & ~bad_a)) report(b, 'W');
  store(cell.read, Touch{probe.time, mask, probe.actor, probe.flags, probe.extent}, probe);
}

template <class Report>
inline void check_write(Cell& cell, uint32_t mask, const Probe& probe, Report&& report) {
  for (const Touch& w : cell.write)
    if ((w.mask & mask) && !ordered(w, probe) && !(w.flags & probe.flags & kAtomic)) report(w, 'W');
  for (const Touch& r : cell.read)
    if ((r.mask & mask) && !ordered(r, probe)) report(r, 'R');
}

inline void record_write(Cell& cell, uint32_t mask, const Probe& probe) {
  for (Touch& w : cell.write)
    if (ordered(w, probe)) w.mask &= ~mask;
  store(cell.write, Touch{probe.time, mask, probe.actor, probe.flags, probe.extent}, probe);
}

// f(cell index, byte mask) for the cells of [lo, lo + len).
template <class F>
inline void each_cell(uint64_t lo, uint64_t len, F&& f) {
  uint64_t hi = lo + len;
  uint64_t cell = lo / kCell;
  const uint32_t head = uint32_t(lo % kCell);
  if (head) {
    const uint32_t take = uint32_t(std::min<uint64_t>(kCell - head, len));
    f(cell++, ((take == 32 ? 0u : 1u << take) - 1u) << head);
    lo += take;
  }
  for (; lo + kCell <= hi; lo += kCell) f(cell++, 0xffffffffu);
  if (lo < hi) f(cell, (1u << (hi - lo)) - 1u);
}

}  // namespace sim
