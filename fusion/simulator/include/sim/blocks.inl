// From block to block: fresh memories, and the merge of what each block did to GM, in block order so that results repeat.
#pragma once
#include "report.inl"
#include "../ascendc/numbers.hpp"

namespace sim {

GmPage& open_page(Core& core, uint64_t page) {
  const size_t index = core.touched.size();
  if (index == core.pages.size()) core.pages.push_back(std::make_unique<GmPage>());
  std::memset(static_cast<void*>(core.pages[index].get()), 0, sizeof(GmPage));
  core.page_of[page] = int32_t(index);
  core.touched.push_back(page);
  return *core.pages[index];
}

static void make_memories(Core& core) {
  core.page_of.assign(engine.gm.pages(), -1);
  core.op_counts.assign(size_t(Op::End) + 1, 0);
  core.op_elements.assign(size_t(Op::End) + 1, 0);
  for (int id = 0; id < kStreams; ++id) {
    Stream& s = core.streams[id];
    s.id = id, s.core = &core;
    for (int m = 1; m < kMems; ++m) {
      if ((id == 0) == (Mem(m) == Mem::UB)) continue;
      s.mem[m].data.assign(kMemBytes[m], 0xff);
      s.mem[m].cells.assign(kMemBytes[m] / kCell, Cell{});
      s.mem[m].limit = kMemBytes[m];
    }
  }
}

// On-chip memories start as NaN; all that ran before on this core counts as ordered.
static void reset_core(Core& core, int64_t block) {
  core.block = block, core.vectors = engine.options.vectors, core.finished = false, core.epoch = 0;
  core.random.seed(engine.options.seed * 1000003 + uint64_t(block));
  for (auto& row : core.cross)
    for (auto& c : row) c = CrossCounter{};
  for (auto& mode : core.half_set)
    for (auto& v : mode)
      for (auto& q : v) q.clear();
  Clock past;
  std::copy(core.time, core.time + kActors, past.t);
  for (Stream& s : core.streams) {
    for (int m = 1; m < kMems; ++m) {
      LocalMemory& mem = s.mem[m];
      const uint64_t used = std::min<uint64_t>((mem.used + kCell - 1) / kCell * kCell, mem.data.size());
      std::fill(mem.data.begin(), mem.data.begin() + used, 0xff);
      for (uint64_t c = 0; c < used / kCell; ++c) mem.cells[c].init = 0;
      mem.used = 0;
    }
    for (auto& a : s.flags)
      for (auto& b : a)
        for (auto& f : b) f.clear();
    std::memset(s.wait_line, 0, sizeof s.wait_line);
    std::memset(s.last_set_line, 0, sizeof s.last_set_line);
    std::memset(s.raised, 0, sizeof s.raised);
    for (int p = 0; p < kPipes; ++p) {
      s.clock[p] = past, s.log[p].clear(), s.log_base[p] = core.time[s.id * kPipes + p], s.queue[p].clear();
    }
    s.snapshots.clear(), s.loops.clear(), s.trace.clear(), s.beyond = s.beyond_hash = 0, s.beyond_moved.clear();
    s.snapshot_version = ~0ull, s.line = 0, s.sync_ordinal = 0;
    s.atomic = 0, s.mask[0] = s.mask[1] = ~0ull, s.deq_scale = 1.0f;
    s.blocked = nullptr, s.at_sync_all = false;
  }
}

// The turn of a block to merge: all earlier blocks of this epoch have merged.
static void wait_turn(Core& core, std::unique_lock<std::mutex>& lock) {
  engine.turn.wait(lock, [&] { return engine.merged[core.epoch] == core.block; });
}

static void apply_adds(Core& core) {
  const uint8_t* from = core.add_values.data();
  for (const AtomicAdd& add : core.adds) {
    add_bytes(add.code, engine.gm.base + add.off, from, add.bytes);
    engine.gm.mark(add.off, add.bytes);
    from += add.bytes;
  }
  core.adds.clear(), core.add_values.clear(), core.add_extents.clear();
}

void flush_adds(Core& core, bool wait) {
  std::unique_lock<std::mutex> lock(engine.merge);
  if (wait) wait_turn(core, lock);
  apply_adds(core);
}

static void report_blocks(Core& core, uint64_t at, const char* rule, const Touch* mine, int other_line, int other_op, int64_t other_block, const char* what) {
  Finding f;
  f.rule = rule, f.kind = "race", f.mem = Mem::GM;
  Extent extent;
  const int index = engine.gm.find(at);
  extent.id = uint16_t(index + 1);
  extent.lo = index >= 0 ? engine.gm.buffers[index].lo : 0;
  f.buffer = extent_name(Mem::GM, extent);
  f.first.line = other_line, f.first.op = Op(other_op);
  if (mine) f.second = place_of(core, *mine);
  f.block = core.block, f.other_block = other_block, f.lo = at - extent.lo, f.hi = f.lo + kCell;
  f.message = what;
  if (f.first.line > f.second.line) std::swap(f.first, f.second);
  core.findings.add(f);
}

static const Touch* latest(const Touch* slots, int n) {
  const Touch* best = nullptr;
  for (int i = 0; i < n; ++i)
    if (slots[i].mask && (!best || slots[i].time > best->time)) best = &slots[i];
  return best;
}

static void merge_cell(Core& core, const GmPage& page, uint32_t c, BlockCell& all, uint64_t at) {
  const uint32_t w = page.written[c], r = page.read[c], a = page.added[c];
  const Touch *writer = latest(page.cells[c].write, 2), *reader = latest(page.cells[c].read, 3);
  if (w & all.written) report_blocks(core, at, "blocks-write-write", writer, all.write_line, all.write_op, all.write_block, "two blocks write the same bytes; blocks have no order");
  if (w & all.read) report_blocks(core, at, "blocks-read-write", writer, all.read_line, all.read_op, all.read_block, "one block reads what another writes; blocks have no order");
  if (r & all.written) report_blocks(core, at, "blocks-read-write", reader, all.write_line, all.write_op, all.write_block, "one block reads what another writes; blocks have no order");
  if ((w | r) & all.added) report_blocks(core, at, "blocks-atomic-mixed", w & all.added ? writer : reader, all.add_line, all.add_op, all.add_block, "one block adds atomically to what another reads or writes plainly");
  if (a & (all.written | all.read)) report_blocks(core, at, "blocks-atomic-mixed", writer, a & all.written ? all.write_line : all.read_line, a & all.written ? all.write_op : all.read_op, a & all.written ? all.write_block : all.read_block, "one block adds atomically to what another reads or writes plainly");
  const auto note = [&](uint32_t mask, uint32_t& field, int32_t& block, uint16_t& line, uint16_t& op, const Touch* touch) {
    if (!mask) return;
    field |= mask, block = int32_t(core.block);
    if (!touch) return;
    const LogEntry* entry = log_of(core, *touch);
    if (entry) line = entry->line, op = uint16_t(entry->op);
  };
  note(w, all.written, all.write_block, all.write_line, all.write_op, writer);
  note(r, all.read, all.read_block, all.read_line, all.read_op, reader);
  note(a, all.added, all.add_block, all.add_line, all.add_op, writer);
}

static void merge_pages(Core& core) {
  for (size_t i = 0; i < core.touched.size(); ++i) {
    const uint64_t number = core.touched[i];
    auto& all = engine.gm.blocks[number];
    if (!all) all = std::make_unique<BlockCell[]>(kPageCells);
    const GmPage& page = *core.pages[i];
    for (uint32_t c = 0; c < kPageCells; ++c)
      if (page.written[c] | page.read[c] | page.added[c]) merge_cell(core, page, c, all[c], (number * kPageCells + c) * kCell);
    core.page_of[number] = -1;
  }
  core.touched.clear();
}

}  // namespace sim
