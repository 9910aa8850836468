// Taking tensors apart along an axis, and putting them together: what Loop and Scan do around their bodies, each where
// the tensors are: on a device by jsepCopy between two ids, in blocks. A Scan's input is brought to where its body
// reads the rows, once.
#pragma once

#include "session/run.h"

namespace py_ort {

// A scan output: parts of one shape, along a new axis.
class Stack {
 public:
  // `value` is the body's output, for its name, and for dtype and shape when there are no parts. `length`: how many
  // parts there will be, -1 when nobody knows: with it each part goes to its place as it comes, without it they are
  // kept until the last one.
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

// The places where a graph's kernels read a value of its own, through the graphs inside too.
uint32_t readers_of(const Plan& plan, const PlanGraph& graph, int32_t value);

// Brings a tensor to where its slices are read, if it is not there. May suspend.
Status bring_to_readers(Run& run, Slot& whole, std::string_view name, uint32_t places);
// Element `index` along `axis`, in each place where the tensor is and somebody reads it; the axis goes.
Status slice(const Slot& whole, int64_t axis, int64_t index, uint32_t places, Slot& out);

}  // namespace py_ort
