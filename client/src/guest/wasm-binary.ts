//! Reads of a WASM binary what a call needs and no engine tells: the signatures of its functions and the bounds of its memory.

/** A type that may cross the bridge. */
export type Scalar = "i32" | "f32" | "f64";

/** What an exported function takes and gives. */
export interface Signature {
  parameters: Scalar[];
  results: Scalar[];
}

/** What was read. */
export interface Binary {
  /** Exported functions of the scalar contract, by name in the binary. */
  functions: Map<string, Signature>;
}

/** Parameters and results that the scalar contract allows. */
const MOST_PARAMETERS = 8;
const MOST_RESULTS = 1;

const TRUNCATED = "truncated WASM binary";
const SECTION = { type: 1, import: 2, function: 3, memory: 5, export: 7 };
const SCALARS = new Map<number, Scalar>([
  [0x7f, "i32"],
  [0x7d, "f32"],
  [0x7c, "f64"],
]);

/** Reads `bytes`, whose memory may reach `memoryPagesMax` pages. Throws an error that says what is wrong. */
export function readBinary(bytes: Uint8Array, memoryPagesMax: number): Binary {
  const reader = new Reader(bytes);
  for (const byte of [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]) {
    if (reader.byte() !== byte) throw new Error("invalid WASM magic or version");
  }
  const types: (Signature | undefined)[] = [];
  const functions: number[] = [];
  const exported = new Map<string, Signature>();
  while (!reader.ended) {
    const id = reader.byte();
    const section = reader.part();
    if (id === SECTION.type) section.list(() => types.push(functionType(section)));
    else if (id === SECTION.import) section.list(refuseImport);
    else if (id === SECTION.function) section.list(() => functions.push(section.number()));
    else if (id === SECTION.memory) section.list(() => checkMemory(section, memoryPagesMax));
    else if (id === SECTION.export) section.list(() => readExport(section, (at) => types[functions[at] ?? -1], exported));
  }
  return { functions: exported };
}

/** A position in bytes. */
class Reader {
  #at = 0;

  constructor(readonly bytes: Uint8Array) {}

  get ended(): boolean {
    return this.#at >= this.bytes.length;
  }

  byte(): number {
    const byte = this.bytes[this.#at++];
    if (byte === undefined) throw new Error(TRUNCATED);
    return byte;
  }

  /** An unsigned LEB128 number of at most 32 bits. */
  number(): number {
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.byte();
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
    throw new Error("malformed WASM section");
  }

  /** What a length announces, as a reader of its own. */
  part(): Reader {
    const length = this.number();
    const end = this.#at + length;
    if (end > this.bytes.length) throw new Error(TRUNCATED);
    const part = new Reader(this.bytes.subarray(this.#at, end));
    this.#at = end;
    return part;
  }

  /** Reads an item for each that a count announces; every item has a byte at least. */
  list(item: () => unknown): void {
    const count = this.number();
    if (count > this.bytes.length) throw new Error(TRUNCATED);
    for (let at = 0; at < count; at++) item();
  }
}

function refuseImport(): never {
  throw new Error("WASM imports are not allowed");
}

function functionType(section: Reader): Signature | undefined {
  if (section.byte() !== 0x60) throw new Error("invalid WASM function type");
  const parameters: (Scalar | undefined)[] = [];
  const results: (Scalar | undefined)[] = [];
  section.list(() => parameters.push(SCALARS.get(section.byte())));
  section.list(() => results.push(SCALARS.get(section.byte())));
  const scalars = [...parameters, ...results].every((type) => type !== undefined);
  if (!scalars || parameters.length > MOST_PARAMETERS || results.length > MOST_RESULTS) return undefined;
  return { parameters: parameters as Scalar[], results: results as Scalar[] };
}

/** A memory is unshared and declares a maximum within the contract's. */
function checkMemory(section: Reader, memoryPagesMax: number): void {
  if (section.byte() !== 1) throw new Error("every WASM memory must be unshared and declare a maximum");
  section.number();
  if (section.number() > memoryPagesMax) throw new Error("memory maximum exceeds the declared or host ceiling");
}

function readExport(section: Reader, signatureOf: (at: number) => Signature | undefined, exported: Map<string, Signature>): void {
  const name = new TextDecoder().decode(section.part().bytes);
  const kind = section.byte();
  const at = section.number();
  const signature = kind === 0 ? signatureOf(at) : undefined;
  if (signature) exported.set(name, signature);
}
