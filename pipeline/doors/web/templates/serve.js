"use strict";
// Keys on the page of results: "/" goes to the query, "j" and "k" to the next and the previous paper.
document.addEventListener("keydown", (event) => {
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const query = document.getElementById("q");
  if (event.key === "/" && query) {
    event.preventDefault();
    query.focus();
    query.select();
  } else if (event.key === "j" || event.key === "k") {
    const links = [...document.querySelectorAll(".result-link")];
    const next = links.indexOf(document.activeElement) + (event.key === "j" ? 1 : -1);
    links[Math.min(Math.max(next, 0), links.length - 1)]?.focus();
  }
});
for (const button of document.querySelectorAll("button[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", () => {
    const source = document.getElementById(button.dataset.copy);
    const status = document.getElementById("copied");
    navigator.clipboard.writeText(source.textContent).then(
      () => { status.textContent = "Copied."; },
      () => { getSelection().selectAllChildren(source); status.textContent = "Selected: press Ctrl+C."; });
  });
}
