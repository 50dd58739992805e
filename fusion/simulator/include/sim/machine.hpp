// The parts of one AI core: streams, pipes and on-chip memories, with the sizes of the A2/A3 generation.
#pragma once
#include <cstdint>

enum pipe_t : int { PIPE_S = 0, PIPE_V, PIPE_M, PIPE_MTE1, PIPE_MTE2, PIPE_MTE3, PIPE_FIX, PIPE_ALL };
enum event_t : int { EVENT_ID0 = 0, EVENT_ID1, EVENT_ID2, EVENT_ID3, EVENT_ID4, EVENT_ID5, EVENT_ID6, EVENT_ID7 };

namespace sim {

// Stream 0 is the Cube (AIC), 1 and 2 the Vector streams (AIV). Slot 7 of a stream's pipes stands for its scalar
// stores: they leave the scalar unit late, so issuing an instruction does not order them (a flag from S does).
constexpr int kStreams = 3, kPipes = 8, kActors = kStreams * kPipes, kScalarStore = 7;
constexpr const char* kStreamNames[kStreams] = {"AIC", "AIV0", "AIV1"};
constexpr const char* kPipeNames[kPipes] = {"S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX", "S-store"};

enum class Mem : uint8_t { GM, UB, L1, L0A, L0B, L0C };
constexpr int kMems = 6;
constexpr const char* kMemNames[kMems] = {"GM", "UB", "L1", "L0A", "L0B", "L0C"};
constexpr uint32_t kMemBytes[kMems] = {0, 192 * 1024, 512 * 1024, 64 * 1024, 64 * 1024, 128 * 1024};
constexpr uint32_t kMemAlign[kMems] = {1, 32, 32, 512, 512, 64};

constexpr uint32_t kCell = 32;          // bytes that share one record of the order checker
constexpr int kLocalFlags = 8;          // event ids per pair of pipes
constexpr int kCrossFlags = 16, kCrossFlagLimit = 11, kCrossCounterLimit = 15;

inline bool belongs(int stream, pipe_t pipe) {
  if (pipe == PIPE_M || pipe == PIPE_MTE1 || pipe == PIPE_FIX) return stream == 0;
  if (pipe == PIPE_V) return stream != 0;
  return true;
}

}  // namespace sim
