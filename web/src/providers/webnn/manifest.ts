// The build's list of the operators, for Python.
export { kernels, sources } from 'virtual:kernels/webnn/operators';
