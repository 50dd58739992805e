// What issuing an instruction means: bounds first, then order against everything before it, then the arithmetic.
#pragma once
#include "issue.hpp"

namespace sim {

static bool within(Stream& s, const Access& a, const Instruction& in, bool writes) {
  if (a.size == 0) return true;
  const auto [lo, hi] = a.span();
  const auto& buffer = a.extent;
  if (a.start % a.align && in.op != Op::GetValue && in.op != Op::SetValue)
    report(s, "misaligned-address", "align", "error", a.mem, buffer,
           "starts at byte " + std::to_string(a.start - (a.mem == Mem::GM ? buffer.lo : 0)) + ", which is not a multiple of " + std::to_string(a.align),
           s.line, in.op, in.pipe, a.start, a.start + a.at(0).len);
  if (lo >= int64_t(buffer.lo) && hi <= int64_t(buffer.hi)) return true;
  a.outside = true;
  const int64_t over = std::max<int64_t>(hi - int64_t(buffer.hi), int64_t(buffer.lo) - lo);
  const bool padding = !writes && !a.check_init;
  report(s, writes ? "write-out-of-bounds" : "read-out-of-bounds", "bounds", padding ? "info" : "error", a.mem, buffer,
         std::string(writes ? "writes " : "reads ") + std::to_string(over) + (lo < int64_t(buffer.lo) ? " bytes before" : " bytes past the end of") + " the buffer",
         s.line, in.op, in.pipe, uint64_t(lo), uint64_t(hi));
  const uint64_t limit = a.mem == Mem::GM ? engine.gm.size : s.mem[int(a.mem)].data.size();
  return lo >= 0 && uint64_t(hi) <= limit;
}

static Cell& cell_at(Stream& s, Mem mem, uint64_t cell) {
  if (mem != Mem::GM) return s.mem[int(mem)].cells[cell];
  return gm_page(*s.core, cell / kPageCells).cells[cell % kPageCells];
}

// One cell of a local read. The common case first: both writers ordered, all bytes set and in the same buffer.
static void read_cell(Stream& s, Cell& cell, uint64_t c, uint32_t mask, const Access& a, const Instruction& in, const Probe& probe, bool& unset) {
  const Touch &w0 = cell.write[0], &w1 = cell.write[1];
  Touch& mine = cell.read[0];
  const bool ours = (w0.extent == probe.extent || !(w0.mask & mask)) && (w1.extent == probe.extent || !(w1.mask & mask));
  if (ordered(w0, probe) && ordered(w1, probe) && ours && mine.actor == probe.actor && mine.mask == mask) mine.time = probe.time;
  else {
    check_read(cell, mask, probe, [&](const Touch& earlier, char kind) { report_conflict(s, a.mem, a.extent, c * kCell, earlier, kind, 'R', probe, s.line, in.op); });
    for (const Touch& w : cell.write)
      if ((w.mask & mask) && w.extent != a.extent.id && w.extent && a.extent.id) report_clobbered(s, a.mem, a.extent, c * kCell, w, s.line, in.op, in.pipe);
  }
  unset |= (cell.init & mask) != mask;
}

static void read_gm_cell(Stream& s, uint64_t c, uint32_t mask, const Access& a, const Instruction& in, const Probe& probe, bool& unset) {
  GmPage& page = gm_page(*s.core, c / kPageCells);
  check_read(page.cells[c % kPageCells], mask, probe, [&](const Touch& earlier, char kind) { report_conflict(s, a.mem, a.extent, c * kCell, earlier, kind, 'R', probe, s.line, in.op); });
  page.read[c % kPageCells] |= mask;
  unset |= (engine.gm.init[c].load(std::memory_order_relaxed) & mask) != mask;
}

// Returns true if bytes that are not set are read by an instruction that passes "not set" on, element by element.
static bool order_read(Stream& s, const Access& a, const Instruction& in, const Probe& probe) {
  bool unset = false;
  Cell* cells = a.mem == Mem::GM ? nullptr : s.mem[int(a.mem)].cells.data();
  a.each_run([&](uint64_t off, uint32_t len) {
    if (cells) each_cell(off, len, [&](uint64_t c, uint32_t mask) { read_cell(s, cells[c], c, mask, a, in, probe, unset); });
    else each_cell(off, len, [&](uint64_t c, uint32_t mask) { read_gm_cell(s, c, mask, a, in, probe, unset); });
  });
  if (!unset || !a.check_init || a.outside) return false;
  if (in.spreads && a.mem != Mem::GM) return true;
  report(s, "uninitialised-read", "uninit", "error", a.mem, a.extent, "reads bytes that nothing has written", s.line, in.op, in.pipe, a.span().first, a.span().second);
  return false;
}

// A write to a local memory: check and record in one pass.
static void write_local(Stream& s, const Access& a, const Instruction& in, const Probe& probe, bool sets) {
  Cell* cells = s.mem[int(a.mem)].cells.data();
  const Touch touch{probe.time, 0xffffffffu, probe.actor, probe.flags, probe.extent};
  a.each_run([&](uint64_t off, uint32_t len) {
    each_cell(off, len, [&](uint64_t c, uint32_t mask) {
      Cell& cell = cells[c];
      check_write(cell, mask, probe, [&](const Touch& earlier, char kind) { report_conflict(s, a.mem, a.extent, c * kCell, earlier, kind, 'W', probe, s.line, in.op); });
      if (mask == 0xffffffffu) cell.write[0] = touch, cell.write[1].mask = 0;
      else record_write(cell, mask, probe);
      cell.init = sets ? cell.init | mask : cell.init & ~mask;
    });
  });
}

// The "is set" bits of a pure move: collected from the source before it runs, spread over the destination afterwards.
static std::vector<uint8_t> set_bytes(Stream& s, const Access& a) {
  std::vector<uint8_t> bytes;
  bytes.reserve(a.bytes());
  a.each_run([&](uint64_t off, uint32_t len) {
    for (uint64_t b = off; b < off + len; ++b) bytes.push_back(s.mem[int(a.mem)].cells[b / kCell].init >> (b % kCell) & 1);
  });
  return bytes;
}

static bool all_set(Stream& s, const Access& a) {
  bool all = true;
  a.each_run([&](uint64_t off, uint32_t len) {
    each_cell(off, len, [&](uint64_t c, uint32_t mask) { all &= (s.mem[int(a.mem)].cells[c].init & mask) == mask; });
  });
  return all;
}

// Checks a write before it happens. Returns true if another stream of the core wrote or read the same GM bytes unordered.
static bool order_write(Stream& s, const Access& a, const Instruction& in, const Probe& probe, bool only_look) {
  bool contested = false;
  a.each_run([&](uint64_t off, uint32_t len) {
    each_cell(off, len, [&](uint64_t c, uint32_t mask) {
      check_write(cell_at(s, a.mem, c), mask, probe, [&](const Touch& earlier, char kind) {
        if (only_look && earlier.actor / kPipes != s.id) contested = true;
        else if (!only_look) report_conflict(s, a.mem, a.extent, c * kCell, earlier, kind, 'W', probe, s.line, in.op);
      });
    });
  });
  return contested;
}

static void note_gm_write(Stream& s, const Access& a, const Instruction& in, const Probe& probe) {
  a.each_run([&](uint64_t off, uint32_t len) {
    each_cell(off, len, [&](uint64_t c, uint32_t mask) {
      GmPage& page = gm_page(*s.core, c / kPageCells);
      record_write(page.cells[c % kPageCells], mask, probe);
      (in.flags & kAtomic ? page.added : page.written)[c % kPageCells] |= mask;
    });
    if (!(in.flags & kAtomic)) engine.gm.mark(off, len);
  });
}

static void copy_init(Stream& s, const Access& to, const std::vector<uint8_t>& bytes) {
  size_t i = 0;
  to.each_run([&](uint64_t off, uint32_t len) {
    for (uint64_t b = off; b < off + len && i < bytes.size(); ++b, ++i)
      if (!bytes[i]) s.mem[int(to.mem)].cells[b / kCell].init &= ~(1u << (b % kCell));
  });
}

// Elementwise work on bytes that are not set is harmless until the result leaves the core: mark those results as not set.
static void spread_unset(Stream& s, const Instruction& in, const std::vector<std::vector<uint8_t>>& reads) {
  const std::vector<uint8_t> all(in.write->bytes(), 1);
  std::vector<uint8_t> to = all;
  for (const auto& from : reads)
    for (size_t i = 0; i < to.size() && !from.empty(); ++i)
      if (!from[std::min(i * from.size() / to.size(), from.size() - 1)]) to[i] = 0;
  copy_init(s, *in.write, to);
}

static std::vector<uint8_t> old_bytes(const Access& a) {
  std::vector<uint8_t> bytes;
  a.each_run([&](uint64_t off, uint32_t len) { bytes.insert(bytes.end(), engine.gm.base + off, engine.gm.base + off + len); });
  return bytes;
}

void note_step(Stream& s, int pipe, Op op) {
  if (s.snapshot_version != s.loop_version) new_snapshot(s);
  s.log[pipe].push_back({uint16_t(s.line), op, uint32_t(s.snapshots.size())});
}

// A write to GM that conflicts with the other Vector stream is harmless if it changes nothing.
static void run_gm_write(Stream& s, const Instruction& in, const Probe& probe, Action run) {
  const Access& w = *in.write;
  const bool contested = !(in.flags & kAtomic) && order_write(s, w, in, probe, true);
  const std::vector<uint8_t> before = contested ? old_bytes(w) : std::vector<uint8_t>{};
  run();
  if (contested && old_bytes(w) == before)
    report(s, "same-value-write", "duplicate", "info", w.mem, w.extent, "is written twice without order, with the same values", s.line, in.op, in.pipe, w.span().first, w.span().second);
  else order_write(s, w, in, probe, false);
  note_gm_write(s, w, in, probe);
}

static void run_local_write(Stream& s, const Instruction& in, const Probe& probe, Action run, bool spread) {
  std::vector<std::vector<uint8_t>> reads;
  for (int i = 0; i < in.read_count && spread; ++i) reads.push_back(set_bytes(s, *in.reads[i]));
  const bool partly = in.moves && !all_set(s, *in.reads[0]);
  const std::vector<uint8_t> set = partly ? set_bytes(s, *in.reads[0]) : std::vector<uint8_t>{};
  run();
  write_local(s, *in.write, in, probe, true);
  if (partly) copy_init(s, *in.write, set);
  if (spread) spread_unset(s, in, reads);
}

// Reads are checked before the arithmetic, writes around it.
static void run_ordered(Stream& s, const Instruction& in, int pipe, const Clock& clock, Action run) {
  Core& core = *s.core;
  const int actor = s.id * kPipes + pipe;
  const uint32_t time = ++core.time[actor];
  note_step(s, pipe, in.op);
  Probe probe{&clock, time, uint8_t(actor), in.flags, 0};
  bool spread = false;
  for (int i = 0; i < in.read_count; ++i) {
    probe.extent = in.reads[i]->extent.id;
    spread |= order_read(s, *in.reads[i], in, probe);
  }
  if (in.scratch && in.scratch->size) {
    probe.extent = in.scratch->extent.id;
    write_local(s, *in.scratch, in, probe, false);
  }
  if (!in.write) return run();
  probe.extent = in.write->extent.id;
  if (in.write->mem == Mem::GM) run_gm_write(s, in, probe, run);
  else run_local_write(s, in, probe, run, spread);
}

static void touch_used(Stream& s, const Access& a) {
  if (a.mem == Mem::GM || a.size == 0) return;
  auto& used = s.mem[int(a.mem)].used;
  used = std::max<uint64_t>(used, a.span().second);
}

static void note_trace(Stream& s, const Instruction& in) {
  TraceRecord r;
  r.stream = s.id, r.pipe = in.pipe, r.kind = in.pipe == PIPE_S ? TraceKind::Scalar : TraceKind::Run;
  r.op = uint16_t(in.op), r.line = s.line, r.element_bytes = in.cost.element_bytes;
  r.elements = in.cost.elements, r.repeats = in.cost.repeats, r.m = in.cost.m, r.n = in.cost.n, r.k = in.cost.k;
  r.bytes = in.write ? uint32_t(in.write->bytes()) : 0;
  auto gm = [&](const Access* a) {
    if (a && a->mem == Mem::GM && a->size) r.gm_offset = a->at(0).off, r.gm_bytes += uint32_t(a->bytes());
  };
  for (int i = 0; i < in.read_count; ++i) gm(in.reads[i]);
  gm(in.write);
  keep_record(s, r);
}

// Adds to GM that this block has not applied yet must be, before the buffer is used otherwise.
static void settle_adds(Stream& s, const Instruction& in) {
  if (s.core->add_extents.empty() || (in.flags & kAtomic)) return;
  for (int i = 0; i <= in.read_count; ++i) {
    const Access* a = i < in.read_count ? in.reads[i] : in.write;
    if (a && a->mem == Mem::GM && s.core->add_extents.count(a->extent.id)) return flush_adds(*s.core, true);
  }
}

// The device compiles the kernel for each type of core and drops the instructions of the other.
static bool has_units(const Stream& s, const Instruction& in) {
  if (!belongs(s.id, in.pipe)) return false;
  for (int i = 0; i <= in.read_count; ++i) {
    const Access* a = i < in.read_count ? in.reads[i] : in.write;
    if (a && a->mem != Mem::GM && s.mem[int(a->mem)].data.empty()) return false;
  }
  return true;
}

bool admit(Stream& s, const Instruction& in) {
  if (!has_units(s, in)) return false;
  bool safe = true;
  for (int i = 0; i < in.read_count; ++i) safe &= within(s, *in.reads[i], in, false), touch_used(s, *in.reads[i]);
  if (in.write) safe &= within(s, *in.write, in, true), touch_used(s, *in.write);
  if (in.scratch) safe &= within(s, *in.scratch, in, true), touch_used(s, *in.scratch);
  Core& core = *s.core;
  ++core.counts[s.id][in.pipe];
  ++core.op_counts[size_t(in.op)];
  core.op_elements[size_t(in.op)] += in.cost.elements;
  if (engine.options.trace) note_trace(s, in);
  if (safe) settle_adds(s, in);
  return safe;
}

// In an outline only what control flow may depend on is done: scalar accesses, and loads of small (index) tiles.
static bool steers(const Instruction& in) {
  return in.pipe == PIPE_S || (in.pipe == PIPE_MTE2 && in.write && in.write->mem == Mem::UB && in.write->bytes() <= 2048);
}

void execute(Stream& s, const Instruction& in, Action run) {
  if (engine.options.outline && !steers(in)) return;
  if (engine.options.deferred || !engine.options.order) return run();
  const int base = s.id * kPipes;
  if (in.pipe != PIPE_S) {
    s.clock[PIPE_S].t[base + PIPE_S] = s.core->time[base + PIPE_S];
    s.clock[in.pipe].join(s.clock[PIPE_S]);
    return run_ordered(s, in, in.pipe, s.clock[in.pipe], run);
  }
  Clock scalar = s.clock[PIPE_S];
  for (int p : {int(PIPE_S), kScalarStore}) scalar.t[base + p] = s.core->time[base + p];
  run_ordered(s, in, in.write ? kScalarStore : int(PIPE_S), scalar, run);
}

}  // namespace sim
