// @ts-check
/// <reference path="../page_types.d.ts" />
// The table of lines before and after, and the nodes that all parts are built of. Every text goes
// through `visible` into a text node, never into markup.

export const MAX_SHOWN = 2000; // rows or notes, and characters of a line
const MAX_UNBROKEN = 32; // characters, which fit a phone
const MAX_INDENT = 16; // characters, which leave room on a phone
const NOT_EDITED = "The text stays as it is: the webhook changes the pod at admission.";

// As in webhook/text/escape.py: what cannot be printed, and what is invisible all the same.
const INVISIBLE = new RegExp(
  "(?! )[\\p{C}\\p{Z}]|[\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u2800\\u3164" +
  "\\ufe00-\\ufe0f\\uffa0\\u{1d173}-\\u{1d17a}\\u{e0100}-\\u{e01ef}]", "gu");
/** Escape invisible characters, such as marks of the direction of text.
 * @param {string} text */
export const visible = (text) => text.replace(INVISIBLE, (character) => {
  if ("\t\n\r".includes(character)) return JSON.stringify(character).slice(1, -1);
  const digits = (character.codePointAt(0) ?? 0).toString(16);
  if (digits.length <= 2) return `\\x${digits.padStart(2, "0")}`;
  return digits.length <= 4 ? `\\u${digits.padStart(4, "0")}` : `\\U${digits.padStart(8, "0")}`;
});

/** @template {keyof HTMLElementTagNameMap} T @param {T} tag @param {Record<string, string>}
 * attributes
 * @param {Child[]} children @returns {HTMLElementTagNameMap[T]} */
export function el(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  for (const child of children) {
    if (child) element.append(typeof child === "string" ? visible(child) : child);
  }
  return element;
}

/** @param {string} label @param {() => void} act @param {string} kind */
export function button(label, act, kind = "") {
  const element = el("button", { type: "button", class: kind }, label);
  element.addEventListener("click", act);
  return element;
}

/** @param {number} n @param {string} noun */
export const counted = (n, noun) => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
/** @param {string} title @param {Child[]} rest */
export const section = (title, ...rest) => el("section", {}, el("h3", {}, title), ...rest);

/** Say of a section about the webhook's changes that they depend on a call, if it is not called.
 * @param {Decision} decision @param {HTMLElement} part */
export function aboutCall({ ifCalled, namespaceLabeled }, part) {
  if (!ifCalled) return part;
  const [first, ...rest] = part.children[0].textContent ?? "";
  const condition = namespaceLabeled === false ? "the namespace had the label"
    : "the webhook were called";
  part.className = "muted";
  part.children[0].textContent = `If ${condition}: ${first.toLowerCase()}${rest.join("")}`;
  return part;
}

/** Split a sentence so that no line breaks inside a name such as rdma.lab/enable, and show what is
 * between backquotes as code.
 * @param {string} sentence @returns {Child[]} */
export const prose = (sentence) => sentence.split(/`([^`]+)`/).flatMap((part, index) =>
  (index % 2 ? el("code", {}, part) : unbroken(part)));

/** @param {string} sentence */
const unbroken = (sentence) => sentence.split(/(\S*\w[-/]\w\S*)/).map((part, index) =>
  (index % 2 && part.length < MAX_UNBROKEN ? el("span", { class: "name" }, part) : part));

// Before and after.

/** Whether it changes lines of a pod, or of any.
 * @param {Hunk} hunk @param {number} index */
const touches = ({ rows }, index) => rows.some(({ kind, reasons }) => kind !== "same" &&
  (!reasons.length || reasons.some(({ decision }) => decision === index)));

/** @param {Preview} answer @param {number} index @param {Input} input */
export function changesPart(answer, index, { text }) {
  const hunks = answer.changes.flatMap((change) => change.hunks);
  const title = "Before and after";
  if (!hunks.some((hunk) => touches(hunk, index))) {
    return answer.decisions[index].outcomes.some(({ status }) => status === "applied") &&
      aboutCall(answer.decisions[index], section(title, el("p", { class: "soft" }, NOT_EDITED)));
  }
  const table = el("div", { class: "rows", role: "table", "aria-label": title });
  const more = el("p", {});
  fill(table, more, [...rowMakers(hunks, index, text.replace(/\n$/, "").split("\n"), answer)]);
  return aboutCall(answer.decisions[index], section(title, table, more));
}

/** Append the next rows, and offer to append more.
 * @param {HTMLElement} table @param {HTMLElement} more @param {(() => Node)[]} makers */
function fill(table, more, makers) {
  table.append(...makers.slice(0, MAX_SHOWN).map((make) => make()));
  const rest = makers.slice(MAX_SHOWN);
  more.replaceChildren(rest.length ? button(`Show more: ${counted(rest.length, "line")} to go`,
    () => fill(table, more, rest)) : "");
}

/** @param {Hunk[]} hunks @param {number} index @param {string[]} lines @param {Preview} answer
 * @returns {Generator<() => Node>} */
function* rowMakers(hunks, index, lines, answer) {
  let [before, after, others] = [1, 1, false];
  for (const hunk of [...hunks, { beforeLine: lines.length + 1, afterLine: 0, rows: [] }]) {
    others ||= hunk.rows.length > 0 && !touches(hunk, index);
    if (hunk.rows.length > 0 && !touches(hunk, index)) continue;
    const between = lines.slice(before - 1, hunk.beforeLine - 1);
    if (between.length) yield gap.bind(null, between, before, after, others);
    [before, after, others] = [hunk.beforeLine, hunk.afterLine, false];
    let named = /** @type {string[]} */ ([]);
    for (const row of hunk.rows) {
      const reasons = row.reasons.filter(({ mutation }) => !named.includes(mutation));
      const numbers = [before, after];
      yield () => rowNode(row, numbers, reasons.map((reason) => chip(reason, answer)));
      named = row.reasons.map(({ mutation }) => mutation);
      before += +(row.before !== null);
      after += +(row.after !== null);
    }
  }
}

/** Hide lines that do not change or, with `others`, that do for other pods, behind a button.
 * @param {string[]} lines @param {number} before @param {number} after @param {boolean} others */
function gap(lines, before, after, others) {
  const rest = lines.slice(MAX_SHOWN);
  const node = el("div", { class: "gap", role: "row" }, el("span", { role: "cell" },
    button(`… ${counted(lines.length, others ? "other line" : "unchanged line")}`, () => {
      const rows = lines.slice(0, MAX_SHOWN).map((line, offset) => rowNode(
        { kind: "same", before: line, after: line, reasons: [] },
        [before + offset, others ? "" : after + offset], []));
      const next = rest.length && gap(rest, before + MAX_SHOWN, after + MAX_SHOWN, others);
      node.replaceWith(...rows, next || "");
      rows[0].tabIndex = -1;
      rows[0].focus();
    }, "link")));
  return node;
}

/** @param {Row} row @param {(number | "")[]} numbers @param {Child[]} chips */
const rowNode = ({ kind, before, after }, numbers, chips) =>
  el("div", { class: `row ${kind}`, role: "row" },
    cell("before", kind === "same" ? "code" : "del", before, numbers[0],
      after === null ? chips : []),
    cell("after", kind === "same" ? "code" : "ins", after, numbers[1], chips));

/** @param {string} side @param {"code" | "del" | "ins"} tag @param {string | null} text
 * @param {number | ""} number @param {Child[]} chips */
function cell(side, tag, text, number, chips) {
  if (text === null) return el("div", { class: `cell ${side} blank`, role: "cell" });
  const hidden = text.length - MAX_SHOWN;
  return el("div", { class: `cell ${side}`, role: "cell" },
    el("span", { class: "number" }, `${number}`),
    el("span", { class: "mark", "aria-hidden": "true" }),
    el("span", { class: "line" }, chips.length > 0 && el("span", { class: "chips" }, ...chips),
      indented(el(tag, {}, text.slice(0, MAX_SHOWN))),
      hidden > 0 && el("span", { class: "soft" }, `… ${counted(hidden, "more character")}`)));
}

/** Give the style sheet the indentation of a line of YAML: a wrapped line continues below its key.
 * @param {HTMLElement} code */
function indented(code) {
  const width = (code.textContent ?? "").search(/[^ -]|$/);
  code.style.setProperty("--indent", `${Math.min(width, MAX_INDENT)}ch`);
  return code;
}

let chips = 0;
/** Name a mutation, and on focus what it did.
 * @param {RowReason} reason @param {Preview} answer */
function chip({ decision, mutation, container }, answer) {
  const outcome = answer.decisions[decision].outcomes.find((other) => other.status === "applied" &&
    other.mutation === mutation && other.container === container);
  const id = `chip-${++chips}`;
  const name = button(mutation, () => name.focus());
  name.setAttribute("aria-describedby", id);
  return el("span", { class: "chip" }, name,
    el("span", { class: "tip", role: "tooltip", id }, outcome?.message ?? mutation));
}
