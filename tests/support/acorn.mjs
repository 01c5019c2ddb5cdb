// acorn's verdict on sources, as NodeTool asks for it, and the corpora that the verdicts are kept for.

import { readFileSync, readdirSync } from 'node:fs';
import { parse, version } from 'acorn';

const ROOT = new URL('../../', import.meta.url);
const CORPUS = new URL('node_modules/test262-parser-tests/', ROOT);

/** Where the verdicts are kept. */
export const GOLDEN = new URL('fixtures/syntax/acorn.json', ROOT);

/** Whether acorn takes `source` as a module of the latest ECMAScript. */
function accepts(source) {
  try {
    parse(source, { ecmaVersion: 'latest', sourceType: 'module' });
    return true;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

/**
 * The verdicts on `fixtures/syntax/cases.json`, by theme, as a string of + and - in the order of the cases; and the files of
 * test262-parser-tests that acorn refuses, by folder.
 */
export function verdicts() {
  const cases = JSON.parse(readFileSync(new URL('fixtures/syntax/cases.json', ROOT), 'utf8'));
  const own = Object.entries(cases).map(([theme, sources]) => [theme, sources.map((source) => (accepts(source) ? '+' : '-')).join('')]);
  const folders = ['early', 'fail', 'pass', 'pass-explicit'].map((folder) => {
    const directory = new URL(`${folder}/`, CORPUS);
    const refused = readdirSync(directory).filter((name) => !accepts(readFileSync(new URL(name, directory), 'utf8')));
    return [folder, refused.sort()];
  });
  return { acorn: version, cases: Object.fromEntries(own), test262ParserTests: Object.fromEntries(folders) };
}

/** The text of the golden file. */
export function goldenText() {
  return `${JSON.stringify(verdicts(), null, 1)}\n`;
}
