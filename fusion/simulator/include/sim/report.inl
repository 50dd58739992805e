// Cold paths: turning a conflict into a finding with both statements and their loop counters.
#pragma once
#include "engine.hpp"

namespace sim {

uint32_t new_snapshot(Stream& s) {
  Snapshot shot;
  const size_t skip = s.loops.size() > 4 ? s.loops.size() - 4 : 0;
  for (size_t i = skip; i < s.loops.size(); ++i) {
    const LoopVar& v = s.loops[i];
    shot.name[shot.size] = v.name;
    shot.value[shot.size++] = v.size == 8 ? *static_cast<const int64_t*>(v.value) : *static_cast<const int32_t*>(v.value);
  }
  s.snapshots.push_back(shot);
  s.snapshot_version = s.loop_version;
  return uint32_t(s.snapshots.size());
}

static std::string loops_text(const Snapshot& shot) {
  std::string text;
  for (int i = 0; i < shot.size; ++i) text += (i ? " " : "") + std::string(shot.name[i]) + "=" + std::to_string(shot.value[i]);
  return text;
}

static Place place_here(Stream& s, int line, Op op, int pipe) {
  if (s.snapshot_version != s.loop_version) new_snapshot(s);
  return {line, op, s.id * kPipes + pipe, loops_text(s.snapshots.back())};
}

static const LogEntry* log_of(Core& core, const Touch& touch) {
  Stream& s = core.streams[touch.actor / kPipes];
  const int pipe = touch.actor % kPipes;
  const uint32_t index = touch.time - s.log_base[pipe] - 1;
  return index < s.log[pipe].size() ? &s.log[pipe][index] : nullptr;
}

static Place place_of(Core& core, const Touch& touch) {
  const LogEntry* entry = log_of(core, touch);
  if (!entry) return {};
  Stream& s = core.streams[touch.actor / kPipes];
  return {entry->line, entry->op, touch.actor, entry->loops ? loops_text(s.snapshots[entry->loops - 1]) : ""};
}

std::string extent_name(Mem mem, const Extent& extent) {
  if (!extent.id) return "";
  if (mem == Mem::GM) return extent.id <= engine.gm.buffers.size() ? engine.gm.buffers[extent.id - 1].name : "";
  return extent.id <= engine.locals.size() ? engine.locals[extent.id - 1].name : "";
}

void report(Stream& s, const char* rule, const char* kind, const char* severity, Mem mem, const Extent& extent, std::string message, int line,
            Op op, int pipe, uint64_t lo, uint64_t hi) {
  Finding f;
  f.rule = rule, f.kind = kind, f.severity = severity, f.mem = mem, f.buffer = extent_name(mem, extent), f.message = std::move(message);
  f.second = place_here(s, line, op, pipe);
  f.block = s.core->block, f.lo = lo >= extent.lo ? lo - extent.lo : 0, f.hi = hi >= extent.lo ? hi - extent.lo : 0;
  s.core->findings.add(f);
}

void report_conflict(Stream& s, Mem mem, const Extent& extent, uint64_t at, const Touch& earlier, char earlier_kind, char later_kind,
                     const Probe& probe, int line, Op op) {
  const bool same = earlier.actor == probe.actor, cross = earlier.actor / kPipes != s.id;
  const int which = earlier_kind == 'R' ? 1 : later_kind == 'R' ? 0 : 2;
  static const char* same_rules[] = {"same-pipe-read-after-write", "same-pipe-write-after-read", "same-pipe-write-after-write"};
  static const char* rules[] = {"read-after-write", "write-after-read", "write-after-write"};
  static const char* cross_rules[] = {"cross-core-read-after-write", "cross-core-write-after-read", "cross-core-write-after-write"};
  static const char* verbs[] = {"reads what", "overwrites what", "overwrites what"};
  static const char* pasts[] = {"writes", "reads", "writes"};
  Finding f;
  f.rule = same ? same_rules[which] : cross ? cross_rules[which] : rules[which];
  f.kind = same ? "same-pipe" : "race";
  f.severity = same ? "warning" : "error";
  f.mem = mem, f.buffer = extent_name(mem, extent);
  f.first = place_of(*s.core, earlier);
  f.second = place_here(s, line, op, probe.actor % kPipes);
  f.block = s.core->block, f.lo = at >= extent.lo ? at - extent.lo : 0, f.hi = f.lo + kCell;
  const auto actor = [](int a) { return std::string(kStreamNames[a / kPipes]) + "." + kPipeNames[a % kPipes]; };
  f.message = actor(probe.actor) + " " + verbs[which] + " " + actor(earlier.actor) + " " + pasts[which] +
              (same ? " with no PipeBarrier between" : ", and nothing orders the two");
  s.core->findings.add(f);
}

void report_clobbered(Stream& s, Mem mem, const Extent& extent, uint64_t at, const Touch& writer, int line, Op op, int pipe) {
  Extent other;
  other.id = writer.extent;
  Finding f;
  f.rule = "overlapping-buffers", f.kind = "overlap", f.mem = mem, f.buffer = extent_name(mem, extent);
  f.first = place_of(*s.core, writer);
  if (f.first.line == 0) return;
  f.second = place_here(s, line, op, pipe);
  f.block = s.core->block, f.lo = at >= extent.lo ? at - extent.lo : 0, f.hi = f.lo + kCell;
  f.message = "reads bytes of " + f.buffer + " that were last written as part of " + extent_name(mem, other) + ": the two overlap in the address map";
  s.core->findings.add(f);
}

}  // namespace sim
