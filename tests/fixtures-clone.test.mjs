//! The fixtures survive a clone: folders that git is told to ignore elsewhere, bytes that git could take for text, and
//! symbolic links arrive as they are here.

import assert from "node:assert/strict";
import { existsSync, lstatSync, readFileSync, readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { run } from "./support/command.mjs";
import { sha256 } from "./support/contract.mjs";
import { VECTORS } from "./support/nodetool.mjs";
import { ROOT, scratch } from "./support/project.mjs";

/** What lies below a folder: links by their target, files by their bytes and whether they run. */
function tree(folder) {
  const paths = readdirSync(folder, { recursive: true }).sort();
  return new Map(
    paths.flatMap((path) => {
      const status = lstatSync(join(folder, path));
      if (status.isSymbolicLink()) {
        return [[path, `link to ${readlinkSync(join(folder, path))}`]];
      }
      const kind = status.mode & 0o100 ? "program" : "file";
      return status.isFile() ? [[path, `${kind} ${sha256(readFileSync(join(folder, path)))}`]] : [];
    }),
  );
}

test("a clone has the fixtures as they are here", { timeout: 60_000 }, async (context) => {
  if (!existsSync(join(ROOT, ".git"))) {
    return context.skip("this is no checkout: there is nothing to clone");
  }
  const clone = join(scratch("clone"), "packferry");
  // With the settings under which git changes most.
  const settings = ["-c", "core.autocrlf=true", "-c", "core.eol=crlf", "-c", "core.symlinks=true"];
  await run("git", [...settings, "clone", "--quiet", "--no-hardlinks", "--no-local", ROOT, clone]);
  const [here, there] = [tree(join(ROOT, "fixtures")), tree(join(clone, "fixtures"))];
  // Work that is not committed yet is no fault; what git ignores is.
  const { stdout } = await run("git", ["status", "--porcelain", "-z", "--no-renames", "-uall", "--", "fixtures"]);
  const unfinished = new Set(stdout.split("\0").map((line) => line.slice(3).replace(/^fixtures\//, "")));
  const differing = [...new Set([...here.keys(), ...there.keys()])].filter(
    (path) => here.get(path) !== there.get(path) && !unfinished.has(path),
  );
  assert.deepEqual(differing, []);
  assert.ok(here.size > 200, `${here.size} files`);
  const values = [...there.entries()];
  assert.equal(values.filter(([, what]) => what.startsWith("link to ")).length, 3, "symbolic links");
  assert.ok(values.some(([path]) => path.includes("/node_modules/")), "node_modules folders");
});

test("the reference packs have the bytes that NodeTool read", () => {
  // Of files that are not UTF-8 NodeTool delivered something else than what lies on disk.
  const altered = new Set(["@acme/bytes::bad.js"]);
  const files = VECTORS.packs.flatMap(({ dir, files }) => files.map((file) => ({ dir, ...file })));
  for (const { dir, fileId, moduleId, bodySha256 } of files.filter(({ moduleId }) => !altered.has(moduleId))) {
    assert.equal(sha256(readFileSync(join(ROOT, "fixtures", "good-packs", dir, fileId))), bodySha256, moduleId);
  }
});
