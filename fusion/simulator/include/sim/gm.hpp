// Global memory: one mapped arena with the buffers of the launch, which bytes are set, and the race check between blocks.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "access.hpp"
#include "shadow.hpp"

namespace sim {

constexpr uint32_t kPageCells = 128;
constexpr uint64_t kPageBytes = uint64_t(kPageCells) * kCell;

struct GmBuffer {
  std::string name, role, dtype;
  uint64_t lo = 0, hi = 0;
};

// What one block did to one page: the records for order inside the block, and the masks for conflicts between blocks.
struct GmPage {
  Cell cells[kPageCells];
  uint32_t written[kPageCells], read[kPageCells], added[kPageCells];
};

// What all blocks merged so far did to one cell. Line numbers are those of one of the accesses.
struct BlockCell {
  uint32_t written = 0, read = 0, added = 0;
  int32_t write_block = -1, read_block = -1, add_block = -1;
  uint16_t write_line = 0, read_line = 0, add_line = 0;
  uint16_t write_op = 0, read_op = 0, add_op = 0;
};

struct Gm {
  uint8_t* base = nullptr;
  uint64_t size = 0;
  std::vector<GmBuffer> buffers;
  std::unique_ptr<std::atomic<uint32_t>[]> init;                 // one byte mask per cell
  std::vector<std::unique_ptr<BlockCell[]>> blocks;              // per page, made when first touched

  uint64_t cells() const { return (size + kCell - 1) / kCell; }
  uint64_t pages() const { return (size + kPageBytes - 1) / kPageBytes; }
  void prepare() {
    init = std::make_unique<std::atomic<uint32_t>[]>(cells());
    blocks.resize(pages());
    for (const GmBuffer& b : buffers)
      if (b.role == "in" || b.role == "inout") mark(b.lo, b.hi - b.lo);
  }
  void mark(uint64_t lo, uint64_t len) {
    each_cell(lo, len, [&](uint64_t cell, uint32_t mask) {
      auto& word = init[cell];
      if ((word.load(std::memory_order_relaxed) & mask) != mask) word.fetch_or(mask, std::memory_order_relaxed);
    });
  }
  bool is_set(uint64_t lo, uint64_t len) const {
    bool all = true;
    each_cell(lo, len, [&](uint64_t cell, uint32_t mask) { all &= (init[cell].load(std::memory_order_relaxed) & mask) == mask; });
    return all;
  }
  int find(uint64_t off) const {
    for (size_t i = 0; i < buffers.size(); ++i)
      if (off >= buffers[i].lo && off < buffers[i].hi) return int(i);
    return -1;
  }
};

}  // namespace sim
