// @ts-check
/// <reference path="../page_types.d.ts" />
// What the input says: the address of its preview, its objects, and the line that a reason is about.

export const OPT_IN = "rdma.lab/enable";
/** A variable or an annotation, or what is in quotation marks. */
const CULPRIT = /\b([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|rdma\.lab\/[\w-]+)|`([^`]+)`|'([^']+)'/g;

/** Return the address of a preview. A label that each namespace has makes its labels known, so
 * that a missing label is missing, and not assumed.
 * @param {Input} input */
export function previewAddress(input) {
  const known = input.labeled ? "rdma.lab/enable=true"
    : `kubernetes.io/metadata.name=${input.namespace}`;
  const query = new URLSearchParams({ namespace: input.namespace, "namespace-label": known });
  const label = `pod-security.kubernetes.io/enforce=${input.level}`;
  if (input.level) query.append("namespace-label", label);
  return `preview?${query}&enable=${input.enable}`;
}

/** Whether the input has an object of this kind.
 * @param {Input} input @param {string} kind */
export const gives = ({ text, limits }, kind) =>
  new RegExp(`^[\\s{-]*"?kind"?: *["']?${kind}\\b`, "m").test(`${text}\n${limits}`);

/** Whether the labels of namespaces are the user's, and not those of the unticked box.
 * @param {Input} input */
export const labelIsGiven = (input) => input.labeled || gives(input, "Namespace");

/** Find the only line of the pod's document with what a reason names: a variable, an annotation, or
 * a quoted part of a command. The line is counted from 1; null without a single one, and if the
 * reason is about the namespace.
 * @param {Decision} decision @param {Input} input */
export function culpritLine({ because, line: first }, { text }) {
  if (because?.reason === "NotCalled") return null;
  const lines = text.split("\n");
  const end = lines.findIndex((line, index) => index >= first && line.startsWith("---"));
  const document = lines.slice(first - 1, end < 0 ? lines.length : end);
  for (const [, name, code, quoted] of because?.message.matchAll(CULPRIT) ?? []) {
    const offsets = [...document.keys()].filter(
      (offset) => hasWord(document[offset], name ?? code ?? quoted));
    if (offsets.length === 1) return first + offsets[0];
  }
  return null;
}

/** Whether a line has a word that is no part of a longer one where it first appears.
 * @param {string} line @param {string} word */
function hasWord(line, word) {
  const [before, after] = [line.indexOf(word) - 1, line.indexOf(word) + word.length];
  return line.includes(word) && !/\w/.test(`${line[before] ?? ""} ${line[after] ?? ""}`);
}
