// A question that must be answered before something is moved.

import { el } from "./dom.js";

const MOST_ITEMS = 60;

/** Resolves with whether the reader said yes; closing it in any other way is a no. */
export function confirmed({ title, lines, items = [], confirm, id }) {
  return new Promise((answer) => {
    const yes = el("button", { type: "button", class: "primary danger", id, text: confirm });
    const no = el("button", { type: "button", id: "confirm-cancel", text: "Cancel" });
    const more = items.length > MOST_ITEMS ? [el("li", { class: "soft", text: `and ${items.length - MOST_ITEMS} more` })] : [];
    const dialog = el("dialog", { class: "confirm", "aria-labelledby": "confirm-title" },
      el("h2", { id: "confirm-title", text: title }), lines.map((text) => el("p", { text })),
      items.length ? el("ul", { class: "items" }, items.slice(0, MOST_ITEMS).map((text) => el("li", { text })), more) : null,
      el("div", { class: "row end" }, no, yes));
    let wanted = false;
    yes.addEventListener("click", () => { wanted = true; dialog.close(); });
    no.addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => { dialog.remove(); answer(wanted); });
    document.body.append(dialog);
    dialog.showModal();
    no.focus();
  });
}
