"use strict";
// Keeps what is entered under the name of who enters it, counts it, and gives it as a CSV file. The form's attributes
// say which columns there are, and which of them marks the best unit of an item.
{
  const form = document.querySelector("form");
  const { study, content, kind, best } = form.dataset;
  const columns = form.dataset.columns.split(" ");
  const annotator = document.getElementById("annotator");
  // Whose entries the page shows; the name in the field may be half typed.
  let shown = "";

  const nameNow = () => annotator.value.trim().replace(/\s+/g, " ");
  const key = (name) => ["citeloom", kind, study, content, name.toLowerCase()].join("/");
  const last = ["citeloom-annotator", kind, study, content].join("/");
  const say = (text) => { document.getElementById("status").textContent = text; };

  function store(name, text) {
    try {
      if (text === null) localStorage.removeItem(key(name));
      else localStorage.setItem(key(name), text);
      return true;
    } catch {
      document.getElementById("unkept").hidden = false;
      return false;
    }
  }

  function stored(name) {
    try { return JSON.parse(localStorage.getItem(key(name))); } catch { return null; }
  }

  const fields = () => [...form.elements].filter((field) => field.name && field !== annotator);

  function filled() {
    const values = {};
    for (const field of fields()) {
      if (field.type !== "radio" || field.checked) if (field.value !== "") values[field.name] = field.value;
    }
    return values;
  }

  function show(values) {
    for (const field of fields()) {
      const value = Object.hasOwn(values, field.name) ? String(values[field.name]) : "";
      if (field.type === "radio") field.checked = field.value === value;
      else field.value = value;
    }
  }

  function count() {
    const names = [...new Set(fields().filter((field) => field.type === "radio").map((field) => field.name))];
    const isChoice = (name) => best !== "" && name.endsWith(`-${best}`);
    const values = filled();
    const done = (some) => `${some.filter((name) => name in values).length} of ${some.length}`;
    const choices = best === "" ? "" : `, ${done(names.filter(isChoice))} choices`;
    const entries = done(names.filter((name) => !isChoice(name)));
    document.getElementById("progress").textContent = `${entries} entries${choices}`;
  }

  function keep() {
    count();
    const values = filled();
    store(shown, Object.keys(values).length ? JSON.stringify(values) : null);
  }

  // A first name takes what was entered before it; another name has entries of its own.
  function changeAnnotator() {
    const name = nameNow();
    if (name === "") { annotator.value = shown; return; }
    if (name.toLowerCase() === shown.toLowerCase()) { shown = name; remember(); return; }
    keep();
    const theirs = stored(name);
    if (theirs) show(theirs);
    else if (shown === "") store("", null);
    else show({});
    say(shown === "" ? "" : `What ${shown} entered is kept under that name.`);
    shown = name;
    keep();
    remember();
  }

  function remember() {
    try { localStorage.setItem(last, shown); } catch { /* told by store */ }
  }

  // As pipeline/evaluation/annotation/cells.py guards cells: a spreadsheet program would compute what begins so.
  const guarded = (text) => (/^'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/.test(text) ? `'${text}` : text);
  const cell = (text) => (/[",;\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

  function entry({ unit, item }, column) {
    if (column !== best) return form.elements[`${unit}-${column}`].value;
    return form.elements[`${item}-${best}`].value === unit ? "x" : "";
  }

  function asCsv(name) {
    const units = [...document.querySelectorAll("[data-unit]")].map(({ dataset }) => dataset);
    const rows = units.map((unit) => [study, name, unit.unit, ...columns.map((column) => entry(unit, column))]);
    const lines = [["study", "annotator", "unit", ...columns], ...rows].map((row) => row.map(guarded).map(cell).join(","));
    return `\ufeff${lines.join("\r\n")}\r\n`;
  }

  function download() {
    changeAnnotator();
    if (shown === "") {
      say("Enter your name first.");
      annotator.focus();
      return;
    }
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([asCsv(shown)], { type: "text/csv;charset=utf-8" }));
    link.download = `${kind}-${study}-${shown.normalize("NFKD").replace(/[^A-Za-z0-9]+/g, "-")}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    say(`${link.download} is downloaded: send that file back.`);
  }

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", (event) => { if (event.target !== annotator) keep(); });
  annotator.addEventListener("change", changeAnnotator);
  document.getElementById("csv").addEventListener("click", download);

  try { shown = localStorage.getItem(last) ?? ""; } catch { store("", null); }
  annotator.value = shown;
  show(stored(shown) ?? {});
  count();
}
