(() => {
  const steps = [...document.querySelectorAll('ol.steps > li')];
  const marks = [...document.querySelectorAll('[data-step]')];
  const count = document.getElementById('count');
  const play = document.getElementById('play');
  let at = steps.length, timer = 0;
  const show = n => {
    at = Math.max(1, Math.min(steps.length, n));
    steps.forEach((s, i) => { s.hidden = i >= at; s.classList.toggle('now', i === at - 1); });
    marks.forEach(m => { const k = +m.dataset.step; m.classList.toggle('later', k > at); m.classList.toggle('now', k === at); });
    count.textContent = 'step ' + at + ' of ' + steps.length;
    if (at === steps.length) stop();
  };
  const stop = () => { clearInterval(timer); timer = 0; play.textContent = 'play'; };
  play.onclick = () => {
    if (timer) return stop();
    show(at === steps.length ? 1 : at);
    timer = setInterval(() => show(at + 1), 900);
    play.textContent = 'pause';
  };
  document.getElementById('back').onclick = () => { stop(); show(at - 1); };
  document.getElementById('next').onclick = () => { stop(); show(at + 1); };
  addEventListener('keydown', e => {
    if (e.key === 'ArrowRight') { stop(); show(at + 1); }
    if (e.key === 'ArrowLeft') { stop(); show(at - 1); }
  });
  document.getElementById('player').hidden = false;
})();
