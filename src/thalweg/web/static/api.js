// The one door to the server: adds the token, turns refusals into errors with all their problems.

const KEY = "thalweg-token";
let token = null;

export class Refusal extends Error {
  constructor(status, problems) {
    super(problems.join(" "));
    this.status = status;
    this.problems = problems;
  }
}

/** The server could not be reached at all. */
export class Unreachable extends Error {}

export function keepToken(value) {
  token = value;
  try {
    if (value) sessionStorage.setItem(KEY, value); else sessionStorage.removeItem(KEY);
  } catch { /* Then it lasts until the page is closed. */ }
}

export function knownToken() {
  if (token === null) try { token = sessionStorage.getItem(KEY); } catch { /* none */ }
  return token;
}

export async function ask(path, { body, signal, query, patient = 0 } = {}) {
  const known = Object.entries(query || {}).filter(([, value]) => value !== null && value !== undefined);
  const text = new URLSearchParams(known).toString();
  const headers = { Authorization: `Bearer ${knownToken() || ""}` };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(`/api/${path}${text ? `?${text}` : ""}`, {
      method: body === undefined ? "GET" : "POST", headers, signal, cache: "no-store",
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Unreachable("The server does not answer.");
  }
  if (answer.ok) return answer;
  // One question is answered at a time: whoever can wait asks again.
  if (patient > 0 && answer.headers.has("Retry-After")) {
    await new Promise((done) => { setTimeout(done, 1000 * (Number(answer.headers.get("Retry-After")) || 1)); });
    return ask(path, { body, signal, query, patient: patient - 1 });
  }
  let problems = [];
  try { problems = (await answer.json()).problems || []; } catch { /* Not ours: told by its number. */ }
  if (!Array.isArray(problems) || !problems.length) problems = [`The server refused this (${answer.status}).`];
  throw new Refusal(answer.status, problems.map(String));
}

export const askJson = async (path, options) => (await ask(path, options)).json();

/** All that an error has to say, one line each. */
export const problemsOf = (error) => error.problems || [error.message || String(error)];
