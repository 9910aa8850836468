// Prepended to the core's glue. Installs the page's JavaScript execution provider; src/ep/jsep.cc calls it.
// Separate functions are those of onnxruntime's contract (jsep_contract.js); one object has the core's own (abi.h).
Module['jsepInit'] = function (backend, alloc, free, copy, copyAsync, createKernel, releaseKernel, run) {
  var names = ['alloc', 'free', 'copy', 'copyAsync', 'createKernel', 'releaseKernel', 'run'];
  var each = [alloc, free, copy, copyAsync, createKernel, releaseKernel, run];
  var whole = alloc && typeof alloc === 'object';
  var functions = {};
  for (var i = 0; i < names.length; i++) {
    functions[names[i]] = whole ? alloc[names[i]] : each[i];
    if (typeof functions[names[i]] !== 'function') throw new TypeError('jsepInit: ' + names[i] + ' is not a function');
  }
  if (!whole) functions = Module['jsepContract'](functions);
  for (var name in functions) Module['jsep' + name[0].toUpperCase() + name.slice(1)] = functions[name];
  Module['jsepBackend'] = backend;
  // Functions that a page calls on its backend around runs, if the backend has them.
  ['registerBuffer', 'unregisterBuffers', 'getBuffer', 'createDownloader', 'onRunStart', 'onReleaseSession'].forEach(
    function (name) {
      var own = !whole && backend && backend[name];
      if (own) Module['jsep' + name[0].toUpperCase() + name.slice(1)] = own.bind(backend);
    },
  );
};
// A C string in the heap, for _free; Emscripten 3.1.6 has this function under another name.
Module['stringToNewUTF8'] = function (text) {
  return allocateUTF8(text);
};
// An exception must not pass through wasm frames. It becomes the core's error, unless the page set one with
// ort_jsep_error.
Module['jsepCaught'] = function (error) {
  var text = Module['stringToNewUTF8'](String((error && error.message) || error));
  Module['_ort_jsep_error'](1, text);
  Module['_free'](text);
};
