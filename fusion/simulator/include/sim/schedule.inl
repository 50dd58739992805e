// Running one block: the three streams take turns; in deferred mode a random legal order of every pipe's queue is drawn.
#pragma once
#include "flags.hpp"

namespace sim {

void wait_until(Stream& s, std::function<bool()> ready, std::string what, int line) {
  if (ready()) return;
  s.blocked = std::move(ready);
  s.waits_for = std::move(what);
  s.waits_line = line;
  s.fiber.yield();
  s.blocked = nullptr;
}

void push_deferred(Stream& s, int pipe, Deferred item) {
  s.queue[pipe].push_back(std::move(item));
  s.fiber.yield();
}

static bool idle(Stream& s) {
  for (const auto& q : s.queue)
    if (!q.empty()) return false;
  return true;
}

void drain(Stream& s) {
  wait_until(s, [&s] { return idle(s); }, "PipeBarrier<PIPE_ALL>", s.line);
}

static void deliver_count(Stream& s, int mode, int id) {
  Core& core = *s.core;
  auto raise = [&](int target) { int& n = core.cross[target][id].raised; n = engine.options.binary_flags ? 1 : n + 1; };
  if (s.id == 0) {
    for (int v = 1; v <= core.vectors; ++v) raise(v);
    return;
  }
  auto& halves = core.half_set[mode - 1];
  halves[s.id - 1][id].push_back({});
  if (core.vectors == 2 && (halves[0][id].empty() || halves[1][id].empty())) return;
  for (int v = 0; v < core.vectors; ++v) halves[v][id].pop_front();
  if (mode == 2) return raise(0);
  for (int v = 1; v <= core.vectors; ++v) raise(v);
}

// The head of a pipe's queue can run unless it waits for a flag that is down.
static bool head_ready(Stream& s, int pipe) {
  const Deferred& head = s.queue[pipe].front();
  return head.kind != Deferred::Wait || s.raised[head.flag / kLocalFlags][pipe][head.flag % kLocalFlags] > 0;
}

static void run_head(Stream& s, int pipe) {
  Deferred head = std::move(s.queue[pipe].front());
  s.queue[pipe].pop_front();
  const int a = head.flag / kLocalFlags, id = head.flag % kLocalFlags;
  switch (head.kind) {
    case Deferred::Run: head.run(); break;
    case Deferred::Set: ++s.raised[pipe][a][id]; break;
    case Deferred::Wait: --s.raised[a][pipe][id]; break;
    case Deferred::CrossSet: deliver_count(s, head.flag / kCrossFlags, head.flag % kCrossFlags); break;
  }
}

static bool can_run(Stream& s) { return !s.fiber.done() && (!s.blocked || s.blocked()); }

static void resume(Stream& s) {
  current = &s;
  s.fiber.resume();
}

static bool step_eager(Core& core) {
  bool moved = false;
  for (Stream& s : core.streams)
    if (can_run(s)) moved = true, resume(s);
  return moved;
}

// One step of a random schedule: the runnable actor of highest priority; priorities are drawn anew now and then.
static bool step_deferred(Core& core, std::vector<uint32_t>& priority) {
  if (core.random() % 24 == 0)
    for (auto& p : priority) p = uint32_t(core.random());
  int best = -1;
  for (int a = 0; a < kActors; ++a) {
    Stream& s = core.streams[a / kPipes];
    const int pipe = a % kPipes;
    const bool ready = pipe == PIPE_S ? can_run(s) : !s.queue[pipe].empty() && head_ready(s, pipe);
    if (ready && (best < 0 || priority[a] > priority[best])) best = a;
  }
  if (best < 0) return false;
  Stream& s = core.streams[best / kPipes];
  current = &s;
  if (best % kPipes == PIPE_S) resume(s);
  else run_head(s, best % kPipes);
  return true;
}

static std::string set_places(Core& core, Stream& s) {
  const size_t at = s.waits_for.find_last_of(' ');
  if (s.waits_for.rfind("cross-core", 0) != 0) return "";
  const auto& counter = core.cross[s.id][std::stoi(s.waits_for.substr(at + 1))];
  std::string text;
  for (int line : counter.set_lines) text += (text.empty() ? "" : ", ") + std::to_string(line);
  return text.empty() ? "" : "; set before at line " + text;
}

static void report_deadlock(Core& core) {
  for (Stream& s : core.streams) {
    if (s.fiber.done() && idle(s)) continue;
    if (!s.fiber.done())
      report(s, "deadlock", "deadlock", "error", Mem::GM, {}, std::string(kStreamNames[s.id]) + " waits forever for " + s.waits_for + set_places(core, s), s.waits_line, Op::WaitFlag, PIPE_S);
    for (int p = 0; p < kPipes; ++p)
      if (!s.queue[p].empty() && s.queue[p].front().kind == Deferred::Wait)
        report(s, "deadlock", "deadlock", "error", Mem::GM, {}, std::string(kStreamNames[s.id]) + "." + kPipeNames[p] + " waits forever for a flag", s.queue[p].front().line, Op::WaitFlag, p);
  }
}

static void report_leftovers(Core& core) {
  for (Stream& s : core.streams) {
    for (int a = 0; a < kPipes; ++a)
      for (int b = 0; b < kPipes; ++b)
        for (int id = 0; id < kLocalFlags; ++id) {
          if (s.flags[a][b][id].empty() && !s.wait_line[a][b][id]) continue;
          const std::string name = std::string(kPipeNames[a]) + "_" + kPipeNames[b] + "(" + std::to_string(id) + ")";
          for (const FlagSet& set : s.flags[a][b][id])
            report(s, "flag-left-set", "flag", "error", Mem::GM, {}, name + " is set and nothing waits for it", set.line, Op::SetFlag, a);
          if (const int line = s.wait_line[a][b][id])
            report(s, "deadlock", "deadlock", "error", Mem::GM, {}, std::string(kStreamNames[s.id]) + "." + kPipeNames[b] + " waits forever for " + name + (s.last_set_line[a][b][id] ? "; last set at line " + std::to_string(s.last_set_line[a][b][id]) : "; nothing sets it"), line, Op::WaitFlag, b);
        }
    for (int id = 0; id < kCrossFlags; ++id)
      for (const FlagSet& set : core.cross[s.id][id].pending)
        report(s, "cross-flag-left-set", "flag", "error", Mem::GM, {}, "cross-core flag " + std::to_string(id) + " is set for " + kStreamNames[s.id] + " and never taken", set.line, Op::CrossCoreSetFlag, PIPE_S);
  }
  for (auto& mode : core.half_set)
    for (int v = 0; v < 2; ++v)
      for (int id = 0; id < kCrossFlags; ++id)
        for (const FlagSet& set : mode[v][id])
          report(core.streams[v + 1], "cross-flag-half-set", "flag", "error", Mem::GM, {}, "cross-core flag " + std::to_string(id) + " is set by " + kStreamNames[v + 1] + " only; it counts when both Vector streams have set it", set.line, Op::CrossCoreSetFlag, PIPE_S);
}

// Runs the block until it ends (true) or every stream that is left waits at SyncAll (false).
static bool run_block(Core& core) {
  std::vector<uint32_t> priority(kActors);
  for (auto& p : priority) p = uint32_t(core.random());
  while (engine.options.deferred ? step_deferred(core, priority) : step_eager(core)) {}
  bool waits = false, stuck = false;
  for (Stream& s : core.streams) {
    if (s.fiber.done() && idle(s)) continue;
    (s.at_sync_all ? waits : stuck) = true;
  }
  if (waits && !stuck) return false;
  if (stuck) report_deadlock(core);
  else if (!engine.options.deferred) report_leftovers(core);
  return true;
}

}  // namespace sim
