// Rows of logits from which no token can be chosen.
import { JsonMasks } from './json_grammar';
import type { Settings } from './settings';
import { ErrorCode, RuntimeError } from './outside';

/** Returned instead of a token: a logit of the row is NaN; or none is finite, so that no token has a chance. */
export const [NAN, NOTHING] = [-1, -2];

/** The last characters of a text that errors show. */
const SHOWN = 40;

/**
 * The error for a row from whose logits no token can be chosen.
 *
 * @param tokens the row's new tokens so far.
 * @param row undefined if there is only one.
 */
export function noToken(
  fault: number,
  tokens: readonly number[],
  row: number | undefined,
  settings: Pick<Settings, 'minNewTokens' | 'eos' | 'mask' | 'jsonVocabulary'>,
): RuntimeError {
  const { minNewTokens, eos, mask, jsonVocabulary } = settings;
  const step = tokens.length + 1;
  const where = `generate: step ${step}${row === undefined ? '' : `, row ${row},`}`;
  const broken = 'the model, or its precision, breaks on what it was given';
  const barred = (why: string) =>
    new RuntimeError(ErrorCode.invalid_argument, `${where} has no token to choose: ${why}`);
  if (fault === NOTHING && step <= minNewTokens && eos.length > 0)
    return barred(
      `minNewTokens (min_new_tokens) bars those of eos (eos_token_id) up to step ${minNewTokens}, and no other has a ` +
        `logit that is a finite number. Ask for fewer, or take tokens out of eos; or ${broken}`,
    );
  if (fault === NOTHING && jsonVocabulary) {
    const text = tokens.map((token) => jsonVocabulary[token] ?? '').join('');
    const behind = text && ` after ${JSON.stringify(text.slice(-SHOWN))}`;
    return barred(
      new JsonMasks(jsonVocabulary, eos).behind(tokens).includes(1)
        ? `those of jsonVocabulary (json_vocabulary) that JSON allows${behind} have no logit that is a finite ` +
            'number, or mask or onLogits (logits_processor) bar them'
        : `jsonVocabulary (json_vocabulary) has none that JSON allows${behind}. It needs all characters of ` +
            "JSON's grammar: brackets, the comma, the colon, the quote, digits",
    );
  }
  if (fault === NOTHING && mask)
    return barred('none that mask allows has a logit that is a finite number. Allow more tokens');
  const why = fault === NAN ? 'has logits that are NaN' : 'has no logit that is a finite number';
  return new RuntimeError(ErrorCode.runtime_exception, `${where} ${why}, so that no token can be chosen: ${broken}`);
}
