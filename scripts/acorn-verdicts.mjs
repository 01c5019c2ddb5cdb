// Writes acorn's verdicts on the syntax corpora to fixtures/syntax/acorn.json. Run it after cases or acorn have changed.

import { writeFileSync } from 'node:fs';
import { GOLDEN, goldenText } from '../tests/support/acorn.mjs';

writeFileSync(GOLDEN, goldenText());
