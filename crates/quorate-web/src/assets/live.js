// Follows an open run and a conversation. Texts are set as text, and drawn parts are taken from the server's own pages.

const $ = (selector) => document.querySelector(selector);

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

// An open run: each event has the whole state, which the server draws as well; the page takes the drawn parts.
const live = $("#live");
if (live) {
  const run = encodeURIComponent(live.dataset.run);
  const isDriven = ["here", "elsewhere", "remote"].includes(live.dataset.state);
  const pad = (number) => String(Math.floor(number)).padStart(2, "0");
  // The time that each question has waited goes on between the events.
  const tick = () => {
    if (!isDriven) return;
    for (const time of document.querySelectorAll("#live time")) {
      const seconds = Math.max(0, (Date.now() - Date.parse(time.dateTime)) / 1_000);
      time.textContent = `${Math.floor(seconds / 60)}:${pad(seconds % 60)}${time.dataset.of ?? ""}`;
    }
  };
  let isBusy = false;
  let isStale = false;
  const take = (drawn) => {
    for (const id of ["live-status", "live-spent", "live-members"]) {
      const [shown, made] = [document.getElementById(id), drawn?.getElementById(id)];
      // A status is read aloud when it changes, so its element stays.
      if (made && id !== "live-status") shown.replaceWith(made);
      else if (made && shown.textContent !== made.textContent) shown.textContent = made.textContent;
    }
    tick();
  };
  const refresh = () => {
    isStale = true;
    if (isBusy) return;
    [isBusy, isStale] = [true, false];
    const request = new XMLHttpRequest();
    request.open("GET", `/runs/${run}/live`);
    request.responseType = "document";
    request.addEventListener("loadend", () => {
      take(request.response);
      setTimeout(() => {
        isBusy = false;
        if (isStale) refresh();
      }, 500);
    });
    request.send();
  };
  tick();
  setInterval(tick, 1_000);
  follow(() => {
    const source = new EventSource(`/api/v1/runs/${run}/live/events`);
    source.addEventListener("state", (event) => {
      const { state } = JSON.parse(event.data);
      // Another process took the run up, or none works on it any more: the page says what can be done then.
      if (state !== live.dataset.state && state !== "ended") location.reload();
      else refresh();
    });
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
