// Taking tensors apart along an axis, and putting them together: what Loop and Scan do around their bodies.
#pragma once

#include "core/run.h"

namespace py_ort {

// parts -> one CPU tensor with a new axis; `value` is the body's output, for its name, and for dtype and shape when there are no parts.
// May suspend.
Status stack(Run& run, std::vector<Slot>& parts, int32_t value, int64_t axis, bool reverse, Slot& out);
// Element `index` along `axis`, of a tensor on the CPU; the axis goes.
Status slice(const Slot& whole, int64_t axis, int64_t index, Slot& out);

}  // namespace py_ort
