// Runs in a copy of a report, in a frame, and leaves what it measured as JSON in the page around it.
(() => {
  const root = document.documentElement;
  const rect = (element) => {
    const { left, top, right, bottom } = element.getBoundingClientRect();
    return { left, top, right, bottom };
  };
  const all = (selector) => [...document.querySelectorAll(selector)];
  const shapes = [...all("svg.line rect.box"), ...all("svg.line text.name")].map(rect);
  // Half a pixel is rounding.
  const meet = (a, b) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > 0.5 &&
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 0.5;
  let overlaps = 0;
  shapes.forEach((a, at) => shapes.slice(at + 1).forEach((b) => (overlaps += meet(a, b) ? 1 : 0)));
  const outside = all("body *").filter((element) => rect(element).right > root.clientWidth + 0.5);
  const measured = {
    width: innerWidth,
    lanes: all("svg.line g.lane").length,
    boxes: all("svg.line rect.box").length,
    overlaps,
    overflow: root.scrollWidth - root.clientWidth,
    outside: outside.map((element) => element.outerHTML.slice(0, 80)).slice(0, 3),
    requests: performance.getEntriesByType("resource").length,
    scripts: document.scripts.length - 1,
  };
  const note = parent.document.createElement("pre");
  note.id = "measured";
  note.textContent = JSON.stringify(measured);
  parent.document.body.append(note);
})();
