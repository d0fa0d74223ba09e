// Tabs as the ARIA practices have them: one is in the order of focus, arrows go to the others.

import { el, set } from "./dom.js";

export class Tabs {
  constructor(root, names, onChoose) {
    Object.assign(this, { root, names, onChoose });
    root.addEventListener("keydown", (event) => {
      const all = [...root.children], at = all.indexOf(document.activeElement);
      const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: all.length - 1 }[event.key];
      if (at < 0 || to === undefined) return;
      event.preventDefault();
      const next = all[(to + all.length) % all.length];
      next.focus();
      next.click();
    });
  }

  show(views, chosen) {
    this.root.replaceChildren(...views.map((name) => el("button", {
      type: "button", role: "tab", id: `tab-${name}`, "aria-controls": "panel", data: { tab: name },
      text: this.names[name] || name, on: { click: () => { this.choose(name); this.onChoose(name); } },
    })));
    this.choose(chosen);
  }

  choose(chosen) {
    for (const tab of this.root.children) {
      const mine = tab.dataset.tab === chosen;
      set(tab, "aria-selected", mine ? "true" : "false");
      set(tab, "tabindex", mine ? "0" : "-1");
    }
  }
}
