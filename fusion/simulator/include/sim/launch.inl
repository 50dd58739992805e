// The launch: blocks are spread over worker threads; blocks that wait at SyncAll stay alive until all have arrived.
#pragma once
#include <chrono>
#include <thread>

#include "blocks.inl"
#include "schedule.inl"

namespace sim {

struct Launch {
  std::function<void()> body;
  int64_t next = 0, done = 0, waiting = 0;
  int epoch = 0;
  std::vector<uint8_t> finished;
  std::vector<std::unique_ptr<Core>> pool;
  FILE* trace = nullptr;
  std::chrono::steady_clock::time_point last_progress{};
};
static Launch run;

static void start_block(Core& core, int64_t block) {
  reset_core(core, block);
  for (Stream& s : core.streams) {
    if (s.id > core.vectors) continue;
    s.fiber.start([&s] {
      run.body();
      if (engine.options.deferred) drain(s);
      else note_sync(s, TraceKind::End, PIPE_S, 0, 0);
    });
  }
}

// Blocks that issue the same instructions (at any GM addresses) are of one kind.
static uint64_t kind_of(const Core& core) {
  uint64_t hash = 1469598103934665603ull;
  for (const Stream& s : core.streams) {
    for (const TraceRecord& r : s.trace) hash = fold(hash, r);
    hash = (hash ^ s.beyond ^ s.beyond_hash) * 1099511628211ull;
  }
  return hash;
}

constexpr uint64_t kSummary = 254, kNote = 255;  // sections that are no stream: see trace.py

static void write_section(int64_t block, uint64_t stream, const std::vector<TraceRecord>& records) {
  const uint64_t header[4] = {0x3143415254505546ull, uint64_t(block), stream, records.size()};
  std::fwrite(header, sizeof header, 1, run.trace);
  std::fwrite(records.data(), sizeof(TraceRecord), records.size(), run.trace);
}

// Whether the block's trace is wanted: an outline keeps one of each kind, and notes which kind every block is.
static bool wanted(const Core& core) {
  if (!engine.options.outline) return true;
  static std::map<uint64_t, int64_t> first;
  const auto [at, fresh] = first.emplace(kind_of(core), core.block);
  write_section(core.block, kNote | uint64_t(at->second) << 8, {});
  return fresh;
}

static void write_trace(Core& core) {
  if (!wanted(core)) {
    for (Stream& s : core.streams) s.trace.clear();
    return;
  }
  for (Stream& s : core.streams) {
    write_section(core.block, uint64_t(s.id) | s.beyond << 8, s.trace);
    s.trace.clear();
    for (const auto& [where, bytes] : s.beyond_moved) {
      TraceRecord r;
      r.stream = s.id, r.gm_offset = where.first, r.pipe = where.second, r.moved = bytes;
      s.trace.push_back(r);
    }
    if (!s.trace.empty()) write_section(core.block, kSummary, s.trace);
    s.trace.clear();
  }
}

static void advance_turn(int epoch) {
  int64_t& turn = engine.merged[epoch];
  while (turn < engine.options.blocks && run.finished[turn]) ++turn;
}

// Merges what the block did since the last barrier; called when it ends or arrives at SyncAll.
static void settle(Core& core, bool ended) {
  std::unique_lock<std::mutex> lock(engine.merge);
  wait_turn(core, lock);
  apply_adds(core);
  if (engine.options.order && !engine.options.deferred) merge_pages(core);
  if (engine.options.trace && ended) write_trace(core);
  ++engine.merged[core.epoch];
  if (ended) run.finished[core.block] = 1, ++run.done;
  else ++run.waiting, ++core.epoch;
  advance_turn(core.epoch - (ended ? 0 : 1));
  if (ended) {
    engine.findings.merge(core.findings);
    core.findings.clear();
    core.finished = true;
    const auto now = std::chrono::steady_clock::now();
    if (now - run.last_progress > std::chrono::milliseconds(200)) {
      run.last_progress = now;
      std::printf("progress %lld %lld\n", static_cast<long long>(run.done), static_cast<long long>(engine.options.blocks));
      std::fflush(stdout);
    }
  }
  engine.turn.notify_all();
}

static void advance(Core& core) { settle(core, run_block(core)); }

static void open_epoch() {
  ++run.epoch;
  run.waiting = 0;
  engine.merged[run.epoch] = 0;
  advance_turn(run.epoch);
  for (auto& page : engine.gm.blocks) page.reset();
}

static void work(std::vector<Core*>& mine, const std::function<Core*()>& make) {
  while (true) {
    int64_t block;
    {
      std::unique_lock<std::mutex> lock(engine.merge);
      while (run.next < engine.options.blocks && run.finished[run.next]) ++run.next;
      block = run.next < engine.options.blocks ? run.next++ : -1;
    }
    if (block < 0) break;
    Core* core = nullptr;
    for (Core* c : mine)
      if (c->finished) core = c;
    if (!core) core = make(), mine.push_back(core);
    start_block(*core, block);
    advance(*core);
  }
  while (true) {
    std::vector<Core*> alive;
    for (Core* c : mine)
      if (!c->finished) alive.push_back(c);
    if (alive.empty()) return;
    {
      std::unique_lock<std::mutex> lock(engine.merge);
      const int epoch = alive.front()->epoch;
      const auto all_here = [] { return run.waiting + run.done == engine.options.blocks && run.next == engine.options.blocks; };
      engine.turn.wait(lock, [&] { return run.epoch >= epoch || all_here(); });
      if (run.epoch < epoch) open_epoch(), engine.turn.notify_all();
    }
    for (Core* c : alive) {
      for (Stream& s : c->streams) s.at_sync_all = false;
      Clock all;
      std::copy(c->time, c->time + kActors, all.t);
      for (Stream& s : c->streams)
        for (Clock& clock : s.clock) clock = all;
      advance(*c);
    }
  }
}

static void run_blocks(int64_t blocks, std::function<void()> body) {
  engine.options.blocks = blocks;
  run.body = std::move(body);
  run.finished.assign(blocks, 0);
  if (engine.options.probe) engine.options.chosen = {blocks / 2};
  engine.merged[0] = 0;
  for (int64_t b = 0; b < blocks && !engine.options.chosen.empty(); ++b)
    if (!engine.options.chosen.count(b)) run.finished[b] = 1, ++run.done;
  advance_turn(0);
  const int threads = engine.options.deferred ? 1 : int(std::max<int64_t>(1, std::min<int64_t>(engine.options.threads, blocks)));
  std::mutex pool_lock;
  const std::function<Core*()> make = [&] {
    auto core = std::make_unique<Core>();
    make_memories(*core);
    std::lock_guard<std::mutex> lock(pool_lock);
    run.pool.push_back(std::move(core));
    return run.pool.back().get();
  };
  std::vector<std::thread> workers;
  std::vector<std::vector<Core*>> mine(threads);
  for (int t = 1; t < threads; ++t) workers.emplace_back([&, t] { work(mine[t], make); });
  work(mine[0], make);
  for (auto& w : workers) w.join();
}

}  // namespace sim
