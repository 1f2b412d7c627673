const field = document.getElementById("search");
const rows = [...document.querySelectorAll(".all tbody tr")].map(row => [row, row.textContent.toLowerCase()]);
const search = () => {
  const words = field.value.toLowerCase().split(/\s+/).filter(word => word);
  let found = 0;
  for (const [row, text] of rows) {
    const fits = words.every(word => text.includes(word));
    row.classList.toggle("unsought", !fits);
    found += fits;
  }
  document.getElementById("sought").textContent = words.length ? `${found} of ${rows.length} audits` : "";
};
document.getElementById("searching").hidden = false;
field.addEventListener("input", search);
field.addEventListener("keydown", event => {
  if (event.key === "Escape") { field.value = ""; search(); }
});
search();
