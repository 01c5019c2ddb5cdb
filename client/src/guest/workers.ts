//! The workers in which WASM calls run, so that an endless loop costs its call and nothing else: it is terminated.

import type { CallReply, CallRequest } from "./wasm-worker.js";

/** A worker of the platform, however it is started. */
export interface WorkerHandle {
  post(request: CallRequest): void;
  terminate(): void;
}

/** Starts a worker. It replies `ready` once it listens. */
export type StartWorker = (onReply: (reply: CallReply) => void, onError: (error: Error) => void) => WorkerHandle;

/** A call took longer than it may. */
export class Late extends Error {}

/** What a call is told whose run has ended; nobody is left to hear it. */
const OVER = "the run is over";

/** Workers of all runs at once; further calls wait. */
const MOST_WORKERS = 4;
let running = 0;
const waiting: (() => void)[] = [];

/** A worker that is there and does nothing. */
export interface IdleWorker {
  handle: WorkerHandle;
  /** Where its next reply goes. */
  listen: (onReply: (reply: CallReply) => void, onError: (error: Error) => void) => void;
}

/** The workers of one run. */
export class Workers {
  readonly #start: StartWorker;
  readonly #idle: IdleWorker[] = [];
  readonly #all = new Set<WorkerHandle>();
  /** How to end each call that runs. */
  readonly #ends = new Set<() => void>();
  #closed = false;

  constructor(start: StartWorker) {
    this.#start = start;
  }

  /** A worker to call in, started where none is idle. */
  async take(): Promise<IdleWorker> {
    return this.#idle.pop() ?? this.#started();
  }

  /** Makes one call. Rejects with `Late`, having terminated the worker, when it takes longer than `milliseconds`. */
  call(worker: IdleWorker, request: CallRequest, milliseconds: number): Promise<Exclude<CallReply, "ready">> {
    return new Promise((resolve, reject) => {
      const end = (settle: () => void, reusable: boolean): void => {
        clearTimeout(timer);
        this.#ends.delete(stop);
        if (reusable) this.#idle.push(worker);
        else this.#stop(worker.handle);
        settle();
      };
      // A reply may lie in the queue already where the guest's own code kept the timer from firing in time.
      const late = (): void => void (timer = setTimeout(() => end(() => reject(new Late()), false)));
      let timer = setTimeout(late, milliseconds);
      const stop = (): void => end(() => reject(new Error(OVER)), false);
      this.#ends.add(stop);
      worker.listen(
        (reply) => {
          if (reply !== "ready") end(() => resolve(reply), true);
        },
        (error) => end(() => reject(error), false),
      );
      worker.handle.post(request);
    });
  }

  /** Ends all workers, whatever they do; none is started any more. */
  close(): void {
    this.#closed = true;
    for (const end of [...this.#ends]) end();
    for (const handle of this.#all) this.#stop(handle);
    this.#idle.length = 0;
  }

  async #started(): Promise<IdleWorker> {
    while (running >= MOST_WORKERS) await new Promise<void>((resolve) => waiting.push(resolve));
    if (this.#closed) {
      waiting.shift()?.();
      throw new Error(OVER);
    }
    return new Promise((resolve, reject) => {
      const refuse = (error: Error): void => reject(new Error(`the worker for WASM calls could not be started: ${error.message}`));
      let onReply: (reply: CallReply) => void = () => resolve(worker);
      let onError = (error: Error): void => {
        this.#stop(handle);
        refuse(error);
      };
      let handle: WorkerHandle;
      try {
        handle = this.#start(
          (reply) => onReply(reply),
          (error) => onError(error),
        );
      } catch (error) {
        // A page that may have no workers throws at once.
        waiting.shift()?.();
        refuse(error as Error);
        return;
      }
      running++;
      this.#all.add(handle);
      const worker: IdleWorker = {
        handle,
        listen(reply, error) {
          onReply = reply;
          onError = error;
        },
      };
    });
  }

  #stop(handle: WorkerHandle): void {
    if (!this.#all.delete(handle)) return;
    handle.terminate();
    running--;
    waiting.shift()?.();
  }
}
