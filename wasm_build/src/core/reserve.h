// Memory for small needs of a run besides its kernels, so that the run ends well when all other memory is taken.
#pragma once

namespace py_ort {

// False if there is no memory for anything large. Takes the reserve again if it was given up. From the first call on,
// `new` without memory throws in kernels and uses the reserve elsewhere.
bool hold_reserve();

}  // namespace py_ort
