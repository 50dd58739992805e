// Where the code runs, and the synchronization calls of Ascend C.
#pragma once
#include "tensor.hpp"

#define SIM_EVENTS(X)                                                                                                          \
  X(MTE2, MTE1) X(MTE1, MTE2) X(MTE1, M) X(M, MTE1) X(MTE2, V) X(V, MTE2) X(MTE3, V) X(V, MTE3) X(M, V) X(V, M) X(V, V)        \
  X(MTE3, MTE1) X(MTE1, MTE3) X(MTE1, V) X(V, MTE1) X(MTE2, M) X(M, MTE2) X(M, MTE3) X(MTE3, M) X(MTE3, MTE2) X(MTE2, MTE3)    \
  X(S, V) X(V, S) X(S, MTE2) X(MTE2, S) X(S, MTE3) X(MTE3, S) X(S, MTE1) X(MTE1, S) X(S, M) X(M, S) X(M, FIX) X(FIX, M)        \
  X(FIX, MTE2) X(MTE2, FIX) X(FIX, MTE3) X(MTE3, FIX) X(FIX, MTE1) X(MTE1, FIX) X(FIX, S) X(S, FIX) X(FIX, V) X(V, FIX)

// KERNEL_TASK_TYPE_DEFAULT is read by the host side; the kernel body needs nothing from it.
#define KERNEL_TASK_TYPE_DEFAULT(type)
#define KERNEL_TASK_TYPE(key, type)
#define ASCEND_IS_AIV (sim::current->id != 0)
#define ASCEND_IS_AIC (sim::current->id == 0)

namespace AscendC {

enum class HardEvent : int {
#define SIM_EVENT(a, b) a##_##b,
  SIM_EVENTS(SIM_EVENT)
#undef SIM_EVENT
};
constexpr std::pair<pipe_t, pipe_t> kEventPipes[] = {
#define SIM_EVENT(a, b) {PIPE_##a, PIPE_##b},
    SIM_EVENTS(SIM_EVENT)
#undef SIM_EVENT
};

inline int64_t GetBlockIdx() {
  const sim::Stream& s = *sim::current;
  return s.id == 0 ? s.core->block : s.core->block * s.core->vectors + (s.id - 1);
}
inline int64_t GetBlockNum() { return sim::engine.options.blocks; }
inline int64_t GetSubBlockIdx() { return sim::current->id == 0 ? 0 : sim::current->id - 1; }
inline int64_t GetSubBlockNum() { return sim::current->core->vectors; }
inline int64_t GetTaskRation() { return sim::current->core->vectors; }

template <HardEvent E>
inline void SetFlag(int id) {
  constexpr auto pipes = kEventPipes[int(E)];
  sim::set_flag(*sim::current, pipes.first, pipes.second, id);
}
template <HardEvent E>
inline void WaitFlag(int id) {
  constexpr auto pipes = kEventPipes[int(E)];
  sim::wait_flag(*sim::current, pipes.first, pipes.second, id);
}
template <pipe_t P>
inline void PipeBarrier() { sim::pipe_barrier(*sim::current, P); }

template <uint8_t Mode, pipe_t P>
inline void CrossCoreSetFlag(uint16_t id) { sim::cross_set(*sim::current, P, Mode, id); }
template <uint8_t Mode = 0, pipe_t P = PIPE_S>
inline void CrossCoreWaitFlag(uint16_t id) { sim::cross_wait(*sim::current, id); }
template <bool VectorsOnly = true>
inline void SyncAll() { sim::sync_all(*sim::current, VectorsOnly); }

enum class CacheLine { SINGLE_CACHE_LINE, ENTIRE_DATA_CACHE };
enum class DcciDst { CACHELINE_ALL, CACHELINE_UB, CACHELINE_OUT, CACHELINE_ATOMIC };
// Writes scalar stores to GM back: from here on issue orders them.
template <class T, CacheLine L, DcciDst D = DcciDst::CACHELINE_OUT>
inline void DataCacheCleanAndInvalid(const GlobalTensor<T>&) { sim::pipe_barrier(*sim::current, PIPE_S); }

}  // namespace AscendC

inline void set_flag(pipe_t from, pipe_t to, event_t id) { sim::set_flag(*sim::current, from, to, id); }
inline void wait_flag(pipe_t from, pipe_t to, event_t id) { sim::wait_flag(*sim::current, from, to, id); }
inline void pipe_barrier(pipe_t pipe) { sim::pipe_barrier(*sim::current, pipe); }
