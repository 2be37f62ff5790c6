// A FIFO queue in a circular buffer. The buffer grows with the largest number of elements ever held
// and never shrinks, so that a steady state allocates nothing (a std::deque allocates and frees a
// block every so often).
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace perdura {

template <class T>
class Ring {
 public:
  bool empty() const { return count_ == 0; }
  std::size_t size() const { return count_; }

  // The i-th element; the oldest is number 0.
  T& operator[](std::size_t i) { return slots_[(head_ + i) & (slots_.size() - 1)]; }
  const T& operator[](std::size_t i) const { return slots_[(head_ + i) & (slots_.size() - 1)]; }
  T& front() { return slots_[head_]; }
  const T& front() const { return slots_[head_]; }

  void push_back(T element) {
    if (count_ == slots_.size()) [[unlikely]]
      grow();
    slots_[(head_ + count_) & (slots_.size() - 1)] = std::move(element);
    ++count_;
  }
  // The removed element is not destroyed until its slot is used again.
  void pop_front() {
    head_ = (head_ + 1) & (slots_.size() - 1);
    --count_;
  }
  T take_front() {
    T first = std::move(front());
    pop_front();
    return first;
  }
  // Takes the i-th element; the others keep their order.
  T take(std::size_t i) {
    T taken = std::move((*this)[i]);
    for (; i > 0; --i) (*this)[i] = std::move((*this)[i - 1]);
    pop_front();
    return taken;
  }
  // Removes the oldest element that is equal to `element`, if there is one.
  void erase(const T& element) {
    std::size_t i = 0;
    while (i < count_ && !((*this)[i] == element)) ++i;
    if (i < count_) take(i);
  }
  void clear() {
    head_ = 0;
    count_ = 0;
  }

 private:
  void grow() {
    std::vector<T> larger(slots_.empty() ? 16 : slots_.size() * 2);
    for (std::size_t i = 0; i < count_; ++i) larger[i] = std::move((*this)[i]);
    slots_ = std::move(larger);
    head_ = 0;
  }

  std::vector<T> slots_;  // its size is 0 or a power of two
  std::size_t head_ = 0;
  std::size_t count_ = 0;
};

}  // namespace perdura
