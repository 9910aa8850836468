// The report of `py-ort export --check`: a table that can be sorted.
import { interactiveTables } from './tables';

interactiveTables();
