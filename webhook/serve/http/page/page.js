// @ts-check
/// <reference path="../page_types.d.ts" />
// Post the text to `preview` and show the answer. The server parses, decides and compares.

import { MAX_SHOWN, button, changesPart, counted, el, prose, section, visible } from "./rows.js";

const MAX_BYTES = 8 << 20; // as the server
const MAX_LINK = 64 << 10; // mail and chat programs cut longer addresses
const TYPING_PAUSE = 400; // milliseconds
const OPT_IN = "rdma.lab/enable";
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
/** @returns {Input} */
const readInput = () => ({ text: textBox.value, namespace: namespace.value.trim() || "default",
  labeled: labeled.checked, enable: enable.checked, level: level.value, limits: limitsBox.value });

/** Return the address of a preview. A label that each namespace has makes its labels known, so
 * that a missing label is missing, and not assumed.
 * @param {Input} input */
function previewAddress(input) {
  const known = input.labeled ? "rdma.lab/enable=true"
    : `kubernetes.io/metadata.name=${input.namespace}`;
  const query = new URLSearchParams({ namespace: input.namespace, "namespace-label": known });
  const label = `pod-security.kubernetes.io/enforce=${input.level}`;
  if (input.level) query.append("namespace-label", label);
  return `preview?${query}&enable=${input.enable}`;
}

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
  if (answer) showAnswer(answer.response, answer.text, input);
  else showProblem(WORDS.unreachable, button("Try again", () => preview(true)));
  if (explicit) result.scrollIntoView({ block: "nearest" });
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
  const { length } = lines[line - 1];
  box.closest("details")?.setAttribute("open", "");
  box.focus();
  box.setSelectionRange(start + Math.min(column - 1, length), start + length);
  box.scrollTop = (line - 3) * parseFloat(getComputedStyle(box).lineHeight);
}

// The states of the result.
/** @param {string} spoken @param {Child[]} parts */
function show(spoken, ...parts) {
  result.replaceChildren(el("div", {}, ...parts));
  result.setAttribute("aria-busy", "false");
  say("announcement", spoken);
}

/** @param {string} sentence @param {Child} remedy */
const showProblem = (sentence, remedy = null) => show(sentence, card(["!", "no"], "No preview", "",
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
    outcomesPart(decision, answer), codesPart(decision, answer));
}

/** Say that the fabrics are an example, and how to use others.
 * @param {Preview} answer */
const examplePart = ({ example, exampleFabrics }) => example && el("p", { class: "problem" },
  ...prose(`These are example fabrics (${exampleFabrics}), not yours. ${WORDS.aFabric}`),
  el("code", {}, "rdma-webhook preview --page -c fabrics.yaml"));

/** @param {string[]} sign @param {string} headline @param {string} who @param {Child[]} rest */
const card = ([sign, tone], headline, who, ...rest) => el("div", { class: `card ${tone}` },
  who && el("p", { class: "who" }, who), el("span", { class: "sign", "aria-hidden": "true" }, sign),
  el("h2", {}, el("span", { class: "headline" }, ...prose(headline))), ...rest);

/** @param {Decision} decision @param {Preview} answer @param {Input} input */
function verdictPart(decision, answer, input) {
  const { because, controller, derived, evidence, fabric, headline, ifCalled, rdma } = decision;
  const fine = rdma === "yes" || rdma === "none";
  const over = fabric && because && rdma !== "no" ? ` over ${fabric}` : "";
  const origin = derived ? " · derived; an operator makes it"
    : controller && ` · as ${controller} creates it`;
  const reason = reasonOf(decision, answer);
  return card(SIGNS[headline], headlineOf(decision) + over, nameOf(decision) + origin,
    decision.optInAssumed && el("p", { class: "assumed" }, ...prose(WORDS.asIfOptedIn)),
    el("p", { class: "reason" }, ...prose(reason),
      !fine && codeLink(because?.reason ?? decision.reason, reason, answer)),
    ...(fine ? [] : remedies(decision, answer)),
    because && !ifCalled && fabric && el("p", { class: "soft" },
      ...prose(`Fabric ${fabric}${evidence && `, because of ${evidence}`}`)),
    assumedLabel(decision, input),
    !because && el("p", { class: "actions" }, button("Preview as if it had opted in", () => {
      enable.checked = true;
      useText(textBox.value);
    })));
}

/** Say why, and of a pod that has not opted in, why in spite of an apparent attempt.
 * @param {Decision} decision @param {Preview} answer */
function reasonOf({ because, message, hint, mistakes, namespace, namespaceLabeled }, { example }) {
  if (because) {
    const { message: sentence } = because;
    return example ? sentence.replace("no fabric lists", "none of these example fabrics lists")
      : sentence;
  }
  const cause = [hint, ...mistakes.filter(aboutAnnotations)].filter(Boolean).join("; ") || message;
  return namespaceLabeled === false
    ? `${cause}; and namespace ${namespace} lacks the label ${OPT_IN}=true` : cause;
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
      "Label the namespace, or create the pod in a namespace that has the label:"),
    lacksLabel && el("pre", { class: "lines" },
      `kubectl label namespace ${namespace} ${OPT_IN}=true`)];
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

/** Say that the label of the namespace is assumed.
 * @param {Decision} decision
 * @param {Input} input */
const assumedLabel = ({ because, called, calledBecause, namespace }, input) =>
  because && called && input.labeled && calledBecause.includes("label") &&
  el("p", { class: "soft" }, ...prose(
    `Namespace ${namespace} is assumed to have the label ${OPT_IN}=true. To check, run `),
  el("code", {}, `kubectl get namespace ${namespace} --show-labels`));

/** Make a button that leads to a code's explanation, if that adds anything to a text: the
 * address's fragment is for the input.
 * @param {string} code @param {string} text @param {Preview} answer */
const codeLink = (code, text, answer) => explains(code, text, answer) && el("span", {}, " ",
  button(code, () => {
    const target = byId(`code-${code}`);
    target.closest("details")?.setAttribute("open", "");
    target.focus();
  }, "link mono"));

/** Whether the meanings of a code have more than a long word that a text lacks.
 * @param {string} code @param {string} text @param {Preview} answer */
function explains(code, text, { codes }) {
  const words = Object.values(codes[code]?.meanings ?? {}).join(" ").match(/[\w/]{4,}/g) ?? [];
  const known = text.toLowerCase();
  return new Set(words.filter((word) => !known.includes(word.toLowerCase()))).size > 1;
}

/** List the warnings that the verdict does not repeat.
 * @param {Decision} decision @param {Preview} answer */
function warningsPart(decision, answer) {
  const { because, ifCalled, hint, mistakes, outcomes, message, allowed, reason } = decision;
  const unsaid = because ? [hint, ...mistakes] : mistakes.filter((text) => !aboutAnnotations(text));
  /** @type {[string, string][]} */
  const sentences = unsaid.map((sentence) => [sentence, ""]);
  if (ifCalled) {
    const verdict = allowed ? IF_CALLED[ifCalled.rdma] : "the pod would be denied";
    const [assumptions] = /, assuming .*$/.exec(ifCalled.message) ?? [""];
    const rest = ifCalled.rdma === "yes" ? assumptions : `: ${ifCalled.message}`;
    const code = ifCalled.rdma === "yes" ? "" : ifCalled.reason;
    sentences.unshift([`if the webhook were called, ${verdict}${rest}`, code]);
  }
  const repeated = [because?.message, ifCalled?.message, hint].join();
  if (because && !repeated.includes(message)) sentences.push([message, reason]);
  const warned = outcomes.filter(({ status }) => status === "warned");
  for (const outcome of warned.filter((other) => other.reason !== because?.reason)) {
    const subject = [outcome.mutation, outcome.container].filter(Boolean).join(", container ");
    sentences.push([`${subject}: ${outcome.message}`, outcome.reason]);
  }
  const items = sentences.filter(([sentence]) => sentence).map(([sentence, code]) =>
    el("li", { class: "warning" }, ...prose(sentence), code && codeLink(code, sentence, answer)));
  return items.length > 0 && section("Warnings", el("ul", { class: "findings" }, ...items));
}

/** @param {Decision} decision @param {Preview} answer */
function outcomesPart({ outcomes }, answer) {
  const done = outcomes.filter(({ status }) => status !== "skipped" && status !== "warned");
  const skipped = outcomes.filter(({ status }) => status === "skipped");
  const names = [...new Set(skipped.map(({ mutation }) => mutation))].join(", ");
  return outcomes.length > 0 && section("What the webhook would do", outcomeList(done, answer),
    names && el("details", { class: "quiet" },
      el("summary", {}, `Nothing to do or skipped: ${names}`), outcomeList(skipped, answer)));
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
    return el("li", {}, el("span", { class: status }, status === "already" ? "unchanged" : status),
      el("code", {}, mutation === "request" ? "pod" : mutation),
      el("span", {}, ...prose(message),
        containers && el("span", { class: "soft" }, ` · ${containers}`),
        status === "failed" && codeLink(reason, message, answer)));
  });
  return el("ul", { class: "outcomes" }, ...items);
}

/** @param {Decision} decision @param {Preview} answer */
function codesPart(decision, answer) {
  const { because, reason, message, ifCalled, outcomes } = decision;
  const loud = outcomes.filter(({ status }) => status === "warned" || status === "failed");
  const own = message ? { reason, message: because ? message : reasonOf(decision, answer) } : null;
  const verdict = ifCalled?.rdma === "yes" ? null : ifCalled;
  const named = [because, verdict, own, ...loud].flatMap((cause) => cause ?? [])
    .filter((cause) => explains(cause.reason, cause.message, answer)).map((cause) => cause.reason);
  const rows = [...new Set(named)].flatMap((code) => [
    el("dt", { id: `code-${code}`, tabindex: "-1" }, code),
    el("dd", {}, ...prose([...new Set(Object.values(answer.codes[code].meanings))].join(" "))),
    answer.codes[code].remedy &&
      el("dd", { class: "remedy" }, ...prose(answer.codes[code].remedy))]);
  return rows.length > 0 && el("details", {},
    el("summary", {}, el("h3", {}, "What the codes mean")), el("dl", {}, ...rows));
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
  for (const box of [labeled, enable]) box.checked = input[box.id] === true;
}

// Events.
/** Forget the link and the remark, which are about another input. */
function changed() {
  if (location.hash) history.replaceState(null, "", location.pathname + location.search);
  say("remark", "");
}

/** Preview another text, of which no pod is taken to have opted in.
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
addEventListener("mouseover", () => document.body.classList.remove("no-tips"));
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
    ? response.text() : el("span", { class: "sentence" }, (await response.text()).trim())));
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
