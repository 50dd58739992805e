// The one place that every instruction goes through. What it does (checks, order, records) is in issue.inl.
#pragma once
#include <utility>

#include "engine.hpp"

namespace sim {

struct Cost {
  uint32_t elements = 0, repeats = 1, element_bytes = 0;
  uint32_t m = 0, n = 0, k = 0;
};

struct Instruction {
  pipe_t pipe;
  Op op;
  const Access* reads[4] = {};
  int read_count = 0;
  const Access* write = nullptr;
  Cost cost;
  const Access* scratch = nullptr;  // a temporary that the instruction leaves in an unknown state
  bool moves = false;   // copies the "is set" bits of reads[0] byte by byte instead of setting them (same run order)
  bool spreads = false; // elementwise: a result is set iff its operands are (operands and result have the same run order)
  uint8_t flags = 0;    // kAtomic for adds to GM
};

// A call that is made before the function that gets it returns; no copy, no allocation.
class Action {
 public:
  template <class F>
  Action(const F& f) : object_(&f), call_([](const void* o) { (*const_cast<F*>(static_cast<const F*>(o)))(); }) {}
  void operator()() const { call_(object_); }

 private:
  const void* object_;
  void (*call_)(const void*);
};

// Adds a step to the log of a pipe, so that a later finding can name it.
void note_step(Stream& s, int pipe, Op op);

// Bounds, alignment, counts and trace. False if this core has no such unit, or the access would leave the memory.
bool admit(Stream& s, const Instruction& in);
// Runs an admitted instruction now, with or without order checking.
void execute(Stream& s, const Instruction& in, Action run);

// Issues one instruction. `run` does its arithmetic and must own everything it needs (it may run later).
template <class Run>
inline void issue(const Instruction& in, Run&& run) {
  Stream& s = *current;
  if (!admit(s, in)) return;
  if (engine.options.deferred && in.pipe != PIPE_S) push_deferred(s, in.pipe, Deferred{Deferred::Run, std::function<void()>(std::forward<Run>(run)), -1, s.line});
  else execute(s, in, Action(run));
}

}  // namespace sim
