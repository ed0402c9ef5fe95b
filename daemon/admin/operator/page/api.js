// Calls of /api/v1, with the token where the listener asks for one.
import {$} from "/page/words.js";

const TOKEN = "warmpath-admin-token";
const PATIENCE = 5000; // ms; a router that hangs takes connections and never answers

let asking = null; // the login that is open

function login(refused) {
  asking ??= new Promise((done) => {
    $("refused").textContent = refused ? "That token was refused." : "";
    $("token").value = "";
    $("login").showModal();
    $("login").onclose = () => {
      sessionStorage.setItem(TOKEN, $("token").value.trim());
      $("token").value = "";
      asking = null;
      done();
    };
  });
  return asking;
}

// call fetches a path. how.signal is what ends it; without one it ends after how.patience ms, its body included.
export async function call(path, how = {}) {
  for (;;) {
    const token = sessionStorage.getItem(TOKEN), headers = {...how.headers};
    if (token) headers.Authorization = "Bearer " + token;
    const r = await fetch(path, {...how, headers, cache: "no-store", signal: how.signal ?? AbortSignal.timeout(how.patience ?? PATIENCE)});
    if (r.status !== 401) return r;
    if (token === sessionStorage.getItem(TOKEN)) sessionStorage.removeItem(TOKEN);
    await login(Boolean(token));
  }
}

export async function json(path, how) {
  const r = await call(path, how), text = await r.text();
  let v;
  try { v = JSON.parse(text); } catch { v = {error: text.slice(0, 200)}; }
  if (!r.ok) throw new Error(v.error || r.status);
  return v;
}
