// Prepended to the core's glue. Adds the micro-kernels of a side module, of relaxed SIMD or of plain SIMD: only code,
// which works on the core's memory and needs a stack there. Returns false if the module is empty, because it was built
// without a suitable compiler.
Module['addMicrokernels'] = function (sideModule, relaxed) {
  var functions = new WebAssembly.Instance(sideModule, { 'env': { 'memory': wasmMemory } })['exports'];
  var names = UTF8ToString(Module['_ort_microkernel_names']()).split('\n');
  var found = names.map(function (name) {
    return functions[name + (relaxed ? '__relaxed' : '__simd128')];
  });
  if (!found.every(Boolean)) return false;
  var size = 65536;
  functions['__stack_pointer'].value = Module['_ort_malloc'](size) + size;
  var first = wasmTable.grow(found.length);
  found.forEach(function (kernel, i) {
    wasmTable.set(first + i, kernel);
  });
  Module['_ort_microkernels_add'](relaxed ? 1 : 0, first);
  return true;
};
