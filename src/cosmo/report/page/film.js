  /* ---- a recording as a film: where every task and status is at any time ---- */
  const gone = -1; // no such node; of a task's stay: not there
  const asTimes = (list) => Float64Array.from(list, (value) => (value === null ? NaN : value));
  /* The first place in a sorted list whose value is greater. */
  const after = (sorted, value) => {
    let low = 0, high = sorted.length;
    while (low < high) { const middle = (low + high) >> 1; if (sorted[middle] <= value) low = middle + 1; else high = middle; }
    return low;
  };
  const fadeMs = 25; // how long a task that was rejected, refused or lost stays visible: there is nothing more to follow
  const fateName = ["open", "in time", "late", "refused", "lost", "rejected", "tenant"];
  const [isOpen, isInTime, isLate, isRefused, isLost, isRejected, isTenant] = fateName.keys();

  const filmOf = (recording) => {
    const { tasks: t, map, reach } = recording, many = t.time.length, all = many + map.tenants.sn.length;
    const ens = recording.ens, sns = Math.max(map.sn_slots.length, 1), own = (name) => asTimes(map.tasks[name]);
    const generated = own("generated"), decided = own("decided"), ended = asTimes(t.finished), heard = own("heard");
    const stay = (name) => asTimes([...map.tasks[name], ...map.tenants[name]]);
    const reached = stay("reached"), began = stay("began"), left = stay("left");
    const en = Int32Array.from(t.en), fate = Uint8Array.from(map.tasks.fate);
    const offloads = (k) => t.action[k] > 0 && t.action[k] <= recording.sns;
    const sn = Int32Array.from({ length: all }, (_, k) => (k >= many ? map.tenants.sn[k - many] : offloads(k) ? reach[en[k]][t.action[k] - 1] : gone));
    const trips = [...Array(many).keys()].filter((k) => offloads(k) && reached[k] >= 0).map((k) => reached[k] - decided[k]).sort((a, b) => a - b);
    const usual = trips.length ? trips[trips.length >> 1] : 5; // of a task that found its SN down, nobody noted the arrival
    const arrival = (k) => (reached[k] >= 0 ? reached[k] : fate[k] === isRefused ? ended[k] : decided[k] + usual);
    const over = (k) => {
      if (k >= many) return left[k] >= 0 ? left[k] : Infinity;
      if (fate[k] === isOpen) return Infinity;
      if (fate[k] === isRejected || (fate[k] === isRefused && sn[k] === gone)) return decided[k] + fadeMs;
      if (fate[k] === isRefused) return (heard[k] >= 0 ? heard[k] : ended[k]) + fadeMs;
      if (fate[k] === isLost) return (left[k] >= 0 ? left[k] : arrival(k)) + fadeMs;
      return Math.max(ended[k], left[k] || 0);
    };
    const begin = Float64Array.from({ length: all }, (_, k) => (k < many ? generated[k] : reached[k]));
    const order = Int32Array.from(begin.keys()).filter((k) => begin[k] >= 0).sort((a, b) => begin[a] - begin[b]);
    const starts = Float64Array.from(order, (k) => begin[k]), ends = Float64Array.from({ length: all }, (_, k) => over(k));
    const until = recording.until_ms || recording.window_ms;
    const longest = order.reduce((most, k) => Math.max(most, Math.min(ends[k], until) - begin[k]), 0);

    /* Statuses, and for each link those that were taken, in order. */
    const s = map.statuses, sent = asTimes(s.sent), taken = asTimes(s.taken), link = Int32Array.from(s.en, (each, k) => each * sns + s.sn[k]);
    const first = new Int32Array(ens * sns + 1), list = new Int32Array(s.en.length), transit = sent.reduce((most, time, k) => (taken[k] - time > most ? taken[k] - time : most), 1);
    link.forEach((each, k) => { if (taken[k] >= 0) first[each + 1] += 1; });
    for (let each = 0; each < ens * sns; each += 1) first[each + 1] += first[each];
    const next = first.slice();
    link.forEach((each, k) => { if (taken[k] >= 0) list[next[each]++] = k; });
    const belief = (whose, about, time) => {
      let low = first[whose * sns + about], high = first[whose * sns + about + 1];
      const none = low;
      while (low < high) { const middle = (low + high) >> 1; if (taken[list[middle]] <= time) low = middle + 1; else high = middle; }
      return low > none ? { told: s.told[list[low - 1]], age: time - sent[list[low - 1]] } : null;
    };
    const outages = map.events.time.map((time, k) => ({ time, node: map.events.node[k], what: map.events.what[k] }));
    const downs = (time) => {
      const found = new Set();
      for (const each of outages) if (each.time <= time && each.what) found[each.what === 1 ? "add" : "delete"](each.node - ens);
      return found;
    };

    /* The stage of a task at a time, and how far it is in it (0 to 1). */
    const share = (from, to, time) => (to > from ? Math.min(1, Math.max(0, (time - from) / (to - from))) : 1);
    const place = (k, time) => {
      if (!(begin[k] <= time) || time >= ends[k]) return null;
      if (k < many && time < decided[k]) return { stage: "air", share: share(generated[k], decided[k], time) };
      if (k < many && (fate[k] === isRejected || (fate[k] === isRefused && sn[k] === gone))) return { stage: "out", share: share(decided[k], ends[k], time) };
      if (k < many && sn[k] !== gone && time < arrival(k)) return { stage: "up", share: share(decided[k], arrival(k), time) };
      if (k < many && fate[k] === isRefused) return time < heard[k] ? { stage: "down", share: share(ended[k], heard[k], time) } : { stage: "out", share: share(heard[k], ends[k], time) };
      if (reached[k] >= 0 && time < reached[k]) return null;
      if (!(time >= left[k])) return reached[k] >= 0 ? { stage: time >= began[k] ? "run" : "wait", share: time >= began[k] ? share(began[k], left[k], time) : 0 } : { stage: "gone", share: share(arrival(k), ends[k], time) };
      if (fate[k] === isLost) return { stage: "gone", share: share(left[k], ends[k], time) };
      return sn[k] === gone ? null : { stage: "down", share: share(left[k], ended[k], time) };
    };
    const at = (time) => {
      const nodes = (count) => Array.from({ length: count }, () => ({ running: [], waiting: [] }));
      const found = { time, en: nodes(ens), sn: nodes(sns), moving: [], pulses: [], down: downs(time) };
      for (let i = after(starts, time - longest - 1e-9), end = after(starts, time); i < end; i += 1) {
        const k = order[i], here = place(k, time);
        if (!here) continue;
        const node = sn[k] === gone ? found.en[en[k]] : found.sn[sn[k]];
        if (here.stage === "run") node.running.push(k);
        else if (here.stage === "wait") node.waiting.push(k);
        else found.moving.push({ k, ...here });
      }
      for (const node of [...found.en, ...found.sn]) node.waiting.sort((a, b) => reached[a] - reached[b]);
      for (let k = after(sent, time - transit - 1e-9), end = after(sent, time); k < end; k += 1) {
        if (time < taken[k]) found.pulses.push({ en: s.en[k], sn: s.sn[k], share: share(sent[k], taken[k], time) });
      }
      return found;
    };
    /* The largest number of tasks in an SN: bars of all times have one scale. */
    const changes = [...Array(all).keys()].filter((k) => sn[k] !== gone && reached[k] >= 0).flatMap((k) => [[reached[k], 1, sn[k]], [left[k], -1, sn[k]]])
      .filter(([time]) => time >= 0).sort((a, b) => a[0] - b[0] || a[1] - b[1]), inside = new Int32Array(sns);
    const most = changes.reduce((found, [, by, node]) => Math.max(found, inside[node] += by), Math.max(...map.sn_slots, 4));
    const done = (wanted) => Float64Array.from([...Array(many).keys()].filter((k) => fate[k] !== isOpen && (fate[k] === isInTime) === wanted).map((k) => ended[k] || decided[k])).sort();
    const good = done(true), bad = done(false);
    return {
      ens, sns, reach, most, until, many, en, sn, fate: (k) => (k >= many ? isTenant : fate[k]), enSlots: map.en_slots, snSlots: map.sn_slots, decided, sends: recording.status,
      at, place, belief,
      soFar: (time) => ({ good: after(good, time), ended: after(good, time) + after(bad, time), statuses: after(sent, time) }),
      lastDecision: (time) => after(decided, time) - 1,
    };
  };

  /* ---- the worst moments: decisions that went wrong although a route was feasible ---- */
  const momentMs = 100, mostMoments = 5;
  const worstMoments = (recording, film) => {
    const t = recording.tasks, start = Math.min(recording.warmup_ms, film.until);
    const regretted = t.time.map((_, k) => k).filter((k) => t.time[k] >= start && [isLate, isRefused, isLost, isRejected].includes(film.fate(k)) && t.feasible[k].some((yes) => yes));
    const times = regretted.map((k) => t.time[k]), found = [];
    const windows = times.map((time, k) => ({ from: time, k, count: after(times, time + momentMs) - k })).sort((a, b) => b.count - a.count);
    for (const each of windows) {
      if (found.length === mostMoments || each.count < 2) break;
      if (found.every((other) => Math.abs(other.from - each.from) > momentMs)) found.push(each);
    }
    return found.map(({ from, k, count }) => {
      const these = regretted.slice(k, k + count), target = (one) => film.sn[one], counts = new Map();
      for (const one of these) counts.set(target(one), (counts.get(target(one)) || 0) + 1);
      const [node, there] = [...counts].sort((a, b) => b[1] - a[1])[0], rejected = these.filter((one) => film.fate(one) === isRejected).length;
      const others = unique(these.filter((one) => film.sn[one] === node).map((one) => film.en[one])).length;
      const words = `${count} tasks in ${momentMs} ms went wrong although a route was feasible when they were decided`;
      const rush = node !== gone && there > rejected ? `; ${there} of them were sent to SN ${node}${others > 1 ? ` by ${others} ENs: everybody rushed there` : ""}` : rejected > count / 2 ? `; ${rejected} of them were rejected` : "";
      return { time: from, count, text: `At ${from.toFixed(0)} ms: ${words}${rush}.` };
    });
  };
