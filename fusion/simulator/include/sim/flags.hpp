// Synchronization: flags between pipes, barriers, flags between the cores of a block, and the barrier of all cores.
#pragma once
#include "issue.hpp"

namespace sim {

// True if the user asked to leave out this synchronization (mutation tests).
inline bool dropped(Stream& s) {
  const int ordinal = s.sync_ordinal++;
  const auto& list = engine.options.dropped;
  return !list.empty() && (list.count({s.line, -1}) || list.count({s.line, ordinal}));
}

inline void note_sync(Stream& s, TraceKind kind, int pipe, int other, int flag) {
  if (!engine.options.trace) return;
  TraceRecord r;
  r.stream = s.id, r.pipe = uint8_t(pipe), r.kind = kind, r.other = uint8_t(other), r.flag = uint8_t(flag), r.line = s.line;
  keep_record(s, r);
}

// What pipe p has done so far, as a clock to hand over: its own work up to now, and all that it knows.
Clock released(Stream& s, int pipe);

void set_flag(Stream& s, int from, int to, int id);
void wait_flag(Stream& s, int from, int to, int id);
void pipe_barrier(Stream& s, int pipe);
void cross_set(Stream& s, int pipe, int mode, int id);
void cross_wait(Stream& s, int id);
void sync_all(Stream& s, bool vectors_only);

}  // namespace sim
