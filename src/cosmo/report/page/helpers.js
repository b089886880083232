"use strict";
(async () => {
  const by = (id) => document.getElementById(id);
  const unique = (list) => [...new Set(list)];
  const number = (value, digits = 3) => (value === null || value === undefined ? "–" : Number(value).toFixed(digits));
  const element = (tag, text, name) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (name) made.className = name;
    return made;
  };
  const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
  const short = (text, most) => (text.length > most ? `…${text.slice(1 - most)}` : text);

  /* ---- light and dark: as the reader's system has it, until the button is pressed ---- */
  const theme = () => document.documentElement.dataset.theme;
  const setTheme = (name) => { document.documentElement.dataset.theme = name; };
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  setTheme(prefersDark.matches ? "dark" : "light");
  /* On a page whose drawings are made anew by `redraw`. */
  const followTheme = (redraw) => {
    const turn = (dark) => { setTheme(dark ? "dark" : "light"); redraw(); };
    by("theme").addEventListener("click", () => turn(theme() !== "dark"));
    prefersDark.addEventListener("change", () => turn(prefersDark.matches));
  };
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  const narrow = () => window.innerWidth < 700;
  const fill = (id, items, titles, chosen) => {
    const select = by(id);
    select.replaceChildren(...items.map((item, place) => {
      const option = element("option", (titles && titles[place]) || item);
      option.value = item;
      return option;
    }));
    if (items.map(String).includes(String(chosen))) select.value = chosen;
    select.parentElement.hidden = items.length < 2 && select.dataset.always === undefined;
  };
