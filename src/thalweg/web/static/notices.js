// What is going on just now, and whether the figures that are shown are still of now.

import { el } from "./dom.js";
import { dated, moment, seconds } from "./format.js";

const KINDS = { change: "■ Change", restart: "↻ Restart" };

/** A sentence on what is under way at a frame; empty where nothing is. */
export function underWay(frame, clock) {
  const told = frame?.under_way;
  if (!told) return "";
  const what = [told.site, told.what].filter(Boolean).join(": ");
  return `${KINDS[told.kind] || told.kind} under way since ${dated(told.began_at_s, frame.at_s, clock).replace(" ago)", ")")}${what ? `: ${what}` : ""}`;
}

export class Notices {
  constructor(root, announce) {
    this.root = root;
    this.announce = announce;
    this.under = el("p", { class: "notice", data: { notice: "under-way" } });
    this.silent = el("p", { class: "notice", data: { notice: "stale" } });
    root.replaceChildren(this.under, this.silent);
  }

  /** Whether a run that goes on has sent nothing for too long is asked again and again. */
  update({ scene, frame, frames, following, silentS }) {
    const told = underWay(frame, scene.clock), began = frame?.under_way?.began_at_s;
    if (told && following && this.began !== began) this.announce(told);
    this.began = began;
    const stale = following && silentS > (scene.stale_after_s ?? Infinity);
    this.show(this.under, told);
    this.show(this.silent, stale ? `◷ No new figures for ${seconds(Math.round(silentS))}: what is shown is stale, of ${moment(frames.at(-1)?.at_s, scene.clock)}.` : "");
    this.root.hidden = this.under.hidden && this.silent.hidden;
    document.body.toggleAttribute("data-stale", stale);
  }

  show(node, text) {
    if (node.textContent !== text) node.textContent = text;
    node.hidden = !text;
  }
}
