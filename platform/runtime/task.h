// Task<T>: a lazy coroutine. It starts when it is awaited (or spawned on an executor), runs on the
// thread that started it, never migrates, and resumes its awaiter if that has been suspended.
//
// An awaited task begins as an ordinary call. If it ends without waiting, its awaiter just
// continues. So a long loop of such tasks needs no more stack than a short one, even where the
// compiler makes no tail calls of resumptions (without optimization, or instrumented).
//
// Two pitfalls of GCC 12 shape the code that uses it: a coroutine takes its parameters by value (a
// reference to a temporary dangles after the first suspension), and nothing is awaited inside a
// catch block.
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

#include "platform/runtime/frame_pool.h"

namespace perdura {

template <class T = void>
class Task;

namespace runtime {

class PromiseBase {
 public:
  static void* operator new(std::size_t size) { return allocate_frame(size); }
  static void operator delete(void* frame, std::size_t size) noexcept {
    release_frame(frame, size);
  }

  std::suspend_always initial_suspend() noexcept { return {}; }

  struct FinalAwaiter {
    bool await_ready() noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> self) noexcept {
      return self.promise().continuation_;
    }
    void await_resume() noexcept {}
  };
  FinalAwaiter final_suspend() noexcept { return {}; }

  void unhandled_exception() noexcept { exception_ = std::current_exception(); }
  void set_continuation(std::coroutine_handle<> next) noexcept { continuation_ = next; }

 protected:
  void rethrow() const {
    if (exception_) std::rethrow_exception(exception_);
  }

 private:
  std::coroutine_handle<> continuation_ = std::noop_coroutine();
  std::exception_ptr exception_;
};

template <class T>
class Promise final : public PromiseBase {
 public:
  Task<T> get_return_object() noexcept;
  template <class U>
  void return_value(U&& value) {
    value_.emplace(std::forward<U>(value));
  }
  T take() {
    rethrow();
    return std::move(*value_);
  }

 private:
  std::optional<T> value_;
};

template <>
class Promise<void> final : public PromiseBase {
 public:
  Task<void> get_return_object() noexcept;
  void return_void() noexcept {}
  void take() const { rethrow(); }
};

}  // namespace runtime

template <class T>
class [[nodiscard]] Task {
 public:
  using promise_type = runtime::Promise<T>;
  using Handle = std::coroutine_handle<promise_type>;

  Task() = default;
  explicit Task(Handle handle) noexcept : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Task() {
    if (handle_) handle_.destroy();
  }

  auto operator co_await() && noexcept {
    struct Awaiter {
      Handle handle;
      bool await_ready() noexcept {
        handle.resume();
        return handle.done();
      }
      void await_suspend(std::coroutine_handle<> awaiting) noexcept {
        handle.promise().set_continuation(awaiting);
      }
      T await_resume() { return handle.promise().take(); }
    };
    return Awaiter{handle_};
  }

  // For executors: the handle of the frame, to be resumed once. This object still owns the frame.
  Handle handle() const noexcept { return handle_; }

 private:
  Handle handle_;
};

namespace runtime {
template <class T>
Task<T> Promise<T>::get_return_object() noexcept {
  return Task<T>(std::coroutine_handle<Promise>::from_promise(*this));
}
inline Task<void> Promise<void>::get_return_object() noexcept {
  return Task<void>(std::coroutine_handle<Promise>::from_promise(*this));
}
}  // namespace runtime

}  // namespace perdura
