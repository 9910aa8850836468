// What the loops of decoders use of the rest: handed to them by `generatorOf` when their file is loaded, so that there
// is one copy of each. They import from outside this folder here alone; types, which are gone by then, anywhere.
export { cpuElementSize, toNumbers, typeName } from '../contract/elements';
export { RuntimeError } from '../errors';
export { countersOf } from '../device/counters';
export { storageBytes } from '../device/memory_plan';
export { nextTurn } from '../providers/webgpu/pump';
export { Readback } from '../providers/webgpu/readback';
export { copyRows } from '../providers/webgpu/copy_rows';
export { compileSegment } from '../providers/webgpu/segment';
export { elementType, packUniforms } from '../providers/webgpu/shader';
export { DType, ErrorCode } from '../schema';
export { isContainer, isOnGpu, named } from '../wire/values';
export { checkKeys, checkRows, invalid } from './generate_options';
