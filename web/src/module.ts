// The API as a module of JavaScript: all names, and the object of them all, as scripts have it.
import * as ort from './index';

export * from './index';
export default ort;
