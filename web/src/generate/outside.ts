// What the loops of decoders use of the rest: handed to them by `generatorOf` when their file is loaded, so that there
// is one copy of each. They import from outside this folder here alone; types, which are gone by then, anywhere.
export { cpuElementSize, toNumbers, typeName } from '../contract/elements';
export { RuntimeError } from '../errors';
export { countersOf } from '../gpu/counters';
export { storageBytes } from '../gpu/memory_plan';
export { nextTurn } from '../gpu/pump';
export { Readback } from '../gpu/readback';
export { copyRows } from '../gpu/roomy_rows';
export { compileSegment } from '../gpu/segment';
export { elementType, packUniforms } from '../gpu/shader';
export { DType, ErrorCode } from '../schema';
export { isContainer, isOnGpu, named } from '../wire/values';
export { checkKeys, checkRows, invalid } from './generate_options';
