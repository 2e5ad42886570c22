// @ts-check
/// <reference path="../page_types.d.ts" />
// What the webhook would do with a pod, and what the codes mean.

import { aboutCall, button, el, prose, section } from "./rows.js";

/** The words for a status: a preview changes nothing.
 * @type {Record<string, string>} */
const STATUS_WORDS = { applied: "would apply", already: "unchanged", failed: "would fail" };

/** @param {Decision} decision @param {Preview} answer */
export function outcomesPart(decision, answer) {
  const { outcomes } = decision;
  const done = outcomes.filter(({ status }) => status !== "skipped" && status !== "warned");
  const skipped = outcomes.filter(({ status }) => status === "skipped");
  const names = [...new Set(skipped.map(({ mutation }) => mutation))].join(", ");
  return outcomes.length > 0 && aboutCall(decision, section("What the webhook would do",
    outcomeList(done, answer), names && el("details", { class: "quiet" },
      el("summary", {}, `Nothing to do or skipped: ${names}`), outcomeList(skipped, answer))));
}

/** Merge equal outcomes of several containers.
 * @param {Outcome[]} outcomes
 * @param {Preview} answer */
function outcomeList(outcomes, answer) {
  /** @param {Outcome} outcome */
  const key = ({ mutation, status, message }) => [mutation, status, message].join("\n");
  const items = [...Map.groupBy(outcomes, key).values()].map((group) => {
    const [{ mutation, status, message, reason }] = group;
    const containers = group.map(({ container }) => container).filter(Boolean).join(", ");
    return el("li", {}, el("span", { class: status }, STATUS_WORDS[status] ?? status),
      el("code", {}, mutation === "request" ? "pod" : mutation),
      el("span", {}, ...prose(message),
        containers && el("span", { class: "soft" }, ` · ${containers}`),
        status === "failed" && explains(reason, message, answer) && codeLink(reason)));
  });
  return el("ul", { class: "outcomes" }, ...items);
}

// Codes.
/** The button that led to a meaning last. */
let origin = /** @type {HTMLElement | null} */ (null);

/** Make a button that leads to a code's explanation: the address's fragment is for the input.
 * @param {string} code */
export function codeLink(code) {
  const link = button(code, () => {
    const target = document.getElementById(`code-${code}`);
    origin = link;
    target?.closest("details")?.setAttribute("open", "");
    target?.focus();
  }, "link mono");
  return el("span", {}, " ", link);
}

/** Focus the button that led to a meaning; without one, the verdict. */
function goBack() {
  const headline = /** @type {HTMLElement} */ (document.querySelector(".card h2"));
  headline.tabIndex = -1;
  (origin?.isConnected ? origin : headline).focus();
}

/** Whether the meanings of a code have more than a long word that a text lacks.
 * @param {string} code @param {string} text @param {Preview} answer */
export function explains(code, text, { codes }) {
  const words = Object.values(codes[code]?.meanings ?? {}).join(" ").match(/[\w/]{4,}/g) ?? [];
  const known = text.toLowerCase();
  return new Set(words.filter((word) => !known.includes(word.toLowerCase()))).size > 1;
}

/** Explain the codes of causes, each of which follows whether it has a link in any case.
 * @param {[Because, boolean][]} causes @param {Preview} answer */
export function codesPart(causes, answer) {
  const named = causes.filter(([{ reason, message }, linked]) => reason in answer.codes &&
    (linked || explains(reason, message, answer))).map(([{ reason }]) => reason);
  const terms = [...new Set(named)].flatMap((code) => [
    el("dt", { id: `code-${code}`, tabindex: "-1" }, code),
    el("dd", {}, ...prose([...new Set(Object.values(answer.codes[code].meanings))].join(" "))),
    answer.codes[code].remedy &&
      el("dd", { class: "remedy" }, ...prose(answer.codes[code].remedy)),
    el("dd", {}, button("Back to the verdict", goBack, "link"))]);
  return terms.length > 0 && el("details", {},
    el("summary", {}, el("h3", {}, "What the codes mean")), el("dl", {}, ...terms));
}
