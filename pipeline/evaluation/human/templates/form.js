"use strict";
// What every form does: it keeps what is entered under the name of who enters it, counts it, and gives it as a file.
// kind: under which it is kept; files: how a file's name begins; who: the column of the name; columns: of the CSV, and
// rows: its rows by column; progress: what is done, in words; json: the same as an object, where a form gives that too.
function openForm({ kind, files, who, columns, rows, progress, json }) {
  const form = document.querySelector("form");
  const { study, content } = form.dataset;
  const rater = document.getElementById("rater");
  // Whose entries the page shows; the name in the field may be half typed.
  let shown = "";

  const nameNow = () => rater.value.trim().replace(/\s+/g, " ");
  const key = (name) => [kind, study, content, name.toLowerCase()].join("/");
  const last = [`${kind}-rater`, study, content].join("/");
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

  const fields = () => [...form.elements].filter((field) => field.name && field !== rater);

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
    const names = new Set(fields().filter((field) => field.type === "radio").map((field) => field.name));
    const values = filled();
    const done = (some) => `${some.filter((name) => name in values).length} of ${some.length}`;
    document.getElementById("progress").textContent = progress([...names], done);
  }

  function keep() {
    count();
    const values = filled();
    store(shown, Object.keys(values).length ? JSON.stringify(values) : null);
  }

  // A first name takes what was entered before it; another name has entries of its own.
  function changeRater() {
    const name = nameNow();
    if (name === "") { rater.value = shown; return; }
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

  // As pipeline/evaluation/human/cells.py guards cells: a spreadsheet program would compute what begins so.
  const guarded = (text) => (/^'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/.test(text) ? `'${text}` : text);
  const cell = (text) => (/[",;\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

  function asCsv(name) {
    const line = (row) => columns.map((column) => {
      const value = { study, [who]: name, ...row }[column];
      return cell(guarded(value === null ? "" : String(value)));
    }).join(",");
    return `\ufeff${[columns.join(","), ...rows(form).map(line)].join("\r\n")}\r\n`;
  }

  const asJson = (name) => `${JSON.stringify(json(form, name), null, 1)}\n`;

  function download(ending, type, made) {
    changeRater();
    if (shown === "") {
      say("Enter your name first.");
      rater.focus();
      return;
    }
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([made(shown)], { type }));
    link.download = `${files}-${study}-${shown.normalize("NFKD").replace(/[^A-Za-z0-9]+/g, "-")}.${ending}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    say(`${link.download} is downloaded: send that file back.`);
  }

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", (event) => { if (event.target !== rater) keep(); });
  rater.addEventListener("change", changeRater);
  document.getElementById("csv").addEventListener("click", () => download("csv", "text/csv;charset=utf-8", asCsv));
  document.getElementById("json")?.addEventListener("click", () => download("json", "application/json", asJson));

  try { shown = localStorage.getItem(last) ?? ""; } catch { store("", null); }
  rater.value = shown;
  show(stored(shown) ?? {});
  count();
}
