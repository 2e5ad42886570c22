// @ts-check
/// <reference path="../page_types.d.ts" />
// The fabrics of the server: a text with aligned columns, as on the command line, becomes a table.

import { el } from "./rows.js";

const GAP = 2; // spaces between columns, at least

/** Show the server's text; one without columns stays as it is.
 * @param {string} text @returns {HTMLElement} */
export function fabricsPart(text) {
  const [heading, ...lines] = text.split("\n");
  const starts = [...heading.matchAll(/\S+(?: \S+)*/g)].map(({ index }) => index ?? 0);
  const other = lines.findIndex((line) => !isRow(line, starts));
  const end = other < 0 ? lines.length : other;
  const rows = lines.slice(0, end).map((line) => cellsOf(line, starts));
  if (starts.length === 1 || !rows.length) {
    const pre = el("pre", {});
    pre.textContent = text; // the server has escaped it
    return pre;
  }
  return el("div", {}, el("table", {},
    el("thead", {}, el("tr", {}, ...cellsOf(heading, starts).map((cell) =>
      el("th", { scope: "col" }, cell)))),
    el("tbody", {}, ...joined(rows).map(([name, ...cells]) => el("tr", {},
      el("th", { scope: "row" }, name), ...cells.map((cell) => el("td", {}, cell)))))),
  ...lines.slice(end).filter(Boolean).map((line) => el("p", {}, line)));
}

/** Whether a line has a gap before each column but the first.
 * @param {string} line @param {number[]} starts */
const isRow = (line, starts) => line.trim() !== "" &&
  starts.slice(1).every((start) => line.slice(start - GAP, start).trim() === "");

/** @param {string} line @param {number[]} starts */
const cellsOf = (line, starts) =>
  starts.map((start, column) => line.slice(start, starts[column + 1]).trim());

/** Append a line without a name, which goes on with the cells of the last row, to that row.
 * @param {string[][]} rows */
const joined = (rows) => rows.reduce((whole, row) => {
  const last = whole.at(-1);
  return row[0] || !last ? [...whole, row]
    : [...whole.slice(0, -1), last.map((cell, column) => `${cell} ${row[column]}`.trim())];
}, /** @type {string[][]} */ ([]));
