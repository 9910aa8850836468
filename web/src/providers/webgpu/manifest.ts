// The build's list of the kernels, for Python.
export { kernels, sources } from 'virtual:kernels';
