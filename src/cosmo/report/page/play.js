  /* ---- the playground: sliders, stories, and films that grow while they are watched ---- */
  const empty = (site, until) => ({
    ...site, window_ms: until, until_ms: until, warmup_ms: 0, tasks: { time: [], en: [], action: [], finished: [] },
    map: { en_slots: site.en_slots, sn_slots: site.sn_slots, tasks: { ue: [], generated: [], decided: [], reached: [], began: [], left: [], heard: [], fate: [] },
      tenants: { sn: [], reached: [], began: [], left: [] }, statuses: { en: [], sn: [], sent: [], taken: [], told: [] }, events: { time: [], node: [], what: [], factor: [] } },
  });
  const upsert = (into, rows, names) => { for (const name of names) rows.k.forEach((k, place) => { into[name][k] = rows[name][place]; }); };
  const settleMs = 60; // what becomes of the newest tasks is not known yet: they are not shown
  const grow = (recording, piece) => {
    const { map, tasks } = recording, s = map.statuses;
    upsert(map.tasks, piece.tasks, Object.keys(map.tasks));
    upsert(tasks, piece.tasks, ["en", "action", "finished"]);
    tasks.time = map.tasks.decided;
    upsert(map.tenants, piece.tenants, Object.keys(map.tenants));
    for (const name of ["en", "sn", "sent", "told"]) for (const value of piece.statuses[name]) s[name].push(value);
    while (s.taken.length < s.en.length) s.taken.push(null);
    for (const [place, time] of piece.statuses.taken) s.taken[place] = time;
    map.events = piece.events;
    recording.until_ms = piece.over ? piece.until : Math.max(0, piece.until - settleMs);
  };
  /* The first moments of an empty site are skipped; a story may begin later, where there is something to see. */
  const beginMs = () => (story && story.mine === played.number ? story.begin_ms : 100);
  const played = { number: 0, chosen: null, recordings: [], numbers: [], asked: 0, answered: null, over: false };
  let offer = null, chosen = null, waiting = null, busy = false, mine = 0, fresh = false, lastFilm = 0, story = null;

  const say = (text) => { by("told").textContent = text; };
  const post = async (path, body) => {
    const answer = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
    const told = await answer.json();
    if (!answer.ok) throw new Error(told.error);
    return told;
  };
  /* The last choice wins; while one is being answered the next one waits. */
  const choose = async (next) => {
    chosen = next;
    waiting = next;
    if (busy) return;
    busy = true;
    while (waiting) {
      const now = waiting;
      waiting = null;
      played.asked = performance.now();
      played.answered = null;
      try { mine = (await post("choose", now)).number; say(""); } catch (error) { say(error.message); }
    }
    busy = false;
    if (played.number && played.number >= mine) adopt();
  };
  /* What is played, on the sliders. Not while a later choice is on its way: they would jump back. */
  const adopt = () => { chosen = played.chosen; showSliders(); };
  const tenMore = (value) => Number(value.toFixed(1));
  const showSliders = () => {
    for (const [name, each] of Object.entries(offer.sliders)) {
      by(`slide-${name}`).value = chosen.numbers[name];
      by(`out-${name}`).textContent = tenMore(chosen.numbers[name]);
    }
    by("scenario").value = chosen.scenario;
    by("method-a").value = chosen.methods[0];
    by("method-b").value = chosen.methods[1] || "";
    const ens = [...Array(chosen.numbers.ens).keys()];
    fill("viewer-en", ["all", ...ens], ["the EN in the middle", ...ens.map((en) => `EN ${en}`)], by("viewer-en").value || 0);
  };
  const whose = () => (by("viewer-en").value === "all" || by("viewer-en").value === "" ? null : Number(by("viewer-en").value));
  /* What is on the screen so far; the net utility is that of the last piece up to then. */
  const caption = (title, view, time) => {
    const { good, ended, statuses } = view.film.soFar(time), known = (played.numbers[player.views.indexOf(view)] || []).filter((each) => each.until <= time);
    const net = known.length ? known[known.length - 1].net : null, about = offer.methods.find((each) => each.name === view.name);
    title.replaceChildren(view.name, element("span", about ? about.summary.replaceAll("`", "") : ""),
      element("strong", `so far ${ended ? `${((100 * good) / ended).toFixed(0)} %` : "–"} in time, ${time > 0 ? ((1000 * statuses) / time).toFixed(0) : "–"} statuses/s, net utility ${number(net, 0)} a task`));
  };
  const player = mapPlayer({ whose, decided: null, grows: () => !played.over, caption });
  by("map").player = player;
  by("map-worst").hidden = by("map-beside").parentElement.hidden = true;

  /* Of all that has been played, which is more than what is on the screen. */
  const showNumbers = () => {
    const about = [["in time", (n) => (n.success === null ? "–" : `${(100 * n.success).toFixed(1)} %`)], ["statuses/s", (n) => (n.updates === null ? "–" : n.updates.toFixed(0))],
      ["net utility", (n) => number(n.net, 1)]];
    const last = played.numbers.map((each) => each[each.length - 1]), seconds = Math.min(...last.map((each) => each.until)) / 1000, made = element("table"), head = element("tr");
    head.append(element("th", `all ${seconds.toFixed(1)} s played ahead`), ...last.map((_, k) => element("th", ["left", "right"][k])));
    made.append(head, ...about.map(([label, text]) => { const row = element("tr"); row.append(element("td", label), ...last.map((each) => element("td", text(each)))); return row; }));
    by("numbers").replaceChildren(made);
  };
  const newFilms = () => {
    fresh = false;
    lastFilm = performance.now();
    const films = played.recordings.map((each) => ({ film: filmOf(each), name: each.method }));
    if (played.answered === null) {
      by("map").hidden = false;
      by("preparing").hidden = true;
      if (story) story.seen = beginMs();
      player.show(films);
      player.seek(beginMs());
      player.play(!document.body.dataset.paused);
      played.answered = performance.now() - played.asked;
      document.body.dataset.played = played.number;
    } else player.replace(films.map((each) => each.film));
    showNumbers();
  };
  /* Films are made anew at most twice a second; the first of a choice at once. */
  setInterval(() => { if (fresh && performance.now() - lastFilm > 450) newFilms(); }, 100);
  by("map-play").addEventListener("click", () => { if (player.playing()) delete document.body.dataset.paused; else document.body.dataset.paused = "yes"; });

  const heard = {
    offer: (told) => {
      offer = told;
      fill("scenario", Object.keys(told.scenarios));
      const names = told.methods.map((each) => each.name);
      fill("method-a", names);
      fill("method-b", ["", ...names], ["nothing", ...names]);
      by("sliders").replaceChildren(...Object.entries(told.sliders).map(([name, each]) => {
        const label = element("label", each.label), input = element("input"), out = element("output");
        Object.assign(input, { type: "range", id: `slide-${name}`, min: each.min, max: each.max, step: each.step });
        out.id = `out-${name}`;
        input.addEventListener("input", () => { out.textContent = tenMore(Number(input.value)); choose({ ...chosen, numbers: { ...chosen.numbers, [name]: Number(input.value) } }); });
        label.append(out, input);
        return label;
      }));
      by("stories").replaceChildren(...told.stories.map((story) => { const button = element("button", story.title); button.type = "button"; button.addEventListener("click", () => tellStory(story)); return button; }));
    },
    begin: (told) => {
      if (story && story.mine === null && JSON.stringify(told.chosen.methods) === JSON.stringify(story.chosen.methods)) story.mine = told.number;
      Object.assign(played, { number: told.number, chosen: told.chosen, recordings: told.sites.map((site) => empty(site, 0)), numbers: told.sites.map(() => []), answered: null, over: false });
      fresh = false; // what came before is void
      if (!busy && told.number >= mine) adopt();
    },
    piece: (told) => {
      if (told.number !== played.number) return;
      told.views.forEach((piece, k) => { grow(played.recordings[k], piece); played.numbers[k].push({ until: piece.until, ...piece.numbers }); });
      played.over = told.views.every((piece) => piece.over);
      if (played.answered !== null) fresh = true;
      else if (played.over || Math.min(...played.recordings.map((each) => each.until_ms)) >= Math.min(beginMs(), 2000)) newFilms();
    },
    error: (told) => say(told.error),
  };
  /* A story goes on as the map does: it waits while the map is paused, and while its world is not there yet. */
  const tellStory = (told) => {
    delete document.body.dataset.paused;
    by("map-speed").value = told.speed;
    for (const button of by("stories").children) button.setAttribute("aria-pressed", button.textContent === told.title);
    story = { ...told, place: -1, passed: 0, seen: null, mine: null };
    nextStep();
    choose(told.chosen);
  };
  const nextStep = () => {
    story.place += 1;
    by("story").replaceChildren(element("b", `${story.place + 1}/${story.steps.length} `), story.steps[story.place].text);
  };
  setInterval(() => {
    if (!story || story.seen === null || played.answered === null) return;
    const now = player.time();
    story.passed += Math.max(0, now - story.seen) / story.speed / 1000;
    story.seen = now;
    if (story.place + 1 < story.steps.length && story.passed >= story.steps[story.place + 1].after_s) nextStep();
  }, 200);
  by("scenario").addEventListener("change", () => choose({ ...chosen, scenario: by("scenario").value, numbers: offer.scenarios[by("scenario").value] }));
  for (const id of ["method-a", "method-b"]) by(id).addEventListener("change", () => choose({ ...chosen, methods: [by("method-a").value, by("method-b").value].filter((name) => name) }));
  by("viewer-en").addEventListener("change", () => player.paint());
  by("export").addEventListener("click", async () => {
    try { const told = await post("export", { until_ms: Math.max(1, player.time()) }); say(`Wrote ${told.files.join(", ")} to ${told.folder}. Compare with: ${told.command}`); } catch (error) { say(error.message); }
  });
  followTheme(player.refresh);
  window.addEventListener("resize", () => player.refresh());
  by("map").playground = played;
  const stream = new EventSource("events");
  stream.onmessage = (event) => { const told = JSON.parse(event.data); heard[told.kind](told); };
  stream.onerror = () => say("The playground has ended; start it again with cosmo play.");
  document.body.dataset.ready = "yes";
})();
