  /* ---- the map of live nodes: the same drawing, from readings instead of a film ---- */
  const travelMs = 400, mostDots = 12; // of a link between two readings
  const map = siteMap(by("map-a")), seen = { most: 1, shape: "" };
  let reading = null, before = new Map(), dots = [], moves = false;
  const levels = (nodes) => nodes.map((node) => ({ running: [], waiting: [], level: node.here && node.work !== null ? node.work : NaN }));
  /* Endpoints of a picker say nothing of themselves; what it has sent them itself is known, and has another unit than work. */
  const onlyPickers = () => reading.ens.every((node) => node.kind === "picker");
  const film = () => ({
    ens: reading.ens.length, sns: reading.sns.length, many: 0, most: seen.most, until: 0, sends: true, unit: onlyPickers() ? "requests" : "Mcycles", fate: () => 0,
    names: { en: reading.ens.map((node) => node.name), sn: reading.sns.map((node) => node.name) },
    reach: reading.ens.map((_, en) => reading.links.filter((link) => link.en === en).map((link) => link.sn)),
    enSlots: reading.ens.map(() => 0), snSlots: reading.sns.map(() => 0), en: dots.map((dot) => dot.en), sn: dots.map((dot) => dot.sn),
  });
  const whose = () => Number(by("viewer-en").value || 0);
  const paint = () => {
    by("map-a").hidden = !reading || !reading.ens.length || !reading.sns.length;
    if (by("map-a").hidden) return;
    const now = performance.now(), moving = [], pulses = [];
    dots = dots.filter((dot) => now < dot.start + travelMs);
    if (!calm.matches) dots.forEach((dot, k) => {
      const share = (now - dot.start) / travelMs;
      if (share >= 0 && dot.status) pulses.push({ en: dot.en, sn: dot.sn, share });
      else if (share >= 0) moving.push({ k, stage: "up", share });
    });
    map.keep(film());
    const down = new Set(reading.sns.map((node, k) => k).filter((k) => reading.sns[k].known && !reading.sns[k].here));
    const away = new Set(reading.ens.map((node, k) => k).filter((k) => !reading.ens[k].here));
    const belief = (sn) => { const link = reading.links.find((each) => each.en === whose() && each.sn === sn); if (link && onlyPickers() && link.in_flight !== null) return { told: link.in_flight, age: 0, own: true }; return link && link.told !== null ? { told: link.told, age: link.age_ms } : null; };
    map.draw({ time: 0, en: levels(reading.ens), sn: levels(reading.sns), moving, pulses, down, away }, { belief });
    if (dots.length && !calm.matches && !moves) { moves = true; requestAnimationFrame(() => { moves = false; paint(); }); }
  };
  const rowsOf = () => {
    const state = (node) => (node.here ? "answers" : node.known ? "absent" : "unknown: not among the addresses");
    const line = (cells, tag) => { const row = element("tr"); row.append(...cells.map((cell) => element(tag, cell))); return row; };
    const said = (link) => {
      if (link.in_flight !== null) return `${link.in_flight} of its requests in flight`;
      if (!reading.ens[link.en].here) return "?";
      return `${link.told === null ? "?" : link.told.toFixed(1)}${link.age_ms === null ? ", nothing yet" : `, ${link.age_ms.toFixed(0)} ms old`}`;
    };
    const beliefs = (sn) => reading.links.filter((link) => link.sn === sn).map((link) => `${reading.ens[link.en].name}: ${said(link)}${link.silent ? ", silent" : ""}`).join("; ");
    const shown = (node, more) => line([node.name, node.kind, state(node), node.method || "–", node.tasks === null ? "?" : node.tasks, node.work === null ? "?" : node.work.toFixed(1), more], "td");
    by("nodes").replaceChildren(line(["node", "kind", "state", "method", "tasks in it", "work (Mcycles)", "last status at the ENs (Mcycles)"], "th"),
      ...reading.ens.map((node) => shown(node, "–")), ...reading.sns.map((node, k) => shown(node, beliefs(k))));
  };
  const heard = (told) => {
    reading = told;
    const now = performance.now(), step = told.every_ms;
    seen.most = Math.max(seen.most, ...told.sns.map((node) => node.work || 0), ...told.links.map((link) => (onlyPickers() ? link.in_flight : link.told) || 0));
    const totals = new Map();
    for (const link of told.links) {
      const key = `${told.ens[link.en].name} ${told.sns[link.sn].name}`, last = before.get(key);
      totals.set(key, link);
      if (!last) continue;
      for (const [name, status] of [["tasks", false], ["statuses", true]]) {
        const count = Math.min(mostDots, Math.max(0, link[name] - last[name]));
        for (let k = 0; k < count; k += 1) dots.push({ en: link.en, sn: link.sn, status, start: now + (k / count) * step });
      }
    }
    before = totals;
    const shape = JSON.stringify([told.ens.map((node) => node.name), told.sns.map((node) => node.name), told.links.map((link) => [link.en, link.sn]), Math.round(Math.log2(seen.most))]);
    if (shape !== seen.shape && told.ens.length && told.sns.length) {
      seen.shape = shape;
      dots = []; // they have the places of nodes that may be gone
      by("map-a").hidden = false;
      fill("viewer-en", told.ens.map((_, k) => k), told.ens.map((node) => node.name), by("viewer-en").value);
      map.show(film());
      offerGroups(map);
    }
    by("told").textContent = [told.silent.length ? `No answer yet: ${told.silent.join(", ")}.` : "", told.ens.length ? "" : "No EN or picker has answered yet.", told.sns.length ? "" : "No SN or endpoint is known yet."].filter((text) => text).join(" ");
    rowsOf();
    paint();
    document.body.dataset.read = Number(document.body.dataset.read || 0) + 1;
  };
  by("viewer-en").addEventListener("change", paint);
  by("map-open").addEventListener("change", () => { openGroup([map]); paint(); });
  const redraw = () => { if (seen.shape) map.refresh(); paint(); };
  followTheme(redraw);
  window.addEventListener("resize", redraw);
  by("map-a").reading = () => reading;
  const stream = new EventSource("events");
  stream.onmessage = (event) => heard(JSON.parse(event.data));
  stream.onerror = () => { by("told").textContent = "cosmo live watch has ended."; };
  document.body.dataset.ready = "yes";
})();
