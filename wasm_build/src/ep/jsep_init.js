// Prepended to the core's glue. Installs the page's JavaScript execution provider; src/ep/jsep.cc calls what is
// installed here.
Module['jsepInit'] = function (backend, functions) {
  Module['jsepBackend'] = backend;
  Module['jsepAlloc'] = functions['alloc'];
  Module['jsepFree'] = functions['free'];
  Module['jsepCopy'] = functions['copy'];
  Module['jsepCopyAsync'] = functions['copyAsync'];
  Module['jsepCreateKernel'] = functions['createKernel'];
  Module['jsepReleaseKernel'] = functions['releaseKernel'];
  Module['jsepRun'] = functions['run'];
};
// A C string in the heap, for _free; Emscripten 3.1.6 has it under another name.
Module['stringToNewUTF8'] = function (text) {
  return allocateUTF8(text);
};
// An exception must not fly through wasm frames: it becomes the core's error, unless the page gave its own by
// ort_jsep_error.
Module['jsepCaught'] = function (error) {
  var text = Module['stringToNewUTF8'](String((error && error.message) || error));
  Module['_ort_jsep_error'](1, text);
  Module['_free'](text);
};
