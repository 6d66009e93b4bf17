// An app without a backend, on the habits of its libraries: discovery, a code by PKCE, tokens, keys, user info and revocation, all
// by fetch. A window of its own tells the window that opened it.
const redirect = "{{app}}/alone.html";
const client = "com.example.page";
const outcome = document.querySelector("#outcome");
const say = (text) => { outcome.textContent += text + "\n"; };
const base64URL = (octets) =>
  btoa(String.fromCharCode(...new Uint8Array(octets))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const octets = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
const random = () => base64URL(crypto.getRandomValues(new Uint8Array(32)));
const discover = async () => (await fetch("{{postern}}/.well-known/openid-configuration")).json();
const post = (address, fields) => fetch(address, {method: "POST", body: new URLSearchParams({client_id: client, ...fields})});

async function request(mode) {
  const {authorization_endpoint} = await discover();
  const [verifier, state, nonce] = [random(), random(), random()];
  sessionStorage.setItem("asked", JSON.stringify({verifier, state, nonce}));
  const challenge = base64URL(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier)));
  return authorization_endpoint + "?" + new URLSearchParams({
    client_id: client, redirect_uri: redirect, response_type: "code", response_mode: mode, scope: "openid email", state, nonce,
    code_challenge: challenge, code_challenge_method: "S256",
  });
}

async function finish(text) {
  const answer = new URLSearchParams(text.slice(1));
  const {verifier, state, nonce} = JSON.parse(sessionStorage.getItem("asked"));
  if (answer.get("state") !== state || answer.get("iss") !== "{{postern}}") return say("another answer");
  if (answer.has("error")) return say("error " + answer.get("error"));
  const metadata = await discover();
  const exchanged = await post(
    metadata.token_endpoint,
    {grant_type: "authorization_code", code: answer.get("code"), redirect_uri: redirect, code_verifier: verifier});
  const tokens = await exchanged.json();
  if (!exchanged.ok) return say("token " + exchanged.status + " " + tokens.error);

  const [head, body, signature] = tokens.id_token.split(".");
  const [header, claims] = [head, body].map((part) => JSON.parse(new TextDecoder().decode(octets(part))));
  const {keys} = await (await fetch(metadata.jwks_uri)).json();
  const algorithm = {name: "RSASSA-PKCS1-v1_5", hash: "SHA-256"};
  const key = await crypto.subtle.importKey("jwk", keys.find((key) => key.kid === header.kid), algorithm, false, ["verify"]);
  const holds = await crypto.subtle.verify(algorithm, key, octets(signature), new TextEncoder().encode(head + "." + body));
  if (!holds || claims.nonce !== nonce || claims.aud !== client) return say("a wrong identity token");

  const bearer = {headers: {Authorization: "Bearer " + tokens.access_token}};
  const user = await (await fetch(metadata.userinfo_endpoint, bearer)).json();
  if (user.sub !== claims.sub) return say("another user");
  const again = await post(
    metadata.token_endpoint,
    {grant_type: "authorization_code", code: "pc_wrong", redirect_uri: redirect, code_verifier: verifier});
  say("a wrong code is " + (await again.json()).error);
  const revoked = await post(metadata.revocation_endpoint, {token: tokens.access_token});
  const after = await fetch(metadata.userinfo_endpoint, bearer);
  say("revoked " + revoked.status + ", then " + after.status);
  say("signed in as " + user.email);
}

// What a page of an origin that no app has may read.
async function foreign() {
  const metadata = await discover();
  say("keys " + (await (await fetch(metadata.jwks_uri)).json()).keys.some((key) => key.kty === "RSA"));
  const fields = {grant_type: "authorization_code", code: "pc_wrong", redirect_uri: redirect, code_verifier: random()};
  const bearer = {headers: {Authorization: "Bearer at_wrong"}};
  for (const [name, ask] of [
    ["token", () => post(metadata.token_endpoint, fields)],
    ["revocation", () => post(metadata.revocation_endpoint, {token: "at_wrong"})],
    ["userinfo", () => fetch(metadata.userinfo_endpoint, bearer)],
  ]) say(name + " " + await ask().then((answer) => answer.status, (error) => error.name));
  say("done");
}

document.querySelector("#here").addEventListener("click", async () => { location = await request("query"); });
document.querySelector("#foreign").addEventListener("click", foreign);
document.querySelector("#popup").addEventListener("click", async () => {
  // At once, while the press counts.
  const popup = open("about:blank", "sign-in", "popup");
  popup.location = await request(new URLSearchParams(location.search).get("mode") ?? "query");
  let isAnswered = false;
  addEventListener("message", (event) => {
    if (event.source !== popup || event.origin !== location.origin) return;
    isAnswered = true;
    finish(event.data);
  });
  const timer = setInterval(() => {
    if (!popup.closed) return;
    clearInterval(timer);
    // The message was on its way before the window closed.
    setTimeout(() => { if (!isAnswered) say("closed without an answer"); }, 1000);
  }, 50);
});

const answer = [location.search, location.hash].find((text) => /[?#&](code|error)=/.test(text));
if (answer && opener && opener !== window) {
  opener.postMessage(answer, location.origin);
  close();
} else if (answer) {
  history.replaceState(null, "", location.pathname);
  finish(answer);
}
