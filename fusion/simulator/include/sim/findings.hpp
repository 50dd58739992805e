// What was found wrong: one record per (rule, two source lines, memory), counted, kept for the lowest block that shows it.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "machine.hpp"
#include "ops.hpp"

namespace sim {

// One of the two statements of a finding.
struct Place {
  int line = 0;
  Op op = Op::Scalar;
  int actor = -1;        // stream * kPipes + pipe
  std::string loops;     // "i=2 j=0", the loop counters at that moment
};

struct Finding {
  const char* rule = "";
  const char* kind = "";
  const char* severity = "error";
  Mem mem = Mem::GM;
  std::string buffer;
  std::string message;
  Place first, second;
  int64_t block = 0, other_block = -1;
  uint64_t lo = 0, hi = 0;  // bytes within the buffer
  uint64_t count = 1;
};

class Findings {
 public:
  using Key = std::tuple<std::string, int, int, int, std::string>;
  static Key key(const Finding& f) { return {f.rule, f.first.line, f.second.line, int(f.mem), f.buffer}; }
  void add(const Finding& f) {
    auto [it, fresh] = all_.try_emplace(key(f), f);
    if (fresh) return;
    const uint64_t count = it->second.count + f.count;
    if (f.block < it->second.block) it->second = f;
    it->second.count = count;
  }
  void merge(const Findings& other) {
    for (const auto& [k, f] : other.all_) add(f);
  }
  const std::map<Key, Finding>& all() const { return all_; }
  void clear() { all_.clear(); }

 private:
  std::map<Key, Finding> all_;
};

}  // namespace sim
