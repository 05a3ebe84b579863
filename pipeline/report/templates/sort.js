for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const descending = head.getAttribute("aria-sort") !== "descending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const key = row => row.cells[column].dataset.sort ?? "";
      const compare = (one, other) => {
        if (key(one) === "" || key(other) === "") return (key(one) === "") - (key(other) === "");
        const order = head.classList.contains("n") ? key(one) - key(other) : key(one).localeCompare(key(other));
        return descending ? -order : order;
      };
      body.append(...[...body.rows].sort(compare));
    });
  });
}
