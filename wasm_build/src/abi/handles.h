// Sessions and runs by the small integers that the page uses for them.
#pragma once

#include <map>
#include <memory>

#include "session/run.h"

namespace py_ort {

template <class T>
class Handles {
 public:
  uint32_t add(T item) {
    items_.emplace(++last_, std::move(item));
    return last_;
  }
  // Null if there is none.
  T* find(uint32_t id) {
    auto found = items_.find(id);
    return found == items_.end() ? nullptr : &found->second;
  }
  bool remove(uint32_t id) { return items_.erase(id) > 0; }

 private:
  std::map<uint32_t, T> items_;
  uint32_t last_ = 0;
};

inline Handles<std::shared_ptr<Session>>& sessions() {
  static Handles<std::shared_ptr<Session>> all;
  return all;
}

}  // namespace py_ort
