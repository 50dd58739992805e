// Tensors: typed views of a memory. A view keeps the buffer it came from, so that leaving the buffer shows.
#pragma once
#include "../sim/flags.hpp"
#include "numbers.hpp"

#define __aicore__
#define __global__
#define __gm__
#define __ubuf__
#define __cbuf__
#define __ca__
#define __cb__
#define __cc__
#define __forceinline__ inline
using GM_ADDR = uint8_t*;

namespace AscendC {

enum class TPosition : uint8_t { GM, A1, A2, B1, B2, C1, C2, CO1, CO2, VECIN, VECOUT, VECCALC, LCM, SPM, SHM, TSCM, MAX };
using QuePosition = TPosition;
struct int4b_t { uint8_t pair; };
enum class CacheMode { CACHE_MODE_DISABLE, CACHE_MODE_NORMAL };

constexpr sim::Mem memory_of(TPosition p) {
  switch (p) {
    case TPosition::GM: return sim::Mem::GM;
    case TPosition::A1: case TPosition::B1: case TPosition::C1: case TPosition::TSCM: return sim::Mem::L1;
    case TPosition::A2: return sim::Mem::L0A;
    case TPosition::B2: return sim::Mem::L0B;
    case TPosition::CO1: return sim::Mem::L0C;
    default: return sim::Mem::UB;
  }
}

template <class T>
class LocalTensor {
 public:
  using PrimType = T;
  LocalTensor() = default;
  LocalTensor(sim::Mem mem, uint64_t off, uint32_t size, sim::Extent extent) : mem_(mem), off_(off), size_(size), extent_(extent) {
    auto& data = sim::current->mem[int(mem)].data;
    base_ = data.empty() ? nullptr : data.data();
  }
  LocalTensor operator[](uint32_t offset) const {
    LocalTensor t = *this;
    t.off_ += uint64_t(offset) * sizeof(T);
    t.size_ = offset < size_ ? size_ - offset : 0;
    return t;
  }
  template <class U>
  LocalTensor<U> ReinterpretCast() const {
    LocalTensor<U> t;
    t.mem_ = mem_, t.off_ = off_, t.size_ = uint32_t(uint64_t(size_) * sizeof(T) / sizeof(U)), t.extent_ = extent_, t.base_ = base_;
    return t;
  }
  uint32_t GetSize() const { return size_; }
  void SetSize(uint32_t size) { size_ = size; }
  T* GetPhyAddr(uint32_t offset = 0) const { return data() + offset; }
  T GetValue(uint32_t index) const {
    T value{};
    scalar_access(index, sim::Op::GetValue, [&value](T* at) { value = *at; });
    return value;
  }
  template <class U>
  void SetValue(uint32_t index, U value) const {
    scalar_access(index, sim::Op::SetValue, [value](T* at) { *at = T(value); });
  }
  T operator()(uint32_t index) const { return GetValue(index); }

  T* data() const { return reinterpret_cast<T*>(base_ + off_); }
  sim::Mem mem() const { return mem_; }
  uint64_t off() const { return off_; }
  const sim::Extent& extent() const { return extent_; }
  // The first `count` elements as an access that must be aligned to `align` bytes.
  sim::Access access(uint64_t count, uint32_t align) const {
    sim::Access a;
    a.mem = mem_, a.extent = extent_, a.align = align;
    a.add({off_, uint32_t(count * sizeof(T))});
    return a;
  }
  sim::Access access(uint64_t count) const { return access(count, sim::kMemAlign[int(mem_)]); }

 private:
  template <class>
  friend class LocalTensor;
  template <class Run>
  void scalar_access(uint32_t index, sim::Op op, Run run) const {
    if (!base_) return;
    const sim::Access a = (*this)[index].access(1, 1);
    sim::Instruction in{PIPE_S, op};
    if (op == sim::Op::GetValue) in.reads[0] = &a, in.read_count = 1;
    else in.write = &a;
    sim::issue(in, [run, at = data() + index] { run(at); });
  }
  sim::Mem mem_ = sim::Mem::UB;
  uint64_t off_ = 0;
  uint32_t size_ = 0;
  sim::Extent extent_;
  uint8_t* base_ = nullptr;
};

template <class T>
class GlobalTensor {
 public:
  using PrimType = T;
  void SetGlobalBuffer(T* pointer, uint64_t size = 0) {
    off_ = uint64_t(reinterpret_cast<uint8_t*>(pointer) - sim::engine.gm.base);
    const int index = sim::engine.gm.find(off_);
    if (index >= 0) extent_ = {sim::engine.gm.buffers[index].lo, sim::engine.gm.buffers[index].hi, uint16_t(index + 1)};
    size_ = size ? size : (extent_.hi - off_) / sizeof(T);
  }
  GlobalTensor operator[](uint64_t offset) const {
    GlobalTensor t = *this;
    t.off_ += offset * sizeof(T);
    t.size_ = offset < size_ ? size_ - offset : 0;
    return t;
  }
  uint64_t GetSize() const { return size_; }
  const T* GetPhyAddr(uint64_t offset = 0) const { return data() + offset; }
  T GetValue(uint64_t index) const {
    T value{};
    const sim::Access a = (*this)[index].access();
    sim::Instruction in{PIPE_S, sim::Op::GetValue};
    in.reads[0] = &a, in.read_count = 1;
    sim::issue(in, [&value, at = data() + index] { value = *at; });
    return value;
  }
  template <class U>
  void SetValue(uint64_t index, U value) const {
    const sim::Access a = (*this)[index].access();
    sim::Instruction in{PIPE_S, sim::Op::SetValue};
    in.write = &a;
    sim::issue(in, [value, at = data() + index] { *at = T(value); });
  }
  void SetL2CacheHint(CacheMode) const {}
  T* data() const { return reinterpret_cast<T*>(sim::engine.gm.base + off_); }
  uint64_t off() const { return off_; }
  const sim::Extent& extent() const { return extent_; }

 private:
  sim::Access access() const {
    sim::Access a;
    a.mem = sim::Mem::GM, a.extent = extent_;
    a.add({off_, sizeof(T)});
    return a;
  }
  uint64_t off_ = 0, size_ = 0;
  sim::Extent extent_;
};

template <TPosition P, uint32_t bufIDSize = 4>
class TBuf {
 public:
  void init(uint32_t bytes) { bytes_ = bytes; }
  template <class T>
  LocalTensor<T> Get() const { return Get<T>(bytes_ / sizeof(T)); }
  template <class T>
  LocalTensor<T> Get(uint32_t count) const { return LocalTensor<T>(memory_of(P), 0, count, {0, bytes_, 0}); }
  template <class T>
  LocalTensor<T> GetWithOffset(uint32_t count, uint32_t offset) const {
    const auto it = sim::engine.local_of.find(sim::current->line);
    const uint16_t id = it == sim::engine.local_of.end() ? 0 : it->second;
    const uint64_t end = uint64_t(offset) + uint64_t(count) * sizeof(T);
    LocalTensor<T> t(memory_of(P), offset, count, {offset, end, id});
    if (end > bytes_)
      sim::report(*sim::current, "buffer-past-memory", "bounds", "error", memory_of(P), t.extent(),
                  "ends at byte " + std::to_string(end) + " of " + std::to_string(bytes_), sim::current->line, sim::Op::Scalar, PIPE_S);
    return t;
  }

 private:
  uint32_t bytes_ = 0;
};

class TPipe {
 public:
  template <TPosition P, uint32_t N>
  bool InitBuffer(TBuf<P, N>& buffer, uint32_t bytes) { buffer.init(bytes); return true; }
  void Destroy() {}
};

}  // namespace AscendC
