// The benchmark's page: its charts are plain elements, its table can be sorted.
import { sortableTables } from './sorting';

sortableTables();
