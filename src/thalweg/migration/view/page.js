// The page that stands alone: its data is in it.
{
  const found = /^#t=(\d+(\.\d+)?)$/.exec(window.location.hash);
  const data = JSON.parse(document.getElementById("data").textContent);
  showCity(data, (name) => document.getElementById(name), { at_s: found ? Number(found[1]) : null });
}
