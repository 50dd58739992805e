// Copies between GM, UB and L1: plain, padded and fractal (ND to NZ). MTE2 loads, MTE3 stores, V copies inside UB.
#pragma once
#include "convert.hpp"

namespace AscendC {

struct DataCopyParams {
  DataCopyParams() = default;
  DataCopyParams(uint16_t count, uint16_t len, uint16_t src, uint16_t dst) : blockCount(count), blockLen(len), srcStride(src), dstStride(dst) {}
  uint16_t blockCount = 1, blockLen = 0, srcStride = 0, dstStride = 0;
};
struct DataCopyExtParams {
  DataCopyExtParams() = default;
  DataCopyExtParams(uint16_t count, uint32_t len, uint32_t src, uint32_t dst, uint32_t rsv_) : blockCount(count), blockLen(len), srcStride(src), dstStride(dst), rsv(rsv_) {}
  uint16_t blockCount = 1;
  uint32_t blockLen = 0, srcStride = 0, dstStride = 0, rsv = 0;
};
template <class T>
struct DataCopyPadExtParams {
  DataCopyPadExtParams() = default;
  DataCopyPadExtParams(bool pad, uint8_t left, uint8_t right, T value) : isPad(pad), leftPadding(left), rightPadding(right), paddingValue(value) {}
  bool isPad = false;
  uint8_t leftPadding = 0, rightPadding = 0;
  T paddingValue{};
};
struct Nd2NzParams {
  uint16_t ndNum = 1, nValue = 0, dValue = 0;
  uint32_t srcNdMatrixStride = 0, srcDValue = 0;
  uint16_t dstNzC0Stride = 0, dstNzNStride = 0;
  uint32_t dstNzMatrixStride = 0;
};
template <class T>
struct InitConstValueParams {
  InitConstValueParams(uint16_t repeat, uint16_t blocks, uint16_t gap, T value) : repeatTimes(repeat), blockNum(blocks), dstGap(gap), initValue(value) {}
  uint16_t repeatTimes, blockNum, dstGap;
  T initValue;
};

template <class T>
inline void SetAtomicAdd() { sim::current->atomic = sim::add_code<T>(); }
inline void SetAtomicNone() { sim::current->atomic = 0; }
inline void DisableDmaAtomic() { sim::current->atomic = 0; }

}  // namespace AscendC

namespace sim {

template <class T>
using Global = AscendC::GlobalTensor<T>;

template <class T>
inline Access gm_access(const Global<T>& t, const Range& range) {
  Access a;
  a.mem = Mem::GM, a.extent = t.extent(), a.align = sizeof(T);
  a.add(range);
  return a;
}
template <class T>
inline Access local_access(const Local<T>& t, const Range& range) {
  Access a;
  a.mem = t.mem(), a.extent = t.extent(), a.align = kMemAlign[int(t.mem())];
  a.add(range);
  return a;
}

// Bytes to GM. Atomic adds are logged and replayed in block order, so that sums do not depend on the threads.
inline void store_gm(Stream& s, int atomic, uint64_t off, const uint8_t* from, uint32_t bytes) {
  if (!atomic) { std::memcpy(engine.gm.base + off, from, bytes); return; }
  if (engine.options.deferred) return add_bytes(atomic, engine.gm.base + off, from, bytes);
  Core& core = *s.core;
  core.adds.push_back({atomic, off, bytes});
  core.add_values.insert(core.add_values.end(), from, from + bytes);
  if (core.add_values.size() > (64u << 20)) flush_adds(core, true);
}

// The flags of a store to GM, and the note that its buffer has adds that are not applied yet.
inline uint8_t store_flags(Stream& s, const Access& w) {
  if (!s.atomic) return 0;
  if (!engine.options.deferred) s.core->add_extents.insert(w.extent.id);
  return kAtomic;
}

// Rows of `len` bytes from GM to a local memory; strides are from row start to row start.
template <class T>
inline void load_rows(Op op, const Local<T>& dst, const Global<T>& src, uint32_t rows, uint32_t len, int64_t src_step, int64_t dst_step,
                      uint32_t left, uint32_t right, T pad) {
  const Access r = gm_access(src, {src.off(), len, rows, src_step});
  const Access w = local_access(dst, {dst.off(), len + uint32_t((left + right) * sizeof(T)), rows, dst_step});
  Instruction in{PIPE_MTE2, op, {&r}, 1, &w, {uint32_t(rows * uint64_t(len) / sizeof(T)), rows, sizeof(T)}};
  issue(in, [=, d = dst.data(), s = src.data()] {
    for (uint32_t i = 0; i < rows; ++i) {
      auto* to = reinterpret_cast<uint8_t*>(d) + i * dst_step;
      std::fill_n(reinterpret_cast<T*>(to), left, pad);
      std::memcpy(to + left * sizeof(T), reinterpret_cast<const uint8_t*>(s) + i * src_step, len);
      std::fill_n(reinterpret_cast<T*>(to + left * sizeof(T) + len), right, pad);
    }
  });
}

template <class T>
inline void store_rows(Op op, const Global<T>& dst, const Local<T>& src, uint32_t rows, uint32_t len, int64_t src_step, int64_t dst_step) {
  Stream& s = *current;
  const Access r = local_access(src, {src.off(), len, rows, src_step});
  const Access w = gm_access(dst, {dst.off(), len, rows, dst_step});
  Instruction in{PIPE_MTE3, op, {&r}, 1, &w, {uint32_t(rows * uint64_t(len) / sizeof(T)), rows, sizeof(T)}};
  if (!s.mem[int(src.mem())].data.empty()) in.flags = store_flags(s, w);
  issue(in, [=, &s, atomic = s.atomic, at = dst.off(), from = reinterpret_cast<const uint8_t*>(src.data())] {
    for (uint32_t i = 0; i < rows; ++i) store_gm(s, atomic, at + i * dst_step, from + i * src_step, len);
  });
}

template <class T>
inline void copy_rows(const Local<T>& dst, const Local<T>& src, uint32_t rows, uint32_t len, int64_t src_step, int64_t dst_step) {
  const Access r = local_access(src, {src.off(), len, rows, src_step}), w = local_access(dst, {dst.off(), len, rows, dst_step});
  Instruction in{PIPE_V, Op::DataCopy, {&r}, 1, &w, {uint32_t(rows * uint64_t(len) / sizeof(T)), (rows * len + 255) / 256, sizeof(T)}};
  in.spreads = true;
  issue(in, [=, d = reinterpret_cast<uint8_t*>(dst.data()), s = reinterpret_cast<const uint8_t*>(src.data())] {
    for (uint32_t i = 0; i < rows; ++i) std::memmove(d + i * dst_step, s + i * src_step, len);
  });
}

inline int64_t padded(uint32_t len) { return (int64_t(len) + 31) / 32 * 32; }

inline void whole_blocks(Op op, uint64_t bytes, pipe_t pipe) {
  if (bytes % 32)
    report(*current, "misaligned-length", "align", "error", Mem::UB, {}, "DataCopy moves " + std::to_string(bytes) + " bytes; whole blocks of 32 only", current->line, op, pipe);
}

}  // namespace sim

namespace AscendC {

template <class T>
inline void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, uint32_t count) {
  sim::whole_blocks(sim::Op::DataCopy, count * sizeof(T), PIPE_MTE2);
  sim::load_rows<T>(sim::Op::DataCopy, dst, src, 1, count * sizeof(T), 0, 0, 0, 0, T{});
}
template <class T>
inline void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, uint32_t count) {
  sim::whole_blocks(sim::Op::DataCopy, count * sizeof(T), PIPE_MTE3);
  sim::store_rows<T>(sim::Op::DataCopy, dst, src, 1, count * sizeof(T), 0, 0);
}
template <class T>
inline void DataCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint32_t count) {
  sim::whole_blocks(sim::Op::DataCopy, count * sizeof(T), PIPE_V);
  sim::copy_rows<T>(dst, src, 1, count * sizeof(T), 0, 0);
}
// Block lengths and gaps in units of 32 bytes.
template <class T>
inline void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyParams& p) {
  const uint32_t len = p.blockLen * 32u;
  sim::load_rows<T>(sim::Op::DataCopy, dst, src, p.blockCount, len, len + p.srcStride * 32, len + p.dstStride * 32, 0, 0, T{});
}
template <class T>
inline void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& p) {
  const uint32_t len = p.blockLen * 32u;
  sim::store_rows<T>(sim::Op::DataCopy, dst, src, p.blockCount, len, len + p.srcStride * 32, len + p.dstStride * 32);
}
template <class T>
inline void DataCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& p) {
  const uint32_t len = p.blockLen * 32u;
  sim::copy_rows<T>(dst, src, p.blockCount, len, len + p.srcStride * 32, len + p.dstStride * 32);
}

// Row-major GM into fractal L1; the last block of a row is filled up with zeros.
template <class T>
inline void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const Nd2NzParams& p) {
  constexpr uint32_t c0 = 32 / sizeof(T);
  const uint32_t blocks = (p.dValue + c0 - 1) / c0;
  const sim::Access r = sim::gm_access(src, {src.off(), uint32_t(p.dValue * sizeof(T)), p.nValue, int64_t(p.srcDValue) * int64_t(sizeof(T)), p.ndNum, int64_t(p.srcNdMatrixStride) * int64_t(sizeof(T))});
  sim::Access w = sim::local_access(dst, {dst.off(), 32, p.nValue, p.dstNzNStride * 32, blocks, p.dstNzC0Stride * 32});
  for (uint32_t i = 1; i < p.ndNum; ++i)
    w.add({dst.off() + uint64_t(i) * p.dstNzMatrixStride * sizeof(T), 32, p.nValue, p.dstNzNStride * 32, blocks, p.dstNzC0Stride * 32});
  sim::Instruction in{PIPE_MTE2, sim::Op::DataCopy, {&r}, 1, &w, {uint32_t(p.ndNum) * p.nValue * p.dValue, uint32_t(p.ndNum) * p.nValue, sizeof(T)}};
  sim::issue(in, [=, d = dst.data(), s = src.data()] {
    for (uint32_t m = 0; m < p.ndNum; ++m)
      for (uint32_t n = 0; n < p.nValue; ++n)
        for (uint32_t b = 0; b < blocks; ++b) {
          T* to = d + uint64_t(m) * p.dstNzMatrixStride + (uint64_t(b) * p.dstNzC0Stride + uint64_t(n) * p.dstNzNStride) * c0;
          const T* from = s + uint64_t(m) * p.srcNdMatrixStride + uint64_t(n) * p.srcDValue + b * c0;
          const uint32_t take = std::min<uint32_t>(c0, p.dValue - b * c0);
          std::memcpy(static_cast<void*>(to), from, take * sizeof(T));
          std::memset(static_cast<void*>(to + take), 0, (c0 - take) * sizeof(T));
        }
  });
}

// Lengths and GM gaps in bytes, local gaps in blocks of 32 bytes. What a row leaves of its last block keeps its value.
template <class T>
inline void DataCopyPad(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyExtParams& p, const DataCopyPadExtParams<T>& pad) {
  const uint32_t left = pad.isPad ? pad.leftPadding : 0, right = pad.isPad ? pad.rightPadding : 0;
  const int64_t step = sim::padded(p.blockLen + uint32_t((left + right) * sizeof(T))) + int64_t(p.dstStride) * 32;
  sim::load_rows<T>(sim::Op::DataCopyPad, dst, src, p.blockCount, p.blockLen, int64_t(p.blockLen) + int32_t(p.srcStride), step, left, right, pad.paddingValue);
}
template <class T>
inline void DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyExtParams& p) {
  sim::store_rows<T>(sim::Op::DataCopyPad, dst, src, p.blockCount, p.blockLen, sim::padded(p.blockLen) + int64_t(p.srcStride) * 32, int64_t(p.blockLen) + int32_t(p.dstStride));
}
template <class T>
inline void DataCopyPad(const LocalTensor<T>&, const LocalTensor<T>&, const DataCopyExtParams&, const Nd2NzParams&) {
  static_assert(sizeof(T) == 0, "AscendC::DataCopyPad from UB to L1: A2 and A3 have no such path");
}

template <class T>
inline void InitConstValue(const LocalTensor<T>& dst, const InitConstValueParams<T>& p) {
  const uint32_t unit = dst.mem() == sim::Mem::L1 ? 32 : 512;
  const uint32_t len = p.blockNum * unit, step = (uint32_t(p.blockNum) + p.dstGap) * unit;
  const sim::Access w = sim::local_access(dst, {dst.off(), len, p.repeatTimes, step});
  sim::Instruction in{dst.mem() == sim::Mem::L1 ? PIPE_MTE2 : PIPE_MTE1, sim::Op::InitConstValue, {}, 0, &w, {uint32_t(len / sizeof(T)) * p.repeatTimes, p.repeatTimes, sizeof(T)}};
  sim::issue(in, [=, d = dst.data(), value = p.initValue, repeat = p.repeatTimes] {
    for (uint32_t r = 0; r < repeat; ++r) std::fill_n(d + uint64_t(r) * step / sizeof(T), len / sizeof(T), value);
  });
}

}  // namespace AscendC
