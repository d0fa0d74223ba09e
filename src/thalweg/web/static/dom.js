// Elements made by hand: text goes in as text, so that names from files never become markup.

const SVG = "http://www.w3.org/2000/svg";

function dress(made, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") made.textContent = String(value);
    else if (name === "on") for (const [event, act] of Object.entries(value)) made.addEventListener(event, act);
    else if (name === "data") for (const [key, given] of Object.entries(value)) made.setAttribute(`data-${key}`, String(given));
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) made.append(child);
  return made;
}

/** An element with attributes; `text`, `on` (events) and `data` (data attributes) are special. */
export const el = (tag, props = {}, ...children) => dress(document.createElement(tag), props, children);

export const svg = (tag, props = {}, ...children) =>
  dress(document.createElementNS(SVG, tag), props, children);

export const byId = (id) => document.getElementById(id);

/** Writes only what is new: the browser then has nothing to lay out again. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function set(node, name, value) {
  if (value === null || value === false) { if (node.hasAttribute(name)) node.removeAttribute(name); return; }
  const text = value === true ? "" : String(value);
  if (node.getAttribute(name) !== text) node.setAttribute(name, text);
}

/** A table with a caption that only screen readers read; cells are texts or elements. */
export function table(caption, columns, rows, props = {}) {
  const head = columns.map((column) => {
    const { name, number = false } = typeof column === "string" ? { name: column } : column;
    return el("th", { scope: "col", class: number ? "number" : null, text: name });
  });
  const numeric = columns.map((column) => typeof column === "object" && column.number);
  const cell = (value, k) => {
    const made = el(k === 0 ? "th" : "td", { scope: k === 0 ? "row" : null, class: numeric[k] ? "number" : null });
    made.append(value instanceof Node ? value : String(value ?? ""));
    return made;
  };
  const body = rows.map((row) => el("tr", {}, row.map(cell)));
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", props, el("caption", { class: "hidden", text: caption }),
      el("thead", {}, el("tr", {}, head)), el("tbody", {}, body)));
}

/** The lines as a list, or nothing where there is none. */
export const list = (lines, props = {}) =>
  lines.length ? el("ul", props, lines.map((line) => el("li", { text: line }))) : null;
