// Keeps the list of what happens up to date, and searches the switches. Without this script the
// list is as the page was loaded, and all switches are shown.
"use strict";

const list = document.querySelector("[data-activity]");
if (list) {
  const state = document.querySelector("[data-live-state]");
  const filter = document.querySelector(".filter");
  let shown = list.innerHTML;

  const look = async () => {
    try {
      const asked = new URLSearchParams(new FormData(filter));
      const answer = await fetch(`${list.dataset.activity}?${asked}`);
      if (!answer.ok) throw new Error(answer.status);
      const html = await answer.text();
      // Whoever is on a link of the list keeps it until they leave.
      if (html !== shown && !list.contains(document.activeElement)) list.innerHTML = shown = html;
      state.textContent = state.dataset.live;
      state.className = "status status-good";
    } catch {
      state.textContent = state.dataset.lost;
      state.className = "status status-bad";
    }
  };
  const again = async () => {
    if (!document.hidden) await look();
    setTimeout(again, 1000);
  };
  filter.addEventListener("input", look);
  again();
}

const search = document.querySelector("[data-search]");
if (search) {
  search.hidden = false;
  search.querySelector("input").addEventListener("input", (event) => {
    const wanted = event.target.value.toLowerCase();
    for (const each of document.querySelectorAll("[data-switch]")) {
      each.hidden = !each.textContent.toLowerCase().includes(wanted);
    }
  });
}
