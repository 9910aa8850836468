// The report of `py-ort export --check`: a table that can be sorted.
import { sortableTables } from './sorting';

sortableTables();
