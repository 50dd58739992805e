// One instruction stream of a core as a coroutine: it runs until it has to wait and then gives the thread back.
#pragma once
#include <ucontext.h>

#include <functional>
#include <memory>

namespace sim {

class Fiber {
 public:
  static constexpr size_t kStack = 1 << 20;
  void start(std::function<void()> body) {
    if (!stack_) stack_.reset(new char[kStack]);
    body_ = std::move(body);
    done_ = false;
    getcontext(&self_);
    self_.uc_stack.ss_sp = stack_.get();
    self_.uc_stack.ss_size = kStack;
    self_.uc_link = nullptr;
    const auto address = reinterpret_cast<uintptr_t>(this);
    makecontext(&self_, reinterpret_cast<void (*)()>(&Fiber::enter), 2, unsigned(address >> 32), unsigned(address));
  }
  void resume() { swapcontext(&back_, &self_); }
  void yield() { swapcontext(&self_, &back_); }
  bool done() const { return done_; }

 private:
  static void enter(unsigned high, unsigned low) {
    auto* fiber = reinterpret_cast<Fiber*>(uintptr_t(high) << 32 | low);
    fiber->body_();
    fiber->done_ = true;
    fiber->yield();
  }
  ucontext_t self_{}, back_{};
  std::unique_ptr<char[]> stack_;
  std::function<void()> body_;
  bool done_ = true;
};

}  // namespace sim
