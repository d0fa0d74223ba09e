// The page: who may look, which subject, which view, which moment; kept in the address.

import { askJson, keepToken, knownToken, problemsOf, Refusal, Unreachable } from "./api.js";
import { ChartsView } from "./charts.js";
import { CompareView } from "./compare.js";
import { Details } from "./details.js";
import { byId, el, list, say, set } from "./dom.js";
import { follow } from "./feed.js";
import { Gauges } from "./gauges.js";
import { MapView } from "./mapview.js";
import { Notices } from "./notices.js";
import { ResultsView } from "./results.js";
import { Slider } from "./slider.js";
import { Store } from "./store.js";
import { Tabs } from "./tabs.js";
import { WhatIfView } from "./whatif.js";

const NAMES = { map: "Map", charts: "Charts", "what-if": "What if", compare: "Compare", city: "City", results: "Results" };
const VIEWS = {
  map: async () => MapView, charts: async () => ChartsView, "what-if": async () => WhatIfView,
  compare: async () => CompareView, results: async () => ResultsView,
  city: async () => (await import("./cityview.js")).CityView,
};
const TIMED = new Set(["map", "charts", "what-if"]);
const STORED = new Set(["city", "results"]);
const GAUGED = new Set(["map", "charts"]);

let subjects = [], store = null, views = {}, current = null, feeding = null, gauges = null, wanted = null;
const slider = new Slider();
const tabs = new Tabs(byId("tabs"), NAMES, (name) => openView(name));
const details = new Details({ onClose: () => views.map?.choose(null) });

const announce = (text) => { say(byId("announce"), text); };
const connection = (state, text) => {
  set(byId("connection"), "data-state", state);
  say(byId("connection"), text);
  byId("lost").hidden = state !== "lost";
  if (state !== "loading") announce(text);
};
const notices = new Notices(byId("notices"), announce);
const tellProblems = (problems) => {
  byId("problems").replaceChildren(...(problems.length ? [list(problems, { class: "problems" })] : []));
};

// --- The address -------------------------------------------------------------------------------

function readAddress() {
  const parts = new URLSearchParams(location.hash.slice(1));
  if (parts.has("token")) {
    keepToken(parts.get("token"));
    parts.delete("token");
    history.replaceState(null, "", `${location.pathname}${parts.size ? `#${parts}` : ""}`);
  }
  return { subject: parts.get("subject"), view: parts.get("view"), t: parts.has("t") ? Number(parts.get("t")) : null };
}

let writing = 0;
function writeAddress() {
  // Browsers refuse pages that do this all the time.
  if (writing) return;
  writing = setTimeout(() => {
    writing = 0;
    if (!store) return;
    const parts = new URLSearchParams({ subject: store.subject.id, view: current || "" });
    if (!store.following && store.frame) parts.set("t", String(Number(store.frame.at_s.toFixed(3))));
    history.replaceState(null, "", `${location.pathname}#${parts}`);
  }, 400);
}

// --- Views -------------------------------------------------------------------------------------

async function openView(name) {
  current = name;
  const mine = store, panel = byId("panel");
  // A tab that is chosen before there is a scene opens when it comes.
  if (!mine || (!mine.scene && !STORED.has(mine.subject.kind))) return;
  set(panel, "data-view", name);
  set(panel, "aria-labelledby", `tab-${name}`);
  if (!views[name]) {
    const View = await VIEWS[name]();
    if (store !== mine || current !== name) return;
    views[name] ??= new View(store, { select, announce, at: wanted });
  }
  if (panel.firstChild !== views[name].root) panel.replaceChildren(views[name].root);
  if (name !== "map") details.close();
  showBars();
  update();
  writeAddress();
}

function showBars() {
  const scene = Boolean(store.scene);
  // The bar of time is not needed where nothing passes.
  slider.root.hidden = !scene || !TIMED.has(current) || (!store.scene.live && store.loaded && store.frames.length < 2);
  byId("gauge-strip").hidden = !scene || !GAUGED.has(current);
}

function select(chosen) {
  views.map?.choose(chosen);
  details.open(store, chosen);
}

let pending = false;
function update() {
  if (pending) return;
  pending = true;
  requestAnimationFrame(() => {
    pending = false;
    if (!store) return;
    if (store.scene) {
      slider.update();
      gauges?.show(store.frame ?? { gauges: expected() });
      notices.update(store);
      details.update();
    }
    views[current]?.update();
  });
}

/** A plan that never ran is shown by what is expected of it. */
const expected = () => store.placement?.expected || null;

// --- Subjects ----------------------------------------------------------------------------------

function close() {
  feeding?.abort();
  details.close();
  for (const view of Object.values(views)) view.stop?.();
  views = {};
  store = null;
  current = null;
  slider.show(null);
  byId("gauge-strip").replaceChildren();
  byId("notices").hidden = true;
  byId("panel").replaceChildren(el("p", { class: "soft", text: "Loading…" }));
  tellProblems([]);
}

async function open(subject, { view, t } = {}) {
  close();
  const mine = (store = new Store(subject));
  feeding = new AbortController();
  const { signal } = feeding;
  byId("subject").value = String(subject.id);
  document.title = `${subject.title} – Thalweg`;
  connection("loading", "loading");
  const first = subject.views.includes(view) ? view : subject.views[0];
  wanted = Number.isFinite(t) ? t : null;
  tabs.show(subject.views, first);
  if (STORED.has(subject.kind)) {
    connection("stored", "stored");
    await openView(first);
    return;
  }
  try {
    mine.scene = await askJson(`subjects/${encodeURIComponent(subject.id)}/scene`, { signal });
  } catch (error) {
    if (!signal.aborted) failed(error, () => open(subject, { view, t }));
    return;
  }
  if (store !== mine) return;
  gauges = new Gauges(mine.scene.limits);
  byId("gauge-strip").replaceChildren(gauges.root);
  slider.show(mine);
  mine.on("data", () => { tellMarks(mine); update(); });
  mine.on("time", () => { update(); writeAddress(); });
  await openView(current ?? first);
  follow(mine, { signal, tell: (state, text) => { connection(state, state === "stored" && subject.kind === "plan" ? "plan" : text); settle(mine); }, refused: (error) => failed(error, () => open(subject)) });
}

function settle(mine) {
  // The moment of the address, once there are frames to look for it.
  if (wanted !== null && mine.frames.length) { mine.seek(mine.nearest(wanted)); wanted = null; }
  showBars();
  update();
}

function tellMarks(mine) {
  const last = mine.marks.at(-1);
  if (mine.lastMark !== undefined && last && last !== mine.lastMark && mine.following) announce(last.title);
  mine.lastMark = last ?? null;
}

// --- Beginning ---------------------------------------------------------------------------------

// Figures become stale while nothing comes.
setInterval(() => { if (store?.scene?.live) notices.update(store); }, 1000);

let retry = 1000;
function failed(error, again) {
  if (error instanceof Refusal && error.status === 401) { askToken(again, error.problems); return; }
  if (error instanceof Unreachable) {
    connection("lost", "not connected, trying again");
    setTimeout(again, retry);
    retry = Math.min(retry * 2, 10_000);
    return;
  }
  connection("ended", "stopped");
  tellProblems(problemsOf(error));
}

function askToken(again, problems = []) {
  const dialog = byId("token-dialog");
  connection("ended", "token needed");
  byId("token-problems").replaceChildren(...(problems.length && knownToken() ? [list(problems, { class: "problems" })] : []));
  byId("token-form").onsubmit = (event) => {
    event.preventDefault();
    const given = byId("token").value.trim();
    // The whole printed address may be pasted too.
    keepToken(/[#&]token=([^&\s]+)/.exec(given)?.[1] ?? given);
    byId("token").value = "";
    dialog.close();
    again();
  };
  if (!dialog.open) dialog.showModal();
}

async function begin() {
  const address = readAddress();
  if (!knownToken()) { askToken(begin); return; }
  try {
    const found = await askJson("subjects");
    retry = 1000;
    subjects = found.subjects;
    say(byId("version"), found.version ? `v${found.version}` : "");
  } catch (error) { failed(error, begin); return; }
  const chooser = byId("subject");
  chooser.replaceChildren(...subjects.map(({ id, title }) => el("option", { value: id, text: title })));
  byId("subject-label").hidden = !subjects.length;
  chooser.disabled = subjects.length < 2;
  if (!subjects.length) { connection("ended", "empty"); byId("panel").replaceChildren(el("p", { text: "There is nothing to show yet." })); return; }
  await open(subjects.find(({ id }) => String(id) === address.subject) || subjects[0], address);
}

byId("subject").addEventListener("change", (event) => {
  const found = subjects.find(({ id }) => String(id) === event.target.value);
  if (found) open(found, { view: current });
});
document.addEventListener("theme", () => { views.charts?.repaint(); });
window.addEventListener("hashchange", () => {
  const address = readAddress(), found = subjects.find(({ id }) => String(id) === address.subject);
  if (!store) { begin(); return; }
  if (found && found !== store.subject) { open(found, address); return; }
  if (address.view && address.view !== current && store.subject.views.includes(address.view)) { tabs.choose(address.view); openView(address.view); }
  if (Number.isFinite(address.t) && address.t !== null && store.frames.length) store.seek(store.nearest(address.t));
});
byId("skip").addEventListener("click", (event) => {
  // The address is used for other things.
  event.preventDefault();
  byId("panel").focus();
});
// The token dialog cannot be dismissed into an empty page.
byId("token-dialog").addEventListener("cancel", (event) => event.preventDefault());
begin();
