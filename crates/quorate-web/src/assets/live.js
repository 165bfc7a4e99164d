// Follows an open run and a conversation. Texts are set as text alone.

const $ = (selector) => document.querySelector(selector);
const grouped = (number) => Number(number).toLocaleString("en-US");

// Browsers allow six streams for each server, so a hidden page keeps none open.
function follow(open) {
  let source;
  const begin = () => {
    source?.close();
    source = open();
  };
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "hidden") source?.close();
    else begin();
  });
  addEventListener("pagehide", () => source?.close());
  if (document.visibilityState !== "hidden") begin();
}

// An open run: each event has the whole state, and the last one reloads the page.
const live = $("#live");
if (live) {
  const run = encodeURIComponent(live.dataset.run);
  const clock = (ms) => (ms < 60_000 ? `${(Math.floor(ms / 100) / 10).toFixed(1)} s` : `${Math.floor(ms / 60_000)} min ${String(Math.floor(ms / 1_000) % 60).padStart(2, "0")} s`);
  let last = null;
  const words = (question) => {
    let text = question.state;
    if (text === "retrying") text = `retrying after ${question.attempts} attempts`;
    const open = question.since && ["asked", "retrying"].includes(question.state);
    const took = open ? Date.now() - Date.parse(question.since) : question.took_ms;
    if (took >= 1_000) text += ` ${open ? "for" : "after"} ${clock(took)}`;
    if (question.bytes !== null) text += `, ${grouped(question.bytes)} bytes so far`;
    return question.why === null ? text : `${text}: ${question.why}`;
  };
  const part = (name, spent, cap) => {
    if (spent === null && cap === null) return [];
    return [cap === null ? `${name} ${spent}` : `${name} ${spent ?? 0} of ${cap}`];
  };
  const number = (value) => (value === null ? null : grouped(value));
  const set = (element, text) => {
    if (element.textContent !== text) element.textContent = text;
  };
  const row = (parent, name, steps) => {
    const line = document.createElement("tr");
    const head = document.createElement("th");
    head.scope = "row";
    head.textContent = name;
    line.append(head, ...steps.map(() => document.createElement("td")));
    parent.append(line);
    return line;
  };
  const show = (state) => {
    last = state;
    // Another process took the run up, or none works on it any more: the page says what can be done then.
    if (state.state !== live.dataset.state && state.state !== "ended") {
      location.reload();
      return;
    }
    const heads = $("#live-members thead tr");
    while (heads.cells.length <= state.steps.length) {
      const head = document.createElement("th");
      head.scope = "col";
      heads.append(head);
    }
    state.steps.forEach((step, at) => set(heads.cells[at + 1], step));
    const body = $("#live-members tbody");
    state.members.forEach((member, at) => {
      const line = body.rows[at] ?? row(body, member.member, state.steps);
      state.steps.forEach((step, column) => {
        while (line.cells.length <= column + 1) line.insertCell();
        const question = member.questions.find((one) => one.step === step);
        set(line.cells[column + 1], question ? words(question) : "");
      });
    });
    const { spent, budget } = state;
    const parts = [
      ...part("calls", number(spent.calls), number(budget.calls)),
      ...part("tokens", number(spent.tokens), number(budget.tokens)),
      ...part("US$", spent.usd, budget.usd),
    ];
    set($("#live-spent"), parts.join(", "));
    set($("#live-status"), `${state.done} of ${state.asked} answers`);
    const cancel = $("#live-cancel");
    if (cancel) cancel.hidden = state.job === null;
  };
  // The time that each question has waited goes on between the events.
  setInterval(() => last && show(last), 1_000);
  follow(() => {
    const source = new EventSource(`/api/v1/runs/${run}/live/events`);
    source.addEventListener("state", (event) => show(JSON.parse(event.data)));
    source.addEventListener("end", () => {
      source.close();
      location.href = `/runs/${run}`;
    });
    return source;
  });
}

// A conversation: new turns are added, and it says who is asked and who is next.
const turns = $("#turns[data-talk]");
if (turns) {
  let last = turns.dataset.last;
  const element = (name, className, text) => {
    const made = document.createElement(name);
    made.className = className;
    made.textContent = text;
    return made;
  };
  const add = (turn) => {
    turns.querySelector(".empty")?.remove();
    const article = element("article", "turn", "");
    const speaker = element("h2", "speaker", `${turn.participant} `);
    const time = element("time", "note", turn.timestamp);
    time.dateTime = turn.timestamp;
    speaker.append(time);
    article.append(speaker, element("p", "prose", turn.content));
    turns.append(article);
  };
  const doing = (one) => {
    if (one.doing === "asked") return "is asked";
    if (one.doing === "answered") return "has answered";
    return one.doing === "failed" ? `has not answered: ${one.why}` : "";
  };
  const show = (state) => {
    const { next } = state;
    const asked = state.participants.filter((one) => one.doing === "asked").map((one) => one.name);
    if (asked.length) $("#next").textContent = `Asked now: ${asked.join(", ")}.`;
    else if (next.turn === null) $("#next").textContent = `No turn is open: ${next.why}.`;
    else if (!next.participants.length) $("#next").textContent = `No participant is next: ${next.why}.`;
    else $("#next").textContent = `Next: ${next.participants.join(", ")} (${next.why}).`;
    for (const one of state.participants) {
      const line = [...document.querySelectorAll("[data-participant]")].find(
        (row) => row.dataset.participant === one.id,
      );
      if (!line) continue;
      line.cells[2].textContent = doing(one);
      const remembers = Object.keys(one.state).length ? JSON.stringify(one.state, null, 2) : "";
      line.cells[3].firstElementChild.textContent = one.state_error ?? remembers;
    }
  };
  follow(() => {
    const after = new URLSearchParams(last ? { after: last } : {});
    const source = new EventSource(`/api/v1/talks/${encodeURIComponent(turns.dataset.talk)}/events?${after}`);
    source.addEventListener("turn", (event) => {
      last = event.lastEventId || last;
      add(JSON.parse(event.data));
    });
    source.addEventListener("state", (event) => show(JSON.parse(event.data)));
    source.addEventListener("reset", () => {
      source.close();
      location.reload();
    });
    return source;
  });
}

for (const field of document.querySelectorAll("[data-send]")) {
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    field.form.requestSubmit();
  });
}
