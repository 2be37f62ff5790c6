// Threads of the operating system. All threads of this project are started here, since the system
// may refuse a thread: a container, a user or an address space has a limit. A function that starts
// several threads must then end those that run already before the objects that they use are gone,
// and the message must name the limit. std::thread does neither.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace perdura {

// The signals that are delivered to a new thread. A library's threads get none: the program may
// have blocked a signal in all of its own threads, in order to wait for it.
enum class ThreadSignals { as_starter, blocked };

class OsThread {
 public:
  OsThread() = default;
  // Throws PlatformError, which names the limit, if the system refuses another thread.
  explicit OsThread(std::function<void()> body, ThreadSignals signals = ThreadSignals::as_starter);
  // Waits until the thread has ended.
  ~OsThread();
  OsThread(OsThread&&) = default;
  // Waits until the thread that this object had before has ended.
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
  // Each thread calls body(index) once all have been started. If the system refuses one, the others
  // end without having called it, and the exception of OsThread is thrown.
  OsThreads(std::size_t count, const std::function<void(std::size_t)>& body);

  // The destructor waits as well.
  void join();

 private:
  std::vector<OsThread> threads_;
};

// Shares work among any number of threads: calls work(index) on up to `most` threads, the calling
// one among them, and returns when all have returned. A thread that the system refuses is left out,
// since the others do its work as well. `work` must not throw.
void work_together(std::size_t most, const std::function<void(std::size_t)>& work);

// Shares out `count` pieces of work: calls work(piece) for each piece from 0, on up to `threads`
// threads (0: one for each processor), each of which takes the next piece when it has done one.
// After an exception no piece is begun anymore; the first exception is thrown when all threads
// have returned.
void share_out(std::size_t threads, std::size_t count,
               const std::function<void(std::size_t)>& work);

// The message that no further thread can be started, with the limit and what to do: "cannot start
// another thread (Resource temporarily unavailable): ...".
std::string no_more_threads(int error);

}  // namespace perdura
