// The API for Node.
import './start';
import ort from '../module';

export * from '../module';
export default ort;
