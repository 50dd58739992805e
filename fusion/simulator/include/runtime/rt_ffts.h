// Stand-in for the control address of the cores' flags; the simulator keeps flags itself.
#pragma once
#include <cstdint>
inline int rtGetC2cCtrlAddr(uint64_t* address, uint32_t* length) {
  *address = 0, *length = 0;
  return 0;
}
