// Puts the instructions of one AI core on its pipes: in-order queues, flags, barriers, cross-core flags, shared bandwidth.
// All costs come in with the items; nothing here knows a device. Built as a shared library, called through ctypes.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

namespace {

constexpr int kStreams = 3, kPipes = 7, kFlags = 16, kCauses = 10;
constexpr double kNever = std::numeric_limits<double>::infinity(), kTiny = 1e-6;  // ns: above the rounding of times of seconds
enum Kind : uint8_t { Run, Set, Wait, Barrier, CrossSet, CrossWait, Scalar, SyncAll, End };
enum Cause { OnBarrier = 7, OnCross = 8, OnIssue = 9, AtEnd = 10 };  // 0 to 6: a flag from that pipe

struct Item {
  uint8_t stream, pipe, kind, flag, other, pad[3];
  float issue;    // ns of the scalar unit
  float fixed;    // ns that the pipe is busy before bytes flow
  float latency;  // ns after the end until a flag may tell
  float bytes;    // GM bytes
  float cap;      // bytes a ns that this transfer may take at most
};

struct Rates {
  double cube, vector, core;  // bytes a ns: Cube side, both Vector streams, all of the core
  double cross;               // ns
};

struct Result {
  double* start;
  double* end;
  int32_t* pred;
  double* busy;   // [stream][pipe]
  double* waits;  // [stream][pipe][cause]
};

struct Raised {
  double time;
  int32_t by;
};

struct Pipe {
  std::deque<std::pair<int32_t, double>> queue;  // item, earliest time
  bool busy = false, flowing = false;
  int32_t item = -1, done_item = -1, cause_item = -1, blocked_on = -1;
  double until = 0, remaining = 0, rate = 0, done = 0, cause_time = 0, blocked_since = 0, free_at = 0;
};

struct Stream {
  std::vector<int32_t> items;
  size_t next = 0;
  double free = 0;
  int blocked_on = -1;
  int32_t anchor = -1;
  Pipe pipes[kPipes];
  std::deque<Raised> flags[kPipes][kPipes][kFlags];
};

struct Core {
  const Item* items;
  Rates rates;
  Result out;
  int vectors;
  double now = 0;
  Stream streams[kStreams];
  std::deque<Raised> cross[kStreams][kFlags], half[2][kFlags];

  double& waited(int s, int p, int cause) { return out.waits[(s * kPipes + p) * kCauses + cause]; }

  void finish(int s, int p) {
    Pipe& pipe = streams[s].pipes[p];
    out.end[pipe.item] = now + items[pipe.item].latency;
    out.busy[s * kPipes + p] += now - out.start[pipe.item];
    pipe.busy = pipe.flowing = false;
    pipe.free_at = now;
    if (now + items[pipe.item].latency >= pipe.done) pipe.done = now + items[pipe.item].latency, pipe.done_item = pipe.item;
    pipe.cause_time = now, pipe.cause_item = pipe.item;
  }

  void start(Pipe& pipe, int32_t i, double ready, int32_t issued_by) {
    out.start[i] = now;
    out.pred[i] = ready > pipe.cause_time ? issued_by : pipe.cause_item;
    pipe.busy = true, pipe.item = i, pipe.until = now + items[i].fixed;
  }

  // The head waits for something: notes since when and why, so that the time can be charged when it goes on.
  void block(Pipe& pipe, int cause) {
    if (pipe.blocked_on < 0) pipe.blocked_on = cause, pipe.blocked_since = now;
  }
  void unblock(int s, int p) {
    Pipe& pipe = streams[s].pipes[p];
    if (pipe.blocked_on >= 0) waited(s, p, pipe.blocked_on) += now - pipe.blocked_since, pipe.blocked_on = -1;
  }

  void deliver(int s, int mode, int id, Raised raised) {
    if (s == 0) {
      for (int v = 1; v <= vectors; ++v) cross[v][id].push_back(raised);
      return;
    }
    half[s - 1][id].push_back(raised);
    Raised last = raised;
    for (int v = 0; v < vectors; ++v) {
      if (half[v][id].empty()) return;
      if (half[v][id].front().time > last.time) last = half[v][id].front();
    }
    for (int v = 0; v < vectors; ++v) half[v][id].pop_front();
    if (mode == 2) return cross[0][id].push_back(last);
    for (int v = 1; v <= vectors; ++v) cross[v][id].push_back(last);
  }

  // Takes a raised flag if its time has come. Else tells when to look again.
  bool take(std::deque<Raised>& raised, double& wake, Raised& got) {
    if (raised.empty()) return false;
    if (raised.front().time > now + kTiny) return wake = std::min(wake, raised.front().time), false;
    got = raised.front();
    raised.pop_front();
    return true;
  }

  bool step_pipe(int s, int p, double& wake) {
    Stream& stream = streams[s];
    Pipe& pipe = stream.pipes[p];
    if (pipe.busy) {
      if (pipe.flowing) {
        if (pipe.remaining > pipe.rate * kTiny) return false;
      } else {
        if (pipe.until > now + kTiny) return wake = std::min(wake, pipe.until), false;
        if (items[pipe.item].bytes > 0) return pipe.flowing = true, pipe.remaining = items[pipe.item].bytes, pipe.rate = 0, true;
      }
      finish(s, p);
      return true;
    }
    if (pipe.queue.empty()) return false;
    const auto [i, ready] = pipe.queue.front();
    if (ready > now + kTiny) return block(pipe, OnIssue), wake = std::min(wake, ready), false;
    const Item& item = items[i];
    if (item.kind == Wait) {
      Raised got{};
      if (!take(stream.flags[item.pipe][item.other][item.flag], wake, got)) return block(pipe, item.pipe), false;
      if (got.time > pipe.cause_time) pipe.cause_time = got.time, pipe.cause_item = got.by;
    } else if (item.kind == Barrier) {
      if (pipe.done > now + kTiny) return block(pipe, OnBarrier), wake = std::min(wake, pipe.done), false;
    } else if (item.kind == Set) {
      stream.flags[p][item.other][item.flag].push_back({std::max(now, pipe.done), pipe.done_item});
    } else if (item.kind == CrossSet) {
      deliver(s, item.other, item.flag, {std::max(now, pipe.done) + rates.cross, pipe.done_item});
    } else {
      unblock(s, p);
      start(pipe, i, ready, out.pred[i]);
      pipe.queue.pop_front();
      return true;
    }
    unblock(s, p);
    out.start[i] = out.end[i] = now;
    pipe.queue.pop_front();
    return true;
  }

  bool drained(Stream& stream, double& wake, int32_t& last) {
    double done = 0;
    for (Pipe& pipe : stream.pipes) {
      if (pipe.busy || !pipe.queue.empty()) return false;
      if (pipe.done > done) done = pipe.done, last = pipe.done_item;
    }
    if (done > now + kTiny) return wake = std::min(wake, done), false;
    return true;
  }

  void resume_scalar(int s, int32_t by) {
    Stream& stream = streams[s];
    if (stream.blocked_on < 0) return;
    stream.blocked_on = -1;
    stream.anchor = by;
  }

  // Time in which the scalar unit waits counts only while no pipe of the stream works.
  void charge_waits(double until) {
    for (int s = 0; s < kStreams; ++s) {
      Stream& stream = streams[s];
      if (stream.blocked_on < 0 || stream.blocked_on == AtEnd) continue;
      bool idle = true;
      for (Pipe& pipe : stream.pipes) idle &= !pipe.busy;
      if (idle) waited(s, 0, stream.blocked_on) += until - now;
    }
  }

  bool step_scalar(int s, double& wake) {
    Stream& stream = streams[s];
    if (stream.next == stream.items.size()) return false;
    if (stream.free > now + kTiny) return wake = std::min(wake, stream.free), false;
    const int32_t i = stream.items[stream.next];
    const Item& item = items[i];
    const auto hold = [&](int cause) { return stream.blocked_on = cause, false; };
    Raised got{};
    if (item.kind == CrossWait) {
      if (!take(cross[s][item.flag], wake, got)) return hold(OnCross);
      resume_scalar(s, got.by);
    } else if (item.kind == Wait && item.other == 0) {
      if (!take(stream.flags[item.pipe][0][item.flag], wake, got)) return hold(item.pipe);
      resume_scalar(s, got.by);
    } else if ((item.kind == Barrier && item.pipe == 7) || item.kind == SyncAll || item.kind == End) {
      int32_t last = stream.anchor;
      if (!drained(stream, wake, last)) return hold(item.kind == End ? AtEnd : OnBarrier);
      resume_scalar(s, last);
    } else if (item.kind == Set && item.pipe == 0) {
      stream.flags[0][item.other][item.flag].push_back({now, stream.anchor});
    } else if (item.kind != Scalar) {
      const int p = item.kind == Wait ? item.other : item.pipe;
      out.pred[i] = stream.anchor;
      stream.free = now + item.issue;
      if (p > 0 && p < kPipes) stream.pipes[p].queue.push_back({i, stream.free});
      ++stream.next;
      return true;
    }
    out.start[i] = now, out.pred[i] = stream.anchor;
    stream.free = out.end[i] = now + item.issue + item.fixed;
    out.busy[s * kPipes] += item.issue + item.fixed;
    if (item.kind == Scalar) stream.anchor = i;
    ++stream.next;
    return true;
  }

  // What each flow gets: its own cap, its side's share, the core's share.
  double share_bandwidth() {
    int cube = 0, vector = 0;
    for (int s = 0; s < kStreams; ++s)
      for (Pipe& pipe : streams[s].pipes) (s ? vector : cube) += pipe.flowing;
    double first = kNever;
    for (int s = 0; s < kStreams; ++s)
      for (Pipe& pipe : streams[s].pipes)
        if (pipe.flowing) {
          const double side = s ? rates.vector / vector : rates.cube / cube;
          pipe.rate = std::min({double(items[pipe.item].cap), side, rates.core / (cube + vector)});
          first = std::min(first, pipe.remaining / pipe.rate);
        }
    return first;
  }

  void pass(double until) {
    charge_waits(until);
    for (Stream& stream : streams)
      for (Pipe& pipe : stream.pipes)
        if (pipe.flowing) pipe.remaining = std::max(0.0, pipe.remaining - pipe.rate * (until - now));
    any_flow += flowing() ? until - now : 0;
    now = until;
  }
  bool flowing() {
    for (Stream& stream : streams)
      for (Pipe& pipe : stream.pipes)
        if (pipe.flowing) return true;
    return false;
  }
  double any_flow = 0;

  // Returns false if nothing can go on although something is left.
  bool run() {
    while (true) {
      double wake;
      for (bool moved = true; moved;) {
        moved = false, wake = kNever;
        for (int s = 0; s < kStreams; ++s) {
          while (step_scalar(s, wake)) moved = true;
          for (int p = 1; p < kPipes; ++p)
            while (step_pipe(s, p, wake)) moved = true;
        }
      }
      const double first = share_bandwidth();
      const double next = std::min(wake, now + first);
      if (next == kNever) break;
      pass(next);
    }
    for (Stream& stream : streams)
      if (stream.next != stream.items.size()) return false;
    return true;
  }
};

}  // namespace

// Returns the time of the last event, or -1 if the core is stuck and the items are not just the `beginning` of its streams.
// `flows` gets the time in which any transfer was under way; the `start` of items that were not reached stays as it is.
extern "C" double schedule(const Item* items, int64_t count, int vectors, int beginning, const double* rates, double* start, double* end,
                           int32_t* pred, double* busy, double* waits, double* flows) {
  Core core{items, {rates[0], rates[1], rates[2], rates[3]}, {start, end, pred, busy, waits}, vectors};
  for (int64_t i = 0; i < count; ++i) core.streams[items[i].stream].items.push_back(int32_t(i));
  if (!core.run() && !beginning) return -1;
  *flows = core.any_flow;
  return core.now;
}
