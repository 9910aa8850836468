// The building blocks that kernels share.
export * from './division';
export * from './dtypes';
export * from './elementwise';
export * from './indices';
export * from './lanes';
export * from './large';
export * from './linear';
export * from './math';
export * from './order';
export * from '../../../contract/shape';
export * from './strided_copy';
export * from './team';
export * from './walk';
