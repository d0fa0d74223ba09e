// The view "results": stored tables (their first rows) and pictures.

import { ask, askJson, problemsOf } from "./api.js";
import { el, list, table } from "./dom.js";
import { plain } from "./format.js";

const write = (value) =>
  value === null || value === undefined ? "–" : typeof value === "number" ? (Number.isInteger(value) ? value.toLocaleString("en") : plain(value)) : String(value);

/** What it is; a long text can be unfolded. */
function aboutOf(text) {
  if (!text) return null;
  if (text.length < 400) return el("p", { class: "about", text });
  const [first, ...rest] = text.split("\n");
  return el("details", { class: "fold" }, el("summary", { text: first.length < 120 ? first : `${first.slice(0, 100)}…` }),
    el("div", {}, el("pre", { tabindex: "0", text: first.length < 120 ? rest.join("\n") : text })));
}

export class ResultsView {
  constructor(store) {
    this.path = `subjects/${encodeURIComponent(store.subject.id)}`;
    this.root = el("div", { class: "results-view" }, el("p", { class: "soft", text: "Loading…" }));
    this.addresses = [];
    this.load();
  }

  async load() {
    try {
      const { text, tables = [], images = [] } = await askJson(`${this.path}/results`);
      this.root.replaceChildren(...[
        aboutOf(text || ""), images.length ? el("div", { class: "pictures" }, images.map((name) => this.picture(name))) : null,
        ...tables.map((of) => this.sheet(of)),
      ].filter(Boolean));
      if (!tables.length && !images.length) this.root.append(el("p", { class: "soft", text: "There is nothing in it yet." }));
    } catch (error) {
      this.root.replaceChildren(list(problemsOf(error), { class: "problems", role: "alert" }));
    }
  }

  sheet({ name, columns, rows, total }) {
    const heads = columns.map((column, k) => ({ name: column, number: rows.length > 0 && rows.every((row) => row[k] === null || typeof row[k] === "number" || row[k] === "inf") }));
    const shown = total > rows.length ? `the first ${rows.length.toLocaleString("en")} of ${total.toLocaleString("en")} rows` : `${rows.length.toLocaleString("en")} rows`;
    return el("section", { class: "sheet", data: { table: name } }, el("h2", {}, name, el("span", { class: "soft small", text: ` ${shown}` })),
      table(name, heads, rows.map((row) => row.map((value) => (value === "inf" ? "∞" : write(value))))));
  }

  picture(name) {
    const box = el("figure", { class: "picture", data: { image: name } }, el("figcaption", { class: "soft small", text: name }));
    ask(`${this.path}/images/${encodeURIComponent(name)}`).then((answer) => answer.blob()).then((blob) => {
      const address = URL.createObjectURL(blob);
      this.addresses.push(address);
      box.prepend(el("img", { src: address, alt: `Figure ${name}` }));
    }).catch((error) => box.append(list(problemsOf(error), { class: "problems" })));
    return box;
  }

  update() {}

  stop() { for (const address of this.addresses) URL.revokeObjectURL(address); }
}
