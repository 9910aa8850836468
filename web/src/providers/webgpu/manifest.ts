// What the build tells Python of the kernels.
export { kernels, sources } from 'virtual:kernels';
