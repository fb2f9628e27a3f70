"""The page of `film.save_html`, a jinja2 template: no script, style or picture comes from elsewhere."""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }}</title>
<style>
:root { color-scheme: light dark; --page: #f3f5f8; --card: #ffffff; --ink: #1c2430; --faint: #66707d; --edge: #d9dfe7;
  --accent: #2f6fb5; }
@media (prefers-color-scheme: dark) { :root { --page: #12161c; --card: #1b2129; --ink: #e8ecf1; --faint: #9aa5b1;
  --edge: #2e3742; --accent: #7ab0ea; } img { filter: brightness(.92); } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.45 system-ui, "DejaVu Sans", sans-serif; }
main { max-width: {{ size[0] + 34 }}px; margin: 0 auto; padding: 20px 16px 32px; }
h1 { font-size: 19px; margin: 0 0 12px; }
figure { margin: 0; background: var(--card); border: 1px solid var(--edge); border-radius: 10px; overflow: hidden; }
img { display: block; width: 100%; height: auto; }
.controls { display: flex; flex-wrap: wrap; align-items: center; gap: 12px; padding: 10px 14px;
  border-top: 1px solid var(--edge); }
button, select { font: inherit; color: var(--ink); background: var(--card); border: 1px solid var(--edge);
  border-radius: 7px; padding: 5px 12px; cursor: pointer; }
button { min-width: 5.5em; }
button:focus-visible, input:focus-visible, select:focus-visible { outline: 2px solid var(--accent); }
input { flex: 1 1 180px; accent-color: var(--accent); }
output { color: var(--faint); font-variant-numeric: tabular-nums; flex: 1 1 100%; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(250px, 1fr)); gap: 4px 26px; margin: 18px 2px 0; }
dl div { display: flex; justify-content: space-between; gap: 12px; padding: 3px 0;
  border-bottom: 1px solid var(--edge); }
dt { color: var(--faint); } dd { margin: 0; text-align: right; overflow-wrap: anywhere;
  font-variant-numeric: tabular-nums; }
</style>
</head>
<body>
<main>
<h1>{{ title }}</h1>
<figure>
<img id="picture" alt="The cluster: racks, machines and GPUs coloured by job, and the queue"
  width="{{ size[0] }}" height="{{ size[1] }}" src="data:image/png;base64,{{ pictures[0] }}">
<div class="controls">
<button id="play" type="button">Play</button>
<input id="place" type="range" min="0" max="{{ pictures | length - 1 }}" value="0" aria-label="Frame">
<select id="speed" aria-label="Speed"><option value="0.25">1/4 x</option><option value="0.5">1/2 x</option>
<option value="1" selected>1 x</option><option value="2">2 x</option><option value="4">4 x</option></select>
<output id="caption">{{ captions[0] }}</output>
</div>
</figure>
{% if facts %}<dl>
{% for name, value in facts %}<div><dt>{{ name }}</dt><dd>{{ value }}</dd></div>{% endfor %}
</dl>{% endif %}
</main>
<script>
"use strict";
const pictures = {{ pictures | tojson }};
const captions = {{ captions | tojson }};
const picture = document.getElementById("picture"), place = document.getElementById("place");
const play = document.getElementById("play"), caption = document.getElementById("caption");
const speed = document.getElementById("speed");
let timer = null;
function show(number) {
  place.value = number;
  picture.src = "data:image/png;base64," + pictures[number];
  caption.textContent = captions[number] + "  (frame " + (number + 1) + " of " + pictures.length + ")";
}
function pause() { clearInterval(timer); timer = null; play.textContent = "Play"; }
function start() {
  if (+place.value === pictures.length - 1) show(0);
  play.textContent = "Pause";
  timer = setInterval(() => {
    if (+place.value === pictures.length - 1) pause(); else show(+place.value + 1);
  }, 1000 / ({{ fps }} * +speed.value));
}
play.addEventListener("click", () => timer === null ? start() : pause());
speed.addEventListener("change", () => { if (timer !== null) { pause(); start(); } });
place.addEventListener("input", () => { pause(); show(+place.value); });
document.addEventListener("keydown", event => {
  if (["INPUT", "SELECT", "BUTTON"].includes(event.target.tagName)) return;
  const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
  if (event.key === " ") { event.preventDefault(); play.click(); }
  else if (step) { pause(); show(Math.min(pictures.length - 1, Math.max(0, +place.value + step))); }
});
show(0);
</script>
</body>
</html>
"""
