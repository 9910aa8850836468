// Slices tensors along an axis, and stacks them, for Loop and Scan. Each happens where the tensors are: on a device by
// jsepCopy between two ids, in blocks. A Scan's input is brought once to where its body reads the rows.
#pragma once

#include "session/run.h"

namespace py_ort {

// A scan output: parts of one shape, along a new axis.
class Stack {
 public:
  // `value` is the body's output, for its name, and for dtype and shape if there are no parts. `length`: the number of
  // parts, or -1 if it is unknown. With a length each part goes to its place at once; otherwise the parts are kept
  // until the last one.
  Stack(Run& run, int32_t value, int64_t axis, bool reverse, int64_t length)
      : run_(run), value_(value), axis_(axis), length_(length), reverse_(reverse) {}
  // The result is where the first part is. May suspend.
  Status push(Slot part);
  Status finish(Slot& out);

 private:
  Status check(const Slot& part);
  Status begin(const Slot& part);
  Status write(Slot& part, int64_t index);

  Run& run_;
  int32_t value_;
  int64_t axis_, length_;
  bool reverse_;
  int64_t count_ = 0;
  std::vector<Slot> parts_;  // only without a length
  Slot whole_;
};

// The places where a graph's kernels read one of its values, including the graphs inside.
uint32_t readers_of(const Plan& plan, const PlanGraph& graph, int32_t value);

// Brings a tensor to where its slices are read, unless it is there. May suspend.
Status bring_to_readers(Run& run, Slot& whole, std::string_view name, uint32_t places);
// Element `index` along `axis`, in each place where the tensor is and is read; the axis is removed.
Status slice(const Slot& whole, int64_t axis, int64_t index, uint32_t places, Slot& out);

}  // namespace py_ort
