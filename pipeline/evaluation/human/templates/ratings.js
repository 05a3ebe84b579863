{
  const criteria = document.querySelector("form").dataset.criteria.split(" ");
  const isChoice = (name) => name.endsWith("-preferred");

  const ratings = (form) => [...document.querySelectorAll("article[data-task]")].map(({ dataset: { task, label } }) => {
    const value = (name) => form.elements[`${task}-${name}`].value;
    const best = value("preferred");
    const marks = criteria.map((name) => [name, Number(value(`${label}-${name}`)) || null]);
    return {
      task, label, ...Object.fromEntries(marks), preferred: best === "" ? null : best === label,
      comment: value(`${label}-comment`),
    };
  });

  openForm({
    kind: "citeloom-study",
    files: "ratings",
    who: "rater",
    columns: ["study", "rater", "task", "label", ...criteria, "preferred", "comment"],
    rows: (form) => ratings(form).map((row) => ({ ...row, preferred: row.preferred ? "x" : "" })),
    progress: (names, done) =>
      `${done(names.filter((name) => !isChoice(name)))} marks, ${done(names.filter(isChoice))} choices`,
    json: (form, rater) =>
      ({ format: "citeloom-ratings-1", study: form.dataset.study, rater, ratings: ratings(form) }),
  });
}
