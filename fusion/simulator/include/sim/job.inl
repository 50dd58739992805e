// The job file that the Python side writes, and the result file that it reads back.
#pragma once
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "launch.inl"
#include "glue.hpp"

namespace sim {

void stop(const std::string& message) {
  std::fprintf(stderr, "stop: %s\n", message.c_str());
  std::fflush(nullptr);
  _exit(3);
}

struct Job {
  std::string arena, result, trace;
  std::vector<std::string> scalars;
};

static Mem mem_of(const std::string& name) {
  for (int m = 0; m < kMems; ++m)
    if (name == kMemNames[m]) return Mem(m);
  stop("unknown memory " + name);
}

static Job read_job(const char* path) {
  Job job;
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream in(line);
    std::string key;
    in >> key;
    Options& o = engine.options;
    if (key == "kernel") in >> o.kernel;
    else if (key == "arena") in >> engine.gm.size, in.ignore(1), std::getline(in, job.arena);
    else if (key == "result") in.ignore(1), std::getline(in, job.result);
    else if (key == "trace") in.ignore(1), std::getline(in, job.trace), o.trace = true;
    else if (key == "order") in >> o.order;
    else if (key == "seed") in >> o.seed, o.deferred = true;
    else if (key == "binary") in >> o.binary_flags;
    else if (key == "vectors") in >> o.vectors;
    else if (key == "threads") in >> o.threads;
    else if (key == "blocks") in >> o.blocks;
    else if (key == "outline") o.outline = true;
    else if (key == "probe") o.probe = true;
    else if (key == "kept") in >> o.kept;
    else if (key == "block") { int64_t b; in >> b; o.chosen.insert(b); }
    else if (key == "drop") { int a, b; in >> a >> b; o.dropped.insert({a, b}); }
    else if (key == "scalar") { std::string v; in >> v; job.scalars.push_back(v); }
    else if (key == "buffer") { GmBuffer b; in >> b.name >> b.role >> b.dtype >> b.lo >> b.hi; engine.gm.buffers.push_back(b); }
    else if (key == "local") {
      LocalBuffer b;
      std::string mem;
      int line;
      in >> b.name >> mem >> b.lo >> b.hi >> line;
      b.mem = mem_of(mem);
      engine.locals.push_back(b);
      engine.local_of.emplace(line, uint16_t(engine.locals.size()));
    }
  }
  return job;
}

static void map_arena(const Job& job) {
  const int file = open(job.arena.c_str(), O_RDWR);
  if (file < 0) stop("cannot open " + job.arena);
  void* base = mmap(nullptr, engine.gm.size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (base == MAP_FAILED) stop("cannot map " + job.arena);
  engine.gm.base = static_cast<uint8_t*>(base);
  engine.gm.prepare();
}

static std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

static std::string place_json(const Place& p) {
  if (p.line == 0 && p.actor < 0) return "null";
  std::string actor = p.actor < 0 ? "" : std::string(kStreamNames[p.actor / kPipes]) + "." + kPipeNames[p.actor % kPipes];
  return "{\"line\": " + std::to_string(p.line) + ", \"op\": " + quoted(kOpNames[int(p.op)]) + ", \"unit\": " + quoted(actor) + ", \"loops\": " + quoted(p.loops) + "}";
}

static void write_finding(FILE* out, const Finding& f) {
  std::fprintf(out,
               "{\"rule\": %s, \"kind\": %s, \"severity\": %s, \"memory\": \"%s\", \"buffer\": %s, \"message\": %s, \"block\": %lld, "
               "\"other_block\": %lld, \"lo\": %llu, \"hi\": %llu, \"count\": %llu, \"first\": %s, \"second\": %s}\n",
               quoted(f.rule).c_str(), quoted(f.kind).c_str(), quoted(f.severity).c_str(), kMemNames[int(f.mem)], quoted(f.buffer).c_str(),
               quoted(f.message).c_str(), static_cast<long long>(f.block), static_cast<long long>(f.other_block),
               static_cast<unsigned long long>(f.lo), static_cast<unsigned long long>(f.hi), static_cast<unsigned long long>(f.count),
               place_json(f.first).c_str(), place_json(f.second).c_str());
}

// A byte of an output that no block wrote.
static void check_outputs() {
  for (size_t i = 0; i < engine.gm.buffers.size(); ++i) {
    const GmBuffer& b = engine.gm.buffers[i];
    if (b.role != "out" || engine.gm.is_set(b.lo, b.hi - b.lo)) continue;
    Finding f;
    f.rule = "output-not-written", f.kind = "uninit", f.severity = "warning", f.buffer = b.name;
    f.message = "some of the output is never written";
    engine.findings.add(f);
  }
}

static void write_result(const Job& job, double seconds) {
  FILE* out = std::fopen(job.result.c_str(), "w");
  if (!out) stop("cannot write " + job.result);
  std::fprintf(out, "{\"seconds\": %.6f, \"blocks\": %lld, \"pipes\": {", seconds, static_cast<long long>(engine.options.blocks));
  const char* comma = "";
  for (int s = 0; s < kStreams; ++s)
    for (int p = 0; p < kScalarStore; ++p) {
      uint64_t n = 0;
      for (auto& core : run.pool) n += core->counts[s][p];
      if (n) std::fprintf(out, "%s\"%s.%s\": %llu", comma, kStreamNames[s], kPipeNames[p], static_cast<unsigned long long>(n)), comma = ", ";
    }
  std::fprintf(out, "}, \"ops\": {");
  comma = "";
  for (size_t op = 0; op < size_t(Op::End); ++op) {
    uint64_t n = 0, e = 0;
    for (auto& core : run.pool) n += core->op_counts[op], e += core->op_elements[op];
    if (n) std::fprintf(out, "%s\"%s\": [%llu, %llu]", comma, kOpNames[op], static_cast<unsigned long long>(n), static_cast<unsigned long long>(e)), comma = ", ";
  }
  std::fprintf(out, "}}\n");
  for (const auto& [key, f] : engine.findings.all()) write_finding(out, f);
  std::fclose(out);
}

void launch(int64_t blocks, std::function<void()> body) {
  run_blocks(engine.options.blocks > 0 ? engine.options.blocks : blocks, std::move(body));
}

static int run_job(const char* path) {
  const Job job = read_job(path);
  map_arena(job);
  if (engine.options.trace) run.trace = std::fopen(job.trace.c_str(), "wb");
  std::vector<uint8_t*> buffers;
  for (const GmBuffer& b : engine.gm.buffers) buffers.push_back(engine.gm.base + b.lo);
  const auto start = std::chrono::steady_clock::now();
  sim_call(buffers.data(), job.scalars);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (engine.options.order && !engine.options.deferred) check_outputs();
  if (run.trace) std::fclose(run.trace);
  write_result(job, seconds);
  std::fflush(nullptr);
  _exit(0);  // fibers of a stuck block are not unwound
}

}  // namespace sim
