// What the reference pages do beside being read: search, light and dark, and the tie between a
// byte and its place in the tree. Without this script nothing that can be read is missing.
(function () {
  "use strict";

  // ---- light and dark ----
  var theme = document.getElementById("theme");
  if (theme) theme.addEventListener("click", function () {
    var root = document.documentElement;
    var dark = root.dataset.theme ? root.dataset.theme === "dark"
      : window.matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem("theme", root.dataset.theme); } catch (e) { /* Private windows. */ }
  });

  // ---- versions: the same field in another version ----
  document.querySelectorAll("nav.versions a").forEach(function (a) {
    if (a.getAttribute("href").charAt(0) === "#") return;
    a.addEventListener("click", function () { a.hash = location.hash; });
  });

  // ---- bytes and tree ----
  document.querySelectorAll(".side").forEach(function (side) {
    function show(n) {
      side.querySelectorAll(".on").forEach(function (e) { e.classList.remove("on"); });
      if (n === null) return;
      // A node with parts: all bytes of the rows below it.
      var row = side.querySelector('.tree tr[data-n="' + n + '"]');
      if (!row) return;
      row.classList.add("on");
      var depth = +row.style.getPropertyValue("--d"), numbers = [n];
      for (var next = row.nextElementSibling; next && +next.style.getPropertyValue("--d") > depth; next = next.nextElementSibling)
        numbers.push(next.dataset.n);
      numbers.forEach(function (m) {
        side.querySelectorAll('.bytes td[data-n="' + m + '"]').forEach(function (e) { e.classList.add("on"); });
      });
    }
    function over(event) {
      var at = event.target.closest("[data-n]");
      show(at ? at.dataset.n : null);
    }
    side.querySelectorAll(".bytes, .tree").forEach(function (table) {
      table.addEventListener("mouseover", over);
      table.addEventListener("mouseleave", function () { show(null); });
    });
    var bytes = side.querySelector(".bytes");
    if (bytes) bytes.addEventListener("click", function (event) {
      var at = event.target.closest("[data-n]");
      if (!at) return;
      var row = side.querySelector('.tree tr[data-n="' + at.dataset.n + '"]');
      if (row) location.hash = row.id;
    });
  });

  // ---- search ----
  var input = document.getElementById("q"), hits = document.getElementById("hits");
  if (!input || !hits || !window.WIRE) return;
  var LIMIT = 40, found = [], chosen = 0;

  function look(text) {
    var words = text.toLowerCase().split(/\s+/).filter(Boolean), list = [];
    if (!words.length) return list;
    function score(name, about, extra) {
      var low = name.toLowerCase(), all = low + " " + about.toLowerCase() + " " + extra, points = 0;
      for (var i = 0; i < words.length; i++) {
        var w = words[i];
        if (all.indexOf(w) < 0) return 0;
        points += low === w ? 100 : low.indexOf(w) === 0 ? 40 : low.indexOf(w) >= 0 ? 20 : 1;
      }
      return points;
    }
    // A number is the key of an API before it is the type of a record or an error's code.
    window.WIRE.forEach(function (api, i) {
      var name = api[0], key = String(api[1]), page = name + "-v" + api[2] + ".html";
      var points = words.length === 1 && words[0] === key ? 200 : score(name, api[3], key);
      if (points) list.push({ points: points + (i < window.WIRE_APIS ? 300 : 200), title: name, small: api[3], href: page });
      api[4].forEach(function (field) {
        var path = field[0].replace(/^s\./, ""), last = path.slice(path.lastIndexOf(".") + 1);
        var p = score(last, field[1], name.toLowerCase() + " " + path.toLowerCase());
        if (!p) return;
        var version = field.length > 2 ? field[2] : api[2];
        list.push({
          points: p, title: last, small: name + " " + path + " · " + field[1],
          href: name + "-v" + version + ".html#" + field[0]
        });
      });
    });
    window.WIRE_ERRORS.forEach(function (error) {
      var code = String(error[1]);
      var points = words.length === 1 && words[0] === code ? 350 : score(error[0], error[2], code);
      if (points) list.push({
        points: points + 100, title: error[0], small: "error " + code + " · " + error[2], href: "errors.html#" + error[0]
      });
    });
    list.sort(function (a, b) { return b.points - a.points || a.small.length - b.small.length; });
    return list.slice(0, LIMIT);
  }

  function draw() {
    hits.textContent = "";
    hits.hidden = !input.value.trim();
    if (hits.hidden) return;
    if (!found.length) {
      var none = document.createElement("p");
      none.textContent = "Nothing has this name or says this.";
      hits.appendChild(none);
    }
    found.forEach(function (hit, i) {
      var a = document.createElement("a"), small = document.createElement("small");
      a.href = hit.href;
      a.textContent = hit.title;
      small.textContent = hit.small;
      a.appendChild(small);
      if (i === chosen) a.setAttribute("aria-selected", "true");
      hits.appendChild(a);
    });
    var on = hits.querySelector("[aria-selected]");
    if (on) on.scrollIntoView({ block: "nearest" });
  }

  input.addEventListener("input", function () { found = look(input.value); chosen = 0; draw(); });
  input.addEventListener("focus", function () { if (input.value) draw(); });
  input.addEventListener("keydown", function (event) {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      chosen = Math.max(0, Math.min(found.length - 1, chosen + (event.key === "ArrowDown" ? 1 : -1)));
      draw();
      event.preventDefault();
    } else if (event.key === "Enter" && found[chosen]) {
      location.href = found[chosen].href;
      hits.hidden = true;
    } else if (event.key === "Escape") {
      input.value = "";
      found = [];
      draw();
      input.blur();
    }
  });
  document.addEventListener("keydown", function (event) {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target === input) return;
    input.focus();
    event.preventDefault();
  });
  document.addEventListener("click", function (event) {
    if (!event.target.closest("#hits, .search") || event.target.closest("#hits a")) hits.hidden = true;
  });
})();
