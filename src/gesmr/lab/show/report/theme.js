document.documentElement.dataset.theme = (() => {
  let kept = null;
  try {
    kept = localStorage.getItem("gesmr-theme");
  } catch {
    // a page from a file may have no storage
  }
  if (kept === "dark" || kept === "light") return kept;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
})();
