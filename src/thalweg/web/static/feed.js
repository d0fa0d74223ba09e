// Keeps a store up to date: all so far, then what happens, again and again after a lost connection.

import { ask, askJson, Refusal } from "./api.js";

const SILENCE_MS = 20_000, SHORTEST_MS = 500, LONGEST_MS = 10_000;

const rest = (ms, signal) => new Promise((done) => {
  const timer = setTimeout(done, ms);
  signal.addEventListener("abort", () => { clearTimeout(timer); done(); }, { once: true });
});

/** The events of a stream of text; comment lines are only signs of life. */
export async function* events(body, alive) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    alive();
    text += value.replaceAll("\r", "");
    let end;
    while ((end = text.indexOf("\n\n")) >= 0) {
      const event = { name: "message", data: "" };
      for (const line of text.slice(0, end).split("\n")) {
        if (line.startsWith("event:")) event.name = line.slice(6).trim();
        else if (line.startsWith("data:")) event.data += line.slice(5).replace(/^ /, "");
      }
      text = text.slice(end + 2);
      if (event.data) yield event;
    }
  }
}

/**
 * Follows a subject until `signal` says stop. `tell(state, text)`: "loading", "live", "stored",
 * "ended" or "lost"; `refused(error)` when the server does not want us, for good.
 */
export async function follow(store, { signal, tell, refused }) {
  const path = `subjects/${encodeURIComponent(store.subject.id)}`;
  let wait = SHORTEST_MS;
  while (!signal.aborted) {
    try {
      const history = await askJson(`${path}/history`, { signal });
      // A run may have ended, or have been resumed, since its scene was asked for.
      store.scene.live = history.live ?? store.scene.live;
      store.load(history);
      if (!store.scene.live) { tell("stored", "recorded"); return; }
      const hello = (state, text) => { wait = SHORTEST_MS; tell(state, text); };
      const ended = await listen(store, `${path}/events`, { after: history.position ?? 0 }, signal, hello);
      if (ended !== null) { store.scene.live = false; tell("ended", ended); return; }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Refusal && error.status < 500) { refused(error); return; }
    }
    if (signal.aborted) return;
    tell("lost", "not connected, trying again");
    await rest(wait, signal);
    wait = Math.min(wait * 2, LONGEST_MS);
  }
}

async function listen(store, path, query, signal, tell) {
  // Resolves with the last words when the subject has ended, with null when the line broke.
  const line = new AbortController(), stop = () => line.abort();
  signal.addEventListener("abort", stop, { once: true });
  let timer = setTimeout(stop, SILENCE_MS), waiting = false;
  const alive = () => { clearTimeout(timer); timer = setTimeout(stop, SILENCE_MS); };
  const soon = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      store.tell("data");
      if (store.following) store.tell("time");
    });
  };
  try {
    const answer = await ask(path, { query, signal: line.signal });
    tell("live", "live");
    for await (const { name, data } of events(answer.body, alive)) {
      const value = JSON.parse(data);
      if (name !== "state") { store.add(name, value); soon(); continue; }
      if (!value.live) return value.text || "ended";
      tell("live", value.text || "live");
    }
    return null;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
    line.abort();
  }
}
