// The JSON that the page reads, as far as it does (docs/preview.md); for `make lint` and editors alone.

interface Because { reason: string; message: string }
interface Outcome {
  mutation: string; container: string; status: string; reason: string; message: string;
}
interface Decision {
  line: number; path: string; kind: string; name: string; namespace: string; controller: string;
  role: string; derived: boolean; called: boolean | null; calledBecause: string; hint: string;
  annotationsLocation: string; optInAssumed: boolean; namespaceLabeled: boolean | null;
  mistakes: string[];
  headline: string; rdma: string | null; because: Because | null;
  ifCalled: (Because & { rdma: string }) | null;
  allowed: boolean; reason: string; message: string; fabric: string | null; evidence: string;
  outcomes: Outcome[];
}
interface RowReason { decision: number; mutation: string; container: string }
interface Row { kind: string; before: string | null; after: string | null; reasons: RowReason[] }
interface Hunk { beforeLine: number; afterLine: number; rows: Row[] }
interface Preview {
  decisions: Decision[]; changes: { hunks: Hunk[] }[]; notes: string[]; example: boolean;
  exampleFabrics: string;
  codes: Record<string, { meanings: Record<string, string>; remedy: string }>;
}
// What the form has.
interface Input {
  text: string; namespace: string; labeled: boolean; enable: boolean; level: string; limits: string;
}
type Child = Node | string | null | false;
interface Controls extends HTMLFormControlsCollection {
  text: HTMLTextAreaElement; limits: HTMLTextAreaElement; namespace: HTMLInputElement;
  labeled: HTMLInputElement; enable: HTMLInputElement; level: HTMLSelectElement;
}

// What browsers have, and the compiler in Debian does not know.
interface MapConstructor {
  groupBy<K, T>(items: Iterable<T>, keySelector: (item: T, index: number) => K): Map<K, T[]>;
}
interface CompressionStream extends GenericTransformStream {}
declare var CompressionStream: {
  prototype: CompressionStream;
  new(format: "deflate" | "deflate-raw" | "gzip"): CompressionStream;
};
interface DecompressionStream extends GenericTransformStream {}
declare var DecompressionStream: {
  prototype: DecompressionStream;
  new(format: "deflate" | "deflate-raw" | "gzip"): DecompressionStream;
};
