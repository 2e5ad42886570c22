// @ts-check
/// <reference path="../page_types.d.ts" />
// Post the text to `preview` and show the answer. The server parses, decides and compares.

import { fabricsPart } from "./fabrics.js";
import { OPT_IN, culpritLine, gives, labelIsGiven, previewAddress } from "./input.js";
import { codeLink, codesPart, explains, outcomesPart } from "./outcomes.js";
import { MAX_SHOWN, button, changesPart, counted, el, prose, section, visible } from "./rows.js";

const MAX_BYTES = 8 << 20; // as the server
const MAX_LINK = 64 << 10; // mail and chat programs cut longer addresses
const TYPING_PAUSE = 400; // milliseconds
const LINK_PREFIX = "#input=";
/** The sign and the tone of a headline.
 * @type {Record<string, string[]>} */
const SIGNS = {
  "equipped for RDMA": ["✔", "yes"], "no RDMA": ["✘", "no"], denied: ["✘", "no"],
  "RDMA not certain": ["?", "unsure"], launcher: ["○", "none"], "not opted in": ["○", "none"],
};
/** The verdict that a called webhook would give.
 * @type {Record<string, string>} */
const IF_CALLED = {
  yes: "the pod would be equipped for RDMA", no: "the pod would have no RDMA",
  unsure: "RDMA would not be certain", none: "the pod would be a launcher",
};
const WORDS = {
  tooLarge: "The text is larger than 8 MiB. Send it in parts, such as one namespace at a time.",
  unreachable: "The server does not answer. Is it still running, and the port-forward to it?",
  foreign: "The answer is not from rdma-webhook. Check the address of this page.",
  aFabric: "A fabric is an RDMA network with its nodes. To see what your pod gets, start the page " +
    "with your cluster's fabrics: ",
  asIfOptedIn: 'As if it had the annotation rdma.lab/enable: "true", which it lacks.',
  notEnough: "The lines that the webhook would add do not help until this reason is removed.",
  noPods: "The input has neither pods nor pod templates.",
  badLink: "The link to this page is damaged or incomplete, so its text could not be read.",
  longLink: "The text is too long for a link. Send the file instead.",
  copied: "The link is copied. Everyone who has it can read the text.",
  notCopied: "The link is in the address bar. Everyone who has it can read the text.",
};
const byId = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
const form = /** @type {HTMLFormElement & {elements: Controls}} */ (byId("form"));
const { text: textBox, limits: limitsBox, namespace, labeled, enable, level } = form.elements;
const result = byId("result");
const emptyState = byId("empty");
/** @param {"remark" | "announcement"} id @param {string} sentence */
const say = (id, sentence) => { byId(id).textContent = visible(sentence); };

// The request.
let [aborter, timer] = [new AbortController(), 0];
// The input and the answer that the result shows, if any. The same once more leaves open what is open.
let shown = "";
/** @returns {Input} */
const readInput = () => ({ text: textBox.value,
  namespace: (namespace.dataset.typed && namespace.value.trim()) || "default", labeled: labeled.checked,
  enable: enable.checked, level: level.value, limits: limitsBox.value });

/** Request a preview of the form's input, and show it.
 * @param {boolean} explicit */
async function preview(explicit) {
  clearTimeout(timer);
  aborter.abort();
  aborter = new AbortController();
  const [{ signal }, input] = [aborter, readInput()];
  const body = input.limits.trim() ? `${input.text}\n---\n${input.limits}` : input.text;
  if (!input.text.trim()) return show("", emptyState);
  if (new Blob([body]).size > MAX_BYTES) return showProblem(WORDS.tooLarge);
  result.setAttribute("aria-busy", "true");
  const headers = { Accept: "application/json", "Content-Type": "application/yaml" };
  const answer = await fetch(previewAddress(input), { method: "POST", body, headers, signal })
    .then(async (response) => ({ response, text: await response.text() })).catch(() => null);
  if (signal.aborted) return;
  const pair = answer && JSON.stringify([input, answer.response.status, answer.text]);
  if (pair && pair === shown) result.setAttribute("aria-busy", "false");
  else if (answer) showAnswer(answer.response, answer.text, input);
  else showProblem(WORDS.unreachable, button("Try again", () => preview(true)));
  shown = pair ?? "";
  if (explicit) (result.querySelector(".pods, .card") ?? result).scrollIntoView({ block: "nearest" });
}

/** @param {Response} response @param {string} text @param {Input} input */
function showAnswer({ ok, headers }, text, input) {
  const type = headers.get("content-type") ?? "";
  if (ok && type.startsWith("application/json")) return showPreview(JSON.parse(text), input);
  if (ok || !type.startsWith("text/plain")) return showProblem(WORDS.foreign);
  const sentence = text.trim().slice(0, MAX_SHOWN).replace(/^body: /, "");
  showProblem(sentence, placeButton(sentence));
}

/** Make a button that selects the place that a sentence names, if it names any.
 * @param {string} sentence */
function placeButton(sentence) {
  const place = /\bline (\d+)(?:, column (\d+))?/.exec(sentence);
  if (!place) return null;
  const lines = textBox.value.split("\n").length;
  const [line, column] = [+place[1], +(place[2] ?? 1)];
  if (line <= lines) return button(`Go to line ${line}`, () => select(textBox, line, column));
  return button("Go to the LimitRange", () => select(limitsBox, line - lines - 1, column));
}

/** Select a line from a column on, both counted from 1.
 * @param {HTMLTextAreaElement} box
 * @param {number} line @param {number} column */
function select(box, line, column) {
  const lines = box.value.split("\n");
  const start = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
  const { length } = lines[line - 1] ?? "";
  box.closest("details")?.setAttribute("open", "");
  box.focus();
  box.setSelectionRange(start + Math.min(column - 1, length), start + length);
  box.scrollTop = (line - 3) * parseFloat(getComputedStyle(box).lineHeight);
}

// The states of the result.
/** @param {string} spoken @param {Child[]} parts */
function show(spoken, ...parts) {
  const hadFocus = result.contains(document.activeElement);
  shown = "";
  result.replaceChildren(el("div", {}, ...parts));
  const heading = result.querySelector("h2");
  if (hadFocus && heading) {
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
  }
  result.setAttribute("aria-busy", "false");
  say("announcement", spoken);
}

/** @param {string} sentence @param {Child} remedy */
const showProblem = (sentence, remedy = null) => show(sentence, card(["✘", "no"], "No preview", "",
  el("p", { class: "reason" }, sentence), remedy && el("p", { class: "actions" }, remedy)));

/** @param {Preview} answer @param {Input} input */
function showPreview(answer, input) {
  const { decisions, notes } = answer;
  if (!decisions.length) {
    return show(WORDS.noPods, card(["○", "none"], "no pods", "", el("p", {}, WORDS.noPods)),
      notesPart(notes));
  }
  const pod = el("div", {});
  /** @param {number} index */
  const choose = (index) => {
    pod.replaceChildren(podPart(answer, index, input));
    if (!namespace.dataset.typed) namespace.value = decisions[index].namespace;
    return `${nameOf(decisions[index])}: ${headlineOf(decisions[index])}`;
  };
  const spoken = choose(0);
  if (decisions.length === 1) return show(spoken, pod, notesPart(notes));
  const equipped = decisions.filter(({ rdma }) => rdma === "yes").length;
  const summary = `${equipped} of ${decisions.length} pods equipped for RDMA`;
  show(summary, podList(summary, decisions, choose), pod, notesPart(notes));
}

/** @param {Decision} decision */
function nameOf({ kind, namespace, name, path, role }) {
  const subject = name ? `${kind} ${namespace}/${name}` : `${kind} in ${namespace}`;
  return [subject, path, role && `(${role})`].filter(Boolean).join(" ");
}

const capitalized = (/** @type {string} */ word) => word[0].toUpperCase() + word.slice(1);
const isFine = (/** @type {string | null} */ rdma) => rdma === "yes" || rdma === "none";

/** Say also of a pod that has not opted in what it lacks.
 * @param {Decision} decision */
const headlineOf = ({ because, headline }) => (because ? headline : `no RDMA: ${headline}`);

/** Make a list of radio buttons, so that arrow keys choose a pod.
 * @param {string} summary
 * @param {Decision[]} decisions @param {(index: number) => string} choose */
function podList(summary, decisions, choose) {
  const labels = decisions.map((decision, index) => {
    const [sign, tone] = SIGNS[decision.headline];
    const radio = el("input", { type: "radio", name: "pod" });
    radio.checked = index === 0;
    radio.addEventListener("change", () => say("announcement", choose(index)));
    return el("label", { class: tone }, radio,
      el("span", { class: "sign", "aria-hidden": "true" }, sign),
      el("span", {}, ...prose(nameOf(decision)),
        el("span", { class: "soft" }, ` · line ${decision.line}`)),
      el("span", { class: "verdict" }, headlineOf(decision)));
  });
  return el("fieldset", { class: "pods" },
    el("legend", {}, el("h2", {}, summary)), el("div", {}, ...labels));
}

/** @param {string[]} notes */
function notesPart(notes) {
  const hidden = notes.length - MAX_SHOWN;
  return notes.length > 0 && section("Notes", el("ul", { class: "notes" },
    ...notes.slice(0, MAX_SHOWN).map((text) => el("li", {}, text.replace(/^body: /, ""))),
    hidden > 0 && el("li", {}, `${counted(hidden, "more note")} (see the JSON output)`)));
}

// One pod.
/** @param {Preview} answer @param {number} index @param {Input} input */
function podPart(answer, index, input) {
  const decision = answer.decisions[index];
  return el("div", { class: "parts" }, verdictPart(decision, answer, input), examplePart(answer),
    warningsPart(decision, answer), changesPart(answer, index, input),
    outcomesPart(decision, answer), codesPart(causesOf(decision, answer, input), answer));
}

/** Say that the fabrics are an example, and how to use others.
 * @param {Preview} answer */
const examplePart = ({ exampleFabrics }) => exampleFabrics && el("p", { class: "problem" },
  ...prose(`These are example fabrics (${exampleFabrics}), not yours. ${WORDS.aFabric}`),
  el("code", {}, "rdma-webhook preview --page -c fabrics.yaml"));

/** @param {string[]} sign @param {string} headline @param {string} who @param {Child[]} rest */
const card = ([sign, tone], headline, who, ...rest) => el("div", { class: `card ${tone}` },
  who && el("p", { class: "who" }, who), el("span", { class: "sign", "aria-hidden": "true" }, sign),
  el("h2", {}, el("span", { class: "headline" }, ...prose(headline))), ...rest);

/** @param {Decision} decision @param {Preview} answer @param {Input} input */
function verdictPart(decision, answer, input) {
  const { because, controller, derived, evidence, fabric, headline, ifCalled, rdma } = decision;
  const fine = isFine(rdma);
  const over = fabric && because && rdma !== "no" ? ` over ${fabric}` : "";
  const origin = derived ? " · derived; an operator makes it"
    : controller && ` · as ${controller} creates it`;
  const reason = reasonOf(decision, answer, input);
  const culprit = fine ? null : culpritLine(decision, input);
  const isLinked = !fine && (because || explains(decision.reason, reason, answer));
  return card(SIGNS[headline], headlineOf(decision) + over, nameOf(decision) + origin,
    decision.optInAssumed && el("p", { class: "assumed" }, ...prose(WORDS.asIfOptedIn)),
    el("p", { class: "reason" }, ...prose(reason.replace(/^[a-z]+(?= )/, capitalized)),
      isLinked && codeLink(because?.reason ?? decision.reason)),
    culprit !== null && el("p", { class: "actions" },
      button(`Go to line ${culprit}`, () => select(textBox, culprit, 1))),
    ...(fine ? [] : remedies(decision, answer)),
    rdma === "no" && !ifCalled && decision.outcomes.some(({ status }) => status === "applied") &&
      el("p", {}, WORDS.notEnough),
    isFineIfCalled(decision) && el("p", {}, ...prose(sentenceIfCalled(decision))),
    because && !ifCalled && fabric && el("p", { class: "soft" },
      ...prose(`Fabric ${fabric}${evidence && `, because of ${evidence}`}`)),
    assumptionsPart(decision, input),
    !because && el("p", { class: "actions" }, button("Preview as if it had opted in", () => {
      enable.checked = true;
      useText(textBox.value);
    })));
}

/** Say why, and of a pod that has not opted in, why in spite of an apparent attempt.
 * @param {Decision} decision @param {Preview} answer @param {Input} input */
function reasonOf(decision, { exampleFabrics }, input) {
  const { because, message, hint, mistakes, namespace, namespaceLabeled } = decision;
  const lacks = labelIsGiven(input) ? "lacks the label" : "is assumed to lack the label";
  if (because) {
    const sentence = because.message.replace("lacks the label", lacks);
    return exampleFabrics
      ? sentence.replace("no fabric lists", "none of these example fabrics lists") : sentence;
  }
  const cause = [hint, ...mistakes.filter(aboutAnnotations)].filter(Boolean).join("; ") || message;
  return namespaceLabeled === false
    ? `${cause}; and namespace ${namespace} ${lacks} ${OPT_IN}=true` : cause;
}

const aboutAnnotations = (/** @type {string} */ mistake) => /annotation/i.test(mistake);

/** Say what to do, with lines to copy where there are any.
 * @param {Decision} decision @param {Preview} answer */
function remedies(decision, { codes }) {
  const { because, reason, namespace, annotationsLocation, namespaceLabeled } = decision;
  const isCalled = because !== null && because.reason !== "NotCalled";
  const lines = because ? null : annotationLines(annotationsLocation);
  const lacksLabel = !isCalled && namespaceLabeled === false &&
    (!because || because.message.includes("lacks the label"));
  const advice = lines ? `Add the annotation to ${annotationsLocation}, and create the pod again:`
    : (!because && annotationsLocation) || codes[because?.reason ?? reason]?.remedy;
  return [
    (!because || !lacksLabel) && advice && el("p", { class: "remedy" }, ...prose(advice)),
    lines && el("pre", { class: "lines" }, ...lines),
    lacksLabel && el("p", { class: "remedy" },
      "Create the pod in a namespace that has the label, or ask your cluster administrator to run:"),
    lacksLabel && el("pre", { class: "lines" },
      `kubectl label namespace ${namespace} ${OPT_IN}=true`),
    lacksLabel && el("p", {}, "Pods that exist already must be created again.")];
}

/** Write the annotation as YAML, with its parents; null if the place is none in a manifest.
 * @param {string} place */
function annotationLines(place) {
  const [path, ...rest] = place.split(" in ");
  if (!path.endsWith("annotations") || path.includes(" ")) return null;
  const keys = path.split(".");
  const known = keys.every((key) => /^[\w-]+$/.test(key)) && !rest.length;
  const parents = known ? keys : keys.slice(-2);
  return [...parents.map((key) => `${key}:`), `${OPT_IN}: "true"`]
    .flatMap((line, depth) => [`${"  ".repeat(depth)}${line}`, document.createElement("br")]);
}

/** List what the verdict takes for granted, without what the user has set.
 * @param {Decision} decision @param {Input} input */
function assumptionsPart({ because, called, calledBecause, namespace }, input) {
  if (!because) return null;
  const hasLabel = called && input.labeled && calledBecause.includes("label");
  const limited = input.limits.trim() || gives(input, "LimitRange") ||
    gives(input, "ResourceQuota");
  return el("div", { class: "soft assumptions" }, el("p", {}, "Assumed, and not checked:"),
    el("ul", {},
      hasLabel && el("li", {}, ...prose(
        `Namespace ${namespace} has the label ${OPT_IN}=true. To check, run `),
      el("code", {}, `kubectl get namespace ${namespace} -L ${OPT_IN}`)),
      !input.level && !gives(input, "Namespace") &&
        el("li", {}, "The namespace does not enforce Pod Security."),
      !limited && el("li", {}, "The namespace has no LimitRange or quota."),
      el("li", {}, "The nodes have what the fabrics say, and room for the pod.")));
}

/** Whether the pod would be right if the webhook were called, which it is not.
 * @param {Decision} decision */
const isFineIfCalled = ({ allowed, ifCalled }) =>
  ifCalled !== null && allowed && isFine(ifCalled.rdma);

/** Say what a called webhook would do.
 * @param {Decision} decision */
function sentenceIfCalled({ allowed, ifCalled }) {
  if (!ifCalled) return "";
  const verdict = allowed ? IF_CALLED[ifCalled.rdma] : "the pod would be denied";
  const [assumptions] = /, assuming .*$/.exec(ifCalled.message) ?? [""];
  const rest = ifCalled.rdma === "yes" ? assumptions : `: ${ifCalled.message}`;
  return `If the webhook were called, ${verdict}${rest}`;
}

/** List the warnings that the verdict does not repeat.
 * @param {Decision} decision @param {Preview} answer */
function warningsPart(decision, answer) {
  const { because, ifCalled, hint, mistakes, outcomes, message, reason } = decision;
  const unsaid = because ? [hint, ...mistakes] : mistakes.filter((text) => !aboutAnnotations(text));
  /** @type {[string, string][]} */
  const sentences = unsaid.map((sentence) => [sentence, ""]);
  if (ifCalled && !isFineIfCalled(decision)) {
    sentences.unshift([sentenceIfCalled(decision), ifCalled.rdma === "yes" ? "" : ifCalled.reason]);
  }
  const repeated = [because?.message, ifCalled?.message, hint].join();
  if (because && !repeated.includes(message)) sentences.push([message, reason]);
  const warned = outcomes.filter(({ status }) => status === "warned");
  for (const outcome of warned.filter((other) => other.reason !== because?.reason)) {
    const subject = [outcome.mutation, outcome.container].filter(Boolean).join(", container ");
    sentences.push([`${subject}: ${outcome.message}`, outcome.reason]);
  }
  const items = sentences.filter(([sentence]) => sentence).map(([sentence, code]) =>
    el("li", { class: "warning" }, ...prose(sentence), code && explains(code, sentence, answer) && codeLink(code)));
  return items.length > 0 && section("Warnings", el("ul", { class: "findings" }, ...items));
}

/** Return the causes whose codes may need an explanation, and whether the card has a link to it.
 * @param {Decision} decision @param {Preview} answer @param {Input} input
 * @returns {[Because, boolean][]} */
function causesOf(decision, answer, input) {
  const { because, rdma, reason, message, ifCalled, outcomes } = decision;
  const loud = outcomes.filter(({ status }) => status === "warned" || status === "failed");
  const own = message && { reason,
    message: because ? message : reasonOf(decision, answer, input) };
  return [because, ifCalled?.rdma === "yes" ? null : ifCalled, own, ...loud]
    .flatMap((cause) => (cause ? [[cause, cause === because && !isFine(rdma)]] : []));
}

// Links: the fragment has the input, compressed.

async function copyLink() {
  const stream = new Blob([JSON.stringify(readInput())]).stream();
  const compressed = new Response(stream.pipeThrough(new CompressionStream("deflate-raw")));
  const bytes = new Uint8Array(await compressed.arrayBuffer());
  if (bytes.length > MAX_LINK) return say("remark", WORDS.longLink);
  const code = btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_");
  history.replaceState(null, "", LINK_PREFIX + code.replaceAll("=", ""));
  const copied = navigator.clipboard?.writeText(location.href) ?? Promise.reject();
  await copied.then(() => say("remark", WORDS.copied), () => say("remark", WORDS.notCopied));
}

async function openLink() {
  if (location.hash.startsWith(LINK_PREFIX)) {
    await fillIn(location.hash.slice(LINK_PREFIX.length)).catch(() => say("remark", WORDS.badLink));
  }
  await preview(false);
}

/** Fill in the form from a link; throw if it is damaged.
 * @param {string} code */
async function fillIn(code) {
  if (code.length > 2 * MAX_LINK) throw new RangeError("longer than any link");
  const binary = atob(code.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const input = await new Response(stream).json();
  for (const box of [textBox, namespace, level, limitsBox]) box.value = String(input[box.id]);
  namespace.dataset.typed = namespace.value === "default" ? "" : "yes";
  for (const box of [labeled, enable]) box.checked = input[box.id] === true;
}

// Events.
/** Forget the link and the remark, which are about another input. */
function changed() {
  if (location.hash) history.replaceState(null, "", location.pathname + location.search);
  say("remark", "");
}

/** Preview another text, without assuming that a pod of it has opted in.
 * @param {string} text */
function replaceText(text) {
  enable.checked = false;
  useText(text);
}

/** @param {string} text */
function useText(text) {
  textBox.value = text;
  changed();
  preview(true);
}

/** @param {File[]} files */
async function useFiles(files) {
  clearTimeout(timer); // choosing files is an input, too, but the text has not changed yet
  if (new Blob(files).size > MAX_BYTES) return showProblem(WORDS.tooLarge);
  replaceText((await Promise.all(files.map((file) => file.text()))).join("\n---\n"));
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  preview(true);
});
form.addEventListener("input", () => {
  changed();
  clearTimeout(timer);
  timer = setTimeout(() => preview(false), TYPING_PAUSE);
});
namespace.addEventListener("input", () => { namespace.dataset.typed = namespace.value.trim(); });
textBox.addEventListener("paste", (event) => {
  const text = event.clipboardData?.getData("text/plain") ?? "";
  const { selectionStart: start, selectionEnd: end, value } = textBox;
  if (start === 0 && end === value.length) enable.checked = false;
  // The preview that follows the input would not scroll to the verdict.
  if (text.length < MAX_LINK) return void setTimeout(() => preview(true));
  event.preventDefault(); // chromium would take minutes for a long text
  textBox.setRangeText(text, start, end, "end");
  useText(textBox.value);
});
addEventListener("keydown", ({ key, ctrlKey, metaKey }) => {
  if (key === "Enter" && (ctrlKey || metaKey)) form.requestSubmit();
  document.body.classList.toggle("no-tips", key === "Escape");
});
/** @type {EventTarget | null} */
let lastBelowPointer = null;
addEventListener("mousemove", ({ target }) => {
  // Unlike mouseover, this is not sent when the page scrolls below a pointer at rest.
  if (target !== lastBelowPointer) document.body.classList.remove("no-tips");
  lastBelowPointer = target;
});
byId("file").addEventListener("change", ({ target }) => {
  const box = /** @type {HTMLInputElement} */ (target);
  useFiles([...(box.files ?? [])]);
  box.value = "";
});
for (const [id, source] of [["example", "example-text"], ["first-example", "example-text"],
  ["lacking", "lacking-text"], ["first-lacking", "lacking-text"]]) {
  byId(id).addEventListener("click", () => replaceText(byId(source).textContent ?? ""));
}
byId("copy").addEventListener("click", copyLink);
byId("fabrics").addEventListener("toggle", async () => {
  const answer = fetch("fabrics?output=text").then(async (response) => (response.ok
    ? fabricsPart(await response.text()) : el("p", {}, (await response.text()).trim())));
  byId("amounts").replaceChildren(await answer.catch(() => WORDS.unreachable));
});
for (const type of ["dragover", "dragleave", "drop"]) {
  addEventListener(type, (event) => {
    const { dataTransfer } = /** @type {DragEvent} */ (event);
    if (!dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    form.classList.toggle("dropping", type === "dragover");
    if (type === "drop") useFiles([...dataTransfer.files]);
  });
}
addEventListener("hashchange", openLink);
/** @type {HTMLDetailsElement} */ (byId("options")).open = matchMedia("(min-width: 62rem)").matches;
openLink();
