// What the build tells Python of the operators.
export { kernels, sources } from 'virtual:kernels/webnn/operators';
