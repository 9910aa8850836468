// The end of rows: by a token of eos, by a sequence of stop, or by their length.
import type { FinishReason } from './generate_options';
import type { Settings } from './settings';

type Ends = Pick<Settings, 'eos' | 'stop' | 'maxNewTokens'>;

/** The reason why a row's new tokens end it; undefined: they do not. */
export function reasonOf(tokens: readonly number[], { eos, stop, maxNewTokens }: Ends): FinishReason | undefined {
  if (eos.includes(tokens[tokens.length - 1])) return 'eos';
  const ends = (sequence: readonly number[]) => {
    const before = tokens.length - sequence.length;
    return before >= 0 && sequence.every((token, i) => token === tokens[before + i]);
  };
  if (stop.some(ends)) return 'stop';
  return tokens.length >= maxNewTokens ? 'length' : undefined;
}

export class Stops {
  private readonly rows: { readonly tokens: number[]; reason: FinishReason | undefined }[];

  constructor(
    batch: number,
    private readonly settings: Ends,
  ) {
    this.rows = Array.from({ length: batch }, () => ({ tokens: [], reason: undefined }));
  }

  /** Takes a token for each row; returns those of rows that had not ended, and -1 for the others. */
  take(tokens: readonly number[]): number[] {
    return this.rows.map((row, i) => {
      if (row.reason) return -1;
      row.tokens.push(tokens[i]);
      row.reason = reasonOf(row.tokens, this.settings);
      return tokens[i];
    });
  }

  tokensOf(row: number): readonly number[] {
    return this.rows[row].tokens;
  }

  isOver(row: number): boolean {
    return this.rows[row].reason !== undefined;
  }

  get over(): boolean {
    return this.rows.every(({ reason }) => reason);
  }

  get counts(): number[] {
    return this.rows.map(({ tokens }) => tokens.length);
  }

  /** The reasons, once all rows have ended. */
  reasons(): FinishReason[] {
    return this.rows.map(({ reason }) => reason!);
  }
}
