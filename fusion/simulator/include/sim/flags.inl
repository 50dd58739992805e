// Flags and barriers, eager (with clocks) and deferred (with counters).
#pragma once
#include "flags.hpp"

namespace sim {

static std::string flag_name(int from, int to, int id) {
  return std::string(kPipeNames[from]) + "_" + kPipeNames[to] + "(" + std::to_string(id) + ")";
}

Clock released(Stream& s, int pipe) {
  Clock c = s.clock[pipe];
  const uint32_t* time = s.core->time;
  const int base = s.id * kPipes;
  c.join(s.clock[PIPE_S]);
  c.t[base + PIPE_S] = time[base + PIPE_S];
  c.t[base + pipe] = time[base + pipe];
  if (pipe == PIPE_S) c.t[base + kScalarStore] = time[base + kScalarStore];
  return c;
}

static bool valid_flag(Stream& s, int from, int to, int id, Op op) {
  if (id >= 0 && id < kLocalFlags) return true;
  report(s, "flag-id", "flag", "error", Mem::GM, {}, flag_name(from, to, id) + ": the event ids are 0 to 7", s.line, op, from);
  return false;
}

void set_flag(Stream& s, int from, int to, int id) {
  if (dropped(s)) return;
  note_sync(s, TraceKind::Set, from, to, id);
  if (!valid_flag(s, from, to, id, Op::SetFlag)) return;
  if (engine.options.deferred) {
    if (from == PIPE_S) ++s.raised[from][to][id];
    else push_deferred(s, from, Deferred{Deferred::Set, {}, to * kLocalFlags + id, s.line});
    return;
  }
  auto& up = s.flags[from][to][id];
  if (!up.empty())
    report(s, "flag-set-twice", "flag", "error", Mem::GM, {}, flag_name(from, to, id) + " is set again before anything waits for it; first set at line " + std::to_string(up.back().line), s.line, Op::SetFlag, from);
  s.last_set_line[from][to][id] = s.line;
  if (int& waiting = s.wait_line[from][to][id]) {
    report(s, "wait-before-set", "flag", "error", Mem::GM, {}, flag_name(from, to, id) + " is waited for at line " + std::to_string(waiting) + " before it is set", s.line, Op::SetFlag, from);
    waiting = 0;
    s.clock[to].join(released(s, from));
    return;
  }
  up.push_back({released(s, from), s.line});
}

void wait_flag(Stream& s, int from, int to, int id) {
  if (dropped(s)) return;
  note_sync(s, TraceKind::Wait, from, to, id);
  if (!valid_flag(s, from, to, id, Op::WaitFlag)) return;
  if (engine.options.deferred) {
    int& raised = s.raised[from][to][id];
    if (to != PIPE_S) return push_deferred(s, to, Deferred{Deferred::Wait, {}, from * kLocalFlags + id, s.line});
    wait_until(s, [&raised] { return raised > 0; }, "flag " + flag_name(from, to, id), s.line);
    --raised;
    return;
  }
  auto& up = s.flags[from][to][id];
  if (!up.empty()) {
    s.clock[to].join(up.front().clock);
    up.erase(up.begin());
  } else if (to == PIPE_S) {
    wait_until(s, [] { return false; }, "flag " + flag_name(from, to, id), s.line);
  } else {
    s.wait_line[from][to][id] = s.line;
  }
}

static void barrier(Stream& s, int pipe) {
  if (engine.options.deferred) {
    if (pipe == PIPE_ALL) drain(s);
    return;
  }
  const int base = s.id * kPipes;
  if (pipe != PIPE_ALL) {
    s.clock[pipe].t[base + pipe] = s.core->time[base + pipe];
    if (pipe == PIPE_S) s.clock[pipe].t[base + kScalarStore] = s.core->time[base + kScalarStore];
    return;
  }
  Clock all;
  for (int p = 0; p < kScalarStore; ++p) all.join(released(s, p));
  for (int p = 0; p < kScalarStore; ++p) s.clock[p] = all;
}

void pipe_barrier(Stream& s, int pipe) {
  if (dropped(s)) return;
  note_sync(s, TraceKind::Barrier, pipe, pipe, 0);
  barrier(s, pipe);
}

static void raise_cross(Stream& s, CrossCounter& counter, const FlagSet& set, int target, int id) {
  counter.set_lines.insert(set.line);
  ++counter.sets;
  while (!counter.taken.empty() && set.clock.t[counter.taken.front().first] >= counter.taken.front().second) counter.taken.pop_front(), ++counter.known;
  const uint64_t outstanding = counter.sets - counter.known;
  const auto name = [&] { return "cross-core flag " + std::to_string(id) + " of " + kStreamNames[target]; };
  if (outstanding > kCrossCounterLimit)
    report(s, "cross-flag-counter", "flag", "error", Mem::GM, {}, name() + " can reach " + std::to_string(kCrossCounterLimit + 1) + " sets that nothing has taken; its counter holds " + std::to_string(kCrossCounterLimit), set.line, Op::CrossCoreSetFlag, PIPE_S);
  else if (outstanding > 1)
    report(s, "cross-flag-not-binary-safe", "flag", engine.options.binary_flags ? "error" : "warning", Mem::GM, {}, name() + " can be set again before the last set is taken: right only if the flag counts", set.line, Op::CrossCoreSetFlag, PIPE_S);
  counter.pending.push_back(set);
}

static void deliver(Stream& s, int mode, int id, const FlagSet& set) {
  Core& core = *s.core;
  if (s.id == 0) {
    for (int v = 1; v <= core.vectors; ++v) raise_cross(s, core.cross[v][id], set, v, id);
    return;
  }
  auto& halves = core.half_set[mode - 1];
  halves[s.id - 1][id].push_back(set);
  if (core.vectors == 2 && (halves[0][id].empty() || halves[1][id].empty())) return;
  FlagSet both = halves[s.id - 1][id].front();
  for (int v = 0; v < core.vectors; ++v) both.clock.join(halves[v][id].front().clock), halves[v][id].pop_front();
  if (mode == 2) return raise_cross(s, core.cross[0][id], both, 0, id);
  for (int v = 1; v <= core.vectors; ++v) raise_cross(s, core.cross[v][id], both, v, id);
}

void cross_set(Stream& s, int pipe, int mode, int id) {
  if (dropped(s)) return;
  note_sync(s, TraceKind::CrossSet, pipe, mode, id);
  if (mode != 1 && mode != 2) stop("CrossCoreSetFlag mode " + std::to_string(mode) + " at line " + std::to_string(s.line) + " is not simulated; modes 1 and 2 are");
  if (id < 0 || id >= kCrossFlagLimit)
    report(s, "cross-flag-id", "flag", "error", Mem::GM, {}, "cross-core flag " + std::to_string(id) + "; the ids are 0 to " + std::to_string(kCrossFlagLimit - 1), s.line, Op::CrossCoreSetFlag, pipe);
  if (id < 0 || id >= kCrossFlags) return;
  if (engine.options.deferred) return push_deferred(s, pipe, Deferred{Deferred::CrossSet, {}, mode * kCrossFlags + id, s.line});
  deliver(s, mode, id, {released(s, pipe), s.line});
}

void cross_wait(Stream& s, int id) {
  if (dropped(s)) return;
  note_sync(s, TraceKind::CrossWait, PIPE_S, 0, id);
  if (id < 0 || id >= kCrossFlags) return;
  CrossCounter& counter = s.core->cross[s.id][id];
  const std::string name = "cross-core flag " + std::to_string(id);
  if (engine.options.deferred) {
    wait_until(s, [&counter] { return counter.raised > 0; }, name, s.line);
    counter.raised = engine.options.binary_flags ? 0 : counter.raised - 1;
    return;
  }
  wait_until(s, [&counter] { return !counter.pending.empty(); }, name, s.line);
  s.clock[PIPE_S].join(counter.pending.front().clock);
  counter.pending.pop_front();
  const int actor = s.id * kPipes + PIPE_S;
  const uint32_t time = ++s.core->time[actor];
  note_step(s, PIPE_S, Op::CrossCoreWaitFlag);
  counter.taken.push_back({actor, time});
}

void sync_all(Stream& s, bool vectors_only) {
  if (dropped(s)) return;
  note_sync(s, TraceKind::SyncAll, PIPE_ALL, vectors_only, 0);
  if (vectors_only && s.id == 0) return;
  barrier(s, PIPE_ALL);
  s.at_sync_all = true;
  wait_until(s, [&s] { return !s.at_sync_all; }, "SyncAll", s.line);
}

}  // namespace sim
