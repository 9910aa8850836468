// Memory for the little that a run needs beside its kernels, to end well where all other memory is taken.
#pragma once

namespace py_ort {

// False if there is no memory for anything large. Holds the reserve again where it was given up. From the first call
// on, `new` without memory throws in kernels and takes from the reserve elsewhere.
bool hold_reserve();

}  // namespace py_ort
