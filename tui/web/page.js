// Gives the terminal the keyboard: once it is there, when the window is chosen, and where one clicks beside it.
"use strict";
function choose() {
  const typed = document.querySelector(".-connected .xterm-helper-textarea");
  if (typed) typed.focus();
}
window.addEventListener("load", () => {
  const looking = setInterval(() => {
    if (document.querySelector(".textual-terminal.-connected")) {
      clearInterval(looking);
      choose();
    }
  }, 20);
});
window.addEventListener("focus", choose);
document.addEventListener("click", (event) => {
  if (!event.target.closest("a")) choose();
});
