// Prepended to the core's glue. Adapts the contract of onnxruntime's JavaScript provider to the core's own (abi.h).
// Code for that contract continues to work:
//   copy(source, target, size, isSourceGpu)   whole buffers createKernel(opType, kernel, attributes)  a plain object;
//   channels-last kernels also have format: 'NHWC'
//   run(kernel, context)                      words: [0] for _JsepOutput, [1] input count, then of each input
//                                             dtype, data (GPU id, or address), rank, dims...
//   _JsepOutput(words[0], index, shape)       shape: words rank, dims...; the id of the output's buffer, 0: refused
// 64-bit integers and bool have 32 bits on the GPU, as in the core's contract.

// FlatBuffers' table Attributes (py_ort/schema/plan.fbs) as an object.
Module['jsepAttributes'] = function (pointer, size) {
  var view = new DataView(HEAPU8.buffer, pointer, size);
  var word = function (at) {
    return view.getUint32(at, true);
  };
  var follow = function (at) {
    return at + word(at);
  };
  // The place of field `slot` of a table; 0: the field has its default.
  var field = function (table, slot) {
    var vtable = table - view.getInt32(table, true),
      entry = 4 + 2 * slot;
    var offset = entry < view.getUint16(vtable, true) ? view.getUint16(vtable + entry, true) : 0;
    return offset && table + offset;
  };
  var list = function (read, width) {
    return function (at) {
      var start = at && follow(at);
      return Array.from({ length: at && word(start) }, function (_, i) {
        return read(start + 4 + i * width);
      });
    };
  };
  var integer = function (at) {
    return at && Number(view.getBigInt64(at, true));
  };
  var number = function (at) {
    return at && view.getFloat32(at, true);
  };
  var text = function (at) {
    return at ? UTF8ToString(pointer + follow(at) + 4) : '';
  };
  var tensor = function (at) {
    var table = follow(at),
      dtype = field(table, 0),
      data = field(table, 2);
    var bytes = list(function (at) {
      return view.getUint8(at);
    }, 1)(data);
    return { dtype: dtype && view.getUint8(dtype), dims: list(integer, 8)(field(table, 1)), bytes: bytes };
  };
  // Readers by AttributeType. The number is the value's field, counted from the field `type`.
  var none = function () {};
  var readers = [none, integer, number, text, list(integer, 8), list(number, 4), list(text, 4), tensor];
  var attributes = {};
  if (size === 0) return attributes;
  list(
    follow,
    4,
  )(field(word(0), 0)).forEach(function (item) {
    var type = view.getUint8(field(item, 1));
    attributes[text(field(item, 0))] = readers[type](field(item, 1 + type));
  });
  return attributes;
};

Module['jsepContract'] = function (given) {
  // There is one device: functions of this contract do not receive the provider.
  var copy = function (_provider, source, target, size, toGpu, _dtype, blocks) {
    var place = blocks >>> 2;
    if (!toGpu && (HEAPU32[place] !== 1 || HEAPU32[place + 1] || HEAPU32[place + 3]))
      throw new Error(
        'jsepCopy(source, target, size, isSourceGpu) copies whole buffers, and Loop and Scan need parts ' +
          'of them: give jsepInit an object of functions, whose copy has blocks, or keep such loops on the CPU',
      );
    given.copy(source, target, size, !toGpu);
  };
  var createKernel = function (_provider, opType, id, attributes, size, domain) {
    var read = Module['jsepAttributes'](attributes, size);
    if (domain === 'com.ms.internal.nhwc') read['format'] = 'NHWC';
    return given.createKernel(opType, id, read);
  };
  var run = function (_provider, id, context) {
    var at = context >>> 2,
      words = [context, HEAPU32[at]];
    at += 2;
    for (var i = 0; i < words[1]; i++) {
      var rank = HEAPU32[at + 4];
      words.push(HEAPU32[at], HEAPU32[at + 2], rank);
      for (var d = 0; d < rank; d++) words.push(HEAPU32[at + 5 + d]);
      at += 5 + rank;
    }
    var copied = Module['_ort_malloc'](4 * words.length) >>> 0;
    if (!copied) throw new Error('no memory for the words of jsepRun');
    HEAPU32.set(words, copied >>> 2);
    try {
      return given.run(id, copied);
    } finally {
      Module['_ort_free'](copied);
    }
  };
  Module['_JsepOutput'] = function (context, index, shape) {
    return Module['_ort_jsep_output'](context, index, 0, HEAPU32[shape >>> 2], shape + 4) >>> 0;
  };
  var alone = function (name) {
    return function (_provider, first, second, third) {
      return given[name](first, second, third);
    };
  };
  return {
    alloc: alone('alloc'),
    free: alone('free'),
    copy: copy,
    copyAsync: alone('copyAsync'),
    createKernel: createKernel,
    releaseKernel: alone('releaseKernel'),
    run: run,
  };
};
