// Every operation that can appear in an instruction stream; the names are those of the trace and of findings.
#pragma once
#include <cstdint>

#define SIM_OPS(X)                                                                                                        \
  X(Scalar) X(GetValue) X(SetValue) X(SetFlag) X(WaitFlag) X(PipeBarrier) X(CrossCoreSetFlag) X(CrossCoreWaitFlag)         \
  X(SyncAll) X(DataCopy) X(DataCopyPad) X(InitConstValue) X(LoadData) X(LoadDataWithTranspose) X(Mmad) X(Fixpipe)          \
  X(Add) X(Sub) X(Mul) X(Div) X(Max) X(Min) X(And) X(Or) X(Xor) X(Adds) X(Subs) X(Muls) X(Divs) X(Maxs) X(Mins)            \
  X(LeakyRelu) X(Axpy) X(MulAddDst) X(ShiftLeft) X(ShiftRight) X(Exp) X(Ln) X(Abs) X(Reciprocal) X(Sqrt) X(Rsqrt) X(Relu)  \
  X(Not) X(Sin) X(Cos) X(Power) X(Sigmoid) X(Silu) X(Round) X(ClampMax) X(ClampMin) X(Cast) X(Duplicate)                   \
  X(ArithProgression) X(CreateVecIndex) X(Compare) X(CompareScalar) X(Select) X(ReduceSum) X(ReduceMax) X(ReduceMin)       \
  X(WholeReduceSum) X(WholeReduceMax) X(WholeReduceMin) X(BlockReduceSum) X(BlockReduceMax) X(BlockReduceMin) X(Sum)       \
  X(Broadcast) X(Brcb) X(Transpose) X(TransDataTo5HD) X(Gather) X(Gatherb) X(GatherMask) X(Sort32) X(MrgSort)              \
  X(BilinearInterpolation) X(End)

namespace sim {

enum class Op : uint16_t {
#define SIM_NAME(name) name,
  SIM_OPS(SIM_NAME)
#undef SIM_NAME
};

constexpr const char* kOpNames[] = {
#define SIM_NAME(name) #name,
    SIM_OPS(SIM_NAME)
#undef SIM_NAME
};

}  // namespace sim
