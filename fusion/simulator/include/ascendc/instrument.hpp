// What the rewritten kernel source calls: the line that runs, and the loops that are open.
#pragma once
#include "tensor.hpp"

namespace sim {

inline void at_line(int line) {
  current->line = line;
  current->sync_ordinal = 0;
}

class LoopScope {
 public:
  template <class T>
  LoopScope(const char* name, const T& variable) {
    current->loops.push_back({name, &variable, int(sizeof(T))});
    ++current->loop_version;
  }
  ~LoopScope() {
    current->loops.pop_back();
    ++current->loop_version;
  }
};

}  // namespace sim

#define FP_LINE(number) ::sim::at_line(number);
#define FP_LOOP(variable) ::sim::LoopScope fp_loop_##variable(#variable, variable);
