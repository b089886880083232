  /* ---- time: one or two maps in step, played, stepped, or moved by hand ---- */
  const speeds = [["0.005", "1/200"], ["0.01", "1/100"], ["0.02", "1/50"], ["0.05", "1/20"], ["0.1", "1/10"], ["1", "real time"]];
  const legendMarks = [[1, "in time"], [2, "late"], [3, "refused, no room"], [4, "lost in an outage"], [5, "rejected by its EN"], [0, "not known yet"], [6, "task of a tenant"]];
  const markIcon = (fate) => {
    const icon = element("canvas");
    icon.width = icon.height = 28;
    icon.setAttribute("aria-hidden", "true");
    const pen = icon.getContext("2d");
    if (!pen) return icon;
    pen.fillStyle = mapTints[fate];
    pen.beginPath();
    traceMark(pen, mapShapes[fate], 14, 14, 8);
    pen.fill();
    return icon;
  };
  /* Groups of a large site, to be opened one at a time. */
  const offerGroups = (map) => {
    const groups = map.groups(), items = [["", "groups"]];
    for (const kind of ["en", "sn"]) groups[kind].forEach((nodes, k) => { if (nodes.length > 1) items.push([`${kind} ${k}`, rowName(kind.toUpperCase(), nodes)]); });
    fill("map-open", items.map((item) => item[0]), items.map((item) => item[1]), "");
  };
  const openGroup = (maps) => {
    const [kind, group] = by("map-open").value.split(" ");
    for (const map of maps) { map.unfold("en", kind === "en" ? Number(group) : null); map.unfold("sn", kind === "sn" ? Number(group) : null); }
  };
  /* `whose` says whose belief is drawn (an EN, or null: all), `decided` hears of the decision that is shown, `grows` says whether
     films are still being made; `caption` fills in a title of its own (its element, the view, the time). */
  const mapPlayer = ({ whose, decided, grows = () => false, caption = null }) => {
    const views = ["a", "b"].map((name) => ({ figure: by(`map-figure-${name}`), title: by(`map-title-${name}`), map: siteMap(by(`map-${name}`)), film: null, name: "", places: [] }));
    const slider = by("map-time"), state = { time: 0, playing: false, last: 0, told: 0, moments: [], moment: -1, frames: [], task: null };
    const shown = () => views.filter((view) => view.film);
    const end = () => Math.min(...shown().map((view) => view.film.until));
    const belief = (film, time) => {
      if (!film.sends) return null;
      const en = whose();
      if (en !== null && en < film.ens) return (sn) => film.belief(en, sn, time);
      return (sn) => {
        const all = [...Array(film.ens).keys()].map((each) => film.belief(each, sn, time)).filter((each) => each).sort((a, b) => a.told - b.told);
        return all.length ? all[all.length >> 1] : null;
      };
    };
    const percent = (film, time) => {
      const { good, ended, statuses } = film.soFar(time);
      return `${ended ? `${((100 * good) / ended).toFixed(1)} % of ${ended} tasks in time` : "no task has ended"}, ${statuses} statuses so far`;
    };
    const summary = (view, moment) => {
      const nodes = [...moment.en, ...moment.sn], count = (list) => list.reduce((sum, each) => sum + each, 0), { film } = view;
      const waiting = count(nodes.map((node) => node.waiting.length)), running = count(nodes.map((node) => node.running.length)), inside = moment.sn.map((node) => node.running.length + node.waiting.length);
      const fullest = inside.indexOf(Math.max(...inside)), known = belief(film, moment.time), told = known && known(fullest), down = [...moment.down];
      const who = whose() === null ? "an EN in the middle" : `EN ${whose()}`;
      return `${view.name ? `${view.name}, ` : ""}${moment.time.toFixed(1)} ms: ${moment.moving.length} tasks are on their way, ${running} run, ${waiting} wait. SN ${fullest} has most tasks, ${inside[fullest]}`
        + `${known ? (told ? `; the last status at ${who} says ${told.told} tasks and is ${told.age.toFixed(0)} ms old` : `; ${who} has received no status yet`) : "; this method sends no status"}.${down.length ? ` Down: ${down.map((sn) => `SN ${sn}`).join(", ")}.` : ""}`;
    };
    const paint = () => {
      const began = performance.now();
      for (const view of shown()) {
        const moment = view.film.at(state.time);
        if (calm.matches) moment.pulses = [];
        view.places = view.map.draw(moment, { belief: belief(view.film, state.time), task: state.task });
        view.moment = moment;
      }
      state.frames.push(performance.now() - began);
      if (state.frames.length > 500) state.frames.shift();
      slider.value = state.time;
      by("map-clock").textContent = `${state.time.toFixed(1)} ms`;
    };
    /* Words follow when time stands still, and not at every frame. */
    const tell = () => {
      for (const view of shown()) {
        if (caption) caption(view.title, view, state.time);
        else view.title.textContent = `${view.name}${view.name ? ": " : ""}${percent(view.film, state.time)}`;
      }
      if (!state.playing) by("map-summary").textContent = shown().map((view) => summary(view, view.moment)).join(" ");
      const k = state.task === null ? shown()[0].film.lastDecision(state.time) : state.task;
      if (decided && k >= 0) decided(k, state.playing);
    };
    const seek = (time, task = null) => {
      state.time = Math.max(0, Math.min(end(), time));
      state.task = task;
      paint();
      tell();
    };
    const play = (on) => {
      const runs = state.playing;
      state.playing = on && shown().length > 0;
      if (state.playing && !grows() && state.time >= end()) state.time = 0;
      if (state.playing) { state.task = null; by("map-summary").textContent = ""; } // the panel follows time again; words would be old at once
      by("map-play").textContent = state.playing ? "pause" : "play";
      state.last = performance.now();
      if (state.playing && !runs) requestAnimationFrame(frame);
      else if (!state.playing && shown().length) tell();
    };
    const frame = (now) => {
      if (!state.playing) return;
      const passed = Math.max(0, Math.min(250, now - state.last)), pause = calm.matches ? 500 : 0; // with reduced motion: two still pictures a second
      if (passed >= pause || now - state.last >= pause) {
        state.time = Math.min(end(), state.time + (pause ? now - state.last : passed) * Number(by("map-speed").value));
        state.last = now;
        paint();
        if (now - state.told > 250) { state.told = now; tell(); }
        if (state.time >= end() && !grows()) { play(false); return; }
      }
      requestAnimationFrame(frame);
    };
    const nextDecision = () => {
      const film = shown()[0].film;
      let k = state.task === null ? film.lastDecision(state.time) + 1 : state.task + 1;
      while (k < film.many && whose() !== null && film.en[k] !== whose()) k += 1;
      play(false);
      if (k < film.many && film.decided[k] <= end()) seek(film.decided[k], k);
    };
    const toMoment = (place) => {
      if (!state.moments.length) return;
      state.moment = (place + state.moments.length) % state.moments.length;
      const moment = state.moments[state.moment];
      play(false);
      by("map-moment").textContent = moment.text;
      seek(moment.time);
    };
    const show = (chosen, moments = []) => {
      views.forEach((view, k) => {
        view.film = (chosen[k] || {}).film || null;
        view.name = (chosen[k] || {}).name || "";
        view.figure.hidden = !view.film;
      });
      by("map-figures").dataset.count = shown().length;
      for (const view of shown()) view.map.show(view.film);
      state.moments = moments;
      state.moment = -1;
      by("map-moment").textContent = "";
      by("map-worst").disabled = !moments.length;
      by("map-worst").textContent = moments.length ? `worst moments (${moments.length})` : "no bad moment";
      slider.max = Math.ceil(end());
      offerGroups(shown()[0].map);
      seek(Math.min(state.time, end()), state.task);
    };
    fill("map-speed", speeds.map((each) => each[0]), speeds.map((each) => each[1]), "0.02");
    by("map-legend").replaceChildren(...legendMarks.map(([fate, text]) => { const item = element("span"); item.append(markIcon(fate), text); return item; }),
      element("span", "bars: tasks in a node, slots first"), element("span", "orange line under a bar: the last status at the EN, dashed up to what is true"), element("span", "blue rings: statuses under way"));
    by("map-play").addEventListener("click", () => play(!state.playing));
    by("map-back").addEventListener("click", () => { play(false); seek(state.time - 10); });
    by("map-on").addEventListener("click", () => { play(false); seek(state.time + 10); });
    by("map-next").addEventListener("click", nextDecision);
    by("map-worst").addEventListener("click", () => toMoment(state.moment + 1));
    by("map-open").addEventListener("change", () => { openGroup(shown().map((view) => view.map)); paint(); });
    slider.addEventListener("input", () => { play(false); seek(Number(slider.value)); });
    by("map").addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey || event.target.matches("select, button, input:not([type=range])")) return;
      const act = { " ": () => play(!state.playing), n: nextDecision, w: () => toMoment(state.moment + 1), p: () => play(!state.playing) }[event.key];
      if (act) { act(); event.preventDefault(); }
    });
    views.forEach((view) => by(view === views[0] ? "map-a" : "map-b").addEventListener("click", (event) => {
      const near = view.places.map((each) => [Math.hypot(each.x - event.offsetX, each.y - event.offsetY), each.task]).sort((a, b) => a[0] - b[0])[0];
      if (view === views[0] && near && near[0] < 12 && near[1] < view.film.many) { state.task = near[1]; if (decided) decided(near[1], false); paint(); }
    }));
    return {
      ready: views.every((view) => view.map.ready), show, seek, play, toMoment, views, frames: state.frames, paint,
      time: () => state.time, playing: () => state.playing,
      refresh: () => { for (const view of shown()) view.map.refresh(); if (shown().length) paint(); },
      /* Films that grow: what is new is seen from the next frame on. */
      replace: (films) => { films.forEach((film, k) => { views[k].film = film; views[k].map.show(film); }); slider.max = Math.ceil(end()); paint(); },
    };
  };
