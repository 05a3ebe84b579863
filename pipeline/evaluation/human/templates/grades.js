{
  const line = (form, { label, part, number }) => {
    const id = `${label}-${part}-${number}`;
    return { label, part, number, verdict: form.elements[id].value, comment: form.elements[`${id}-comment`].value };
  };

  openForm({
    kind: "citeloom-grading",
    files: "grades",
    who: "grader",
    columns: ["study", "grader", "label", "part", "number", "verdict", "comment"],
    rows: (form) => [...document.querySelectorAll("[data-part]")].map(({ dataset }) => line(form, dataset)),
    progress: (names, done) => `${done(names)} lines`,
  });
}
