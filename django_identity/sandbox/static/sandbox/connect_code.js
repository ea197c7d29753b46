// Counts a Connect code down and copies it. Without this script the page shows the time it ends.
"use strict";

const countdown = document.querySelector("[data-seconds-left]");
const clock = countdown.querySelector("[data-clock]");
const bar = countdown.querySelector("progress");
const end = performance.now() + Number(countdown.dataset.secondsLeft) * 1000;

const announcement = document.querySelector("[data-announcement]");

function tick() {
  const left = Math.max(0, Math.ceil((end - performance.now()) / 1000));
  clock.textContent = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`;
  bar.value = left;
  if (left === 60) announcement.textContent = announcement.dataset.soon;
  if (left === 0) {
    clearInterval(ticking);
    announcement.textContent = announcement.dataset.expired;
    // The service's clock decides: it says on the next page that the code has expired.
    setTimeout(() => location.reload(), 1000);
  }
}

const ticking = setInterval(tick, 250);
countdown.querySelector("[data-live]").hidden = false;
tick();

const copy = document.querySelector("[data-copies]");
if (navigator.clipboard) {
  copy.hidden = false;
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.querySelector(copy.dataset.copies).textContent);
    copy.textContent = copy.dataset.copied;
    announcement.textContent = copy.dataset.copied;
  });
}
