// A value that is worked out when it is first asked for.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

namespace gccl {

// Copies share the value. Threads may ask at the same time. As std::optional, it may hold nothing.
template <class T>
class OnDemand {
 public:
  OnDemand() = default;
  // All that `make` refers to outlives the copies, or is held by it.
  explicit OnDemand(std::function<T()> make) : state_(std::make_shared<State>(std::move(make))) {}

  explicit operator bool() const { return state_ != nullptr; }
  // These require a value.
  const T& operator*() const { return state_->get(); }
  const T* operator->() const { return &state_->get(); }

  T value_or(T other) const { return state_ ? state_->get() : other; }

 private:
  class State {
   public:
    explicit State(std::function<T()> make) : make_(std::move(make)) {}
    // Closed forms ask for every message, and call_once takes as long as the rest of one.
    const T& get() {
      if (!made_.load(std::memory_order_acquire)) make();
      return value_;
    }

   private:
    void make() {
      std::call_once(once_, [this] {
        value_ = make_();
        make_ = nullptr;
        made_.store(true, std::memory_order_release);
      });
    }

    std::atomic<bool> made_ = false;
    std::once_flag once_;
    std::function<T()> make_;
    T value_{};
  };
  std::shared_ptr<State> state_;
};

}  // namespace gccl
