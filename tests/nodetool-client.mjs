//! NodeTool's browser client, written from the pack contract alone (section 13; `resolve` from section 14, the call
//! contract from section 7): what a client that was made for NodeTool's own server does with ours. Nothing of
//! Packferry's stricter rules is here. It runs in Node and in browsers.

/** Headers without which a delivery is none. */
const REQUIRED = ["X-Content-Digest", "X-Content-Sha256", "X-Sandbox-Pack", "X-Sandbox-File-Id"];

/** The catalog of one page: prefetches modules and resolves them for a run. */
export class NodeToolClient {
  /** Per module id the last verified record. */
  #cache = new Map();
  #fetch;
  #authorization;

  /** `fetch` is that of the page; `authorization` stands where the deployment needs one. */
  constructor(fetch, { authorization } = {}) {
    this.#fetch = fetch;
    this.#authorization = authorization;
  }

  /** Fetches the closures of these specifiers, one request after the other; any failure rejects everything. */
  async prefetch(specifiers) {
    const records = new Map();
    for (const specifier of specifiers) {
      const root = await this.#revalidate(specifier);
      records.set(specifier, root);
      await this.#walk(root, records);
    }
    return records;
  }

  /** Fetches a root anew: conditionally where it is cached, by the digest and never by the ETag. */
  async #revalidate(id) {
    const cached = this.#cache.get(id);
    const condition = cached === undefined ? {} : { "If-None-Match": `"${cached.digest}"` };
    const response = await this.#request(id, condition);
    if (response.status === 304 && cached !== undefined) {
      return cached;
    }
    return this.#keep(id, response);
  }

  /** Breadth first from a root. What was cached counts if it is of this root's digest. */
  async #walk(root, records) {
    const seen = new Set([root.id]);
    const queue = [...root.dependencies];
    while (queue.length > 0) {
      const id = queue.shift();
      if (seen.has(id)) {
        continue;
      }
      seen.add(id);
      const cached = this.#cache.get(id);
      const record = cached?.digest === root.digest ? cached : await this.#keep(id, await this.#request(id));
      records.set(id, record);
      queue.push(...record.dependencies);
    }
  }

  #request(id, headers = {}) {
    const authorization = this.#authorization === undefined ? {} : { Authorization: this.#authorization };
    return this.#fetch(`/api/sandbox-modules/${encodeURIComponent(id)}`, { headers: { ...authorization, ...headers } });
  }

  /** Turns a response into a record and caches it, once it is verified. */
  async #keep(id, response) {
    if (response.status === 404) {
      throw new Error(`Sandbox module ${id} is not available on this server.`);
    }
    if (response.status === 403) {
      throw new Error(`Sandbox module ${id} is not available to this client.`);
    }
    if (response.status !== 200) {
      throw new Error(`Sandbox module ${id} could not be fetched (HTTP ${response.status}).`);
    }
    const record = await readRecord(id, response);
    this.#cache.set(id, record);
    return record;
  }

  /** Makes a run's modules out of prefetched records; each status that is an error says what is missing. */
  resolve(specifiers, records) {
    const statuses = [];
    const modules = [];
    for (const specifier of new Set(specifiers)) {
      const root = records.get(specifier);
      const fail = (message) => statuses.push({ specifier, status: "error", code: "module-unavailable", message });
      if (root === undefined) {
        const message = `Sandbox module ${specifier} is not installed.`;
        statuses.push({ specifier, status: "error", code: "module-not-found", message });
      } else if (root.kind === "wasm" && root.wasm === undefined) {
        fail(`Sandbox module ${specifier} was delivered without its WASM call contract.`);
      } else {
        const { graph, missing } = collect(root, records);
        missing.forEach((id) => fail(`Sandbox module ${specifier} is missing ${id}, which it imports.`));
        modules.push({ specifier, ...root, graph });
      }
    }
    return { modules, statuses };
  }
}

/** A root and everything it imports, as far as there are records. */
function collect(root, records) {
  const graph = new Map([[root.id, root]]);
  const missing = [];
  const queue = [...root.dependencies];
  while (queue.length > 0) {
    const id = queue.shift();
    const record = records.get(id);
    if (record === undefined) {
      missing.push(id);
    } else if (!graph.has(id)) {
      graph.set(id, record);
      queue.push(...record.dependencies);
    }
  }
  return { graph: [...graph.values()], missing };
}

/** Reads a 200: its headers, then its body, then what kind of module it is. */
async function readRecord(id, response) {
  const { headers } = response;
  const [digest, announced, packName, fileId] = REQUIRED.map((name) => headers.get(name));
  if (![digest, announced, packName, fileId].every(Boolean)) {
    throw new Error(`Sandbox module ${id} was delivered without its content headers.`);
  }
  const bytes = new Uint8Array(await response.arrayBuffer());
  const delivered = await sha256(bytes);
  if (delivered !== announced) {
    throw new Error(
      `Sandbox module ${id} failed its content check — the server announced ${announced} and delivered ${delivered}.`,
    );
  }
  const record = {
    id,
    digest,
    sha256: announced,
    packName,
    packVersion: headers.get("X-Sandbox-Pack-Version") ?? undefined,
    fileId,
    internal: headers.get("X-Sandbox-Internal") === "1",
    dependencies: readDependencies(headers.get("X-Sandbox-Module-Dependencies")),
  };
  const hostId = headers.get("X-Sandbox-Host-Module");
  if (headers.get("Content-Type")?.startsWith("application/wasm")) {
    return { ...record, kind: "wasm", bytes, wasm: readContract(id, headers.get("X-Sandbox-Wasm-Contract")) };
  }
  // The decoder drops a byte order mark, so it is gone from what runs.
  const source = new TextDecoder().decode(bytes);
  return hostId ? { ...record, kind: "host", source, hostId } : { ...record, kind: "js", source };
}

async function sha256(bytes) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Whatever is no list counts as an empty one; elements that are no strings are dropped. */
function readDependencies(header) {
  try {
    const parsed = JSON.parse(header);
    return Array.isArray(parsed) ? parsed.filter((element) => typeof element === "string") : [];
  } catch {
    return [];
  }
}

/** The call contract; its absence is for `resolve` to report. */
function readContract(id, header) {
  if (header === null) {
    return undefined;
  }
  let contract;
  try {
    contract = JSON.parse(header);
  } catch {
    throw new Error(`Sandbox module ${id} was delivered with an unreadable WASM call contract.`);
  }
  if (!isContract(contract)) {
    throw new Error(`Sandbox module ${id} was delivered with a WASM call contract the schema refuses.`);
  }
  return contract;
}

const RESERVED = new Set(
  (
    "await break case catch class const continue debugger default delete do else export extends false finally for " +
    "function if import in instanceof let new null return static super switch this throw true try typeof var void " +
    "while with yield enum implements interface package private protected public"
  ).split(" "),
);
const CEILINGS = { callTimeoutMs: 5000, callConcurrency: 2, callsPerInvocation: 256, wallClockMs: 30000 };

function isContract(value) {
  return (
    isObject(value, ["memoryPagesMax", "exports"], ["limits"]) &&
    isInteger(value.memoryPagesMax, 0, 4096) &&
    Array.isArray(value.exports) &&
    value.exports.length > 0 &&
    value.exports.every(isExport) &&
    (value.limits === undefined || isLimits(value.limits))
  );
}

function isExport(value) {
  return (
    isObject(value, ["wasm", "as"]) &&
    typeof value.wasm === "string" &&
    /^[^\u0000-\u001f\u007f]+$/u.test(value.wasm) &&
    typeof value.as === "string" &&
    /^[A-Za-z_$][A-Za-z0-9_$]*$/u.test(value.as) &&
    !RESERVED.has(value.as)
  );
}

function isLimits(value) {
  return (
    isObject(value, [], Object.keys(CEILINGS)) &&
    Object.entries(value).every(([name, limit]) => isInteger(limit, 1, CEILINGS[name]))
  );
}

/** An object with these keys and no others. */
function isObject(value, required, optional = []) {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return false;
  }
  const keys = Object.keys(value);
  return required.every((key) => keys.includes(key)) && keys.every((key) => [...required, ...optional].includes(key));
}

function isInteger(value, least, most) {
  return Number.isInteger(value) && value >= least && value <= most;
}
