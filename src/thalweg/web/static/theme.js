// A plain script in the head: the colours are there before anything is painted.
(() => {
  const KEY = "thalweg-theme", dark = window.matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  try { chosen = localStorage.getItem(KEY); } catch { /* Storage may be switched off. */ }
  if (chosen !== "dark" && chosen !== "light") chosen = null;
  const apply = () => {
    document.documentElement.dataset.theme = chosen || (dark.matches ? "dark" : "light");
    document.dispatchEvent(new Event("theme"));
  };
  dark.addEventListener("change", apply);
  document.addEventListener("click", (event) => {
    if (!(event.target instanceof Element) || !event.target.closest("#theme")) return;
    chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem(KEY, chosen); } catch { /* Then it lasts until the page is closed. */ }
    apply();
  });
  apply();
})();
