// Threads of the operating system. All of this tree are started here, since a thread may be
// refused: a container, a user or an address space has a limit. Who starts several must then end
// those that run already before what they use is gone, and the message must name the limit.
// std::thread does neither.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace perdura {

// Which signals a new thread takes. A library's threads take none: the program may have blocked a
// signal in all of its own threads, in order to wait for it.
enum class ThreadSignals { as_starter, blocked };

class OsThread {
 public:
  OsThread() = default;
  // Throws PlatformError, which names the limit, if the system refuses another thread.
  explicit OsThread(std::function<void()> body, ThreadSignals signals = ThreadSignals::as_starter);
  // Waits for the thread's end.
  ~OsThread();
  OsThread(OsThread&&) = default;
  // Waits for the end of the thread that this was before.
  OsThread& operator=(OsThread&& other);

  bool joinable() const { return thread_.joinable(); }
  void join() { thread_.join(); }
  void detach() { thread_.detach(); }
  std::thread::id id() const { return thread_.get_id(); }
  std::thread::native_handle_type native_handle() { return thread_.native_handle(); }

 private:
  std::thread thread_;
};

// Threads that need each other: all of them run, or none does.
class OsThreads {
 public:
  // Each calls body(index) once all have been started. If the system refuses one, the others end
  // without having called it, and this throws what OsThread throws.
  OsThreads(std::size_t count, const std::function<void(std::size_t)>& body);

  // The destructor waits as well.
  void join();

 private:
  std::vector<OsThread> threads_;
};

// Work that any number of threads shares out among themselves: calls work(index) on up to `most`
// threads, the calling one among them, and returns when all have returned. A thread that the system
// refuses is left out, since the others do its work as well. `work` does not throw.
void work_together(std::size_t most, const std::function<void(std::size_t)>& work);

// Why no further thread can be started, with the limit and what to do: "cannot start another thread
// (Resource temporarily unavailable): ...".
std::string no_more_threads(int error);

}  // namespace perdura
