// Stand-in for the device's kernel_operator.h: the AscendC namespace on top of the simulator.
#pragma once
#include "ascendc/builtins.hpp"
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "ascendc/cube.hpp"
#include "ascendc/instrument.hpp"
#include "ascendc/compare.hpp"
#include "ascendc/reduce.hpp"
#include "ascendc/shape.hpp"
#include "ascendc/sort.hpp"
#include "ascendc/gather.hpp"
#include "ascendc/math.hpp"
#include "ascendc/debug.hpp"
