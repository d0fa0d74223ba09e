// The view "city": the same drawing as the page that `thalweg mobility run --plot` draws.

import { askJson, problemsOf } from "./api.js";
import { el, list } from "./dom.js";
import { showCity } from "./city.js";

/** The frame of the drawing, with names of its own among those of this page. */
async function frame() {
  const answer = await fetch("/static/city.html");
  if (!answer.ok) throw new Error("The drawing of the city is not there.");
  const read = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const made of read.body.querySelectorAll("[id]")) made.id = `city-${made.id}`;
  for (const made of read.body.querySelectorAll("[aria-labelledby]"))
    made.setAttribute("aria-labelledby", `city-${made.getAttribute("aria-labelledby")}`);
  return [...read.body.childNodes].map((node) => document.adoptNode(node));
}

export class CityView {
  constructor(store, { at = null }) {
    this.at = at;
    this.root = el("div", { class: "city", id: "city" }, el("p", { class: "soft", text: "Loading…" }));
    this.load(store.subject);
  }

  async load(subject) {
    try {
      const [data, parts] = await Promise.all([askJson(`subjects/${encodeURIComponent(subject.id)}/city`), frame()]);
      if (this.stopped) return;
      this.root.replaceChildren(...parts);
      this.city = showCity(data, (name) => this.root.querySelector(`#city-${name}`), {
        // In the middle there is more to be seen than at the beginning.
        at_s: this.at ?? data.start_s + (data.ticks * data.tick_s) / 2,
      });
      this.repaint = () => this.city.redraw();
      document.addEventListener("theme", this.repaint);
    } catch (error) {
      this.root.replaceChildren(list(problemsOf(error), { class: "problems", role: "alert" }));
    }
  }

  update() {}

  stop() {
    this.stopped = true;
    if (this.repaint) document.removeEventListener("theme", this.repaint);
    this.city?.stop();
  }
}
