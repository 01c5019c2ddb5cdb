// The verdicts that `build/tests/javascript_syntax.rs` compares oxc with are acorn's.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { GOLDEN, goldenText } from './support/acorn.mjs';

test('acorn still says what fixtures/syntax/acorn.json keeps', () => {
  assert.equal(readFileSync(GOLDEN, 'utf8'), goldenText(), 'run node scripts/acorn-verdicts.mjs');
});
