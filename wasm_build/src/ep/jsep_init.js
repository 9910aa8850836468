// Prepended to the core's glue. Installs the page's JavaScript execution provider; src/ep/jsep.cc calls what is
// installed here.
// They are given one by one, as in the contract's source, or as one object.
Module['jsepInit'] = function (backend, alloc, free, copy, copyAsync, createKernel, releaseKernel, run) {
  var names = ['alloc', 'free', 'copy', 'copyAsync', 'createKernel', 'releaseKernel', 'run'];
  var each = [alloc, free, copy, copyAsync, createKernel, releaseKernel, run];
  for (var i = 0; i < names.length; i++) {
    var name = names[i];
    var given = alloc && typeof alloc === 'object' ? alloc[name] : each[i];
    if (typeof given !== 'function') throw new TypeError('jsepInit: ' + name + ' is not a function');
    Module['jsep' + name[0].toUpperCase() + name.slice(1)] = given;
  }
  Module['jsepBackend'] = backend;
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
