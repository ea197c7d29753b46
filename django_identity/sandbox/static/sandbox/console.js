// Adds what happens to the list. Without this script the page shows it when it is loaded again.
"use strict";

const MOST = 200;
const list = document.querySelector("[data-stream]");
const state = document.querySelector("[data-live-state]");
const source = new EventSource(list.dataset.stream);

source.addEventListener("open", () => {
  state.textContent = state.dataset.live;
  state.className = "status status-good";
});
source.addEventListener("error", () => {
  state.textContent = state.dataset.lost;
  state.className = "status status-bad";
});
source.addEventListener("message", (event) => {
  list.insertAdjacentHTML("afterbegin", event.data);
  while (list.children.length > MOST) list.lastElementChild.remove();
  document.querySelector("[data-nothing]").hidden = true;
});
