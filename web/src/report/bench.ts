// The benchmark's page: its charts are plain elements, its table can be sorted.
import { interactiveTables } from './tables';

interactiveTables();
