// @ts-check
/// <reference path="../page_types.d.ts" />
// Post the text to `preview` and show the answer. The server parses, decides and compares; this
// module builds nodes. Every text goes through `visible` into a text node, never into markup.

const MAX_BYTES = 8 << 20; // as the server
const MAX_LINK = 64 << 10; // mail and chat programs cut longer addresses
const MAX_SHOWN = 2000; // rows or notes, and characters of a line
const TYPING_PAUSE = 400; // milliseconds
const LINK_PREFIX = "#input=";
/** The sign and the tone of a headline. @type {Record<string, string[]>} */
const SIGNS = {
  "equipped for RDMA": ["✔", "yes"], "no RDMA": ["✘", "no"], denied: ["✘", "no"],
  "RDMA not certain": ["?", "unsure"], launcher: ["○", "none"], "not opted in": ["○", "none"],
};
/** The verdict that a called webhook would give. @type {Record<string, string>} */
const IF_CALLED = {
  yes: "the pod would be equipped for RDMA", no: "the pod would have no RDMA",
  unsure: "RDMA would not be certain", none: "the pod would be a launcher",
};
const WORDS = {
  tooLarge: "The text is larger than 8 MiB. Send it in parts, such as one namespace at a time.",
  unreachable: "The server does not answer. Is it still running, and the port-forward to it?",
  foreign: "The answer is not from rdma-webhook. Check the address of this page.",
  example: "These are example fabrics, not yours: this server was started without fabrics.",
  noPods: "The input has neither pods nor pod templates.",
  badLink: "The link to this page is damaged or incomplete, so its text could not be read.",
  longLink: "The text is too long for a link. Send the file instead.",
  copied: "The link is copied. Everyone who has it can read the text.",
  notCopied: "The link is in the address bar. Everyone who has it can read the text.",
  notEdited: "The text stays as it is: the webhook changes the pod at admission.",
};
// As in webhook/text/escape.py: what cannot be printed, and what is invisible all the same.
const INVISIBLE = new RegExp(
  "(?! )[\\p{C}\\p{Z}]|[\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u2800\\u3164" +
  "\\ufe00-\\ufe0f\\uffa0\\u{1d173}-\\u{1d17a}\\u{e0100}-\\u{e01ef}]", "gu");
/** Escape invisible characters, such as marks of the direction of text. @param {string} text */
const visible = (text) => text.replace(INVISIBLE, (character) => {
  if ("\t\n\r".includes(character)) return JSON.stringify(character).slice(1, -1);
  const digits = (character.codePointAt(0) ?? 0).toString(16);
  if (digits.length <= 2) return `\\x${digits.padStart(2, "0")}`;
  return digits.length <= 4 ? `\\u${digits.padStart(4, "0")}` : `\\U${digits.padStart(8, "0")}`;
});

/** @template {keyof HTMLElementTagNameMap} T @param {T} tag @param {Record<string, string>}
 * attributes @param {Child[]} children @returns {HTMLElementTagNameMap[T]} */
function el(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  for (const child of children) {
    if (child) element.append(typeof child === "string" ? visible(child) : child);
  }
  return element;
}

/** @param {string} label @param {() => void} act @param {string} kind */
function button(label, act, kind = "") {
  const element = el("button", { type: "button", class: kind }, label);
  element.addEventListener("click", act);
  return element;
}

/** @param {number} n @param {string} noun */
const counted = (n, noun) => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
/** @param {string} title @param {Child[]} rest */
const section = (title, ...rest) => el("section", {}, el("h3", {}, title), ...rest);
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
 * that a missing label is missing, and not assumed. @param {Input} input */
function previewAddress(input) {
  const known = input.labeled ? "rdma.lab/enable=true"
    : `kubernetes.io/metadata.name=${input.namespace}`;
  const query = new URLSearchParams({ namespace: input.namespace, "namespace-label": known });
  const label = `pod-security.kubernetes.io/enforce=${input.level}`;
  if (input.level) query.append("namespace-label", label);
  return `preview?${query}&enable=${input.enable}`;
}

/** Request a preview of the form's input, and show it. @param {boolean} explicit */
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

/** Select a line from a column on, both counted from 1. @param {HTMLTextAreaElement} box
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
    return `${nameOf(decisions[index])}: ${decisions[index].headline}`;
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

/** Make a list of radio buttons, so that arrow keys choose a pod. @param {string} summary
 * @param {Decision[]} decisions @param {(index: number) => string} choose */
function podList(summary, decisions, choose) {
  const labels = decisions.map((decision, index) => {
    const [sign, tone] = SIGNS[decision.headline];
    const radio = el("input", { type: "radio", name: "pod" });
    radio.checked = index === 0;
    radio.addEventListener("change", () => say("announcement", choose(index)));
    return el("label", { class: tone }, radio,
      el("span", { class: "sign", "aria-hidden": "true" }, sign),
      el("span", {}, nameOf(decision)), el("span", { class: "verdict" }, decision.headline));
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
  return el("div", { class: "parts" }, verdictPart(decision, answer),
    answer.example && el("p", { class: "problem" }, WORDS.example), warningsPart(decision),
    changesPart(answer, index, input), outcomesPart(decision), codesPart(decision, answer));
}

/** @param {string[]} sign @param {string} headline @param {string} who @param {Child[]} rest */
const card = ([sign, tone], headline, who, ...rest) => el("div", { class: `card ${tone}` },
  who && el("p", { class: "who" }, who), el("span", { class: "sign", "aria-hidden": "true" }, sign),
  el("h2", {}, el("span", { class: "headline" }, headline)), ...rest);

/** @param {Decision} decision @param {Preview} answer */
function verdictPart(decision, answer) {
  const { because, controller, derived, evidence, fabric, headline, ifCalled, rdma } = decision;
  const code = because?.reason ?? decision.reason;
  const over = because && fabric && !ifCalled ? ` over ${fabric}` : "";
  const fine = rdma === "yes" || rdma === "none";
  const remedy = fine ? "" : answer.codes[code]?.remedy;
  const origin = derived ? " · derived; an operator makes it"
    : controller && ` · as ${controller} creates it`;
  const optIn = () => {
    enable.checked = true;
    useText(textBox.value);
  };
  return card(SIGNS[headline], headline + over, nameOf(decision) + origin,
    over && evidence && el("p", { class: "soft" }, `Evidence: ${evidence}`),
    el("p", { class: "reason" }, because?.message ?? decision.message, !fine && codeLink(code)),
    remedy && el("p", { class: "remedy" }, remedy),
    !because && el("p", { class: "actions" }, button("Preview as if it had opted in", optIn)));
}

/** Make a button that leads to a code's explanation: the address's fragment is for the input.
 * @param {string} code */
const codeLink = (code) => el("span", {}, " ", button(code, () => {
  const target = byId(`code-${code}`);
  target.closest("details")?.setAttribute("open", "");
  target.focus();
}, "link mono"));

/** @param {Decision} decision */
function warningsPart({ because, ifCalled, hint, mistakes, outcomes, message, allowed, reason }) {
  /** @type {[string, string][]} */
  const sentences = [hint, ...mistakes].map((sentence) => [sentence, ""]);
  if (ifCalled) {
    const verdict = allowed ? IF_CALLED[ifCalled.rdma] : "the pod would be denied";
    const [assumptions] = /, assuming .*$/.exec(ifCalled.message) ?? [""];
    const rest = ifCalled.rdma === "yes" ? assumptions : `: ${ifCalled.message}`;
    sentences.unshift([`if the webhook were called, ${verdict}${rest}`, ifCalled.reason]);
  }
  const repeated = [because?.message, ifCalled?.message, hint].join();
  if (because && !repeated.includes(message)) sentences.push([message, reason]);
  for (const outcome of outcomes.filter(({ status }) => status === "warned")) {
    const subject = [outcome.mutation, outcome.container].filter(Boolean).join(", container ");
    sentences.push([`${subject}: ${outcome.message}`, outcome.reason]);
  }
  const items = sentences.filter(([sentence]) => sentence).map(([sentence, code]) =>
    el("li", {}, sentence, code && codeLink(code)));
  return items.length > 0 && section("Warnings", el("ul", { class: "warnings" }, ...items));
}

/** @param {Decision} decision */
function outcomesPart({ outcomes }) {
  const done = outcomes.filter(({ status }) => status !== "skipped" && status !== "warned");
  const skipped = outcomes.filter(({ status }) => status === "skipped");
  const names = [...new Set(skipped.map(({ mutation }) => mutation))].join(", ");
  return outcomes.length > 0 && section("What the webhook does", outcomeList(done),
    names && el("details", { class: "quiet" },
      el("summary", {}, `Nothing to do or skipped: ${names}`), outcomeList(skipped)));
}

/** Merge equal outcomes of several containers. @param {Outcome[]} outcomes */
function outcomeList(outcomes) {
  /** @param {Outcome} outcome */
  const key = ({ mutation, status, message }) => [mutation, status, message].join("\n");
  const items = [...Map.groupBy(outcomes, key).values()].map((group) => {
    const [{ mutation, status, message, reason }] = group;
    const containers = group.map(({ container }) => container).filter(Boolean).join(", ");
    return el("li", {}, el("span", { class: status }, status === "already" ? "unchanged" : status),
      el("code", {}, mutation === "request" ? "pod" : mutation),
      el("span", {}, message, containers && el("span", { class: "soft" }, ` · ${containers}`),
        status === "failed" && codeLink(reason)));
  });
  return el("ul", { class: "outcomes" }, ...items);
}

/** @param {Decision} decision @param {Preview} answer */
function codesPart({ because, reason, message, ifCalled, outcomes }, { codes }) {
  const loud = outcomes.filter(({ status }) => status === "warned" || status === "failed");
  const own = message ? { reason } : null;
  const named = [because, ifCalled, own, ...loud].map((cause) => cause?.reason);
  const rows = [...new Set(named)].flatMap((code) => (code && codes[code] ? [
    el("dt", { id: `code-${code}`, tabindex: "-1" }, code),
    el("dd", {}, Object.values(codes[code].meanings).join(" ")),
    codes[code].remedy && el("dd", { class: "remedy" }, codes[code].remedy)] : []));
  return el("details", {}, el("summary", {}, el("h3", {}, "What the codes mean")), el("dl", {}, ...rows));
}

// Before and after.

/** Whether it changes lines of a pod, or of any. @param {Hunk} hunk @param {number} index */
const touches = ({ rows }, index) => rows.some(({ kind, reasons }) => kind !== "same" &&
  (!reasons.length || reasons.some(({ decision }) => decision === index)));

/** @param {Preview} answer @param {number} index @param {Input} input */
function changesPart(answer, index, { text }) {
  const hunks = answer.changes.flatMap((change) => change.hunks);
  const title = "Before and after";
  if (!hunks.some((hunk) => touches(hunk, index))) {
    return answer.decisions[index].outcomes.some(({ status }) => status === "applied") &&
      section(title, el("p", { class: "soft" }, WORDS.notEdited));
  }
  const table = el("div", { class: "rows", role: "table", "aria-label": title });
  const more = el("p", {});
  fill(table, more, [...rowMakers(hunks, index, text.replace(/\n$/, "").split("\n"), answer)]);
  return section(title, table, more);
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
    cell("before", kind === "same" ? "code" : "del", before, numbers[0], []),
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
      el(tag, {}, text.slice(0, MAX_SHOWN)),
      hidden > 0 && el("span", { class: "soft" }, `… ${counted(hidden, "more character")}`)));
}

let chips = 0;
/** Name a mutation, and on focus what it did. @param {RowReason} reason @param {Preview} answer */
function chip({ decision, mutation, container }, answer) {
  const outcome = answer.decisions[decision].outcomes.find((other) => other.status === "applied" &&
    other.mutation === mutation && other.container === container);
  const id = `chip-${++chips}`;
  const name = button(mutation, () => name.focus());
  name.setAttribute("aria-describedby", id);
  return el("span", { class: "chip" }, name,
    el("span", { class: "tip", role: "tooltip", id }, outcome?.message ?? mutation));
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

/** Fill in the form from a link; throw if it is damaged. @param {string} code */
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

/** @param {string} text */
function useText(text) {
  textBox.value = text;
  changed();
  preview(true);
}

/** @param {File[]} files */
async function useFiles(files) {
  if (new Blob(files).size > MAX_BYTES) return showProblem(WORDS.tooLarge);
  useText((await Promise.all(files.map((file) => file.text()))).join("\n---\n"));
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
  if (text.length < MAX_LINK) return; // chromium would take minutes for a long one
  event.preventDefault();
  textBox.setRangeText(text, textBox.selectionStart, textBox.selectionEnd, "end");
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
const useExample = () => useText(byId("example-text").textContent ?? "");
for (const id of ["example", "first-example"]) byId(id).addEventListener("click", useExample);
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
